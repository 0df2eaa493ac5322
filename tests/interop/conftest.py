"""Servers for the tests, and the summary at the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / ".tools" / "generated"))

import agents  # noqa: E402
import harness  # noqa: E402
import javascript  # noqa: E402


# The files that take longest.
LONG = [
    "test_rest_schemathesis.py",
    "test_clients.py",
    "test_clients_outages.py",
    "test_doc_blocks.py",
    "test_mcp_inspector.py",
    "test_debian.py",
]


def pytest_collection_modifyitems(items):
    """These come first: begun last, one would keep a process busy while the others have nothing."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


@pytest.fixture
def start(tmp_path):
    """Starts servers of this test's own; what still runs at its end is stopped."""
    started = []

    def start(*options, data=tmp_path / "data", **more):
        server = harness.Server(data, *options, **more)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def port():
    """A port that no other program gets while the test runs."""
    with harness.held_port() as port:
        yield port


@pytest.fixture
def hire():
    """Makes agents; they go when the test ends."""
    hired = []

    def hire(face, server):
        hired.append(agents.Agent(face, server))
        return hired[-1]

    yield hire
    for agent in hired:
        agent.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that the tests of a file share; it must survive all of them."""
    server = harness.Server(tmp_path_factory.mktemp("shared") / "data").ready()
    yield server
    assert server.process.poll() is None, f"the server is gone: {server.log.text()}"
    assert server.stop() == 0, server.log.text()
    assert "panicked" not in server.log.text(), server.log.text()


@pytest.fixture
def grpcurl(server):
    """grpcurl against the shared server."""
    need_grpcurl()
    return harness.Grpcurl(server.address)


@pytest.fixture(scope="session")
def node():
    """The Node packages, which the tests of a file with this fixture cannot do without."""
    need(javascript.NODE, "Node")


@pytest.fixture(scope="module")
def fixtures(node):
    """The product's MCP handler with the fixtures of the conformance suite."""
    need(harness.CONFORMANCE, "the conformance fixtures")
    program = harness.Program(harness.CONFORMANCE, stdin=subprocess.PIPE).ready()
    yield program
    assert program.stop() == 0, program.log.text()
    assert "panicked" not in program.log.text(), program.log.text()


@pytest.fixture(scope="session")
def hosts():
    """The Python that has the SDKs of hosts."""
    need(harness.HOSTS, "the SDKs of hosts")
    return harness.HOSTS


def need_grpcurl():
    need(harness.GRPCURL, "grpcurl")


def need(program, name):
    if not os.access(program, os.X_OK):
        assert os.environ.get("CI") != "true", f"{name} is missing"
        pytest.skip(f"{name} is missing")


def pytest_unconfigure(config):
    """The last line of a run, and a line for each skipped test where `make test` sums them up."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.option.collectonly:
        return
    count = {name: len(reporter.stats.get(name, [])) for name in ("passed", "failed", "error", "skipped")}
    noted = os.environ.get("REPERTOIRE_SKIPPED")
    # Of several processes each has seen its own tests, and this one those of all.
    if noted and "PYTEST_XDIST_WORKER" not in os.environ:
        reasons = {report.nodeid: report.longrepr[2] for report in reporter.stats.get("skipped", [])}
        lines = [f"{test}\t{' '.join(why.removeprefix('Skipped: ').split())}\n" for test, why in reasons.items()]
        with open(noted, "a") as file:
            file.writelines(lines)
    failed = count["failed"] + count["error"]
    print(f"interop: {count['passed']} passed, {failed} failed, {count['skipped']} skipped")
