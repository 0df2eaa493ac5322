"""Where a server is, and whether what goes there can be read on the way."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from repertoire_client._errors import refuse

HINT = "Write it as http://HOST:PORT, https://HOST or HOST:PORT"


class Address(NamedTuple):
    """A host and a port, and how it is spoken to."""

    host: str
    port: int
    is_secure: bool

    @property
    def target(self) -> str:
        """As gRPC wants it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """What is sent there stays on this machine."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse(text: str) -> Address:
    """Reads the address of a server."""
    if "@" in text:
        # It is not repeated: a log may have it.
        raise refuse("INVALID_PARAMETER", "the address of the server has a user or a password", HINT)
    is_bare = "://" not in text
    try:
        url = urlsplit(f"http://{text}" if is_bare else text)
        port = url.port
    except ValueError as error:
        raise refuse("INVALID_PARAMETER", f"'{text}' is not the address of a server: {error}", HINT) from None
    why = None
    if url.scheme not in ("http", "https"):
        why = "it begins with neither http:// nor https://"
    elif not url.hostname:
        why = "it has no host"
    elif is_bare and port is None:
        why = "it has no port"
    elif url.path not in ("", "/") or url.query or url.fragment:
        why = "gRPC has no paths below an address"
    if why:
        raise refuse("INVALID_PARAMETER", f"'{text}' is not the address of a server: {why}", HINT)
    return Address(url.hostname, port or (443 if url.scheme == "https" else 80), url.scheme == "https")
