"""Client of Repertoire, the server of agent skills.

    from repertoire_client import connect

    with connect("http://127.0.0.1:50051") as client:
        found = client.search("how long a text is")
        skill = client.load(found[0].id)

Messages of the contract are in `repertoire_client.v1`.
"""

from repertoire_client import v1
from repertoire_client._client import Client, connect
from repertoire_client._errors import (
    Conflict,
    Denied,
    NotFound,
    Refused,
    RepertoireError,
    Unavailable,
    Violation,
)
from repertoire_client._session import Answer, Session
from repertoire_client._version import __version__
from repertoire_client._watch import Watch

__all__ = [
    "Answer",
    "Client",
    "Conflict",
    "Denied",
    "NotFound",
    "Refused",
    "RepertoireError",
    "Session",
    "Unavailable",
    "Violation",
    "Watch",
    "__version__",
    "connect",
    "v1",
]
