"""The MCP Inspector's command line, over each transport, in both eras of the protocol."""

import hashlib
import json

import pytest
from harness import BIN, TOOLSETS, publish, read_file, skill_md, tools_of
from javascript import Inspector
from repertoire.v1 import lookup_pb2

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(120)]

XLSX = "skill://builtin/repertoire/xlsx/SKILL.md"


@pytest.fixture(params=["http", "stdio", "bridge"])
def transport(request):
    return request.param


@pytest.fixture(params=["legacy", "modern"])
def era(request):
    return request.param


@pytest.fixture
def connect(server, tmp_path, transport, era):
    """An Inspector against the product: over HTTP, over stdio with a server of its own, or
    over stdio with the shared one behind it."""

    def connect(toolset=None):
        option = ["--toolset", toolset] if toolset else []
        if transport == "http":
            path = f"/mcp/{toolset}" if toolset else "/mcp"
            target = ["--server-url", f"http://{server.address}{path}", "--transport", "http"]
        elif transport == "stdio":
            target = [BIN, "mcp", "--data", str(tmp_path / "data"), *option]
        else:
            # The Inspector has a `--server` of its own.
            target = ["-e", f"REPERTOIRE_SERVER=http://{server.address}", BIN, "mcp", *option]
        return Inspector(target, era, tmp_path / "home")

    return connect


@pytest.mark.parametrize("toolset", [None, *TOOLSETS])
def test_every_schema_is_portable_and_no_tool_is_missing(connect, toolset):
    told = connect(toolset)("tools/list", "--strict")
    assert told.code == 0, told
    assert sorted(tool["name"] for tool in told.out["result"]["tools"]) == sorted(tools_of(toolset))


@pytest.mark.parametrize(
    ("toolset", "tool", "arguments"),
    [
        ("skills", "skill", '{"command": "xlsx"}'),
        ("agent", "get_skill", f'{{"uri": "{XLSX}"}}'),
    ],
)
def test_a_call_answers_with_the_text_of_the_skill(server, connect, toolset, tool, arguments):
    result = connect(toolset).result("tools/call", "--tool-name", tool, "--tool-args-json", arguments)
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert result["isError"] is False
    assert result["content"] == [{"type": "text", "text": text}]


def test_a_call_of_the_core_tools_answers_in_the_envelope(server, connect):
    result = connect("discovery-core").result(
        "tools/call", "--tool-name", "get_skill", "--tool-args-json", '{"skill_id": "builtin/repertoire/xlsx"}'
    )
    assert result["isError"] is False
    envelope = result["structuredContent"]
    assert (envelope["success"], envelope["data"]["skill"]["id"]) == (True, "builtin/repertoire/xlsx")
    assert set(envelope["metadata"]) >= {"execution_time_ms", "request_id"}
    assert json.loads(result["content"][0]["text"]) == envelope


def test_a_refused_call_is_an_error_of_the_tool(connect):
    told = connect("skills")("tools/call", "--tool-name", "skill", "--tool-args-json", '{"command": "no-such-skill"}')
    assert (told.code, told.err["error"]["code"]) == (5, "tool_is_error"), told


def test_a_resource_is_the_file_byte_for_byte(server, connect):
    result = connect().result("resources/read", "--uri", XLSX)
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert [(c["uri"], c["mimeType"], c["text"]) for c in result["contents"]] == [(XLSX, "text/markdown", text)]


def test_all_skills_verify_with_the_digests_of_all_their_files(server, connect, transport):
    if transport != "stdio":
        publish(server, "github/inspector/with-files", {
            "SKILL.md": skill_md("with-files"),
            "references/more.md": "ünïcode\r\n".encode(),
            "assets/pixel.bin": bytes(range(256)),
        })
    told = connect()("skills/list", "--verify", "--require-digests")
    assert told.code == 0, told
    verified = {report["uri"]: report["outcome"] for report in told.out}
    assert verified == {uri: "verified" for uri in standard_skills(server, transport)}


def standard_skills(server, transport):
    """The skills whose name the standard allows: no other can be told over the extension."""
    listed = server.lookup().ListSkills(lookup_pb2.ListSkillsRequest(page_size=1000), timeout=20).skills
    ours = [skill for skill in listed if transport != "stdio" or skill.id.startswith("builtin/")]
    return {f"skill://{skill.id}/SKILL.md" for skill in ours if "_" not in skill.id}


@pytest.mark.parametrize("transport", ["http", "bridge"])
def test_an_entry_names_the_digest_of_each_file(server, connect):
    files = {"SKILL.md": skill_md("digests"), "assets/pixel.bin": bytes(range(255, -1, -1))}
    publish(server, "github/inspector/digests", files)
    uri = "skill://github/inspector/digests"
    result = connect().result("skills/get", "--uri", f"{uri}/SKILL.md")
    assert {r["uri"]: (r["digest"], r["size"]) for r in result["skill"]["resources"]} == {
        f"{uri}/{path}": (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))
        for path, content in files.items()
    }
