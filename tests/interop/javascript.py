"""Programs of the Node world: the MCP conformance suite, the MCP Inspector, and
our scripts with the MCP clients for TypeScript.

Each run has a bound, and a home directory of its own.
"""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness import STOP_SECONDS, Lines, clean_environment

HERE = Path(__file__).parent
NODE = HERE / ".tools" / "bin" / "node"
PACKAGES = HERE / ".tools" / "node" / "node_modules"

RUN_SECONDS = 50
STEP_SECONDS = 20


def environment(home):
    home.mkdir(exist_ok=True)
    return clean_environment() | {"HOME": str(home), "NO_COLOR": "1"}


def run(package, program, *arguments, home):
    """Runs a program that a package brings."""
    described = json.loads((PACKAGES / package / "package.json").read_text())
    command = [NODE, PACKAGES / package / described["bin"][program], *arguments]
    return subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=RUN_SECONDS)


@dataclass
class Report:
    """What a run of the conformance suite came to."""

    code: int
    text: str
    # Scenario by scenario, how many checks had which end: `SUCCESS`, `FAILURE`,
    # `WARNING`, `SKIPPED`; what is only told (`INFO`) is not counted.
    scenarios: dict
    # The checks with another end than `SUCCESS`, as `scenario:check`.
    others: dict

    def passed(self, names):
        """How many checks of each scenario passed; None where one did not, or where none ran."""
        return {name: self._passed(self.scenarios.get(name, Counter())) for name in names}

    @staticmethod
    def _passed(ends):
        return ends["SUCCESS"] if set(ends) == {"SUCCESS"} else None


def conformance(url, *options, work):
    """Runs the MCP conformance suite against a server."""
    out = work / "checks"
    done = run("@modelcontextprotocol/conformance", "conformance", "server", "--url", url, "-o", str(out), *options,
               home=work / "home")
    scenarios, others = {}, {}
    for file in sorted(out.glob("server-*/checks.json")):
        # `server-` scenario `-` time, such as 2026-07-28T10-11-12-131Z.
        name = file.parent.name.removeprefix("server-").rsplit("-", 6)[0]
        checks = [check for check in json.loads(file.read_text()) if check["status"] != "INFO"]
        scenarios[name] = Counter(check["status"] for check in checks)
        others |= {
            f"{name}:{check['id']}": (check["status"], check.get("errorMessage"))
            for check in checks if check["status"] != "SUCCESS"
        }
    return Report(done.returncode, done.stdout + done.stderr, scenarios, others)


@dataclass
class Told:
    """What the Inspector said: its exit code, and the JSON on either stream."""

    code: int
    out: object
    err: object


class Inspector:
    """The Inspector's command line against one server."""

    def __init__(self, target, era, home):
        self.target = [*target, "--protocol-era", era]
        self.home = home

    def __call__(self, method, *options):
        done = run("@modelcontextprotocol/inspector", "mcp-inspector", "--cli", *self.target, "--method", method,
                   *options, "--format", "json", "-q", home=self.home)
        return Told(done.returncode, _json(done.stdout), _json(done.stderr))

    def result(self, method, *options):
        """The result of a call that must not fail."""
        told = self(method, *options)
        assert told.code == 0, told
        return told.out["result"]


def _json(text):
    """JSON where it is JSON, lines of it where it is that, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return text


class Script:
    """One of our scripts in `node/`, which says what happens as a JSON document a line."""

    def __init__(self, name, *arguments, home):
        self.process = subprocess.Popen(
            [NODE, HERE / "node" / name, *arguments],
            env=environment(home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self._out = Lines(self.process.stdout)
        self._err = Lines(self.process.stderr)

    def next(self):
        """The next thing it says."""
        line = self._out.next(STEP_SECONDS)
        assert line is not None, f"the script ended: {self._err.text()}"
        return json.loads(line)

    def rest(self):
        """All it says until it ends well."""
        said = []
        while (line := self._out.next(STEP_SECONDS)) is not None:
            said.append(json.loads(line))
        assert self.process.wait(STOP_SECONDS) == 0, self._err.text()
        return said

    def complaints(self):
        """What it had to say besides, once it has ended."""
        return self._err.text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(STOP_SECONDS)
