"""gRPC-Web as a browser speaks it: HTTP/1.1, framed by hand."""

import base64
import http.client
import json
import struct

import pytest
from repertoire.v1 import lookup_pb2

ORIGIN = "http://localhost:3000"


def request(server, method, body=b"", path="/repertoire.v1.Lookup/GetSkill", **headers):
    host, port = server.address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"origin": ORIGIN, **headers})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def frame(message):
    return b"\0" + struct.pack(">I", len(message)) + message


def frames(body):
    """Messages and trailers of a body."""
    messages, trailers, at = [], {}, 0
    while at < len(body):
        flag, length = struct.unpack(">BI", body[at : at + 5])
        payload, at = body[at + 5 : at + 5 + length], at + 5 + length
        assert len(payload) == length
        if flag & 0x80:
            lines = payload.decode().split("\r\n")
            trailers = dict(map(str.strip, line.split(":", 1)) for line in lines if line)
        else:
            messages.append(payload)
    return messages, trailers


def call(server, skill_id, content_type="application/grpc-web+proto"):
    body = frame(lookup_pb2.GetSkillRequest(skill_id=skill_id).SerializeToString())
    if "text" in content_type:
        body = base64.b64encode(body)
    answer, body = request(server, "POST", body, content_type=content_type, accept=content_type, x_grpc_web="1")
    assert (answer.status, answer.version) == (200, 11)
    assert answer.headers["content-type"].startswith(content_type.split("+")[0])
    if "text" in content_type:
        # Each piece is padded by itself.
        body = b"".join(base64.b64decode(body[at : at + 4]) for at in range(0, len(body), 4))
    return answer, *frames(body)


@pytest.mark.parametrize("content_type", ["application/grpc-web+proto", "application/grpc-web-text+proto"])
def test_a_browser_can_call_over_http_1(server, content_type):
    answer, messages, trailers = call(server, "write_sql", content_type)
    (message,) = messages
    assert lookup_pb2.GetSkillResponse.FromString(message).skill.id == "builtin/repertoire/write_sql"
    assert trailers["grpc-status"] == "0"


def test_a_browser_may_read_the_answer_and_its_status(server):
    answer, _, _ = call(server, "write_sql")
    assert answer.headers["access-control-allow-origin"] in ("*", ORIGIN)
    exposed = {name.strip().lower() for name in answer.headers["access-control-expose-headers"].split(",")}
    assert {"grpc-status", "grpc-message", "grpc-status-details-bin"} <= exposed


def test_a_browser_learns_of_a_refusal(server):
    answer, messages, trailers = call(server, "no-such")
    told = status(answer, trailers)
    assert (messages, told["grpc-status"], "no-such" in told["grpc-message"]) == ([], "5", True)
    assert told["grpc-status-details-bin"]


def status(answer, trailers):
    """The status of a call, which stands in the headers or in the last frame."""
    return {name.lower(): value for name, value in answer.headers.items()} | trailers


def test_a_stream_to_a_browser_ends_with_a_status_when_its_deadline_passes(server):
    answer, body = request(
        server,
        "POST",
        frame(b""),
        path="/repertoire.v1.Registry/Watch",
        content_type="application/grpc-web+proto",
        grpc_timeout="300m",
    )
    messages, trailers = frames(body)
    assert (len(messages), trailers.get("grpc-status")) == (1, "4")


def test_a_browser_whose_timeout_cannot_be_read_learns_so(server):
    answer, body = request(
        server, "POST", frame(b""), content_type="application/grpc-web+proto", grpc_timeout="soon"
    )
    messages, trailers = frames(body)
    told = status(answer, trailers)
    assert (answer.status, messages, told["grpc-status"]) == (200, [], "3")
    assert told["content-type"].startswith("application/grpc-web")


def test_a_browser_may_ask_first(server):
    answer, _ = request(
        server,
        "OPTIONS",
        access_control_request_method="POST",
        access_control_request_headers="content-type,x-grpc-web,grpc-timeout,traceparent",
    )
    allowed = answer.headers["access-control-allow-headers"].lower()
    methods = answer.headers["access-control-allow-methods"]
    assert (answer.status, answer.headers["access-control-allow-origin"] in ("*", ORIGIN)) == (200, True)
    assert methods == "*" or "POST" in methods
    assert allowed == "*" or {"content-type", "x-grpc-web", "grpc-timeout"} <= set(allowed.replace(" ", "").split(","))


def test_a_person_with_a_browser_is_told_what_this_is(server):
    answer, body = request(server, "GET", path="/")
    assert (answer.status, json.loads(body)["name"]) == (200, "repertoire")
