"""The examples of the pages in docs/, as a reader would copy them."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from harness import BIN, CALL_SECONDS, clean_environment, publish, skill_md, tools_of
from javascript import Inspector
from repertoire.v1 import lookup_pb2

DOCS = Path(__file__).parents[2] / "docs"
# The address that the pages speak of.
ADDRESS = "127.0.0.1:50051"


def blocks(page, language):
    """The code blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def configs():
    """The config snippets of the page on MCP: each server that one names."""
    for text in blocks("mcp.md", "json"):
        told = json.loads(text)
        servers = told.get("mcpServers") or told["servers"]
        yield from servers.values()


def test_the_page_on_mcp_has_a_snippet_for_each_kind_of_client():
    assert [sorted(server) for server in configs()] == [
        ["args", "command"], ["type", "url"], ["type", "url"], ["args", "command"],
    ]


@pytest.mark.usefixtures("node")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("at", range(4))
def test_a_client_that_is_given_the_snippet_finds_the_tools(server, tmp_path, at):
    snippet = json.dumps(list(configs())[at]).replace(ADDRESS, server.address)
    snippet = json.loads(snippet)
    if "command" in snippet:
        assert snippet["command"] == "repertoire"
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
