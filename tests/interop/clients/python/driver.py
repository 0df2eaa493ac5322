"""Does what a test says with the client, and tells in JSON, a line each."""

import json
import os
import sys
import time

# gRPC tells of each handshake that fails, beside the error that there is then.
os.environ["GRPC_VERBOSITY"] = "NONE"

from repertoire_client import Conflict, Denied, NotFound, Refused, RepertoireError, Unavailable, connect, v1  # noqa: E402

KINDS = {
    NotFound: "not_found", Refused: "refused", Conflict: "conflict", Denied: "denied", Unavailable: "unavailable",
    RepertoireError: "",
}


def tell(**what):
    print(json.dumps(what), flush=True)


def run(command, *arguments):
    with connect() as client:
        if command == "publish":
            published = client.publish(*arguments)
            tell(skill_id=published.skill_id, outcome=v1.PublishOutcome.Name(published.outcome))
        elif command == "search":
            tell(found=[skill.id for skill in client.search(*arguments, limit=1)])
        elif command == "load":
            session = client.load(*arguments)
            tell(tools=session.tools, resources=session.resources, content=session.content)
        elif command == "call":
            result = client.load(arguments[0]).call(arguments[1], text="so and so")
            tell(text=result.text, structured=result.value)
        elif command == "stub":
            # What the convenience has no word for fails in the same way.
            client.lookup.GetSkill(v1.GetSkillRequest(skill_id=arguments[0]))
        elif command == "repeat":
            # A search after the other, until whoever reads has enough.
            while True:
                started = time.monotonic()
                client.search("skill", limit=1)
                tell(seconds=time.monotonic() - started)
                time.sleep(0.01)
        elif command == "watch":
            watch = client.watch(*arguments)
            tell(resume_token=watch.resume_token)
            for event in watch:
                tell(
                    sequence=event.sequence, type=v1.EventType.Name(event.type), skill_id=event.skill_id,
                    version_number=event.version_number, resume_token=watch.resume_token,
                )
        else:
            tell(untyped=f"no such command: {command}")


try:
    run(*sys.argv[1:])
except RepertoireError as error:
    tell(
        code=error.code, message=error.message, next=error.next, kind=KINDS[type(error)], status=error.status.name,
        violations=[violation._asdict() for violation in error.violations], retry_after=error.retry_after,
    )
    sys.exit(1)
