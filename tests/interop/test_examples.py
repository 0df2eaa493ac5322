"""The examples of four languages: each language's worker serves the skill text_stats, each language's client calls it."""

import re
import signal
import subprocess
from pathlib import Path

import harness
import proxies
import pytest
from conftest import need
from harness import JAVA

TREE = Path(__file__).parent / ".tools" / "tree" / "examples"
# With the package of the client.
VENV = Path(__file__).parent / ".tools" / "clients" / "python" / "venv" / "bin" / "python"
NODE = Path(__file__).parent / ".tools" / "bin" / "node"

# Language: what it calls itself, its worker, its client.
LANGUAGES = {
    "python": ("Python", (VENV, "worker.py"), (VENV, "client.py")),
    "typescript": ("TypeScript", (NODE, "dist/worker.js"), (NODE, "dist/client.js")),
    "go": ("Go", ("bin/worker",), ("bin/client",)),
    "java": ("Java", (*JAVA, "example.Worker"), (*JAVA, "example.Client")),
}

TOKEN = "a token of the tests".replace(" ", "-")
# The proxy is another user of this machine.
CONFIG = f"""
access: {{loopback: anyone}}
tools:
  workers:
    - name: text-stats
      token: {TOKEN}
      skills: [examples/text/*]
"""

SAID = """\
published examples/text/text_stats 1.0.0
found examples/text/text_stats
composed: allowed Read, text_count_words, sql_query, sql_describe_table, sql_explain_query, sql_validate_query, \
sql_list_tables, sql_get_samples; forbidden Bash
loaded: tools text_count_words; resources samples, rules
Words are counted by a worker written in {language}.
called: 13 words; most frequent: the 4, dog 2, fox 2 (13)
read: 10 words; most frequent: be 2, to 2, is 1
refused: INVALID_PARAMETER: `top` is from 1 to 100
  next: Ask for between 1 and 100 words
"""


@pytest.fixture(scope="module")
def hosting(tmp_path_factory):
    """A server that lets the examples' workers in."""
    folder = tmp_path_factory.mktemp("hosting")
    config = folder / "repertoire.yaml"
    config.write_text(CONFIG)
    server = harness.Server(folder / "data", "--config", str(config)).ready()
    yield server
    assert server.stop() == 0, server.log.text()
    assert "panicked" not in server.log.text(), server.log.text()


def start(language, command, server, **more):
    folder = TREE / language
    if not (folder / "ready").is_file():
        need("", f"the examples in {language}")
    environment = harness.clean_environment() | {"REPERTOIRE_ADDRESS": server.address, "WORKER_TOKEN": TOKEN}
    command = [str(folder / part) if part.startswith("bin/") else part for part in map(str, command)]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


class Worker:
    """The worker of a language, attached."""

    def __init__(self, language, server, **more):
        self.process = start(language, LANGUAGES[language][1], server, **more)
        self.said, self.log = harness.Lines(self.process.stdout), harness.Lines(self.process.stderr)
        line = self.said.next(harness.START_SECONDS)
        if not re.fullmatch(r"attached as text-stats-\d+\n", line or ""):
            self.process.kill()
            raise AssertionError(f"not attached: {line!r} {self.log.text()!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(harness.STOP_SECONDS)

    def leave(self):
        """It is asked to go; its exit code and what it had to complain of."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(harness.STOP_SECONDS), self.log.text()


def client(language, server, **more):
    process = start(language, LANGUAGES[language][2], server, **more)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_calls_the_worker_of_its_language(hosting, language):
    with Worker(language, hosting) as worker:
        assert client(language, hosting) == (0, SAID.format(language=LANGUAGES[language][0]), "")
        # Java's programs end with 128 + 15 when they are asked to, whatever they still do.
        assert worker.leave() == (143 if language == "java" else 0, "")


@pytest.fixture(scope="module")
def encrypted(hosting, tmp_path_factory):
    """What has a client and a worker reach it through a proxy with TLS."""
    with proxies.in_front_of(hosting, tmp_path_factory.mktemp("proxy")) as proxy:
        yield {"REPERTOIRE_ADDRESS": f"{proxies.HOST}:{proxy.port}", "REPERTOIRE_CA": str(proxy.ca)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_client_and_worker_of_a_language_reach_a_server_behind_tls(hosting, encrypted, language):
    with Worker(language, hosting, **encrypted):
        assert client(language, hosting, **encrypted) == (0, SAID.format(language=LANGUAGES[language][0]), "")


def test_clients_and_workers_of_different_languages_understand_each_other(hosting):
    with Worker("go", hosting):
        assert client("python", hosting) == (0, SAID.format(language="Go"), "")
    with Worker("python", hosting):
        assert client("go", hosting) == (0, SAID.format(language="Python"), "")


def test_a_worker_with_a_wrong_token_is_told_what_to_do(hosting):
    process = start("python", LANGUAGES["python"][1], hosting, WORKER_TOKEN="a-token-of-nobody")
    assert process.communicate(timeout=60) == ("", "PERMISSION_DENIED: The worker is not admitted\n")
    assert process.returncode == 1


def test_without_a_worker_the_client_is_told_that_nobody_runs_the_tool(hosting):
    returncode, out, _err = client("python", hosting)
    assert returncode != 0
    assert out == "".join(SAID.splitlines(keepends=True)[:4])
