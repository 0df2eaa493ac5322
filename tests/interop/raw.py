"""MCP as it goes over the wire: requests that no client would send can be sent here."""

import http.client
import io
import json
import subprocess
from dataclasses import dataclass

from harness import BIN, CALL_SECONDS, STOP_SECONDS, Lines, clean_environment

LEGACY, MODERN = "2025-11-25", "2026-07-28"
BOTH = "application/json, text/event-stream"
ABOUT = {"name": "raw", "version": "1"}


@dataclass
class Answer:
    """An HTTP answer."""

    status: int
    headers: object
    body: bytes

    @property
    def json(self):
        """The JSON-RPC message, also where it came as the one event of a stream."""
        text = self.body.decode()
        kind = self.headers["content-type"] or ""
        assert "json" in kind or kind == "text/event-stream", f"no JSON: {self.status} {text!r}"
        if kind == "text/event-stream":
            (text,) = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
        return json.loads(text)

    @property
    def error(self):
        """The JSON-RPC error: its code and sentence."""
        message = self.json
        assert message["jsonrpc"] == "2.0" and "result" not in message, message
        return message["error"]["code"], message["error"]["message"]

    @property
    def result(self):
        message = self.json
        assert "error" not in message, message
        return message["result"]


def request(method, params=None, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def call(tool, arguments, id=1):
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


def notice(method, params=None):
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


INITIALIZE = request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": ABOUT}, id=0)


def meta(version=MODERN):
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": version,
        f"{prefix}clientInfo": ABOUT,
        f"{prefix}clientCapabilities": {},
    }


class Http:
    """The HTTP endpoint of a server."""

    def __init__(self, server, path="/mcp"):
        self.server = server
        self.path = path

    def connection(self, timeout=CALL_SECONDS):
        host, port = self.server.address.split(":")
        return http.client.HTTPConnection(host, int(port), timeout=timeout)

    def send(self, body, verb="POST", connection=None, **headers):
        """Sends bytes, or a message as JSON; a header that is None is left out."""
        if not isinstance(body, bytes | None):
            body = json.dumps(body).encode()
        headers = {"content_type": "application/json", "accept": BOTH, **headers}
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        connection = connection or self.connection()
        try:
            connection.request(verb, self.path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def open(self, body, **headers):
        """Sends a message whose answer comes piece by piece."""
        connection = self.connection()
        headers = {"content_type": "application/json", "accept": BOTH, **headers}
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", self.path, json.dumps(body).encode(), headers)
        return Stream(connection, connection.getresponse())

    def ask(self, method, params=None, id=1, send=None, **headers):
        """A request of the stateless era."""
        params = dict(params or {})
        params["_meta"] = meta() | params.get("_meta", {})
        named = {"mcp_name": params[name] for name in ("name", "uri") if name in params}
        headers = {"mcp_protocol_version": MODERN, "mcp_method": method, **named, **headers}
        return (send or self.send)(request(method, params, id), **headers)

    def call(self, tool, arguments, **more):
        """A tool's call of the stateless era."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments}, **more)

    def begin(self):
        """A session of the era of `initialize`."""
        answer = self.send(INITIALIZE)
        assert answer.status == 200, answer
        session = Session(self, answer.headers["mcp-session-id"])
        assert session.send(notice("notifications/initialized")).status == 202
        return session


class Stream:
    """Messages of an answer, as they come."""

    def __init__(self, connection, answer):
        self.connection = connection
        self.answer = answer

    def next(self):
        """The next message; None at the end."""
        if not self.answer.headers["content-type"].startswith("text/event-stream"):
            text = self.answer.read()
            return json.loads(text) if text else None
        while line := self.answer.readline():
            if line.startswith(b"data: {"):
                return json.loads(line.removeprefix(b"data: "))
        return None

    def leave(self):
        """Goes, without a word."""
        self.answer.close()
        self.connection.close()


@dataclass
class Session:
    """A session over HTTP."""

    http: Http
    id: str

    def send(self, body, **more):
        return self.http.send(body, **{"mcp_session_id": self.id, "mcp_protocol_version": LEGACY, **more})

    def open(self, body):
        return self.http.open(body, mcp_session_id=self.id, mcp_protocol_version=LEGACY)

    def end(self):
        return self.send(None, verb="DELETE", content_type=None)


class Stdio:
    """A process that speaks MCP on stdin and stdout."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [BIN, "mcp", "--toolset", "all", *options], env=clean_environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.lines = Lines(io.TextIOWrapper(self.process.stdout, "utf-8"))
        self.log = Lines(io.TextIOWrapper(self.process.stderr, "utf-8"))

    def send(self, *messages):
        """Writes lines: bytes as they are, else a message as JSON."""
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def next(self):
        """The next message from the process."""
        line = self.lines.next(CALL_SECONDS)
        assert line is not None, "the process ended"
        return json.loads(line)

    def answer(self, id):
        """The answer to a request; notices before it are passed over."""
        while True:
            message = self.next()
            if message.get("id") == id and "method" not in message:
                return message

    def begin(self):
        self.send(INITIALIZE)
        assert self.answer(0)["result"]["protocolVersion"] == LEGACY
        self.send(notice("notifications/initialized"))
        return self

    def end(self):
        """Closes stdin, and gives the exit code."""
        self.process.stdin.close()
        return self.process.wait(STOP_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
