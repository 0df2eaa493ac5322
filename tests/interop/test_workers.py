"""Workers, through the whole server: those of this file speak `ToolHost.Attach` as the protos have it, on threads of
the tests where they must do something odd, and in processes of their own where they are killed."""

import collections
import http.client
import json
import queue
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import harness
import jwt
import pytest
import yaml
from agents import FACES, Answer, refusal
from faces import Grpc, exchange, request
from harness import CALL_SECONDS, told
from repertoire.v1 import lookup_pb2, tool_host_pb2_grpc
from repertoire.v1 import tool_host_pb2 as pb
from worker import SKILL

HERE = Path(__file__).parent
TOKEN, OTHER_TOKEN = "token-of-the-bench-0001", "token-of-the-other-0002"
SECOND = "interop/tools/second"
METHODS = ("echo", "hold")
# What a result may have.
KIB = 64
CONFIG = {
    "tools": {
        "calls_per_session": 256,
        "result_kib": KIB,
        "workers": [
            {"name": "bench", "token": TOKEN, "skills": ["interop/tools/*"]},
            {"name": "other", "token": OTHER_TOKEN, "skills": ["interop/other/*", "builtin/*"]},
        ],
    }
}
TOOLS = """[
  {name: bench_echo, method: echo, args: [{name: text, type: string, required: true}]},
  {name: bench_hold, method: hold, args: [{name: top, type: integer, default: 5}]},
]"""
TOOLS = " ".join(TOOLS.split()).replace(", ]", "]")

DROPPED = "the outcome was dropped: this worker has no such invocation, or has answered it"
NOT_LET_IN = harness.refused(
    "PERMISSION_DENIED",
    "The worker is not admitted",
    "WORKER_REFUSED",
    2041,
    help=[
        "Send the token of an entry of `tools.workers` of the server's config file, as `authorization: Bearer TOKEN`",
        "docs/tool-workers.md explains how an operator admits workers",
    ],
)


def gone(method):
    return refusal(
        "TOOL_UNAVAILABLE",
        f"The worker that ran `{method}` of {SKILL} is gone, and did not answer",
        "The tool may have done its work: check before calling it again",
    )


def nothing_runs(tool, method, skill=SKILL):
    return refusal(
        "TOOL_UNAVAILABLE",
        f"Nothing runs '{tool}' of '{skill}' at present",
        f"Start a worker that serves `{method}` of `{skill}` (ToolHost.Attach), or try again where one is about to "
        "start",
        skill_id=skill,
    )


def nobody_serves(method):
    return refusal(
        "TOOL_UNAVAILABLE",
        f"No worker serves `{method}` of {SKILL} at present",
        "Start a worker that serves it (docs/tool-workers.md), or ask the operator to",
        "Call again later: the tool has not run",
    )


def until(condition):
    """Waits for a condition that another process makes true."""
    end = time.monotonic() + CALL_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)
    return found


def counted(server):
    """What the server counts of its workers: attached, calls that wait, slots held, those of callers that left."""
    _, _, page = exchange(server, "GET", "/metrics")
    found = dict(re.findall(r"^repertoire_(worker\w*) (\d+)$", page.decode(), re.MULTILINE))
    names = ("workers", "worker_calls_waiting", "worker_calls_in_work", "worker_calls_abandoned")
    return tuple(int(found[name]) for name in names)


def dropped(server):
    _, _, page = exchange(server, "GET", "/metrics")
    return int(re.search(r"^repertoire_worker_messages_dropped_total (\d+)$", page.decode(), re.MULTILINE)[1])


def publish_bench(server):
    for skill, prefix in ((SKILL, "bench"), (SECOND, "second")):
        page = harness.skill_md(prefix, tool_configs=TOOLS.replace("bench", prefix))
        harness.publish(server, skill, {"SKILL.md": page})


@pytest.fixture(scope="module")
def hosting(tmp_path_factory):
    """A server that lets workers in, with the skills that they serve."""
    folder = tmp_path_factory.mktemp("hosting")
    (folder / "repertoire.yaml").write_text(yaml.safe_dump(CONFIG))
    server = harness.Server(folder / "data", "--config", str(folder / "repertoire.yaml")).ready()
    publish_bench(server)
    yield server
    assert server.stop() == 0, server.log.text()
    assert "panicked" not in server.log.text(), server.log.text()


def available(server):
    tools = Grpc(server).ask("ListTools", {"skill_id": SKILL})["tools"]
    return {tool["name"] for tool in tools if tool["available"]}


class Worker:
    """A worker on threads of this process, which says what a test has it say."""

    def __init__(self, server, concurrency=1, token=TOKEN, skills=None, hello=True):
        self._outbox, self._inbox = queue.SimpleQueue(), queue.SimpleQueue()
        skills = {SKILL: METHODS} if skills is None else skills
        served = [pb.ServedSkill(skill_id=skill, methods=methods) for skill, methods in skills.items()]
        self.hello = pb.Hello(name="of a test", concurrency=concurrency, skills=served)
        if hello:
            self.send(hello=self.hello)
        metadata = [("authorization", token if " " in token else f"Bearer {token}")] if token else []
        self.stream = tool_host_pb2_grpc.ToolHostStub(server.channel()).Attach(
            iter(self._outbox.get, None), metadata=metadata, timeout=120
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            for message in self.stream:
                kind = message.WhichOneof("message")
                if kind == "heartbeat":
                    self.send(heartbeat=pb.Heartbeat())
                else:
                    self._inbox.put((kind, getattr(message, kind)))
            self._inbox.put(("end", None))
        except grpc.RpcError as error:
            self._inbox.put(("end", told(error)))

    def send(self, **message):
        self._outbox.put(pb.AttachRequest(**message))

    def next(self, wanted):
        """What the server says next, which is of this kind."""
        try:
            kind, message = self._inbox.get(timeout=CALL_SECONDS)
        except queue.Empty:
            raise AssertionError(f"the server did not say {wanted}") from None
        assert kind == wanted, (kind, message)
        return message

    def attached(self):
        self.welcome = self.next("welcome")
        return self

    def answer(self, invocation, text="done"):
        id = invocation if isinstance(invocation, str) else invocation.invocation_id
        self.send(outcome=pb.Outcome(invocation_id=id, result=pb.ToolResult(content=text)))

    def fail(self, invocation, **error):
        self.send(outcome=pb.Outcome(invocation_id=invocation.invocation_id, error=pb.ToolError(**error)))

    def notice(self):
        notice = self.next("notice")
        return notice.invocation_id, notice.message

    def leave(self):
        self.stream.cancel()
        self._outbox.put(None)


class Process:
    """A worker in a process of its own."""

    def __init__(self, server, concurrency=1, token=TOKEN):
        command = [sys.executable, HERE / "worker.py", server.address, token, str(concurrency)]
        self.process = subprocess.Popen(
            command, env=harness.clean_environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        self.said = harness.Lines(self.process.stdout)

    def next(self, *words):
        """The next thing that it says begins so; the rest of it."""
        line = (self.said.next(CALL_SECONDS) or "").split()
        assert line[: len(words)] == list(words), (line, words)
        return line[len(words):]

    def leave(self):
        self.process.kill()
        self.process.wait(harness.STOP_SECONDS)


@pytest.fixture
def attach(hosting):
    """Attaches workers of either sort; they are gone, for the server too, when the test ends."""
    workers = []

    def attach(sort=Worker, **more):
        worker = sort(hosting, **more)
        workers.append(worker)
        if sort is Process:
            worker.next("attached")
            return worker
        return worker.attached()

    yield attach
    for worker in workers:
        worker.leave()
    until(lambda: counted(hosting) == (0, 0, 0, 0))


@pytest.fixture(params=FACES)
def agent(request, hosting, hire):
    agent = hire(request.param, hosting)
    agent.load(SKILL)
    return agent


@pytest.fixture
def caller(hosting, hire):
    """An agent over gRPC, where the face makes no difference."""
    agent = hire("grpc", hosting)
    agent.load(SKILL)
    return agent


@pytest.fixture
def aside():
    """Runs calls beside the test."""
    with ThreadPoolExecutor(8) as pool:
        yield lambda call, *arguments, **more: pool.submit(call, *arguments, **more)


def result(future):
    return future.result(timeout=CALL_SECONDS)


# Attaching.


def test_a_worker_is_welcomed_with_the_bounds_and_serves_from_then_on(hosting, attach):
    assert available(hosting) == set()
    worker = attach(concurrency=3)
    assert worker.welcome.worker_id.startswith("bench-")
    assert (worker.welcome.heartbeat.seconds, worker.welcome.concurrency) == (10, 3)
    assert worker.welcome.max_result_bytes == KIB * 1024
    assert available(hosting) == {"bench_echo", "bench_hold"}


def test_an_invocation_says_all_that_the_tool_needs(hosting, attach, aside):
    worker = attach()
    lookup = hosting.lookup()
    load = lookup_pb2.LoadSkillRequest(skill_id=SKILL)
    load.context.update({"team": "red"})

    # Level 2 asks nothing of a worker that does not name `load_core`.
    loaded = lookup.LoadSkill(load, timeout=CALL_SECONDS)
    call = lookup_pb2.CallToolRequest(session_id=loaded.session_id, name="bench_hold", idempotency_key="once")
    called = lookup.CallTool.future(call, timeout=CALL_SECONDS)
    invocation = worker.next("invocation")
    worker.answer(invocation, "held")
    assert called.result().content == "held"
    assert called.result().call_id == invocation.invocation_id
    seconds = invocation.timeout.seconds
    assert CALL_SECONDS - 2 <= seconds <= CALL_SECONDS
    invocation.ClearField("timeout")
    expected = pb.Invocation(
        invocation_id=invocation.invocation_id, skill_id=SKILL, version_number=1, digest=loaded.digest,
        tool="bench_hold", method="hold", idempotency_key="once", caller="anonymous",
    )
    expected.arguments.update({"top": 5})
    expected.context.update({"team": "red"})
    assert invocation == expected


@pytest.mark.parametrize("token", ["", "token-of-the-bench-000", "TOKEN-OF-THE-BENCH-0001", f"Basic {TOKEN}"])
def test_a_wrong_token_is_refused_in_the_same_words_whatever_is_wrong(hosting, token):
    assert Worker(hosting, token=token).next("end") == NOT_LET_IN


def test_where_no_worker_is_configured_none_is_let_in_and_the_words_are_the_same(server):
    assert Worker(server).next("end") == NOT_LET_IN


def test_a_worker_that_names_a_skill_beyond_its_own_is_refused_whole_and_told_which(hosting):
    worker = Worker(hosting, skills={SKILL: METHODS, "interop/elsewhere/x": ["m"]})
    assert worker.next("end") == harness.refused(
        "PERMISSION_DENIED", "The worker may not serve interop/elsewhere/x", "WORKER_REFUSED", 2041,
        fields=[("hello.skills[1].skill_id", "the operator does not allow this worker the skill")],
        help=["Add the skill to `skills` of the worker `bench` in `tools.workers`, or serve others"],
    )
    assert available(hosting) == set()


def test_no_worker_serves_the_skills_that_the_server_runs_itself(hosting):
    worker = Worker(hosting, token=OTHER_TOKEN, skills={"builtin/repertoire/write_sql": ["execute_query"]})
    ended = worker.next("end")
    assert ended["ErrorInfo"]["reason"] == "WORKER_REFUSED"
    assert ended["BadRequest"]["fieldViolations"] == [
        {"field": "hello.skills[0].skill_id", "description": "the server's own handler runs this skill"}
    ]


def test_another_message_before_hello_ends_the_stream(hosting):
    worker = Worker(hosting, hello=False)
    worker.send(heartbeat=pb.Heartbeat())
    ended = worker.next("end")
    assert (ended["code"], ended["message"]) == ("INVALID_ARGUMENT", "The first message must be `hello`")
    assert ended["ErrorInfo"]["reason"] == "INVALID_PARAMETER"


def test_no_message_for_ten_seconds_ends_the_stream(hosting):
    worker = Worker(hosting, hello=False)
    began = time.monotonic()
    ended = worker.next("end")
    assert 9 < time.monotonic() - began < 15
    assert (ended["ErrorInfo"]["reason"], ended["message"]) == ("TIMEOUT", "No `hello` came within 10 seconds")


# Calls.


def test_without_a_worker_a_call_says_that_nothing_runs_it_and_what_to_do(hosting, agent):
    assert agent.tools() == set()
    assert agent.call("bench_echo", text="x") == nothing_runs("bench_echo", "echo")
    call = lookup_pb2.CallToolRequest(session_id=agent.session, name="bench_echo")
    call.arguments.update({"text": "x"})
    with pytest.raises(grpc.RpcError) as refused:
        hosting.lookup().CallTool(call, timeout=CALL_SECONDS)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_skill_that_no_worker_named_is_not_run_by_one_that_named_another(hosting, attach, hire):
    attach()
    agent = hire("grpc", hosting)
    agent.load(SECOND)
    assert agent.call("second_echo", text="x") == nothing_runs("second_echo", "echo", SECOND)


def test_what_a_worker_says_is_what_the_caller_gets(attach, agent, aside):
    worker = attach()
    called = aside(agent.call, "bench_echo", text="hej")
    invocation = worker.next("invocation")
    outcome = pb.Outcome(invocation_id=invocation.invocation_id, result=pb.ToolResult(content="hej hej"))
    outcome.result.structured.update({"words": 2, "each": ["hej", None, True]})
    worker.send(outcome=outcome)
    assert result(called) == Answer("hej hej", {"words": 2, "each": ["hej", None, True]})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "No."}, refusal("TOOL_FAILED", "No.")),
        (
            {"kind": pb.TOOL_ERROR_KIND_INVALID_ARGUMENT, "message": "`text` is dull", "field": "text",
             "suggestions": ["Write another"]},
            refusal("INVALID_PARAMETER", "`text` is dull", "Write another", field="text"),
        ),
        ({"kind": pb.TOOL_ERROR_KIND_DENIED, "message": "Not you"}, refusal("TOOL_DENIED", "Not you")),
        (
            {"kind": pb.TOOL_ERROR_KIND_UNAVAILABLE, "message": "Not now", "retry_after": {"seconds": 7}},
            refusal("TOOL_UNAVAILABLE", "Not now", retry_seconds=7),
        ),
    ],
    ids=["failed", "argument", "denied", "unavailable"],
)
def test_an_error_of_a_worker_reaches_the_caller_as_its_kind(attach, agent, aside, error, expected):
    worker = attach()
    called = aside(agent.call, "bench_echo", text="x")
    worker.fail(worker.next("invocation"), **error)
    assert result(called) == expected


def test_two_workers_share_the_calls_and_what_waits_goes_to_the_first_that_is_free(attach, caller, aside):
    one, two = attach(), attach()
    calls = {text: aside(caller.call, "bench_echo", text=text) for text in ("a", "b")}
    first, second = one.next("invocation"), two.next("invocation")
    texts = first.arguments["text"], second.arguments["text"]
    assert sorted(texts) == ["a", "b"]
    waiting = aside(caller.call, "bench_echo", text="c")
    one.answer(first, "one")
    third = one.next("invocation")
    assert third.arguments["text"] == "c"
    one.answer(third, "one again")
    two.answer(second, "two")
    assert [result(calls[text]).text for text in texts] == ["one", "two"]
    assert result(waiting).text == "one again"


def test_progress_of_a_worker_reaches_a_caller_that_streams(hosting, attach, caller):
    worker = attach()
    call = lookup_pb2.StreamToolCallRequest(session_id=caller.session, name="bench_echo")
    call.arguments.update({"text": "x"})
    updates = hosting.lookup().StreamToolCall(call, timeout=CALL_SECONDS)
    invocation = worker.next("invocation")
    progress = lookup_pb2.ToolProgress(done=1, total=3, message="one of three")
    worker.send(progress=pb.InvocationProgress(invocation_id=invocation.invocation_id, progress=progress))
    assert next(updates) == lookup_pb2.StreamToolCallResponse(progress=progress)
    worker.answer(invocation)
    assert next(updates).result.content == "done"
    assert next(updates, None) is None


def test_200_calls_at_once_over_four_processes_lose_none(hosting, attach, caller):
    workers = {worker.process.pid: worker for worker in [attach(Process, concurrency=8) for _ in range(4)]}
    lookup = hosting.lookup()
    calls = []
    for number in range(200):
        call = lookup_pb2.CallToolRequest(session_id=caller.session, name="bench_echo")
        call.arguments.update({"text": f"call {number}"})
        calls.append(lookup.CallTool.future(call, timeout=CALL_SECONDS))
    answers = [call.result(timeout=CALL_SECONDS) for call in calls]
    assert [answer.content for answer in answers] == [f"call {number}" for number in range(200)]
    # Each ran once, in the process that says so, and none of the four was idle.
    ran = {answer.call_id: int(answer.structured["process"]) for answer in answers}
    assert len(ran) == 200
    shares = collections.Counter(ran.values())
    assert shares.keys() == workers.keys()
    for pid, count in shares.items():
        said = {workers[pid].next("invoked", "echo")[0] for _ in range(count)}
        assert said == {id for id, by in ran.items() if by == pid}
        assert workers[pid].said._lines.empty()


# Workers that die.


def test_a_call_fails_at_once_when_its_worker_is_killed(attach, agent, aside):
    worker = attach(Process)
    called = aside(agent.call, "bench_hold")
    worker.next("invoked", "hold")
    worker.process.kill()
    killed = time.monotonic()
    assert result(called) == gone("hold")
    assert time.monotonic() - killed < 5


def test_what_a_killed_worker_was_not_sent_goes_to_another(attach, caller, aside):
    victim = attach(Process)
    held = aside(caller.call, "bench_hold")
    victim.next("invoked", "hold")
    other = attach()
    busy = aside(caller.call, "bench_echo", text="busy")
    first = other.next("invocation")
    waiting = aside(caller.call, "bench_echo", text="waiting")
    victim.process.kill()
    assert result(held) == gone("hold")
    other.answer(first)
    assert result(busy).text == "done"
    other.answer(other.next("invocation"), "by the other")
    assert result(waiting).text == "by the other"


def test_calls_that_wait_fail_at_once_when_the_last_worker_goes(hosting, attach, caller, aside):
    worker = attach(Process)
    held = aside(caller.call, "bench_hold")
    worker.next("invoked", "hold")
    waiting = [aside(caller.call, "bench_echo", text="x") for _ in range(3)]
    until(lambda: counted(hosting) == (1, 3, 1, 0))
    worker.process.kill()
    assert result(held) == gone("hold")
    assert [result(call) for call in waiting] == [nobody_serves("echo")] * 3


# Callers that leave.


def test_a_caller_that_cancels_is_told_to_the_worker_whose_slot_is_free_when_it_answers(hosting, attach, caller, aside):
    worker = attach()
    call = lookup_pb2.CallToolRequest(session_id=caller.session, name="bench_hold")
    called = hosting.lookup().CallTool.future(call, timeout=CALL_SECONDS)
    invocation = worker.next("invocation")
    called.cancel()
    assert worker.next("cancel") == pb.Cancel(invocation_id=invocation.invocation_id, reason="the caller gave up")

    waiting = aside(caller.call, "bench_echo", text="next")
    # The slot is held: the next call comes after the answer to the one that nobody waits for.
    until(lambda: counted(hosting) == (1, 1, 1, 1))
    worker.answer(invocation, "too late")
    worker.answer(worker.next("invocation"), "in time")
    assert result(waiting).text == "in time"


def test_a_connection_of_rest_that_closes_is_a_caller_that_left(hosting, attach, caller):
    worker = attach()
    verb, target, body = request("CallTool", {"name": "bench_hold", "session_id": caller.session, "arguments": {}})
    host, port = hosting.address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=CALL_SECONDS)
    connection.request(verb, target, json.dumps(body), {"content-type": "application/json"})
    invocation = worker.next("invocation")
    connection.close()
    assert worker.next("cancel") == pb.Cancel(invocation_id=invocation.invocation_id, reason="the caller gave up")
    assert counted(hosting) == (1, 0, 1, 1)
    worker.answer(invocation)
    until(lambda: counted(hosting) == (1, 0, 0, 0))


def test_a_call_over_mcp_that_is_cancelled_is_told_to_the_worker(hosting, attach, hire):
    worker = attach()
    agent = hire("mcp", hosting)
    agent.load(SKILL)
    client = agent.face.client("gated")
    called = agent.face.portal.start_task_soon(client.call_tool, "bench_hold", {})
    invocation = worker.next("invocation")
    called.cancel()
    assert worker.next("cancel") == pb.Cancel(invocation_id=invocation.invocation_id, reason="the caller gave up")
    worker.answer(invocation)
    # The connection is as good as before.
    assert agent.tools() == {"bench_echo", "bench_hold"}


def test_a_deadline_that_passes_is_a_timeout_for_the_caller_and_a_cancel_for_the_worker(hosting, attach, caller, aside):
    worker = attach()
    called = aside(by_rest, hosting, caller.session, {"grpc_timeout": "1500m"})
    invocation = worker.next("invocation")
    problem = result(called)
    assert (problem["status"], problem["code"]) == (504, "TIMEOUT"), problem
    assert problem["detail"].startswith(f"The worker did not answer the call of `hold` of {SKILL} within 1."), problem
    assert problem["recovery_suggestions"] == ["The tool may have done its work: check before calling it again"]
    assert worker.next("cancel") == pb.Cancel(invocation_id=invocation.invocation_id, reason="the deadline passed")
    # The slot is held by the call that nobody waits for.
    problem = by_rest(hosting, caller.session, {"grpc_timeout": "1000m"})
    assert problem["code"] == "TIMEOUT"
    assert problem["detail"].startswith(f"No worker had room for the call of `hold` of {SKILL} within 0."), problem
    assert problem["recovery_suggestions"][0] == "Call again later: the tool has not run"
    # What comes too late is dropped, and frees the slot.
    worker.answer(invocation)
    called = aside(caller.call, "bench_echo", text="x")
    worker.answer(worker.next("invocation"))
    assert result(called).text == "done"


def by_rest(server, session, headers):
    """A call of `bench_hold` by REST."""
    verb, target, body = request("CallTool", {"name": "bench_hold", "session_id": session, "arguments": {}})
    _, _, answer = exchange(server, verb, target, body, **headers)
    return json.loads(answer)


# Workers that say what they should not.


def test_an_outcome_for_a_call_that_it_was_not_given_is_dropped_with_a_notice(hosting, attach, caller, aside):
    before = dropped(hosting)
    owner = attach()
    called = aside(caller.call, "bench_echo", text="x")
    invocation = owner.next("invocation")
    thief = attach()
    for id in (invocation.invocation_id, "no-such-call", ""):
        thief.answer(id, "stolen")
        assert thief.notice() == (id, DROPPED)
    owner.answer(invocation, "mine")
    assert result(called).text == "mine"
    assert dropped(hosting) == before + 3


def test_only_the_first_of_two_outcomes_counts(attach, caller, aside):
    worker = attach()
    called = aside(caller.call, "bench_echo", text="x")
    invocation = worker.next("invocation")
    worker.answer(invocation, "first")
    worker.answer(invocation, "second")
    assert result(called).text == "first"
    assert worker.notice() == (invocation.invocation_id, DROPPED)
    # It is still let in.
    called = aside(caller.call, "bench_echo", text="y")
    worker.answer(worker.next("invocation"))
    assert result(called).text == "done"


def test_a_result_that_is_too_large_fails_its_call_alone(attach, agent, aside):
    worker = attach(concurrency=2)
    called = aside(agent.call, "bench_echo", text="x")
    invocation = worker.next("invocation")
    worker.answer(invocation, "x" * (KIB * 1024 + 1))
    sentence = f"The result has {KIB * 1024 + 1} bytes; {KIB * 1024} are allowed"
    assert result(called) == refusal(
        "TOOL_FAILED", sentence, "Ask for less, such as fewer rows or a part of the text"
    )
    assert worker.notice() == (invocation.invocation_id, sentence)
    called = aside(agent.call, "bench_echo", text="y")
    worker.answer(worker.next("invocation"), "x" * (KIB * 1024))
    assert len(result(called).text) == KIB * 1024


def test_a_message_that_is_too_large_to_be_read_ends_the_stream(attach, caller, aside):
    worker = attach(concurrency=2)
    called = [aside(caller.call, "bench_echo", text=text) for text in "xy"]
    first, _second = worker.next("invocation"), worker.next("invocation")
    worker.answer(first, "x" * (4 * KIB * 1024 + (1 << 20) + 1))
    assert [result(call) for call in called] == [gone("echo")] * 2
    ended = worker.next("end")
    assert ended["ErrorInfo"]["reason"] == "INVALID_PARAMETER"
    assert str(4 * KIB * 1024 + (1 << 20)) in ended["message"], ended
    assert ended["Help"]["links"] == [{"description": "Keep results below `max_result_bytes` of `welcome`"}]


def test_an_outcome_that_breaks_the_contract_fails_its_call_alone(attach, caller, aside):
    worker = attach()
    broken = refusal(
        "TOOL_FAILED", "The worker's answer breaks the rules of the contract; the server sent it a notice"
    )
    for outcome, why in [
        ({}, "the outcome has neither `result` nor `error`"),
        ({"error": pb.ToolError()}, "error.message: An error needs a message"),
    ]:
        called = aside(caller.call, "bench_echo", text="x")
        invocation = worker.next("invocation")
        worker.send(outcome=pb.Outcome(invocation_id=invocation.invocation_id, **outcome))
        assert result(called) == broken
        assert worker.notice() == (invocation.invocation_id, why)
    called = aside(caller.call, "bench_echo", text="y")
    worker.answer(worker.next("invocation"))
    assert result(called).text == "done"


def test_a_message_without_content_and_progress_of_nothing_are_dropped_with_a_notice(attach):
    worker = attach()
    worker.send()
    assert worker.notice() == ("", "a message without content, or of a later contract, was dropped")
    worker.send(progress=pb.InvocationProgress(invocation_id="no-such-call"))
    assert worker.notice() == ("no-such-call", DROPPED.replace("outcome", "progress"))


def test_a_second_hello_ends_the_stream_and_its_calls(attach, caller, aside):
    worker = attach()
    called = aside(caller.call, "bench_echo", text="x")
    worker.next("invocation")
    worker.send(hello=worker.hello)
    assert result(called) == gone("echo")
    ended = worker.next("end")
    assert (ended["ErrorInfo"]["reason"], ended["message"]) == ("INVALID_PARAMETER", "A second `hello` came")


# Who calls.


def test_who_stands_behind_a_worker_checks_who_calls_by_the_keys_of_the_server(tmp_path, aside):
    access = {"sign_in": "tokens", "anonymous": ["read", "publish", "activate", "load", "call"]}
    (tmp_path / "repertoire.yaml").write_text(yaml.safe_dump(CONFIG | {"access": access}))
    server = harness.Server(tmp_path / "data", "--config", str(tmp_path / "repertoire.yaml")).ready()
    try:
        publish_bench(server)
        create = [harness.BIN, "token", "create", "ada", "--role", "agent", "--json", "--data", server.data]
        made = subprocess.run(create, env=harness.clean_environment(), capture_output=True, check=True, timeout=60)
        signed = [("authorization", f"Bearer {json.loads(made.stdout)['token']}")]
        worker = Worker(server).attached()
        lookup = server.lookup()

        def call(metadata):
            loaded = lookup.LoadSkill(lookup_pb2.LoadSkillRequest(skill_id=SKILL), metadata=metadata)
            asked = lookup_pb2.CallToolRequest(session_id=loaded.session_id, name="bench_echo")
            asked.arguments.update({"text": "x"})
            return lookup.CallTool(asked, metadata=metadata, timeout=20)

        given = []
        for metadata in (signed, []):
            called = aside(call, metadata)
            given.append(worker.next("invocation"))
            worker.answer(given[-1])
            result(called)
        of_ada, of_nobody = given
        assert (of_nobody.caller, of_nobody.caller_token) == ("anonymous", "")
        assert of_ada.caller == "token:ada"
        keys = jwt.PyJWKClient(f"http://{server.address}/.well-known/jwks.json")
        key = keys.get_signing_key_from_jwt(of_ada.caller_token)
        assert worker.welcome.audience == "bench"
        claims = jwt.decode(of_ada.caller_token, key, ["EdDSA"], audience="bench", issuer="repertoire")
        assert 0 < claims.pop("exp") - claims.pop("iat") <= 60
        assert claims == {
            "iss": "repertoire", "sub": "token:ada", "aud": "bench", "jti": of_ada.invocation_id, "skill": SKILL,
            "tool": "bench_echo",
        }
        with pytest.raises(jwt.InvalidAudienceError):
            jwt.decode(of_ada.caller_token, key, ["EdDSA"], audience="other")
        # It signs nobody in: here it is a token like any that the server does not know.
        with pytest.raises(grpc.RpcError) as refused:
            call([("authorization", f"Bearer {of_ada.caller_token}")])
        assert told(refused.value)["ErrorInfo"]["reason"] == "TOKEN_REFUSED"
        worker.leave()
    finally:
        code = server.stop()
    assert code == 0 and "panicked" not in server.log.text(), server.log.text()


# Leaving.


def test_a_worker_that_drains_finishes_what_it_has_and_gets_no_more(hosting, attach, caller, aside):
    worker = attach(concurrency=2)
    called = aside(caller.call, "bench_echo", text="x")
    invocation = worker.next("invocation")
    worker.send(drain=pb.Drain())
    until(lambda: not available(hosting))
    assert caller.call("bench_echo", text="y") == nothing_runs("bench_echo", "echo")
    worker.answer(invocation, "the last")
    assert result(called).text == "the last"
    assert worker.next("end") is None


def test_a_server_that_stops_lets_workers_answer_what_they_have(tmp_path, aside, hire):
    (tmp_path / "repertoire.yaml").write_text(yaml.safe_dump(CONFIG))
    server = harness.Server(tmp_path / "data", "--config", str(tmp_path / "repertoire.yaml")).ready()
    try:
        publish_bench(server)
        worker = Worker(server).attached()
        agent = hire("grpc", server)
        agent.load(SKILL)
        given = aside(agent.call, "bench_echo", text="given")
        invocation = worker.next("invocation")
        waiting = aside(agent.call, "bench_echo", text="waiting")
        until(lambda: counted(server) == (1, 1, 1, 0))
        server.terminate()
        worker.next("drain")
        assert result(waiting) == refusal(
            "TOOL_UNAVAILABLE", "The server is about to stop",
            "Call again when it is back: the tool has not run",
        )
        worker.answer(invocation, "in time")
        assert result(given).text == "in time"
        ended = worker.next("end")
        assert (ended["code"], ended["ErrorInfo"]["reason"]) == ("UNAVAILABLE", "SHUTTING_DOWN")
    finally:
        code = server.stop()
    assert code == 0 and "panicked" not in server.log.text(), server.log.text()
