"""A server under test, and grpcurl against it.

Every wait has a bound and ends as soon as what is waited for is there.
"""

import base64
import contextlib
import hashlib
import importlib
import json
import os
import pkgutil
import queue
import re
import signal
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import grpc
import repertoire.v1
from google.protobuf import json_format
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from repertoire.v1 import learning_pb2_grpc, lookup_pb2, lookup_pb2_grpc, options_pb2, registry_pb2, registry_pb2_grpc

BIN = os.environ["REPERTOIRE_BIN"]
CONFORMANCE = os.environ.get("REPERTOIRE_CONFORMANCE", "")
HOSTS = Path(__file__).parent / ".tools" / "hosts" / "bin" / "python"
GRPCURL = Path(__file__).parent / ".tools" / "bin" / "grpcurl"
OTELCOL = Path(__file__).parent / ".tools" / "otelcol" / "otelcol"
# In a folder that Maven built; a program that runs for a second is better off without the second compiler.
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "target/classes:target/lib/*")

START_SECONDS = 20
STOP_SECONDS = 10
CALL_SECONDS = 20


def clean_environment():
    """The environment without what would change the server or its clients. A server that a
    window on stdio starts leaves with it."""
    kept = {k: v for k, v in os.environ.items() if not re.match(r"(?i)(repertoire|otel|grpc)_|.*_proxy$", k)}
    return kept | {"RUST_BACKTRACE": "1", "REPERTOIRE_CONFIG": str(Path(__file__).with_name("windows.yaml"))}


class Lines:
    """Lines of a pipe as they come."""

    def __init__(self, pipe):
        self.seen = []
        self._lines = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe):
        for line in pipe:
            self.seen.append(line)
            self._lines.put(line)
        self._lines.put(None)

    def next(self, seconds):
        """The next line; None at the end."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no line within {seconds} s; so far: {''.join(self.seen)!r}") from None

    def text(self):
        self._thread.join(STOP_SECONDS)
        return "".join(self.seen)


@contextlib.contextmanager
def held_port():
    """A port of 127.0.0.1 for a program to listen on.

    A socket stays bound to it: the system gives the port to nobody else, not even
    while the program is restarted, and refuses connections until it listens.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


class Program:
    """A program that serves on a free port of 127.0.0.1 and says which."""

    def __init__(self, *command, stdin=subprocess.DEVNULL, stdout=None, environment=None):
        self.process = subprocess.Popen(
            command,
            env=clean_environment() | (environment or {}),
            stderr=subprocess.PIPE,
            stdin=stdin,
            stdout=stdout,
            text=True,
        )
        self.log = Lines(self.process.stderr)
        self.address = None

    def ready(self, loud=False):
        """Waits for the first line on stderr, which names the address; a loud server has others before it."""
        # Alone, or the message of a record in JSON.
        wanted = re.compile(r'(?:\{.*")?listening on (https?)://(127\.0\.0\.1:\d+)(?:".*\})?\n')
        line = self.log.next(START_SECONDS)
        while loud and line and not wanted.fullmatch(line):
            line = self.log.next(START_SECONDS)
        found = wanted.fullmatch(line or "")
        if not found:
            self.kill()
            raise AssertionError(f"the first line on stderr is not an address: {self.log.text()!r}")
        self.scheme, self.address = found.groups()
        return self

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self, seconds=STOP_SECONDS):
        """The exit code, once the process is gone."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server was still there after {seconds} s: {self.log.text()}") from None

    def stop(self):
        if self.process.poll() is None:
            self.terminate()
        return self.exit_code()

    def kill(self):
        self.process.kill()
        self.process.wait(STOP_SECONDS)


class Server(Program):
    """A server over a data directory."""

    def __init__(self, data, *options, listen="127.0.0.1:0", **more):
        super().__init__(BIN, "serve", "--listen", listen, "--data", str(data), *options, **more)
        self.data = data
        self._channels = []

    def channel(self, *options, **more):
        options = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), *options)
        channel = grpc.insecure_channel(self.address, options=options, **more)
        self._channels.append(channel)
        return channel

    def registry(self, **more):
        return registry_pb2_grpc.RegistryStub(self.channel(**more))

    def local_registry(self):
        """As whoever has the data directory reaches it, through the socket in it."""
        channel = grpc.insecure_channel(f"unix:{self.data}/socket", options=[("grpc.default_authority", "localhost")])
        self._channels.append(channel)
        return registry_pb2_grpc.RegistryStub(channel)

    def lookup(self, **more):
        return lookup_pb2_grpc.LookupStub(self.channel(**more))

    def learning(self, **more):
        return learning_pb2_grpc.LearningStub(self.channel(**more))

    def stop(self):
        try:
            return super().stop()
        finally:
            for channel in self._channels:
                channel.close()


@dataclass
class Outcome:
    """What a call came to: its answers, or its refusal."""

    answers: list
    refusal: dict | None

    @property
    def answer(self):
        assert self.refusal is None, f"refused: {self.refusal}"
        assert len(self.answers) == 1, self.answers
        return self.answers[0]


class Grpcurl:
    """grpcurl against one server, which it knows by reflection alone."""

    def __init__(self, address):
        self.address = address

    def run(self, *arguments, **more):
        command = [GRPCURL, "-plaintext", "-max-time", str(CALL_SECONDS), *arguments]
        return subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, timeout=2 * CALL_SECONDS, **more
        )

    def text(self, *arguments):
        """What grpcurl prints, for `list` and `describe`."""
        done = self.run(self.address, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def call(self, method, request=None):
        """Calls `Service/Method` of the contract."""
        if method.split("/")[0] in ("Registry", "Lookup"):
            method = f"repertoire.v1.{method}"
        # On stdin: a skill may be longer than a command line.
        done = self.run("-format-error", "-d", "@", self.address, method, input=json.dumps(request or {}))
        if done.returncode == 0:
            return Outcome(documents(done.stdout), None)
        assert done.stderr.lstrip().startswith("{"), done.stderr
        status = json.loads(done.stderr)
        assert done.returncode == 64 + status["code"], done
        return Outcome(documents(done.stdout), refusal(status))

    def stream(self, method, request):
        return GrpcurlStream(self.address, method, request)


class GrpcurlStream:
    """A streaming call by grpcurl that stays open."""

    def __init__(self, address, method, request):
        command = [GRPCURL, "-plaintext", "-format-error", "-max-time", "60", "-d", json.dumps(request), address,
                   f"repertoire.v1.{method}"]
        self.process = subprocess.Popen(
            command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._lines = Lines(self.process.stdout)

    def next(self):
        """The next answer."""
        text = ""
        while True:
            line = self._lines.next(CALL_SECONDS)
            assert line is not None, f"the stream ended: {self.process.stderr.read()}"
            text += line
            if line == "}\n" or line == "{}\n":
                return json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(STOP_SECONDS)


def documents(text):
    """The JSON documents of a text, one after the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


CODES = {code.value[0]: code.name for code in grpc.StatusCode}


def refusal(status):
    """A status as one would tell it: the code by name, the details by type."""
    told = {"code": CODES[status["code"]], "message": status["message"]}
    for detail in status.get("details", []):
        name = detail["@type"].rsplit(".", 1)[1]
        if "@value" in detail:
            # grpcurl did not know the type; we do.
            message = getattr(error_details_pb2, name).FromString(base64.b64decode(detail["@value"]))
            detail = json_format.MessageToDict(message)
        told[name] = {key: value for key, value in detail.items() if not key.startswith("@")}
    return told


def told(error):
    """The refusal of a Python call, in the same form."""
    status = rpc_status.from_call(error)
    if status is None:
        return {"code": error.code().name, "message": error.details()}
    details = [{"@type": any.type_url, "@value": base64.b64encode(any.value)} for any in status.details]
    return refusal({"code": status.code, "message": status.message, "details": details})


def refused(code, message, reason, number, *, metadata=None, fields=None, help=None, retry=None):
    """A refusal with all its details, as the contract words it."""
    told = {
        "code": code,
        "message": message,
        "ErrorInfo": {
            "reason": reason,
            "domain": "repertoire",
            "metadata": {"number": str(number), **(metadata or {})},
        },
    }
    if fields:
        violations = [{"field": field, "description": text} for field, text in fields]
        told["BadRequest"] = {"fieldViolations": violations}
    if help:
        told["Help"] = {"links": [{"description": text} for text in help]}
    if retry:
        told["RetryInfo"] = {"retryDelay": retry}
    return told


def without(value, *names):
    """A JSON value without what no test can know: some fields, at any depth."""
    if isinstance(value, dict):
        return {key: without(inner, *names) for key, inner in value.items() if key not in names}
    if isinstance(value, list):
        return [without(inner, *names) for inner in value]
    return value


TIMES = ("createdAt", "updatedAt", "lastUsedAt", "time")


def timeless(value):
    """A JSON value without its times, each of which is one."""
    if isinstance(value, dict):
        for key in TIMES:
            if key in value:
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value[key]), value
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [timeless(inner) for inner in value]
    return value


def skill_md(name, body="# Steps\n", description="Use it in a test.", **front_matter):
    lines = "".join(f"{key}: {value}\n" for key, value in front_matter.items())
    return f"---\nname: {name}\ndescription: {description}\n{lines}---\n\n{body}".encode()


def as_json(files):
    """Files as grpcurl sends them."""
    return [{"path": path, "content": base64.b64encode(content).decode()} for path, content in files.items()]


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def bundle_digest(files):
    """The digest of a version: over the sorted list of `path NUL digest LF`."""
    listed = sorted((path.encode(), hashlib.sha256(content).hexdigest().encode()) for path, content in files.items())
    return digest(b"".join(path + b"\0" + hexed + b"\n" for path, hexed in listed))


def publish(server, skill_id, files, **more):
    """Publishes a version over gRPC: to places of the machine as only a caller on it can."""
    files = [registry_pb2.File(path=path, content=content) for path, content in files.items()]
    request = registry_pb2.PublishSkillRequest(skill_id=skill_id, files=files, **more)
    is_personal = skill_id.startswith(("local/project/", "local/user/"))
    registry = server.local_registry() if is_personal else server.registry()
    return registry.PublishSkill(request, timeout=CALL_SECONDS)


def read_file(server, skill_id, path):
    """A file as gRPC hands it out."""
    request = lookup_pb2.ReadFileRequest(skill_id=skill_id, path=path)
    return server.lookup().ReadFile(request, timeout=CALL_SECONDS).content


def tool_options():
    """The tools that the contract names, each with its method's name, and whether it is the first of its method."""
    for service in SERVICES:
        for method in service.methods:
            for number, tool in enumerate(method.GetOptions().Extensions[options_pb2.tool]):
                yield tool.name or re.sub(r"(?<!^)(?=[A-Z])", "_", method.name).lower(), tool, number == 0


# Of every proto file, so that a new one needs no line here.
CONTRACT = [
    service
    for name in sorted(module.name for module in pkgutil.iter_modules(repertoire.v1.__path__))
    if name.endswith("_pb2")
    for service in importlib.import_module(f"repertoire.v1.{name}").DESCRIPTOR.services_by_name.values()
]
# `Admin` is for the local socket alone; a worker's stream has no other face.
OFFERED = [service for service in CONTRACT if service.name != "Admin"]
SERVICES = [service for service in OFFERED if service.name != "ToolHost"]

TOOLSETS = sorted({toolset for _, tool, _ in tool_options() for toolset in tool.toolsets})


def tools_of(toolset=None):
    """The names of the tools of a toolset, or of all. `gated`, as all, has those that the bundled skills unlock as well."""
    of_set = [(name, tool, first) for name, tool, first in tool_options() if toolset in (None, *tool.toolsets)]
    names = {name for name, _, first in of_set if first or toolset}
    return names | unlocked() if toolset in (None, "gated") else names


def unlocked():
    """The names of the tools that the bundled skills declare."""
    names = set()
    for page in (Path(__file__).parents[2] / "skills").glob("*/SKILL.md"):
        declared = re.search(r"^tool_configs:\n(.*?)^(?=\S)", page.read_text(), re.DOTALL | re.MULTILINE)
        names |= set(re.findall(r"^  - name: (\w+)$", declared.group(1), re.MULTILINE)) if declared else set()
    return names
