"""The clients' packages, each with a program that was built on what `clients/build` made, against the real server."""

import contextlib
import json
import re
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import harness
import proxies
import pytest
from conftest import need
from harness import CALL_SECONDS, JAVA, skill_md
from proxies import secured  # noqa: F401
from repertoire.v1 import lookup_pb2, registry_pb2, registry_pb2_grpc
from test_examples import SAID, Worker, hosting  # noqa: F401

CLIENTS = Path(__file__).parent / ".tools" / "clients"
SKILLS = Path(__file__).parents[2] / "examples"
VENV = str(CLIENTS / "python" / "venv" / "bin" / "python")
NODE = str(Path(__file__).parent / ".tools" / "bin" / "node")

# Language: what runs its driver, what runs the lines of its README, what it calls a code of gRPC.
LANGUAGES = {
    "python": ((VENV, "driver.py"), (VENV, "readme.py"), lambda name: name),
    "typescript": ((NODE, "dist/driver.js"), (NODE, "dist/readme.js"), lambda name: name.title().replace("_", "")),
    "go": (("bin/driver",), ("bin/readme",), lambda name: name.title().replace("_", "")),
    "java": ((*JAVA, "Driver"), (*JAVA, "Readme"), lambda name: name),
}
each_language = pytest.mark.parametrize("language", LANGUAGES)


def start_driver(language, server, *arguments, program=0, cwd=None, **environment):
    folder = CLIENTS / language
    if not (folder / "ready").is_file():
        need("", f"the client for {language}")
    own = ("bin/", "dist/", "driver.", "readme.")
    command = [str(folder / word) if word.startswith(own) else word for word in LANGUAGES[language][program]]
    command = [word.replace("target/", f"{folder}/target/") for word in command]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env=harness.clean_environment() | {"REPERTOIRE_SERVER": server} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def drive(language, server, *arguments, **environment):
    """What a driver tells that ends by itself."""
    process = start_driver(language, server, *arguments, **environment)
    try:
        out, err = process.communicate(timeout=2 * CALL_SECONDS)
    finally:
        process.kill()
    assert err == "", err
    return [json.loads(line) for line in out.splitlines()]


class Driver:
    """A driver that goes on until it is ended."""

    def __init__(self, language, server, *arguments):
        self.process = start_driver(language, server, *arguments)
        self.lines = harness.Lines(self.process.stdout)

    def next(self, seconds=CALL_SECONDS):
        line = self.lines.next(seconds)
        assert line is not None, self.process.stderr.read()
        return json.loads(line)

    def said(self):
        """What it printed last, and whether it goes on."""
        return self.lines.seen[-3:], self.process.poll()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(harness.STOP_SECONDS)


def publish(server, name, body="# Steps\n"):
    return harness.publish(server, f"github/acme/{name}", {"SKILL.md": skill_md(name, body)})


def counted(server, method, code):
    """How many calls of a method the server ended with a code."""
    with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=CALL_SECONDS) as answer:
        metrics = answer.read().decode()
    labels = rf'[^}}]*grpc_method="{method}"[^}}]*grpc_code="{code}"'
    found = re.search(rf"^grpc_server_handled_total{{{labels}}} (\d+)$", metrics, re.M)
    return int(found[1]) if found else 0


def wait_for(condition, what):
    until = time.monotonic() + CALL_SECONDS
    while not condition():
        assert time.monotonic() < until, what() if callable(what) else what
        time.sleep(0.01)


@each_language
def test_clients_publish_search_load_and_call_in_the_lines_of_their_readme(hosting, language):  # noqa: F811
    with Worker("python", hosting):
        process = start_driver(language, hosting.address, program=1, cwd=SKILLS)
        try:
            out, err = process.communicate(timeout=2 * CALL_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1].startswith("3 words; most frequent: so 2 "), out


@each_language
def test_clients_publish_a_folder_with_all_that_is_part_of_the_skill(server, tmp_path, language):
    folder = tmp_path / f"whole-{language}"
    wanted = {
        "SKILL.md": skill_md(folder.name),
        "references/deep/page.md": b"# Page\n",
        "assets/image.bin": bytes(range(256)),
        ".env.example": b"KEY=\n",
    }
    left_out = [".git/config", "node_modules/a/index.js", "scripts/__pycache__/a.pyc", ".env", "id_rsa", ".DS_Store", "a.pem"]
    for path, content in wanted.items() | {(path, b"no part of it") for path in left_out}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "link.md").symlink_to(__file__)
    (folder / "linked").symlink_to(Path(__file__).parent)

    skill = f"github/acme/{folder.name}"
    told = [drive(language, server.address, "publish", folder, skill) for _ in range(2)]
    assert told == [
        [{"skill_id": skill, "outcome": "PUBLISH_OUTCOME_CREATED"}],
        [{"skill_id": skill, "outcome": "PUBLISH_OUTCOME_UNCHANGED"}],
    ]
    listed = server.lookup().ListFiles(lookup_pb2.ListFilesRequest(skill_id=skill), timeout=CALL_SECONDS)
    assert {file.path: file.digest for file in listed.files} == {
        path: harness.digest(content) for path, content in wanted.items()
    }


@each_language
def test_clients_refuse_a_folder_over_the_limits_or_with_patterns_before_they_send_it(server, tmp_path, language):
    for name, path, size, message in [
        ("large", "big.bin", (16 << 20) + 1, "with big.bin the skill has more than 16 MiB"),
        ("patterns", ".skillignore", 1, ".skillignore says what stays out of the skill, which this client does not read"),
    ]:
        folder = tmp_path / name
        folder.mkdir()
        with (folder / path).open("wb") as file:
            file.truncate(size)
        (told,) = drive(language, server.address, "publish", folder, "github/acme/refused")
        assert (told["code"], told["kind"], told["message"]) == ("SKILL_INVALID", "refused", message)


@each_language
def test_clients_tell_a_refusal_by_its_code_and_what_to_do_next(server, language):
    status = LANGUAGES[language][2]
    for command in ["load", "stub"]:
        (told,) = drive(language, server.address, command, "nobody/has/it")
        assert (told["code"], told["kind"], told["status"]) == ("SKILL_NOT_FOUND", "not_found", status("NOT_FOUND"))
        assert told["message"] == "Skill 'nobody/has/it' not found in index" and told["next"] != []
    (told,) = drive(language, server.address, "stub", "x" * 401)
    assert (told["code"], told["kind"]) == ("INVALID_PARAMETER", "refused")
    assert [violation["field"] for violation in told["violations"]] == ["skill_id"]


@each_language
def test_clients_watch_over_a_kill_without_loss_or_repeat(start, port, tmp_path, language):
    listen = f"127.0.0.1:{port}"
    server = start(data=tmp_path / "data", listen=listen).ready()
    with Driver(language, server.address, "watch") as driver:
        assert driver.next()["resume_token"] != ""
        publish(server, "first")
        seen = [driver.next()]
        token = seen[0]["resume_token"]
        server.kill()
        server = start(data=tmp_path / "data", listen=listen).ready()
        # While the client waits for its next attempt, or after it.
        publish(server, "second")
        seen.append(driver.next(harness.START_SECONDS))
        publish(server, "third")
        seen.append(driver.next())
        # A graceful stop as well.
        assert server.stop() == 0
        server = start(data=tmp_path / "data", listen=listen).ready()
        publish(server, "fourth")
        seen.append(driver.next(harness.START_SECONDS))
    names = [event["skill_id"].rsplit("/", 1)[1] for event in seen]
    assert names == ["first", "second", "third", "fourth"]
    # Another process goes on where this one was.
    with Driver(language, server.address, "watch", token) as driver:
        assert driver.next() == {"resume_token": token}
        assert [driver.next() for _ in range(3)] == seen[1:]


@each_language
def test_clients_end_a_watch_that_cannot_go_on_with_an_error(server, start, port, tmp_path, language):
    status, listen = LANGUAGES[language][2], f"127.0.0.1:{port}"
    other = start(data=tmp_path / "other", listen=listen).ready()
    with Driver(language, other.address, "watch") as driver:
        token = driver.next()["resume_token"]
    (told,) = drive(language, server.address, "watch", token)
    assert (told["code"], told["kind"], told["status"]) == ("RESUME_TOKEN_EXPIRED", "refused", status("OUT_OF_RANGE"))
    # The same where it goes on for the client: its server comes back with another log.
    with Driver(language, other.address, "watch") as driver:
        driver.next()
        other.kill()
        other = start(data=tmp_path / "anew", listen=listen).ready()
        assert driver.next(harness.START_SECONDS)["code"] == "RESUME_TOKEN_EXPIRED"


class Relay:
    """A port that leads to a server; without one it ends each connection at once."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.listener.getsockname())
        self.target = None
        # Somebody came while there was no server.
        self.came = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.target is None:
                client.close()
                self.came.set()
                continue
            host, port = self.target.split(":")
            server = socket.create_connection((host, int(port)))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Closed alone, it would not wake who accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@each_language
def test_clients_repeat_calls_until_there_is_a_server_again(start, tmp_path, language):
    servers = [start(data=tmp_path / name).ready() for name in ("first", "second", "third")]
    with Relay() as relay, Driver(language, relay.address, "repeat") as driver:
        relay.target = servers[0].address
        driver.next()
        for server, after, end in zip(servers, servers[1:], ["kill", "stop"]):
            relay.target = None
            relay.came.clear()
            getattr(server, end)()
            assert relay.came.wait(CALL_SECONDS), driver.said()
            relay.target = after.address
            wait_for(lambda: counted(after, "Search", "OK") > 1, lambda: f"no search came: {driver.said()}")
        told = [json.loads(line) for line in driver.lines.seen]
    assert all(list(line) == ["seconds"] for line in told), told[-1]


@each_language
def test_clients_wait_where_the_server_has_too_much_to_do(start, tmp_path, language):
    config = tmp_path / "repertoire.yaml"
    config.write_text("limits: {streams: 1, wait_seconds: 0, share_percent: 100}\n")
    server = start("--config", str(config)).ready()
    only = server.registry().Watch(registry_pb2.WatchRequest())
    next(only)
    with Driver(language, server.address, "watch") as driver:
        wait_for(lambda: counted(server, "Watch", "ResourceExhausted") > 0, "nobody was refused")
        only.cancel()
        assert driver.next()["resume_token"] != ""


@each_language
def test_clients_call_a_tool_once(start, tmp_path, language):
    server = start().ready()
    drive(language, server.address, "publish", SKILLS / "skills" / "text_stats", "examples/text/text_stats")
    # That nobody runs it looks like that somebody did who then went away.
    (told,) = drive(language, server.address, "call", "text_stats", "text_count_words")
    assert (told["code"], told["kind"]) == ("TOOL_UNAVAILABLE", "unavailable")
    assert counted(server, "CallTool", "Unavailable") == 1


@each_language
def test_clients_say_that_no_server_is_there(port, language):
    (told,) = drive(language, f"127.0.0.1:{port}", "search", "anything")
    assert (told["code"], told["kind"]) == ("SERVER_UNREACHABLE", "unavailable")
    assert told["next"] == ["Look whether the server is there, and whether its address is the right one"]


@each_language
def test_clients_send_no_token_in_clear_to_another_machine(language):
    (told,) = drive(language, "http://skills.example.com", "search", "anything", REPERTOIRE_TOKEN="a-token")
    assert (told["code"], told["kind"]) == ("INVALID_PARAMETER", "refused")
    assert told["message"] == "a token would go to http://skills.example.com for everybody on the way to read"
    assert "a-token" not in json.dumps(told)


@each_language
def test_clients_reach_a_server_with_tls_and_trust_nobody_else(secured, server, language):  # noqa: F811
    files = [registry_pb2.File(path="SKILL.md", content=skill_md("hidden"))]
    with secured.channel() as channel:
        request = registry_pb2.PublishSkillRequest(skill_id="github/acme/hidden", files=files)
        registry_pb2_grpc.RegistryStub(channel).PublishSkill(request, timeout=CALL_SECONDS)
    trusting = {"REPERTOIRE_CA": str(secured.ca), "REPERTOIRE_TOKEN": "a-token"}
    wait_for(
        lambda: drive(language, secured.url, "search", "hidden", **trusting) == [{"found": ["github/acme/hidden"]}],
        "what was published is not found",
    )
    (told,) = drive(language, secured.url, "search", "hidden")
    assert (told["code"], told["kind"]) == ("SERVER_UNREACHABLE", "unavailable")
    # An empty variable is not set; what is not TLS is not tried.
    (told,) = drive(language, f"https://{server.address}", "search", "hidden", REPERTOIRE_CA="")
    assert told["code"] == "SERVER_UNREACHABLE"
