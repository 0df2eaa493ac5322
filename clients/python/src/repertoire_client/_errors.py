"""What a call that failed comes to: a stable code, a sentence, and what to do next."""

from __future__ import annotations

from typing import NamedTuple

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

# Codes of what is there already, or changed meanwhile. Their statuses say less.
CONFLICTS = frozenset(
    {
        "CONFLICT_DETECTED",
        "IDEMPOTENCY_KEY_REUSED",
        "SKILL_ALREADY_INSTALLED",
        "SOURCE_EXISTS",
        "SUBMISSION_REVIEWED",
        "SYNC_IN_PROGRESS",
        "VERSION_CONFLICT",
        "WRITE_CONTENTION",
    }
)


class Violation(NamedTuple):
    """One thing that is wrong with a request: a field, or a file and line of a skill."""

    field: str
    message: str


class RepertoireError(Exception):
    """A call that failed. Act on `code`, never on the message."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: grpc.StatusCode,
        next: list[str] | None = None,
        violations: list[Violation] | None = None,
        retry_after: float | None = None,
        facts: dict[str, str] | None = None,
        is_named: bool = True,
    ) -> None:
        super().__init__(message)
        #: Stable code, such as `SKILL_NOT_FOUND`.
        self.code = code
        #: What was refused and why.
        self.message = message
        #: What to do next, most useful first.
        self.next = next or []
        #: What is wrong with the request.
        self.violations = violations or []
        #: Status of gRPC.
        self.status = status
        #: Seconds after which it may be tried again. None: the server does not say.
        self.retry_after = retry_after
        #: Facts such as `skill_id`.
        self.facts = facts or {}
        #: It has its code from the server; others come from a proxy, or from this side.
        self.is_named = is_named

    def __str__(self) -> str:
        return "\n".join([f"{self.code}: {self.message}", *(f"  next: {step}" for step in self.next)])


class NotFound(RepertoireError):
    """What was named is not there."""


class Refused(RepertoireError):
    """The request cannot be done as it is; the same again is refused again."""


class Conflict(RepertoireError):
    """It is at odds with what is there, or with what somebody else does."""


class Denied(RepertoireError):
    """Whoever calls may not do it."""


class Unavailable(RepertoireError):
    """The server, or what it needs, is not there at present."""


Code = grpc.StatusCode
CLASSES = {
    Code.NOT_FOUND: NotFound,
    Code.INVALID_ARGUMENT: Refused,
    Code.FAILED_PRECONDITION: Refused,
    Code.OUT_OF_RANGE: Refused,
    Code.ABORTED: Conflict,
    Code.ALREADY_EXISTS: Conflict,
    Code.PERMISSION_DENIED: Denied,
    Code.UNAUTHENTICATED: Denied,
    Code.UNAVAILABLE: Unavailable,
    Code.RESOURCE_EXHAUSTED: Unavailable,
    Code.DEADLINE_EXCEEDED: Unavailable,
}
# What a failure is called that no server has named.
UNNAMED = {
    Code.INVALID_ARGUMENT: "INVALID_PARAMETER",
    Code.OUT_OF_RANGE: "INVALID_PARAMETER",
    Code.DEADLINE_EXCEEDED: "TIMEOUT",
    Code.CANCELLED: "TIMEOUT",
    Code.RESOURCE_EXHAUSTED: "OVERLOADED",
    Code.UNAVAILABLE: "SERVER_UNREACHABLE",
}
LOOK = "Check that the server is running and that its address is right"


def of_call(error: grpc.RpcError) -> RepertoireError:
    """The typed error of a failed call. One without details did not come from the server itself."""
    status, message = error.code(), error.details() or ""
    info, links = error_details_pb2.ErrorInfo(), error_details_pb2.Help()
    request, retry = error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    retry_after = None
    for detail in getattr(rpc_status.from_call(error), "details", ()):
        for known in (info, links, request):
            detail.Unpack(known)
        if detail.Unpack(retry):
            retry_after = retry.retry_delay.ToTimedelta().total_seconds()
    code = info.reason or UNNAMED.get(status, "INTERNAL_ERROR")
    steps = [link.description for link in links.links]
    if code == "SERVER_UNREACHABLE" and not steps:
        steps = [LOOK]
    kind = Conflict if code in CONFLICTS else CLASSES.get(status, RepertoireError)
    return kind(
        code,
        message,
        status=status,
        next=steps,
        violations=[Violation(v.field, v.description) for v in request.field_violations],
        retry_after=retry_after,
        facts=dict(info.metadata),
        is_named=bool(info.reason),
    )


def refuse(code: str, message: str, *steps: str) -> Refused:
    """What the client itself refuses before it calls."""
    return Refused(code, message, status=Code.INVALID_ARGUMENT, next=list(steps))
