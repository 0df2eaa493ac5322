"""The MCP clients for TypeScript, version 1 and 2: over HTTP, over stdio with a server of
its own, and over stdio with the shared server behind it. What they do stands in `node/`."""

import json

import pytest
from harness import BIN, clean_environment, publish, read_file, skill_md, tools_of
from javascript import Script
from repertoire.v1 import lookup_pb2

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(120)]

# Those with a server that others can reach, and whose bounds can be set.
SHARED = ["http", "bridge"]
XLSX = "skill://builtin/repertoire/xlsx/SKILL.md"


@pytest.fixture(params=["http", "stdio", "bridge"])
def transport(request):
    return request.param


@pytest.fixture(params=["v1", "v2"])
def sdk(request):
    return request.param


@pytest.fixture
def script(server, tmp_path, transport, sdk):
    """Starts one of the scripts' steps against the product."""

    def script(step, *arguments, behind=server):
        if transport == "http":
            target = {"url": f"http://{behind.address}/mcp"}
        elif transport == "stdio":
            target = {"command": BIN, "args": ["mcp", "--data", str(tmp_path / "own"), "--toolset", "all"], "env": clean_environment()}
        else:
            options = ["mcp", "--server", f"http://{behind.address}", "--toolset", "all"]
            target = {"command": BIN, "args": options, "env": clean_environment()}
        return Script(f"{sdk}.mjs", step, json.dumps(target), *arguments, home=tmp_path / "home")

    return script


def test_all_that_there_is_is_listed(server, script, transport, sdk):
    with script("list") as listing:
        revision, tools, prompts, resources = listing.rest()
    # Over stdio the server's log comes with it.
    assert transport != "http" or listing.complaints() == ""
    if sdk == "v2":
        assert revision == {"revision": "2026-07-28"}
    elif transport == "http":
        assert revision == {"revision": "2025-11-25"}
    assert sorted(tools["tools"]) == sorted(tools_of())
    assert {"jira", "write_sql", "xlsx"} <= set(prompts["prompts"])
    listed = server.lookup().ListSkills(lookup_pb2.ListSkillsRequest(page_size=1000, source="builtin"), timeout=20)
    assert {f"skill://{skill.id}/SKILL.md" for skill in listed.skills} <= set(resources["resources"])


def test_calls_are_answered_as_their_schemas_say_and_refused_in_words(server, script):
    calls = [{"uri": XLSX}, {}, {"uri": ""}, {"uri": XLSX, "extra": 1}, {"uri": 7}]
    with script("call", "get_skill", *map(json.dumps, calls)) as calling:
        read, *refused = calling.rest()
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert read == {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"uri": XLSX, "mimeType": "text/markdown", "text": text},
        "isError": False,
    }
    assert [answer["isError"] for answer in refused] == [True] * 4
    for answer, sentence in zip(refused, (
        "Required",
        "Skill URI cannot be empty",
        "Unrecognized key(s) in object: 'extra'",
        "Expected string, received number",
    )):
        assert sentence in answer["content"][0]["text"]


def test_resources_are_the_files_byte_for_byte(server, script, sdk):
    with script("read", XLSX, "skill://builtin/repertoire/no-such-skill/SKILL.md") as reading:
        read, refused = reading.rest()
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert read == {"contents": [{"uri": XLSX, "mimeType": "text/markdown", "text": text}]}
    assert refused == {"code": -32002 if sdk == "v1" else -32602}


@pytest.mark.parametrize("transport", SHARED)
def test_a_change_is_told_to_whoever_subscribed(server, script, transport, sdk):
    name = f"told-{transport}-{sdk}"
    uri = f"skill://github/typescript/{name}/SKILL.md"
    publish(server, f"github/typescript/{name}", {"SKILL.md": skill_md(name, "Body 1\n", "Before.")})
    with script("subscribe", uri) as subscriber:
        assert subscriber.next() == {"subscribed": uri}
        publish(server, f"github/typescript/{name}", {"SKILL.md": skill_md(name, "Body 2\n", "After.")})
        changed = {said["changed"] for said in subscriber.rest()}
    assert changed == {"tools", "prompts", "resources", uri}


@pytest.mark.parametrize("transport", SHARED)
def test_a_cancelled_call_frees_what_it_held(start, tmp_path, script):
    # Three streams at once: a call that went on after its end would take one for good.
    (tmp_path / "config.yaml").write_text("limits:\n  streams: 3\n")
    server = start("--config", str(tmp_path / "config.yaml")).ready()
    with script("cancel", "10", behind=server) as cancelling:
        assert cancelling.rest() == [{"cancelled": 10, "isError": False}]


@pytest.mark.parametrize("sdk", ["v2"])
def test_the_skills_client_verifies_every_file(server, script, transport):
    if transport != "stdio":
        files = {"SKILL.md": skill_md("verified"), "assets/all.npy": bytes(range(256)), "b/c/ü d.md": "ü\r\n".encode()}
        publish(server, "github/typescript/verified", files)
    with script("skills") as verifying:
        told = {said["skill"]: said["files"] for said in verifying.rest()}
    assert XLSX in told
    assert all(file["verified"] for files in told.values() for file in files)
    if transport != "stdio":
        assert sorted(file["size"] for file in told["skill://github/typescript/verified/SKILL.md"]) == sorted(
            len(content) for content in files.values()
        )
