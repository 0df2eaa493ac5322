"""What all calls have in common: metadata, a deadline, typed errors, and trying again where that is safe."""

from __future__ import annotations

import random
import time
from collections import namedtuple

import grpc

from repertoire_client import v1
from repertoire_client._errors import RepertoireError, of_call

ATTEMPTS = 7
# Seconds: the first wait is up to this long, each further one up to twice as long.
FIRST_WAIT = 0.25
LONGEST_WAIT = 5.0

# The call was refused before anything was done, whatever it was.
NEVER_BEGAN = frozenset({"OVERLOADED", "TOOL_QUOTA"})
# Nothing answers, or other writes kept coming between.
PASSING = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED})

# What may be done twice: the contract says so of each method.
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


def _is_safe(method: str, error: RepertoireError) -> bool:
    if error.code in NEVER_BEGAN:
        # One that nobody has named is of this side: a message that is too large stays so.
        return error.is_named
    may_repeat = _LEVELS.get(method, 0) != 0
    if error.code == "TOOL_UNAVAILABLE":
        # The tool may have done its work.
        return error.retry_after is not None and may_repeat
    return error.status in PASSING and may_repeat


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
                if is_last or not _is_safe(details.method, error):
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
