"""What all calls have in common: metadata, a deadline, typed errors, and trying again where that is safe."""

from __future__ import annotations

import random
import time
from collections import namedtuple

import grpc

from repertoire_client import v1
from repertoire_client._errors import RepertoireError, of_call

ATTEMPTS = 6
# Seconds: the first wait is up to this long, each further one up to twice as long.
FIRST_WAIT = 0.25
LONGEST_WAIT = 5.0

# The call was refused before anything was done, whatever it was.
NEVER_BEGAN = frozenset({"OVERLOADED", "TOOL_QUOTA", "WRITE_CONTENTION"})
# Whether it was done is not known; what is idempotent may be sent again.
UNDECIDED = frozenset({"SERVER_UNREACHABLE", "SHUTTING_DOWN", "INDEX_UNAVAILABLE"})
# Their key is for the handler; the server itself does a call with the same key again.
TOOL_CALLS = frozenset({"CallTool", "StreamToolCall"})

_LEVEL_UNKNOWN = 0
_LEVELS = {
    f"/{service.full_name}/{method.name}": method.GetOptions().idempotency_level
    for service in v1.SERVICES
    for method in service.methods
}


class _Details(
    namedtuple("_Details", "method timeout metadata credentials wait_for_ready compression"), grpc.ClientCallDetails
):
    """Of a call, as an interceptor hands them on."""


def wait_before(attempt: int, retry_after: float | None = None) -> float:
    """Seconds to wait before another attempt; `attempt` counts those that failed. Full jitter: clients
    that lost their server together do not come back together."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempt - 1, 16))
    return (retry_after or 0) + random.uniform(0, longest)


def _is_safe(method: str, request: object, error: RepertoireError) -> bool:
    if error.code in NEVER_BEGAN:
        return True
    if error.code not in UNDECIDED:
        return False
    if _LEVELS.get(method, _LEVEL_UNKNOWN) != _LEVEL_UNKNOWN:
        return True
    return bool(getattr(request, "idempotency_key", "")) and method.rsplit("/", 1)[1] not in TOOL_CALLS


class _Stream:
    """Answers of a stream, whose errors are typed."""

    def __init__(self, call) -> None:
        self._call = call

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self._call)
        except grpc.RpcError as error:
            raise of_call(error) from error

    def __getattr__(self, name):
        return getattr(self._call, name)


class Calls(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Stands between the stubs and the channel. A stream is never begun again: `Client.watch` does that."""

    def __init__(self, metadata: list[tuple[str, str]], timeout: float) -> None:
        self._metadata, self._timeout = metadata, timeout

    def _details(self, details, timeout) -> _Details:
        metadata = [*self._metadata, *(details.metadata or ())]
        return _Details(
            details.method,
            timeout,
            metadata,
            details.credentials,
            getattr(details, "wait_for_ready", None),
            getattr(details, "compression", None),
        )

    def intercept_unary_unary(self, continuation, details, request):
        # The time is that of all attempts together.
        until = time.monotonic() + (self._timeout if details.timeout is None else details.timeout)
        attempt = 0
        while True:
            attempt += 1
            call = continuation(self._details(details, max(0.0, until - time.monotonic())), request)
            try:
                call.result()
                return call
            except grpc.FutureCancelledError:
                return call
            except grpc.RpcError as cause:
                error = of_call(cause)
                wait = wait_before(attempt, error.retry_after)
                is_last = attempt == ATTEMPTS or time.monotonic() + wait >= until
                if is_last or not _is_safe(details.method, request, error):
                    raise error from cause
            time.sleep(wait)

    def intercept_unary_stream(self, continuation, details, request):
        return _Stream(continuation(self._details(details, details.timeout), request))

    def intercept_stream_unary(self, continuation, details, requests):
        timeout = self._timeout if details.timeout is None else details.timeout
        call = continuation(self._details(details, timeout), requests)
        try:
            call.result()
        except grpc.RpcError as error:
            raise of_call(error) from error
        return call

    def intercept_stream_stream(self, continuation, details, requests):
        return _Stream(continuation(self._details(details, details.timeout), requests))
