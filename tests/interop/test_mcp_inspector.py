"""The MCP Inspector's command line, over each transport, in both eras of the protocol."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from harness import BIN, clean_environment, TOOLSETS, publish, read_file, skill_md, tools_of
from javascript import Inspector
from repertoire.v1 import lookup_pb2

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(120)]

HERE = Path(__file__).parent
XLSX = "skill://builtin/repertoire/xlsx/SKILL.md"


@pytest.fixture(params=["http", pytest.param("stdio", marks=pytest.mark.nightly), "bridge"])
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
        option = ["--toolset", toolset or "all"]
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


@pytest.mark.parametrize("toolset", [None, "agent", *(pytest.param(name, marks=pytest.mark.nightly) for name in TOOLSETS if name != "agent")])
def test_every_schema_is_portable_and_no_tool_is_missing(connect, toolset):
    told = connect(toolset)("tools/list", "--strict")
    assert told.code == 0, told
    assert sorted(tool["name"] for tool in told.out["result"]["tools"]) == sorted(tools_of(toolset))


@pytest.mark.parametrize(
    ("toolset", "tool", "arguments"),
    [
        ("skills", "skill", '{"command": "xlsx"}'),
        ("skills", "get_skill", f'{{"uri": "{XLSX}"}}'),
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
            "assets/pixel.npy": bytes(range(256)),
        })
        front = "name: {0}\ndescription: |\n  Of more lines,\n  with an end.\n{1}"
        for name, more in [("of-lines", ""), ("repaired", "note: **bold** text\n"), ("dropped", "note: *x\n  *y\n")]:
            text = f"---\n{front.format(name, more)}---\nDo it.\n"
            publish(server, f"github/inspector/{name}", {"SKILL.md": text.encode()})
    told = connect()("skills/list", "--verify", "--require-digests")
    assert told.code == 0, told
    verified = {report["uri"]: report["outcome"] for report in told.out}
    assert verified == {uri: "verified" for uri in standard_skills(server, transport)}


CORPORA = {"ours": HERE.parent / "corpus", "public": HERE.parents[2] / "shared" / "corpus"}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("corpus", ["ours", pytest.param("public", marks=pytest.mark.nightly)])
def test_all_skills_of_a_corpus_verify_and_none_is_left_out_that_could_be_told(start, tmp_path, corpus):
    folder = CORPORA[corpus]
    if not folder.is_dir():
        assert os.environ.get("CI") != "true", f"there are no skills at {folder}"
        pytest.skip(f"there are no skills at {folder}")
    server = start().ready()
    for repository in sorted(path for path in folder.iterdir() if path.is_dir()):
        owner = repository.name.split("__")[0]
        # Some are refused, which is another test's.
        subprocess.run(
            [BIN, "import", "--json", "--server", f"http://{server.address}", "--source", "github", "--author", owner,
             str(repository)],
            env=clean_environment(), capture_output=True, timeout=50,
        )
    inspector = Inspector(["--server-url", f"http://{server.address}/mcp", "--transport", "http"], "modern", tmp_path / "home")
    told = inspector("skills/list", "--verify", "--require-digests", "--skill-catalog-max-skills", "2000",
                     "--skill-catalog-max-bytes", str(1 << 30))
    assert told.code == 0, told.err
    outcomes = {report["uri"].removesuffix("/SKILL.md").removeprefix("skill://"): report["outcome"] for report in told.out}
    assert set(outcomes.values()) == {"verified"}
    listed, token = [], ""
    while True:
        page = server.lookup().ListSkills(lookup_pb2.ListSkillsRequest(page_size=1000, page_token=token), timeout=20)
        listed += [skill.id for skill in page.skills]
        token = page.next_page_token
        if not token:
            break
    assert set(outcomes) <= set(listed)
    assert [skill for skill in listed if (skill in outcomes) != is_standard(server, skill)] == []


def is_standard(server, skill):
    """Its front matter is YAML, as any reader takes it, with a name and a description as the standard has them."""
    files = server.lookup().ListFiles(lookup_pb2.ListFilesRequest(skill_id=skill), timeout=20).files
    if "SKILL.md" not in {file.path for file in files}:
        return False
    text = read_file(server, skill, "SKILL.md").decode("utf-8-sig").replace("\r\n", "\n")
    front = re.match(r"---\n(.*?)\n---\s*\n", text, re.DOTALL)
    try:
        said = yaml.safe_load(front[1]) if front else None
    except yaml.YAMLError:
        return False
    if not isinstance(said, dict):
        return False
    name, description = said.get("name"), said.get("description")
    return (
        isinstance(name, str) and len(name) <= 64 and bool(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name))
        and name == skill.split("/")[-1]
        and isinstance(description, str) and 0 < len(description) <= 1024
        # Left to people, it is told to no model unasked.
        and said.get("disable-model-invocation") is not True
    )


def standard_skills(server, transport):
    """The skills whose name the standard allows, and whose front matter is what the file has: no other can be told
    over the extension."""
    listed = server.lookup().ListSkills(lookup_pb2.ListSkillsRequest(page_size=1000), timeout=20).skills
    ours = [skill for skill in listed if transport != "stdio" or skill.id.startswith("builtin/")]
    return {f"skill://{skill.id}/SKILL.md" for skill in ours if not any(
        part in skill.id for part in ("_", "/repaired", "/dropped")
    )}


@pytest.mark.parametrize("transport", ["http", "bridge"])
def test_an_entry_names_the_digest_of_each_file(server, connect):
    files = {"SKILL.md": skill_md("digests"), "assets/pixel.npy": bytes(range(255, -1, -1))}
    publish(server, "github/inspector/digests", files)
    uri = "skill://github/inspector/digests"
    result = connect().result("skills/get", "--uri", f"{uri}/SKILL.md")
    assert {r["uri"]: (r["digest"], r["size"]) for r in result["skill"]["resources"]} == {
        f"{uri}/{path}": (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))
        for path, content in files.items()
    }
