"""Secrets of the operator never show: whichever way they are configured, whatever the tools come to, wherever one looks.

Three servers have their secrets by value, from the environment and from files, log as much as they can, and export
all that a collector takes. Every tool is called over every face, with success and with failures of those that know a secret: a
database that repeats the password that it refuses, a Jira that repeats the token, workers that are let in and not.
"""

import base64
import contextlib
import json
import socket
import socketserver
import sqlite3
import struct
import subprocess
import threading
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

import grpc
import harness
import pytest
import yaml
from agents import FACES, Agent, Answer
from faces import Grpc, Refused, exchange
from jira_double import JiraDouble
from test_telemetry import Backend
from test_workers import METHODS, NOT_LET_IN, SKILL, Worker, publish_bench

# A server that logs all it can, on a machine with much to do.
pytestmark = pytest.mark.timeout(180)

# With what JSON, base64 and addresses write in other ways.
PASSWORD = 'pl@nted/pass"word=0001'
FILE_NAME = "planted-file-name-0002"
JIRA_TOKEN = "ATATTplanted/jira+token=0003"
WORKER_TOKEN = "planted-worker-token+/=0004"
WRONG_TOKEN = "planted-wrong-token+/=0005"
SECRETS = (PASSWORD, FILE_NAME, JIRA_TOKEN, WORKER_TOKEN, WRONG_TOKEN)
ROUNDS = ("value", "env", "file")
PLACES = ("answers", "bytes on the wire", "log", "stdout", "sent to a collector", "metrics", "records", "data directory", "backup")


def forms(secret):
    """A secret as it may be written."""
    raw = secret.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    for percent in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        found |= {percent.encode(), percent.replace("%2F", "%2f").replace("%3D", "%3d").encode()}
    written = json.dumps(secret)[1:-1]
    found |= {written.encode(), json.dumps(written)[1:-1].encode()}
    found |= {written.replace("=", "\\u003d").encode(), written.replace("/", "\\/").encode()}
    # Inside of something that is base64: whatever stands before it, these letters are the same.
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            letters = encode(b"-" * before + raw)
            found.add(letters[-(-before * 4 // 3):len(letters) - 4])
    return found


def found_in(content):
    """The secrets that are in something, and what is around the first place of each."""
    content = content if isinstance(content, bytes) else content.encode()
    found = {}
    for secret in SECRETS:
        places = [at for at in map(content.find, forms(secret)) if at >= 0]
        if places:
            found[secret] = content[max(min(places) - 300, 0):min(places) + 100]
    return found


@dataclass
class Haul:
    """What a server let out."""

    places: dict = field(default_factory=lambda: {place: b"" for place in PLACES})
    outcomes: dict = field(default_factory=dict)
    # Who was told a secret because it was theirs.
    reached: set = field(default_factory=set)

    def add(self, place, content):
        self.places[place] += content if isinstance(content, bytes) else content.encode()


class Postgres(socketserver.ThreadingTCPServer):
    """A PostgreSQL that lets nobody in, and says with which password."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        self.passwords = []
        super().__init__(("127.0.0.1", 0), self.Guest)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Guest(socketserver.StreamRequestHandler):
        def handle(self):
            with contextlib.suppress(struct.error, OSError):
                length, code = struct.unpack("!II", self.rfile.read(8))
                if code == 80877103:  # May we have TLS?
                    self.wfile.write(b"N")
                    length, code = struct.unpack("!II", self.rfile.read(8))
                self.rfile.read(length - 8)
                self.wfile.write(b"R" + struct.pack("!II", 8, 3))
                kind, length = struct.unpack("!cI", self.rfile.read(5))
                password = self.rfile.read(length - 4).rstrip(b"\0").decode()
                self.server.passwords.append(password)
                fields = [b"SFATAL", b"VFATAL", b"C28P01", f"Mno entry for shop with {password}".encode()]
                body = b"".join(part + b"\0" for part in fields) + b"\0"
                self.wfile.write(b"E" + struct.pack("!I", len(body) + 4) + body)

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Tap(socketserver.ThreadingTCPServer):
    """A way to a server that keeps what the server says; `channel` does so for gRPC, whose headers are packed."""

    daemon_threads = True

    def __init__(self, server):
        self.server, self.seen = server, []
        super().__init__(("127.0.0.1", 0), self.Guest)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Guest(socketserver.BaseRequestHandler):
        def handle(self):
            host, port = self.server.server.address.split(":")
            with socket.create_connection((host, int(port))) as there:
                up = threading.Thread(target=self.copy, args=(self.request, there), daemon=True)
                up.start()
                self.copy(there, self.request, self.server.seen)
                up.join(harness.STOP_SECONDS)

        @staticmethod
        def copy(source, to, seen=None):
            with contextlib.suppress(OSError):
                while part := source.recv(65536):
                    if seen is not None:
                        seen.append(part)
                    to.sendall(part)
            with contextlib.suppress(OSError):
                to.shutdown(socket.SHUT_WR)

    def channel(self):
        return grpc.intercept_channel(self.server.channel(), Interceptor(self.seen))

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Interceptor(grpc.UnaryUnaryClientInterceptor):
    def __init__(self, seen):
        self.seen = seen

    def intercept_unary_unary(self, continuation, details, request):
        call = continuation(details, request)
        try:
            self.seen.append(call.result().SerializeToString())
        except grpc.RpcError:
            pass
        for _, value in (*(call.initial_metadata() or ()), *(call.trailing_metadata() or ())):
            self.seen.append(value if isinstance(value, bytes) else value.encode())
        self.seen.append((call.details() or "").encode())
        return call


def databases(form, folder, stack):
    """The address of a database for each round: one that refuses the password, one that is away, a file."""
    password = quote(PASSWORD, safe="")
    if form == "value":
        postgres = stack.enter_context(Postgres())
        return f"postgres://shop:{password}@127.0.0.1:{postgres.server_address[1]}/shop", postgres
    if form == "env":
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        return f"postgres://shop:{password}@127.0.0.1:{port}/shop", None
    path = folder / f"{FILE_NAME}.db"
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE stock (item TEXT, count INTEGER)")
        base.execute("INSERT INTO stock VALUES ('nail', 7)")
        base.commit()
    return f"sqlite:{path}", None


def configured(form, folder, url, jira):
    """A config file, and the environment that goes with it."""
    environment = {}

    def secret(name, text):
        if form == "value":
            return text
        if form == "env":
            environment[name] = text
            return {"env": name}
        path = folder / name.lower()
        path.write_text(f"{text}\n")
        return {"file": str(path)}

    account = {"user": jira.user} if jira.cloud else {}
    config = {
        "tools": {
            "sql": {"url": secret("PLANTED_DATABASE", url), "timeout_seconds": 2},
            "jira": {"url": jira.url, "token": secret("PLANTED_JIRA", jira.token)} | account,
            "workers": [
                {"name": "bench", "token": secret("PLANTED_WORKER", WORKER_TOKEN), "skills": ["interop/tools/*"]}
            ],
        }
    }
    path = folder / "repertoire.yaml"
    path.write_text(yaml.safe_dump(config))
    return path, environment


def echoes(jira):
    """Answers of a Jira that repeats what it was asked with."""
    said = f"{jira.token} came as {jira.authorization}"
    body = {"errorMessages": [said], "errors": {said: said}, "message": said}
    # As the library that Jira has for it writes JSON.
    escaped = json.dumps(body).replace("=", "\\u003d").replace("/", "\\/").encode()
    issue = json.dumps(jira.issues[0] | {"fields": {"summary": said, said: said}}).replace("=", "\\u003d").encode()
    headers = {"X-Echo": said, "WWW-Authenticate": said}
    for status in (400, 401, 403, 404, 500):
        yield {"status": status, "body": body, "headers": headers}
        yield {"status": status, "body": escaped, "headers": headers}
    yield {"status": 302, "body": body, "headers": {"Location": f"/login?token={quote(said)}"}}
    yield {"status": 200, "body": f"<p>{said}".encode(), "headers": {"Content-Type": "text/html"}}
    yield {"status": 200, "body": issue}


def use_every_tool(agent, jira, worker, haul):
    """Calls of every tool, to success and failure."""
    outcomes = []

    def call(tool, **arguments):
        outcomes.append(agent.call(tool, **arguments))
        haul.outcomes.setdefault(tool, []).append(outcomes[-1])

    def by_worker(said, **arguments):
        calling = threading.Thread(target=call, args=("bench_echo",), kwargs=arguments)
        calling.start()
        invocation = worker.next("invocation")
        said(invocation)
        calling.join(harness.CALL_SECONDS)
        assert not calling.is_alive()

    for skill in ("write_sql", "jira", SKILL):
        outcomes.append(agent.load(skill))
    # In no session, an unknown tool, wrong arguments.
    outcomes.append(agent.call_by_name("no_such_tool"))
    haul.outcomes["no_such_tool"] = [outcomes[-1]]
    call("jira_search", jql=7)
    for query in ("SELECT * FROM stock", "SELECT * FROM no_such_table", "DROP TABLE stock", "nonsense"):
        for tool in ("sql_query", "sql_explain_query", "sql_validate_query"):
            call(tool, query=query)
    call("sql_list_tables")
    call("sql_describe_table", table_name="stock")
    call("sql_describe_table", table_name="no_such_table")
    call("sql_get_samples")
    questions = [
        ("jira_search", {"jql": "project = ABC"}),
        ("jira_get_issue", {"issue_key": "ABC-1"}),
        ("jira_list_projects", {}),
        ("jira_get_sprints", {"board_id": 7}),
        ("jira_get_changelog", {"issue_key": "ABC-1"}),
        ("jira_jql_reference", {}),
    ]
    for tool, arguments in questions:
        call(tool, **arguments)
    for tool, arguments in questions[:5]:
        for echo in echoes(jira):
            jira.fail_next(**echo)
            call(tool, **arguments)
    for echo in (echo for echo in echoes(jira) if echo["status"] in (401, 500)):
        jira.fail_next(**echo, times=2)
        outcomes.append(agent.load("jira"))
    by_worker(lambda invocation: worker.answer(invocation, "fine"), text="x")
    by_worker(lambda invocation: worker.fail(invocation, message="It would not"), text="x")
    return outcomes


@pytest.fixture(scope="module", params=ROUNDS)
def haul(request, tmp_path_factory):
    """All that a server let out while its tools were used."""
    form = request.param
    folder = tmp_path_factory.mktemp(f"by-{form}")
    haul = Haul()
    with contextlib.ExitStack() as stack:
        jira = stack.enter_context(JiraDouble(cloud=form != "env"))
        jira.token = JIRA_TOKEN
        url, postgres = databases(form, folder, stack)
        config, environment = configured(form, folder, url, jira)
        collector = Backend()
        stack.callback(lambda: collector.server.stop(0))
        stdout = stack.enter_context((folder / "stdout").open("w+"))
        options = [
            "--config", str(config), "--otlp-endpoint", collector.url,
            "--log", "debug" if form == "file" else "trace", "--log-format", "json" if form == "env" else "text",
        ]
        server = harness.Server(folder / "data", *options, environment=environment, stdout=stdout)
        try:
            server.ready(loud=True)
            publish_bench(server)
            for token in (WRONG_TOKEN, ""):
                assert Worker(server, token=token).next("end") == NOT_LET_IN
            refused = Worker(server, token=WORKER_TOKEN, skills={"interop/elsewhere/x": METHODS}).next("end")
            haul.add("answers", json.dumps(refused))
            worker = Worker(server, token=WORKER_TOKEN).attached()
            tap = stack.enter_context(Tap(server))
            for face in FACES:
                agent = Agent(face, tap)
                try:
                    for outcome in use_every_tool(agent, jira, worker, haul):
                        haul.add("answers", repr(outcome))
                finally:
                    agent.close()
            worker.leave()
            haul.add("bytes on the wire", b"".join(tap.seen))
            haul.add("metrics", exchange(server, "GET", "/metrics")[2])
            haul.add("records", json.dumps(Grpc(server).ask("ListToolCalls", {"page_size": 1000})))
        finally:
            code = server.stop()
        assert code == 0 and "panicked" not in server.log.text(), server.log.text()
        collector.server.stop(0).wait(harness.STOP_SECONDS)
        if any(one.authorization == jira.authorization for one in jira.requests):
            haul.reached.add("jira")
        if postgres and PASSWORD in postgres.passwords:
            haul.reached.add("postgres")
    haul.add("log", server.log.text())
    haul.add("stdout", (folder / "stdout").read_text())
    for export in collector.received():
        haul.add("sent to a collector", export.SerializeToString())
    haul.add("data directory", directory(folder / "data"))
    backup = str(folder / "backup")
    haul.add("backup", command("backup", backup, "--data", str(folder / "data")) + (folder / "backup").read_bytes())
    # A backup is packed, so what comes out of it is looked at too.
    haul.add("backup", command("restore", backup, "--data", str(folder / "restored")) + directory(folder / "restored"))
    haul.form = form
    return haul


def directory(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def command(*arguments):
    """What a command of the server says."""
    done = subprocess.run(
        [harness.BIN, *arguments], env=harness.clean_environment(), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def test_a_secret_is_found_however_it_is_written():
    for secret in SECRETS:
        for text in (secret, quote(secret, safe=""), json.dumps(secret), json.dumps(json.dumps(secret))):
            assert found_in(f"before {text} after").keys() == {secret}
        for before in ("", "a", "ab", "abc", "ada@acme.example:"):
            for after in ("", "z", "zz"):
                text = f"{before}{secret}{after}".encode()
                assert found_in(base64.b64encode(text)).keys() == {secret}
                assert found_in(base64.urlsafe_b64encode(text)).keys() == {secret}
    assert found_in("nothing is planted here") == {}


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_is_in_the(place, haul):
    assert found_in(haul.places[place]) == {}


def test_every_place_was_looked_at_and_every_tool_did_and_did_not_work(haul):
    # Each holds what it should: so what was searched is what was let out.
    for place, what in {
        "answers": b"JQL", "bytes on the wire": b"application/problem+json", "log": b"Jira did not answer",
        "sent to a collector": b"repertoire.v1.Lookup/CallTool", "metrics": b"repertoire_skills", "records": b"TOOL_DENIED",
        "data directory": b"TOOL_DENIED", "backup": b"TOOL_DENIED",
    }.items():
        assert what in haul.places[place], place
    assert haul.places["stdout"] == b""
    # The secrets went where they belong, and were refused where they were wrong.
    assert haul.reached == ({"jira", "postgres"} if haul.form == "value" else {"jira"})
    worked = {tool for tool, outcomes in haul.outcomes.items() if any(isinstance(one, Answer) for one in outcomes)}
    failed = {tool for tool, outcomes in haul.outcomes.items() if any(isinstance(one, Refused) for one in outcomes)}
    others = {
        "jira_search", "jira_get_issue", "jira_list_projects", "jira_get_sprints", "jira_get_changelog", "bench_echo",
    }
    databases = {
        "sql_query", "sql_explain_query", "sql_validate_query", "sql_list_tables", "sql_describe_table",
        "sql_get_samples",
    }
    if haul.form == "file":
        assert worked == others | databases | {"jira_jql_reference"}
        assert failed >= others | {"sql_query", "sql_explain_query", "sql_describe_table", "no_such_tool"}
    else:
        # What cannot be parsed is known to be wrong without a database.
        assert worked == others | {"jira_jql_reference", "sql_validate_query"}
        assert failed == others | databases | {"no_such_tool"}


def test_what_was_taken_out_of_an_answer_of_jira_is_shown_as_taken_out(haul):
    issues = [one for one in haul.outcomes["jira_get_issue"] if isinstance(one, Answer)]
    assert any("(removed)" in one.text.splitlines()[0] for one in issues), issues
    denied = [one for one in haul.outcomes["jira_search"] if isinstance(one, Refused)]
    assert any("(removed)" in one["message"] for one in denied), denied


# What an operator may write by mistake: settings, what is told, and nothing else of them.
MISTAKES = {
    "a token that reads as a number": (
        "tools: {workers: [{name: w, token: 7351049618273645, skills: [a/*]}]}", "7351049618273645",
    ),
    "a token of more digits": (
        "tools: {jira: {url: 'https://a.example', token: 735104961827364573510496182736457351}}",
        "735104961827364573510496182736457351",
    ),
    "a token in the place of its settings": ("tools: {jira: planted-token-of-nobody}", "planted-token-of-nobody"),
    "a token in a list of workers": ("tools: {workers: [planted-token-of-nobody]}", "planted-token-of-nobody"),
    "an address in the place of a number": (
        "tools: {sql: {max_rows: 'mysql://a:planted-word@b/c'}}", "planted-word",
    ),
    "an address of no database": ("tools: {sql: {url: 'ftp://a:planted-word@b/c'}}", "planted-word"),
    "an address that cannot be read": ("tools: {sql: {url: 'postgres://a:planted-word@b:port/c'}}", "planted-word"),
    "a password in the address of Jira": (
        "tools: {jira: {url: 'https://a:planted-word@b.example', token: planted-word-2}}", "planted-word",
    ),
    "a token that is too short": ("tools: {workers: [{name: w, token: planted, skills: [a/*]}]}", "planted"),
    "a token with a space": (
        "tools: {workers: [{name: w, token: 'planted token of a worker', skills: [a/*]}]}", "planted token",
    ),
    "a token twice": (
        "tools: {workers: [{name: w, token: planted-token-0001, skills: [a/*]}, "
        "{name: x, token: planted-token-0001, skills: [b/*]}]}",
        "planted-token-0001",
    ),
    "a token that no header takes": (
        'tools: {jira: {url: "https://a.example", token: "planted\\ntoken"}}', "planted",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_config_file_is_told_without_the_secret(tmp_path, mistake):
    text, secret = MISTAKES[mistake]
    (tmp_path / "repertoire.yaml").write_text(text)
    server = harness.Server(tmp_path / "data", "--config", str(tmp_path / "repertoire.yaml"), "--log", "trace")
    try:
        assert server.exit_code() == 1, server.log.text()
    finally:
        server.kill()
    assert "tools." in server.log.text()
    assert secret not in server.log.text()
