"""Windows of agents on one data directory: two of the official client for Python, while commands on the same directory
come, go and are killed. Those of Claude Code: test_claude_code.py."""

import json
import signal
import subprocess
import warnings
from contextlib import AsyncExitStack

import anyio
import pytest
from harness import BIN, STOP_SECONDS, clean_environment, skill_md
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

pytestmark = pytest.mark.timeout(120)

SECONDS = 60
# The list of them is more than a pipe holds.
MANY = 60


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def arguments(data, *command):
    return [BIN, *command, "--data", str(data)]


def begin(data, *command):
    """Starts a command on the directory."""
    return subprocess.Popen(
        arguments(data, *command), env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(process):
    """The answer of a command, once it has ended well."""
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def run(data, *command):
    return ended(begin(data, *command, "--json"))


def killed(process):
    """Kills a command, for certain in the middle."""
    assert process.poll() is None, "it ended by itself"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == -signal.SIGKILL


def skills(tmp_path, prefix, count):
    """A folder with skills, each with a file that takes a moment to send."""
    folder = tmp_path / prefix
    for number in range(count):
        skill = folder / f"{prefix}-{number:03}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_bytes(skill_md(skill.name, "Do it.\n" * 20, f"Does {prefix} {number}. " + "Long. " * 150))
        (skill / "more.md").write_text(f"{prefix} {number}\n" * 5_000)
    return folder


class Windows:
    """Windows of the official client, each with a `repertoire mcp` of its own."""

    def __init__(self, data, stack, log):
        self.data, self.stack, self.log = data, stack, log

    async def open(self):
        program = StdioServerParameters(command=BIN, args=arguments(self.data, "mcp")[1:], env=clean_environment())
        return await self.stack.enter_async_context(Client(stdio_client(program, errlog=self.log), mode="legacy"))


async def said(window, tool, **arguments):
    """What a tool says to a model."""
    result = await window.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content)
    assert not result.is_error, text
    return text


def scenario(data, tmp_path, play):
    """Plays a scenario with windows, within a bound; whoever comes when they are closed finds what is there."""

    async def bounded():
        with anyio.fail_after(SECONDS), (tmp_path / "stderr").open("a") as log:
            async with AsyncExitStack() as stack:
                await play(Windows(data, stack, log))

    with warnings.catch_warnings():
        # The client warns of what the newest revision gave up, which the older one still has.
        warnings.simplefilter("ignore")
        anyio.run(bounded)
    assert len(run(data, "list")["skills"]) >= 6


def test_two_windows_a_list_and_an_import_at_once_share_a_fresh_directory(data, tmp_path):
    folder = skills(tmp_path, "at-once", 3)

    async def play(windows):
        listing, importing = begin(data, "list", "--json"), begin(data, "import", "--json", str(folder))
        first, second = await windows.open(), await windows.open()
        listed = await anyio.to_thread.run_sync(ended, listing)
        imported = await anyio.to_thread.run_sync(ended, importing)
        assert (len(listed["skills"]) >= 6, imported["created"]) == (True, 3)
        for window in (first, second):
            assert "Do it." in await said(window, "load_skill", skill_id="at-once-001")
            # The session of each is its own, and remembered.
            assert "sql_query" in await said(window, "load_skill", skill_id="write_sql")
            call = {"name": "sql_query", "arguments": {"query": "SELECT COUNT(*) AS n FROM customers"}}
            assert "42" in await said(window, "call_tool", **call)

    scenario(data, tmp_path, play)


def test_commands_that_are_killed_in_the_middle_harm_no_window(data, tmp_path):
    first_folder, second_folder = skills(tmp_path, "first", MANY), skills(tmp_path, "second", MANY)
    log = tmp_path / "stderr"

    async def play(windows):
        first, second = await windows.open(), await windows.open()

        async def works():
            for window in (first, second):
                assert "sql_query" in await said(window, "load_skill", skill_id="write_sql")

        # An import, as soon as it has begun; and as soon as the windows have one of its skills.
        killed(begin(data, "import", "--json", str(first_folder)))
        await works()
        importing = begin(data, "import", "--json", str(first_folder))
        names = []
        while not names and importing.poll() is None:
            found = await first.call_tool("load_skill", {"skill_id": "first-000"})
            names = [] if found.is_error else ["first-000"]
        killed(importing) if importing.poll() is None else ended(importing)
        await works()
        # What is missing comes with the next; nothing is there twice.
        again = await anyio.to_thread.run_sync(run, data, "import", str(first_folder))
        assert again["created"] + again["unchanged"] == MANY, again
        assert (again["updated"], again["refused"]) == (0, [])
        # A list: as soon as it has begun, and where it waits for whoever reads it.
        killed(begin(data, "list", "--json"))
        await works()
        listing = begin(data, "list", "--json")
        await anyio.to_thread.run_sync(listing.stdout.read, 1)
        killed(listing)
        await works()
        listed = await anyio.to_thread.run_sync(run, data, "list")
        ours = [skill["id"] for skill in listed["skills"] if "/first-" in skill["id"]]
        assert len(ours) == len(set(ours)) == MANY
        # Both at once, while the windows work.
        listing, importing = begin(data, "list", "--json"), begin(data, "import", "--json", str(second_folder))
        await works()
        for process in (listing, importing):
            process.kill()
            process.communicate(timeout=STOP_SECONDS)
        await works()
        again = await anyio.to_thread.run_sync(run, data, "import", str(second_folder))
        assert again["created"] + again["unchanged"] == MANY, again
        assert "Do it." in await said(second, "load_skill", skill_id="second-059")

    scenario(data, tmp_path, play)
    assert "panicked" not in log.read_text() + (data / "server.log").read_text()
