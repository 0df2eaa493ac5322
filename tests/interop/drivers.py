"""Programs on the clients' packages, which `run` builds: what the tests of the clients drive."""

import json
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import harness
import pytest
from conftest import need
from harness import CALL_SECONDS, JAVA, skill_md

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
