"""What no client should send to the MCP endpoints. Each gets a clear error, the server lives,
and nothing is half done."""

import base64
import json
import re
import time

import pytest
from harness import CALL_SECONDS, publish, read_file, skill_md
from raw import BOTH, INITIALIZE, LEGACY, Http, Stdio, call, meta, notice, request

PARSE_ERROR, INVALID_REQUEST, NO_SUCH_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
NOT_FOUND = -32002
MIB = 1 << 20


@pytest.fixture(autouse=True)
def alive(server):
    """After whatever a test did, the server answers as ever."""
    yield
    answer = Http(server).call("skill", {"command": "xlsx"}).result
    assert answer["content"][0]["text"] == read_file(server, "xlsx", "SKILL.md").decode()


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """A process that serves stdio; it must survive what the tests of this file write to it."""
    with Stdio("--data", str(tmp_path_factory.mktemp("stdio") / "data")) as process:
        yield process.begin()
        assert process.end() == 0, process.log.text()
        assert "panicked" not in process.log.text()


def clear(text):
    """A sentence, without characters that a terminal acts on."""
    assert text and not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), ascii(text)
    return text


def refusal(answer):
    """Code and sentence of an answer that must be an error."""
    assert "result" not in answer, f"answered with {str(answer)[:200]}"
    return answer["error"]["code"], answer["error"]["message"]


class Door:
    """A way in, for bytes as they are."""

    def __init__(self, server, process):
        self.session = Http(server).begin() if server else None
        self.process = process

    def refusal(self, message):
        """The JSON-RPC error that comes back, and nothing else."""
        if self.session:
            answer = self.session.send(message)
            code, sentence = answer.error
            return answer.status, code, clear(sentence)
        self.process.send(message, request("ping", id="after"))
        said = self.until("after")
        assert len(said) == 1 and "error" in said[0], f"answered with {said}"
        return 400, said[0]["error"]["code"], clear(said[0]["error"]["message"])

    def until(self, id):
        """What is said before the answer to `id`, and where nothing is, what is said right after."""
        said = []
        while (message := self.process.next()).get("id") != id:
            said.append(message)
        if not said:
            self.process.send(request("ping", id=f"{id} {id}"))
            while (message := self.process.next()).get("id") != f"{id} {id}":
                said.append(message)
        # Notices of what changed go out whenever there are any.
        return [message for message in said if not message.get("method", "").endswith("/list_changed")]

    def answer(self, message):
        """The answer to a message that is one."""
        if self.session:
            return self.session.send(message).json
        self.process.send(message)
        return self.process.answer(message["id"])


@pytest.fixture(params=["http", "stdio"])
def door(request, server, process):
    door = Door(server if request.param == "http" else None, process)
    yield door
    if door.session:
        door.session.end()


def arguments(text):
    """A call of a tool with these arguments, as bytes."""
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills","arguments":%s}}' % text


DEEP = b"[" * 10_000 + b"]" * 10_000
NO_JSON = {
    "words": b"hello",
    "half an object": b'{"jsonrpc":"2.0","id":1,"method":"ping"',
    "two at once": b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}',
    "bytes that are no UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"ping\xff"}',
    "arguments that are no UTF-8": arguments(b'{"source":"\xff\xfe"}'),
    "half a surrogate pair": arguments(b'{"source":"\\ud800"}'),
    "10,000 levels": DEEP,
    "10,000 levels of arguments": arguments(b'{"tags":%s}' % DEEP),
    "not a number": arguments(b'{"page_size":NaN}'),
    "a number without end": arguments(b'{"page_size":1e999}'),
    "minus infinity": arguments(b'{"page_size":-Infinity}'),
}


@pytest.mark.parametrize("message", NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_json_is_told_so(door, message):
    status, code, _ = door.refusal(message)
    assert (status, code) == (400, PARSE_ERROR)


TWICE = {
    "method": b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
    "id": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    "params": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"params":{"cursor":"x"}}',
    "name": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills","name":"skill"}}',
    "source": arguments(b'{"source":"github","source":"local"}'),
    "deep": arguments(b'{"tags":[{"deep":1,"deep":2}]}'),
    "same": arguments(b'{"source":"github","s\\u006furce":"local"}'),
}


@pytest.mark.parametrize("key", TWICE)
def test_a_key_that_is_there_twice_is_refused(door, key):
    status, code, sentence = door.refusal(TWICE[key])
    assert status == 400
    assert code in (PARSE_ERROR, INVALID_REQUEST)
    assert "twice" in sentence, sentence


def test_of_two_skills_under_one_key_none_is_deleted(server):
    ids = ["github/twice/one", "github/twice/two"]
    for skill_id in ids:
        publish(server, skill_id, {"SKILL.md": skill_md(skill_id.rsplit("/", 1)[1])})
    both = ",".join(f'"skill_id":"{skill_id}"' for skill_id in ids)
    message = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_skill","arguments":{%s}}}' % both
    Http(server).begin().send(message.encode())
    listed = Http(server).call("list_skills", {"source": "github", "author": "twice"})
    assert [skill["id"] for skill in listed.result["structuredContent"]["skills"]] == ids


NO_REQUEST = {
    "a batch": [request("ping", id=1), request("ping", id=2)],
    "a batch of nothing": [],
    "nothing": None,
    "a word": "ping",
    "an object of nothing": {},
    "another version of JSON-RPC": request("ping") | {"jsonrpc": "1.0"},
    "no version of JSON-RPC": {"id": 1, "method": "ping"},
    "an id that is null": request("ping", id=None),
    "an id that is an object": request("ping", id={}),
    "no method": {"jsonrpc": "2.0", "id": 1, "params": {}},
    "a method that is a number": {"jsonrpc": "2.0", "id": 1, "method": 7},
    "params in a list": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ["skill"]},
    "a request that is an answer": request("ping") | {"result": {}},
}


@pytest.mark.parametrize("message", NO_REQUEST.values(), ids=NO_REQUEST)
def test_what_is_no_request_is_told_so(door, message):
    status, code, _ = door.refusal(json.dumps(message).encode())
    assert (status, code) == (400, INVALID_REQUEST)


WRONG_PARAMS = {
    "arguments in a list": request("tools/call", {"name": "skill", "arguments": ["xlsx"]}),
    "arguments in a word": request("tools/call", {"name": "skill", "arguments": "xlsx"}),
    "arguments in a number": request("tools/call", {"name": "skill", "arguments": 7}),
    "no tool": request("tools/call", {"arguments": {}}),
    "a tool that is a number": request("tools/call", {"name": 7, "arguments": {}}),
    "no params": {"jsonrpc": "2.0", "id": 1, "method": "tools/call"},
    "an address that is a number": request("resources/read", {"uri": 7}),
    "no address": request("resources/read"),
    "a prompt that is null": request("prompts/get", {"name": None}),
    "a cursor that is a number": request("resources/list", {"cursor": 7}),
    "a cursor of tools that is a number": request("tools/list", {"cursor": 7}),
    "an unknown tool": call("no_such_tool", {}),
    "a tool of control characters": call("no\x1b[31m\x00such\n\u202etool\x7f" + "x" * 10_000, {}),
    "an unknown prompt": request("prompts/get", {"name": "no\x1b[31msuch"}),
    "a subscription to another kind": request("resources/subscribe", {"uri": 7}),
    **{
        f"a forged cursor of {method}": request(method, {"cursor": cursor})
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list")
        for cursor in ("Zm9yZ2Vk", )
    },
    "a cursor without end": request("resources/list", {"cursor": "x" * 100_000}),
}


@pytest.mark.parametrize("message", WRONG_PARAMS.values(), ids=WRONG_PARAMS)
def test_wrong_params_are_told_so(door, message):
    code, sentence = refusal(door.answer(message))
    assert code == INVALID_PARAMS, (code, sentence)
    assert sentence != message["method"] and len(clear(sentence)) < 1000


UNKNOWN = ["no/such", "no\x1b[31m\x00such", "rpc.\u202ediscover", "tools/call\n", "", "x" * 10_000]


@pytest.mark.parametrize("method", UNKNOWN, ids=["plain", "colours", "turned", "a line", "empty", "long"])
def test_an_unknown_method_is_told_so(door, method):
    code, sentence = refusal(door.answer(request(method, {"any": 1})))
    assert code == NO_SUCH_METHOD
    assert len(clear(sentence)) < 1000


@pytest.mark.parametrize("uri", ["skill://github/acme/nobody/SKILL.md", "file:///etc/passwd", "", "skill://a/../b"])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
def test_what_is_not_there_is_neither_read_nor_watched(door, method, uri):
    answer = door.answer(request(method, {"uri": uri}))
    code, sentence = refusal(answer)
    assert code in (NOT_FOUND, INVALID_PARAMS)
    assert answer["error"]["data"]["uri"] == uri
    clear(sentence)


@pytest.mark.parametrize("number", ["-1", "-0.5", "1.5", "1001", "2147483648", "-9223372036854775809", "1e18", "1e300"])
def test_a_number_out_of_bounds_is_refused_with_its_field(door, number):
    message = json.loads(arguments(b"{}"))
    message["params"]["arguments"] = {"page_size": json.loads(number)}
    result = door.answer(message)["result"]
    assert result["isError"] and "structuredContent" not in result
    error = result["_meta"]["repertoire.v1/error"]
    assert error["code"] == "INVALID_PARAMETER"
    assert [field["field"] for field in error["details"]["fields"]] == ["page_size"]


@pytest.mark.parametrize("number, count", [("3.0", 3), ("3e0", 3), ("0", 6), ("-0", 6)])
def test_a_whole_number_may_be_spelled_as_any_number(door, number, count):
    message = arguments(b'{"source":"builtin","page_size":%s}' % number.encode())
    if door.session:
        answer = door.session.send(message).json
    else:
        door.process.send(message)
        answer = door.process.answer(1)
    assert len(answer["result"]["structuredContent"]["skills"]) == count


# What only HTTP has.


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/jsonx", "multipart/form-data", ""])
def test_another_content_type_is_refused(server, content_type):
    answer = Http(server).begin().send(request("ping"), content_type=content_type)
    assert answer.status == 415
    assert "application/json" in clear(answer.body.decode())


@pytest.mark.parametrize("accept", [None, "text/html", "application/json", "text/event-stream", "*"])
def test_a_client_that_does_not_accept_both_forms_is_told_so(server, accept):
    answer = Http(server).begin().send(request("ping"), accept=accept)
    assert answer.status == 406
    assert "application/json" in clear(answer.body.decode())


@pytest.mark.parametrize(
    "header, value, code",
    [
        ("origin", "https://evil.example", "ORIGIN_REFUSED"),
        ("origin", "null", "ORIGIN_REFUSED"),
        ("origin", "http://127.0.0.1.evil.example", "ORIGIN_REFUSED"),
        ("origin", "garbage", "ORIGIN_REFUSED"),
        ("host", "evil.example", "HOST_REFUSED"),
        ("host", "127.0.0.1.evil.example:80", "HOST_REFUSED"),
        ("host", "localhost.evil.example", "HOST_REFUSED"),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/skills", "/mcp/no-such-set"])
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
def test_a_page_of_elsewhere_is_kept_out(server, path, verb, header, value, code):
    body = INITIALIZE if verb == "POST" else None
    answer = Http(server, path).send(body, verb=verb, **{header: value})
    assert answer.status == 403
    assert answer.json["code"] == code
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("id", ["00000000-0000-0000-0000-000000000000", "x", "../../etc/passwd", "x" * 4000])
def test_a_forged_session_is_not_found(server, id):
    answer = Http(server).send(call("list_skills", {}), mcp_session_id=id, mcp_protocol_version=LEGACY)
    assert answer.status == 404
    assert "session" in clear(answer.body.decode()).lower()


def test_a_session_ends_once_and_for_all(server):
    ended, other = Http(server).begin(), Http(server).begin()
    assert ended.end().status in (200, 202, 204)
    assert ended.end().status == 404
    for method in ("ping", "tools/list"):
        assert ended.send(request(method)).status == 404, method
    assert ended.send(None, verb="GET", accept="text/event-stream", content_type=None).status == 404
    assert other.send(request("ping")).result == {}


def test_without_a_session_there_is_none(server):
    answer = Http(server).send(request("ping"))
    assert answer.status == 400
    assert "session" in clear(answer.body.decode()).lower()


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}, {"protocolVersion": LEGACY}, None, []])
def test_a_session_does_not_begin_with_wrong_params(server, params):
    answer = Http(server).send({**INITIALIZE, "params": params})
    assert answer.status == 400
    assert "mcp-session-id" not in answer.headers
    code, sentence = answer.error
    assert code in (INVALID_PARAMS, INVALID_REQUEST)
    clear(sentence)


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_name": "delete_skill"},
        {"mcp_name": None},
        {"mcp_name": "LIST_SKILLS"},
        {"mcp_method": "tools/list"},
        {"mcp_method": None},
        {"mcp_protocol_version": LEGACY},
        {"mcp_protocol_version": None},
    ],
)
def test_headers_that_say_something_else_are_refused(server, headers):
    answer = Http(server).call("list_skills", {}, **headers)
    assert (answer.status, answer.error[0]) == (400, -32020)
    clear(answer.error[1])


@pytest.mark.parametrize("version", ["2099-01-01", "1.0", "", "\u00ff"])
def test_an_unknown_revision_is_told_the_known_ones(server, version):
    answer = Http(server).ask("tools/list", {"_meta": meta(version)}, mcp_protocol_version=version.encode("latin-1"))
    assert answer.status == 400
    clear(answer.body.decode())


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "HEAD", "BREW"])
def test_another_verb_is_not_taken(server, verb):
    answer = Http(server).send(None, verb=verb)
    assert answer.status == 405
    assert "POST" in answer.headers["allow"]


def test_an_unknown_toolset_is_told_the_known_ones(server):
    answer = Http(server, "/mcp/no-such").send(INITIALIZE)
    assert answer.status == 404
    assert "discovery-core" in clear(answer.body.decode())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_too_large_is_refused(server, chunked):
    body = json.dumps(request("ping", {"x": "a" * (25 * MIB)})).encode()
    pieces = (body[at : at + MIB] for at in range(0, len(body), MIB)) if chunked else body
    connection = Http(server).connection()
    headers = {"content-type": "application/json", "accept": BOTH}
    try:
        connection.request("POST", "/mcp", pieces, headers, encode_chunked=chunked)
    except (BrokenPipeError, ConnectionResetError):
        # The server need not read what it will refuse.
        pass
    assert connection.getresponse().status == 413
    connection.close()


def test_too_many_headers_are_refused(server):
    connection = Http(server).connection()
    many = {f"x-{number}": "y" for number in range(5000)}
    connection.request("POST", "/mcp", json.dumps(request("ping")), many)
    assert connection.getresponse().status in (400, 431)
    connection.close()


def files(name, body="# Steps\n"):
    return [{"path": "SKILL.md", "content": base64.b64encode(skill_md(name, body)).decode()}]


def test_a_request_that_breaks_off_does_nothing(server):
    arguments = {"skill_id": "github/broken/off", "files": files("off", "x" * MIB)}
    session = Http(server).begin()
    body = json.dumps(call("publish_skill", arguments)).encode()
    connection = Http(server).connection()
    connection.putrequest("POST", "/mcp")
    headers = {"Content-Type": "application/json", "Accept": BOTH, "Mcp-Session-Id": session.id}
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders(body[:-10])
    connection.close()
    listed = Http(server).call("list_skills", {"source": "github", "author": "broken"})
    assert listed.result["structuredContent"]["skills"] == []


# Bounds.


def bounded(start, tmp_path, limits):
    (tmp_path / "config.yaml").write_text("limits:\n" + "".join(f"  {k}: {v}\n" for k, v in limits.items()))
    return start("--config", str(tmp_path / "config.yaml")).ready()


@pytest.mark.parametrize("headers", [{}, {"mcp_method": "initialize"}])
def test_a_new_session_ends_the_one_that_is_idle_for_longest(start, tmp_path, headers):
    endpoint = Http(bounded(start, tmp_path, {"sessions": 2, "share_percent": 100}))
    first, second = endpoint.begin(), endpoint.begin()
    assert first.send(request("ping")).result == {}
    assert endpoint.send(INITIALIZE, **headers).status == 200
    assert second.send(request("ping")).status == 404
    assert first.send(request("ping")).result == {}


def test_a_session_with_a_stream_does_not_end_for_another(start, tmp_path):
    endpoint = Http(bounded(start, tmp_path, {"sessions": 2, "share_percent": 100}))
    sessions = endpoint.begin(), endpoint.begin()
    watches = [watching(endpoint, session) for session in sessions]
    third = endpoint.send(INITIALIZE)
    assert third.status == 429, third
    assert int(third.headers["retry-after"]) > 0
    assert third.json["code"] == "OVERLOADED" and "sessions" in clear(third.json["detail"])
    # Who is in is served, and who needs no session.
    assert all(session.send(request("ping")).result == {} for session in sessions)
    assert endpoint.call("list_skills", {}).status == 200
    for watch in watches:
        watch.leave()
    assert again(lambda: endpoint.send(INITIALIZE).status == 200)


def spellings(count):
    """So many addresses of one resource."""
    name = "repertoire"
    for number in range(count):
        letters = [c.upper() if number >> at & 1 else c for at, c in enumerate(name)]
        yield f"skill://builtin/{''.join(letters)}/xlsx/SKILL.md"


def test_a_session_subscribes_to_so_many_resources(process):
    for uri in spellings(1000):
        process.send(request("resources/subscribe", {"uri": uri}, id=uri))
        assert process.answer(uri).get("result") == {}
    one_more = request("resources/subscribe", {"uri": "skill://jira"}, id="one more")
    process.send(one_more)
    error = process.answer("one more")["error"]
    assert error["code"] in (INVALID_REQUEST, INVALID_PARAMS)
    assert "1000" in clear(error["message"])
    # One that it has is no new one, and one that it gives up makes room.
    for uri in spellings(1000):
        process.send(request("resources/subscribe", {"uri": uri}, id="again"))
        assert process.answer("again").get("result") == {}
        break
    process.send(request("resources/unsubscribe", {"uri": next(spellings(1))}, id="up"))
    assert process.answer("up").get("result") == {}
    process.send(one_more)
    assert process.answer("one more").get("result") == {}
    for uri in (*spellings(1000), "skill://jira"):
        process.send(request("resources/unsubscribe", {"uri": uri}, id=uri))
        process.answer(uri)


def test_a_stream_of_the_stateless_era_listens_to_so_many_resources(server):
    listen = {"notifications": {"resourceSubscriptions": list(spellings(1001))}}
    stream = Http(server).ask("subscriptions/listen", listen, send=Http(server).open)
    message = stream.next()
    stream.leave()
    # The acknowledgement says which: those that came first.
    assert message["method"] == "notifications/subscriptions/acknowledged"
    assert message["params"]["notifications"]["resourceSubscriptions"] == list(spellings(1001))[:1000]


WATCH = {"name": "watch_skills", "arguments": {}, "_meta": {"progressToken": 1}}


def again(attempt):
    """Repeats until it works: what is freed is free soon, if not at once."""
    end = time.monotonic() + CALL_SECONDS
    while time.monotonic() < end:
        if found := attempt():
            return found
    raise AssertionError(f"still not after {CALL_SECONDS} s")


def watching(endpoint, session=None, id="watch"):
    """A watch that runs: its first message was told of. None where there is no place for it."""
    if session:
        watch = session.open(request("tools/call", WATCH, id=id))
    else:
        watch = endpoint.ask("tools/call", WATCH, id=id, send=endpoint.open)
    first = watch.next()
    # Notices of what changed go out on whatever stream there is.
    while first.get("method", "").endswith("/list_changed"):
        first = watch.next()
    if first.get("method") == "notifications/progress":
        return watch
    assert first["result"]["_meta"]["repertoire.v1/error"]["code"] == "OVERLOADED", first
    watch.leave()
    return None


# A session's own notices come by a stream too.
STREAMS = {"streams": 2}


def test_a_call_that_is_cancelled_ends_and_frees_its_place(start, tmp_path):
    endpoint = Http(bounded(start, tmp_path, STREAMS))
    session = endpoint.begin()
    ids = []

    def attempt():
        # An id is used once in a session.
        ids.append(f"watch {len(ids)}")
        return watching(endpoint, session, ids[-1])

    for _ in range(5):
        watch = again(attempt)
        cancelled = notice("notifications/cancelled", {"requestId": ids[-1], "reason": "Enough"})
        assert session.send(cancelled).status == 202
        said = []
        while (message := watch.next()) is not None:
            said.append(message)
        assert not any("result" in message for message in said), said
        watch.leave()
    assert session.send(request("ping")).result == {}


def test_a_client_that_leaves_frees_its_place(start, tmp_path):
    endpoint = Http(bounded(start, tmp_path, STREAMS))
    for _ in range(5):
        again(lambda: watching(endpoint)).leave()
    again(lambda: watching(endpoint)).leave()


def test_a_session_that_ends_frees_what_it_held(start, tmp_path):
    endpoint = Http(bounded(start, tmp_path, STREAMS))
    # One more than there is room for.
    for _ in range(STREAMS["streams"] + 1):
        session = endpoint.begin()
        watch = again(lambda: watching(endpoint, session))
        watch.leave()
        session.end()
    again(lambda: watching(endpoint)).leave()


# What only stdio has.


def test_a_client_that_closes_stdin_in_the_middle_of_a_call_is_done_with(tmp_path):
    with Stdio("--data", str(tmp_path / "data")).begin() as process:
        process.send(request("tools/call", WATCH))
        assert process.next()["method"] == "notifications/progress"
        assert process.end() == 0
        assert "panicked" not in process.log.text()


def test_a_write_is_whole_though_stdin_closes_right_after_it(tmp_path):
    data = tmp_path / "data"
    with Stdio("--data", str(data)).begin() as process:
        process.send(call("publish_skill", {"skill_id": "github/last/words", "files": files("words", "x" * MIB)}))
        assert process.end() == 0
    with Stdio("--data", str(data)).begin() as process:
        process.send(call("list_versions", {"skill_id": "github/last/words"}))
        result = process.answer(1)["result"]
        found = result.get("structuredContent", {}).get("versions", [])
        assert [version["file_count"] for version in found] in ([], [1])
        assert process.end() == 0


def test_a_client_that_says_nothing_is_done_with(tmp_path):
    with Stdio("--data", str(tmp_path / "data")) as process:
        assert process.end() == 0


@pytest.mark.parametrize(
    "first", [b"hello", b"[]", b"\xff\xfe", request("tools/list")], ids=["words", "a list", "no UTF-8", "a request"]
)
def test_a_client_that_begins_wrong_may_begin_again(tmp_path, first):
    with Stdio("--data", str(tmp_path / "data")) as process:
        process.send(first)
        process.begin()
        process.send(request("ping", id="well"))
        assert process.answer("well")["result"] == {}
        assert process.end() == 0


def test_lines_of_nothing_are_passed_over(process):
    process.send(b"", b"   ", b"\t\r", request("ping", id="well"))
    assert process.answer("well")["result"] == {}


def test_a_line_too_long_is_refused_and_the_next_one_read(process):
    process.send(request("ping", {"x": "a" * (25 * MIB)}, id="long"), request("ping", id="well"))
    said = []
    while (message := process.next()).get("id") != "well":
        said.append(message)
    (refusal,) = said
    assert refusal["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST)
    clear(refusal["error"]["message"])
