"""The log of changes, followed across restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import grpc

from repertoire_client import v1
from repertoire_client._calls import ATTEMPTS, NEVER_BEGAN, wait_before
from repertoire_client._errors import RepertoireError

if TYPE_CHECKING:
    from repertoire_client._client import Client

# How a connection ends that breaks, where no server says so. A proxy words it in its own way.
BROKEN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)


class Watch(Iterator[v1.Event]):
    """Events as they happen, without an end; each one once. Where the connection breaks or the server
    restarts, it goes on after the last event that it handed out. It ends with the error of a server that
    cannot go on from there: then list the skills again, and watch from the token of the list."""

    def __init__(self, client: Client, request: v1.WatchRequest) -> None:
        self._client, self._request = client, request
        self._stream = None
        self._closed = threading.Event()
        #: Where to go on after the last event that was handed out. Keep it to go on in another process.
        self.resume_token: str = request.resume_token
        # From its first answer on nothing is missed.
        failures = 0
        while self._stream is None:
            try:
                self._take(self._client.registry.Watch(request))
            except RepertoireError as error:
                failures += 1
                if failures == ATTEMPTS or not _is_broken(error):
                    raise
                self._closed.wait(wait_before(failures, error.retry_after))

    def _take(self, stream: Iterator[v1.WatchResponse]) -> None:
        # The first answer holds no event.
        first = next(stream)
        self.resume_token = first.resume_token
        self._stream = stream

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> v1.Event:
        failures = 0
        while not self._closed.is_set():
            try:
                if self._stream is None:
                    self._request.resume_token = self.resume_token
                    self._take(self._client.registry.Watch(self._request))
                for answer in self._stream:
                    failures = 0
                    self.resume_token = answer.resume_token
                    if answer.HasField("event"):
                        return answer.event
                # A proxy ended it without a word.
                wait = None
            except StopIteration:
                wait = None
            except RepertoireError as error:
                if self._closed.is_set():
                    break
                if not _is_broken(error):
                    raise
                wait = error.retry_after
            self._stream = None
            failures += 1
            self._closed.wait(wait_before(failures, wait))
        raise StopIteration

    def close(self) -> None:
        """Ends it, from any thread; whoever waits for an event gets none."""
        self._closed.set()
        stream = self._stream
        if stream is not None:
            stream.cancel()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_broken(error: RepertoireError) -> bool:
    """Whether it is the connection that failed, and not the watch."""
    if error.is_named:
        return error.code in NEVER_BEGAN or error.status == grpc.StatusCode.UNAVAILABLE
    return error.status in BROKEN
