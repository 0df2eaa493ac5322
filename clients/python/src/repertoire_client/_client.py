"""A connection to a server, and the four things that everybody does with it."""

from __future__ import annotations

import os
import ssl
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

import grpc

from repertoire_client import _folder, v1
from repertoire_client._address import parse
from repertoire_client._calls import Calls
from repertoire_client._errors import refuse
from repertoire_client._session import Session
from repertoire_client._watch import Watch

DEFAULT_SERVER = "http://127.0.0.1:50051"
# As the server has it: a skill of 16 MiB, and what is around it.
MAX_MESSAGE_BYTES = 20 * 1024 * 1024
CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A watch notices that the other machine is gone.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Attempts have waits of their own.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


def connect(
    server: str | None = None,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    allow_token_in_clear: bool = False,
) -> Client:
    """A client of the server at `http://HOST:PORT`, `https://HOST` or `HOST:PORT`, the last in clear.

    `token` goes with every call, never in clear to another machine unless that is allowed. `ca` names a
    file of authorities in PEM to trust beside those of the system. `timeout`: seconds that a call may
    take, attempts and waits included. What is not given comes from REPERTOIRE_SERVER, REPERTOIRE_TOKEN and
    REPERTOIRE_CA. Connects with the first call.
    """
    text = server or os.environ.get("REPERTOIRE_SERVER") or DEFAULT_SERVER
    token = token or os.environ.get("REPERTOIRE_TOKEN")
    ca = ca or os.environ.get("REPERTOIRE_CA")
    address = parse(text)
    metadata = [(name.lower(), value) for name, value in (headers or {}).items()]
    if token:
        metadata.append(("authorization", f"Bearer {token}"))
    has_secret = any(name == "authorization" for name, _ in metadata)
    if has_secret and not (address.is_secure or address.is_local or allow_token_in_clear):
        message = f"refusing to send a token over plain HTTP to {text}"
        raise refuse("INVALID_PARAMETER", message, "Write https:// where the server has TLS")
    if address.is_secure:
        channel = grpc.secure_channel(address.target, _credentials(ca), options=CHANNEL_OPTIONS)
    else:
        channel = grpc.insecure_channel(address.target, options=CHANNEL_OPTIONS)
    return Client(channel, metadata=metadata, timeout=timeout)


def _credentials(ca: str | os.PathLike[str] | None) -> grpc.ChannelCredentials:
    if not ca:
        return grpc.ssl_channel_credentials()
    try:
        trusted = Path(ca).read_bytes()
    except OSError as error:
        step = "REPERTOIRE_CA and `ca` name a file of certificates in PEM"
        raise refuse("LOCAL_FILE_FAILED", f"{ca}: {error.strerror}", step) from error
    # gRPC takes one list or the other.
    system = ssl.get_default_verify_paths().cafile
    if system:
        trusted += b"\n" + Path(system).read_bytes()
    return grpc.ssl_channel_credentials(trusted)


class Client:
    """A connection to a server. A context manager, and safe for use by several threads.

    The services of the contract are there as they are: `registry`, `lookup`, `composition`, `learning`,
    `tool_host`. Their calls have the same deadline, metadata, attempts and errors as everything here.
    """

    def __init__(self, channel: grpc.Channel, *, metadata: list[tuple[str, str]], timeout: float) -> None:
        self._channel = channel
        calls = grpc.intercept_channel(channel, Calls(metadata, timeout))
        self.registry = v1.RegistryStub(calls)
        self.lookup = v1.LookupStub(calls)
        self.composition = v1.CompositionStub(calls)
        self.learning = v1.LearningStub(calls)
        self.tool_host = v1.ToolHostStub(calls)

    def publish(
        self,
        folder: str | os.PathLike[str],
        id: str = "",
        *,
        change_summary: str = "",
        strict: bool = False,
        activate: bool = True,
    ) -> v1.PublishSkillResponse:
        """Publishes the folder of a skill as `source/author/slug`; without an id as `local/global/NAME`.

        Publishing the same bytes again gives the version that there is. Links, what tools make and files
        of secrets are left out.
        """
        files = [v1.File(path=path, content=content) for path, content in _folder.read(folder).items()]
        request = v1.PublishSkillRequest(
            skill_id=id,
            files=files,
            folder=Path(folder).resolve().name,
            change_summary=change_summary,
            strict=strict,
            activate=activate,
            # An attempt whose answer was lost is not a second write.
            idempotency_key=uuid.uuid4().hex,
        )
        return self.registry.PublishSkill(request)

    def search(self, query: str, limit: int = 10, *, filters: v1.SearchFilters | None = None) -> list[v1.SkillSummary]:
        """Finds skills by words and by meaning, the best first. A skill is found within a second of its
        publish. Facets, pages and how the query was understood: `lookup.Search`."""
        request = v1.SearchRequest(query=query, limit=limit, filters=filters)
        return list(self.lookup.Search(request).results)

    def load(self, skill: str, session: str | None = None) -> Session:
        """Loads a skill, by id or short name, into a session: a new one, or the one of this id."""
        request = v1.LoadSkillRequest(skill_id=skill, session_id=session or "")
        return Session(self, self.lookup.LoadSkill(request))

    def watch(
        self,
        resume_token: str | None = None,
        *,
        skills: Iterable[str] = (),
        types: Iterable[v1.EventType] = (),
    ) -> Watch:
        """What happens to skills, from now on or after a token. Nothing is missed once this returns."""
        return Watch(self, v1.WatchRequest(resume_token=resume_token or "", skill_ids=skills, types=types))

    def close(self) -> None:
        """Closes the connection; calls in work are cancelled."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
