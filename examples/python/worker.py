"""A worker that serves the skill text_stats."""

import os
import queue
import re
import signal
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from google.protobuf import json_format
from repertoire_client import RepertoireError, connect
from repertoire_client import v1 as pb

CONCURRENCY = 4
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
SAMPLE = "To be, or not to be: that is the question."


class Refused(Exception):
    """What a caller did wrong, in words for the caller."""

    def __init__(self, field, message, suggestion):
        super().__init__(message)
        self.error = pb.ToolError(
            kind=pb.TOOL_ERROR_KIND_INVALID_ARGUMENT, field=field, message=message, suggestions=[suggestion]
        )


def count_words(arguments):
    # The server has checked the arguments against the schema of the skill and filled
    # in what was left out. A Struct knows no integers.
    top = int(arguments["top"])
    if not 1 <= top <= 100:
        raise Refused("top", "`top` is from 1 to 100", "Ask for between 1 and 100 words")
    counts = Counter(word.lower() for word in WORD.findall(arguments["text"]))
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    words = counts.total()
    listed = ", ".join(f"{word} {count}" for word, count in first)
    result = pb.ToolResult(content=f"{words} words; most frequent: {listed}")
    result.structured.update({"words": words, "top": [{"word": word, "count": count} for word, count in first]})
    return result


def sample_counts(_arguments):
    return pb.ToolResult(content=f"{SAMPLE}\n{count_words({'text': SAMPLE, 'top': 3}).content}\n")


def load_core(_arguments):
    return pb.ToolResult(content="Words are counted by a worker written in Python.")


METHODS = {"count_words": count_words, "sample_counts": sample_counts, "load_core": load_core}


def address():
    """In clear, or behind TLS where REPERTOIRE_CA names the authorities to trust."""
    address = os.environ.get("REPERTOIRE_ADDRESS", "127.0.0.1:50051")
    return f"https://{address}" if os.environ.get("REPERTOIRE_CA") else address


class Worker:
    def __init__(self, repertoire):
        self.outbox = queue.Queue()
        self.tools = ThreadPoolExecutor(CONCURRENCY)
        self.over = threading.Event()
        self.send(
            hello=pb.Hello(
                name=f"python-{os.getpid()}",
                concurrency=CONCURRENCY,
                skills=[pb.ServedSkill(skill_id="examples/text/text_stats", methods=list(METHODS))],
            )
        )
        self.stream = repertoire.tool_host.Attach(iter(self.outbox.get, None))

    def send(self, **message):
        self.outbox.put(pb.AttachRequest(**message))

    def run(self):
        """Reads what the server sends, up to the end of the stream."""
        for message in self.stream:
            match message.WhichOneof("message"):
                case "welcome":
                    print(f"attached as {message.welcome.worker_id}", flush=True)
                    seconds = message.welcome.heartbeat.ToTimedelta().total_seconds()
                    threading.Thread(target=self.beat, args=(seconds,), daemon=True).start()
                case "invocation":
                    # Off this thread, which must go on reading.
                    self.tools.submit(self.invoke, message.invocation)
                case "notice":
                    print(f"dropped: {message.notice.message}", file=sys.stderr)
                # A `cancel` could stop a tool that takes long. The outcome is due all
                # the same: it frees the slot.
        self.over.set()
        self.outbox.put(None)

    def beat(self, seconds):
        while not self.over.wait(seconds):
            self.send(heartbeat=pb.Heartbeat())

    def invoke(self, invocation):
        outcome = pb.Outcome(invocation_id=invocation.invocation_id)
        try:
            outcome.result.CopyFrom(METHODS[invocation.method](json_format.MessageToDict(invocation.arguments)))
        except Refused as refused:
            outcome.error.CopyFrom(refused.error)
        except Exception as error:
            # For the log; a caller learns nothing of this process.
            print(f"{invocation.method}: {error!r}", file=sys.stderr)
            outcome.error.message = "The worker could not do it"
        self.send(outcome=outcome)


def main():
    worker = Worker(connect(address(), token=os.environ["WORKER_TOKEN"]))
    # No more calls, please; the server ends the stream when those in work are answered.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.send(drain=pb.Drain()))
    try:
        worker.run()
    except RepertoireError as error:
        # Whoever supervises this process starts it again.
        sys.exit(f"{error.status.name}: {error.message}")


if __name__ == "__main__":
    main()
