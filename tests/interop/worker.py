"""A worker in a process of its own, for tests that kill it: `worker.py ADDRESS TOKEN CONCURRENCY`.

It serves the skill of test_workers.py and says on stdout what happens, a line each: `attached ID`, `invoked METHOD
CALL`, `ended CODE`. `echo` answers with the text it was given and the number of this process; `hold` never answers.
"""

import os
import queue
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / ".tools" / "generated"))

import grpc  # noqa: E402
from repertoire.v1 import tool_host_pb2 as pb  # noqa: E402
from repertoire.v1 import tool_host_pb2_grpc  # noqa: E402

SKILL = "interop/tools/bench"


def say(*words):
    # One write, so that lines of threads do not mix.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main(address, token, concurrency):
    outbox = queue.SimpleQueue()
    skill = pb.ServedSkill(skill_id=SKILL, methods=["echo", "hold"])
    hello = pb.Hello(name=f"process-{os.getpid()}", concurrency=concurrency, skills=[skill])
    outbox.put(pb.AttachRequest(hello=hello))
    channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
    stream = tool_host_pb2_grpc.ToolHostStub(channel).Attach(
        iter(outbox.get, None), metadata=[("authorization", f"Bearer {token}")]
    )

    def invoke(invocation):
        say("invoked", invocation.method, invocation.invocation_id)
        if invocation.method == "hold":
            return
        result = pb.ToolResult(content=invocation.arguments["text"])
        result.structured.update({"process": os.getpid()})
        outbox.put(pb.AttachRequest(outcome=pb.Outcome(invocation_id=invocation.invocation_id, result=result)))

    with ThreadPoolExecutor(concurrency) as tools:
        try:
            for message in stream:
                match message.WhichOneof("message"):
                    case "welcome":
                        say("attached", message.welcome.worker_id)
                    case "invocation":
                        tools.submit(invoke, message.invocation)
                    case "heartbeat":
                        # As often as the server.
                        outbox.put(pb.AttachRequest(heartbeat=pb.Heartbeat()))
        except grpc.RpcError as error:
            say("ended", error.code().name)
        outbox.put(None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
