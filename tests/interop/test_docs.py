"""The examples of the pages in docs/, as a reader would copy them."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from conftest import need
from harness import BIN, CALL_SECONDS, clean_environment, publish, skill_md, tools_of
from javascript import Inspector
from repertoire.v1 import lookup_pb2

DOCS = Path(__file__).parents[2] / "docs"
# The address that the pages speak of.
ADDRESS = "127.0.0.1:50051"


def blocks(page, language):
    """The code blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


# What the clients call the list of their servers, what starts one, and where one is.
LISTS = ("mcpServers", "servers", "context_servers", "mcp_servers", "mcp", "extensions")
STARTS, PLACES = ("command", "cmd"), ("url", "httpUrl", "serverUrl", "uri")
PARSERS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}


def snippets():
    """The snippets of the page on clients, by its headings: what each starts, or where it connects."""
    found = {}
    for heading, section in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", (DOCS / "mcp-clients.md").read_text(), re.DOTALL | re.M):
        for language, text in re.findall(r"```(json|toml|yaml)\n(.*?)```", section, re.DOTALL):
            (key, servers), = PARSERS[language](text).items()
            assert key in LISTS and list(servers) == ["repertoire"], text
            found.setdefault(heading, []).append(plain(servers["repertoire"]))
    return found


def plain(server):
    """A server in the words of most clients."""
    place = [server[name] for name in PLACES if name in server]
    if place:
        return {"type": "http", "url": place[0]}
    start = next(server[name] for name in STARTS if name in server)
    start, *more = start if isinstance(start, list) else [start]
    return {"command": start, "args": [*more, *server.get("args", [])]}


BY_COMMAND = {"command": "repertoire", "args": ["mcp"]}
BY_URL = {"type": "http", "url": f"http://{ADDRESS}/mcp/agent"}
BRIDGE = {"command": "repertoire", "args": ["mcp", "--server", f"http://{ADDRESS}"]}


def test_the_page_on_clients_has_both_ways_for_each():
    both = [BY_COMMAND, BY_URL]
    assert snippets() == {
        **dict.fromkeys(["Claude Code", "Cursor", "VS Code", "Codex CLI", "Gemini CLI"], both),
        "Windsurf": [*both, BY_URL],
        **dict.fromkeys(["Zed", "OpenCode", "Goose"], both),
        "A team's server": [BRIDGE],
    }
    # The lines that set up a client by its own command.
    lines = [line for text in blocks("mcp-clients.md", "sh") for line in text.splitlines() if " mcp add " in line]
    assert len(lines) == 6
    for line in lines:
        assert line.endswith((" repertoire mcp", f" http://{ADDRESS}/mcp/agent")), line


@pytest.mark.usefixtures("node")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("snippet", [BY_COMMAND, BY_URL, BRIDGE], ids=["command", "url", "bridge"])
def test_a_client_that_is_given_the_snippet_finds_the_tools(server, tmp_path, snippet):
    snippet = json.loads(json.dumps(snippet).replace(ADDRESS, server.address))
    if "command" in snippet:
        # The Inspector hands on little of its environment, so what a machine would
        # have by default stands here.
        snippet |= {"command": BIN, "env": {"REPERTOIRE_DATA": str(tmp_path / "data")}}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"repertoire": snippet}}))
    inspector = Inspector(["--config", str(config), "--server", "repertoire"], "legacy", tmp_path / "home")
    told = inspector("tools/list")
    assert told.code == 0, told
    assert sorted(tool["name"] for tool in told.out["result"]["tools"]) == sorted(tools_of("agent"))


# What the commands of a block on the page on REST end with, where that is not 0:
# curl gives 22 for a refusal, and 28 for a stream that goes on.
ENDS = {"refundz": 22, "curl -N": 28}


def test_the_commands_of_the_page_on_rest_do_what_they_say(start, tmp_path):
    need(shutil.which("curl") or "", "curl")
    server = start().ready()
    files = {"SKILL.md": skill_md("refunds", version="1.0.0", tags="[sql]")}
    (tmp_path / "SKILL.md").write_bytes(files["SKILL.md"])
    publish(server, "github/acme/refunds", files)
    scripts = blocks("rest.md", "sh")
    assert len(scripts) >= 5, "the page has lost its examples"
    for script in scripts:
        careful = 'set -e\ncurl() { command curl -sS --fail-with-body --max-time 3 "$@"; }\n'
        script = careful + f"B=http://{server.address}\n" + script.replace(f"B=http://{ADDRESS}", "")
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True,
            timeout=CALL_SECONDS,
        )
        expected = next((code for word, code in ENDS.items() if word in script), 0)
        assert done.returncode == expected, (script, done.stdout[-500:], done.stderr)
    assert (tmp_path / "refunds-1.0.0.zip").exists()


def test_the_tutorial_does_what_it_says(start, tmp_path):
    server = start().ready()
    script = "set -euo pipefail\n" + "".join(blocks("tutorial.md", "sh"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "repertoire").symlink_to(BIN)
    environment = clean_environment() | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "REPERTOIRE_DATA": str(server.data),
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=CALL_SECONDS
    )
    assert done.returncode == 0, (done.stdout[-500:], done.stderr)
    skill = server.lookup().GetSkill(lookup_pb2.GetSkillRequest(skill_id="refund-desk")).skill
    assert (skill.id, skill.version_number, skill.current_version) == ("local/global/refund-desk", 1, "1.0.0")
    # What the last version changed.
    assert "Be kind, and ask for" in done.stdout
