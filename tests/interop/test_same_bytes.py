"""A file of a skill is the same, byte for byte, by every way there is to get it."""

import base64
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from urllib.parse import quote

import pytest
from conftest import need_grpcurl
from faces import Grpc, Refused, Rest, exchange, over_http, over_stdio
from harness import BIN, CALL_SECONDS, Grpcurl, Server, as_json, clean_environment, publish, read_file, skill_md
from raw import Http
from repertoire.v1 import registry_pb2

NAME = "bytes"
ID = f"github/acme/{NAME}"
URI = f"skill://{ID}"
FILES = {
    "SKILL.md": "---\r\nname: bytes\r\ndescription: Holds files.\r\n---\r\n\r\n# Bytes é\r\n\r\nNo end".encode(),
    "empty.txt": b"",
    "with-bom.txt": b"\xef\xbb\xbfbom\r\nand\rall\n\n",
    "separators.txt": "a\u2028b\u2029c\u0085d\v\f\x00\x1b[31m\x7f\ufffe \U0001f600 e\u0301".encode(),
    "not/utf-8.txt": "caf\xe9".encode("latin-1"),
    "deep/er/still/data.npy": bytes(range(256)) * 300,
    "logo.png": b"\x89PNG\r\n\x1a\n\x00\xff",
    "a name & %41 #1+=.md": b"# Odd name\n",
    "ünï/cödé.md": b"# \xc3\xa9\n",
}
BINARY = {"not/utf-8.txt", "deep/er/still/data.npy", "logo.png"}


@pytest.fixture(scope="module")
def skill(tmp_path_factory):
    """A server with the skill. Its first version is another one, so that bytes are those of the active one."""
    folder = tmp_path_factory.mktemp("bytes")
    # A file that nobody can read would hold the version for a review.
    (folder / "repertoire.yaml").write_text("trust: {hold: failed}\n")
    server = Server(folder / "data", "--config", str(folder / "repertoire.yaml")).ready()
    publish(server, ID, {"SKILL.md": FILES["SKILL.md"] + b"\r\nBefore\r\n"})
    publish(server, ID, FILES)
    yield server
    assert server.stop() == 0, server.log.text()
    assert "panicked" not in server.log.text(), server.log.text()


@pytest.fixture(scope="module", params=["http", "http-legacy", "bridge"])
def mcp(request, skill, tmp_path_factory):
    with (tmp_path_factory.mktemp("errors") / "stderr").open("w") as errors:
        if request.param == "bridge":
            face = over_stdio(errors, "--server", f"http://{skill.address}", mode="legacy", one_toolset=False)
        else:
            face = over_http(skill, "legacy" if request.param == "http-legacy" else "auto")
        yield face
        face.close()


def sums(files):
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


EXPECTED = sums(FILES)


def address(path):
    return f"{URI}/{quote(path, safe='/+')}"


def test_by_grpc(skill):
    assert sums({path: read_file(skill, ID, path) for path in FILES}) == EXPECTED


def test_by_grpcurl(skill):
    need_grpcurl()
    grpcurl = Grpcurl(skill.address)
    found = {}
    for path in FILES:
        answer = grpcurl.call("Lookup/ReadFile", {"skillId": ID, "path": path}).answer
        found[path] = base64.b64decode(answer.get("content", ""))
    assert sums(found) == EXPECTED


def test_as_digests_of_lists(skill):
    for target in (f"/api/v1/skills/{ID}/files", f"/api/v1/skills/{ID}/versions/2"):
        status, _, body = exchange(skill, "GET", target)
        answer = json.loads(body)
        files = answer["files"] if "files" in answer else answer["version"]["resources"]
        assert status == 200
        assert {f["path"]: f["digest"].removeprefix("sha256:") for f in files} == EXPECTED


def test_by_resources(mcp):
    found, texts = {}, set()
    for path in FILES:
        contents = mcp.read(address(path))
        assert contents.uri == address(path)
        if hasattr(contents, "text"):
            texts.add(path)
            found[path] = contents.text.encode()
        else:
            found[path] = base64.b64decode(contents.blob)
    assert sums(found) == EXPECTED
    assert texts == FILES.keys() - BINARY


def test_by_address(mcp):
    found = {}
    for path in FILES.keys() - BINARY:
        result = mcp.call("get_skill", {"uri": address(path)}, "skills")
        (content,) = result.content
        assert content.text == result.structured_content["text"]
        found[path] = content.text.encode()
    assert sums(found) == {path: digest for path, digest in EXPECTED.items() if path not in BINARY}
    for path in BINARY:
        result = mcp.call("get_skill", {"uri": address(path)}, "skills")
        assert result.is_error and result.meta["repertoire.v1/error"]["code"] == "FILE_NOT_TEXT"


def test_by_name(mcp):
    result = mcp.call("skill", {"command": NAME}, "skills")
    *_warning, content = result.content
    assert content.text == result.structured_content["content"]
    assert sums({"SKILL.md": content.text.encode()}) == {"SKILL.md": EXPECTED["SKILL.md"]}


def test_by_the_tool_for_files(mcp):
    found = {}
    for path in FILES:
        answer = mcp.ask("ViewFile", {"skill_id": ID, "path": path})
        assert not isinstance(answer, Refused), answer
        if "image" in answer:
            found[path] = base64.b64decode(answer["image"])
        elif "link" in answer:
            contents = mcp.read(answer["link"])
            found[path] = base64.b64decode(contents.blob)
        else:
            # Between a line that says whose text it is and one that ends it.
            found[path] = "".join(answer["texts"][1:-1]).encode()
    assert sums(found) == EXPECTED


def test_as_digests_of_the_skills_extension(skill):
    entry = Http(skill).ask("skills/get", {"uri": f"{URI}/SKILL.md"}).result["skill"]
    assert {f["uri"]: (f["digest"], f["size"]) for f in entry["resources"]} == {
        address(path): (f"sha256:{digest}", len(FILES[path])) for path, digest in EXPECTED.items()
    }


def test_by_rest(skill):
    found = {}
    for path in FILES:
        status, _, body = exchange(skill, "GET", f"/api/v1/skills/{ID}/files/{quote(path)}")
        assert status == 200, body
        found[path] = base64.b64decode(json.loads(body)["content"])
    assert sums(found) == EXPECTED


def test_by_rest_as_an_address(skill):
    status, _, body = exchange(skill, "GET", f"/api/v1/resource?uri={quote(address('SKILL.md'))}")
    assert (status, sums({"SKILL.md": json.loads(body)["text"].encode()})) == (
        200, {"SKILL.md": EXPECTED["SKILL.md"]},
    )


def unpacked(kind, archive):
    """The files of an archive, and whether each is where it belongs."""
    if kind == "zip":
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return {entry.filename: opened.read(entry) for entry in opened.infolist() if not entry.is_dir()}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
        return {entry.name: opened.extractfile(entry).read() for entry in opened if entry.isfile()}


FORMATS = {"zip": registry_pb2.ARCHIVE_FORMAT_ZIP, "tar_gz": registry_pb2.ARCHIVE_FORMAT_TAR_GZ}


@pytest.mark.parametrize("kind", FORMATS)
def test_by_archives_which_are_one(skill, tmp_path, kind):
    request = registry_pb2.ExportSkillRequest(skill_id=ID, format=FORMATS[kind])
    pieces = list(skill.registry().ExportSkill(request, timeout=CALL_SECONDS))
    by_grpc = b"".join(piece.chunk for piece in pieces)
    status, headers, by_rest = exchange(skill, "GET", f"/api/v1/skills/{ID}/export?format={kind}")
    file = tmp_path / "archive"
    option = ["--archive", kind.replace("_", "-"), "--output", str(file)]
    cli(skill, "export", ID, *option)
    by_cli = file.read_bytes()

    digest = hashlib.sha256(by_grpc).hexdigest()
    info = pieces[0].info
    assert (info.digest, info.size_bytes) == (f"sha256:{digest}", len(by_grpc))
    assert (status, headers["etag"], headers["content-length"]) == (200, f'"{info.digest}"', str(len(by_grpc)))
    assert [hashlib.sha256(archive).hexdigest() for archive in (by_rest, by_cli)] == [digest, digest]
    assert sums(unpacked(kind, by_grpc)) == EXPECTED


def cli(server, *arguments):
    command = [BIN, "--server", f"http://{server.address}", *arguments]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, timeout=CALL_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_by_the_command_line(skill):
    assert sums({path: cli(skill, "read", ID, path) for path in FILES}) == EXPECTED
    assert sums({"SKILL.md": cli(skill, "read", NAME)}) == {"SKILL.md": EXPECTED["SKILL.md"]}


def test_in_parts(skill):
    path = "deep/er/still/data.npy"
    found, part = b"", 10_007
    while True:
        target = f"/api/v1/skills/{ID}/files/{path}?offset_bytes={len(found)}&limit_bytes={part}"
        status, _, body = exchange(skill, "GET", target)
        assert status == 200, body
        content = base64.b64decode(json.loads(body)["content"])
        found += content
        if len(content) < part:
            break
    assert sums({path: found}) == {path: EXPECTED[path]}


def get(server, url):
    """The body at a path, or at an address of this server."""
    status, headers, body = exchange(server, "GET", url.removeprefix(f"http://{server.address}"))
    assert status == 200, (url, body)
    return headers, body


def listed(server, index):
    """The skill as an index at a well-known place has it."""
    _, body = get(server, index)
    (entry,) = [entry for entry in json.loads(body)["skills"] if entry["name"] == NAME]
    return entry


def test_at_the_well_known_place(skill):
    entry = listed(skill, "/.well-known/agent-skills/index.json")
    assert entry["type"] == "archive"
    _, archive = get(skill, entry["url"])
    assert entry["digest"] == f"sha256:{hashlib.sha256(archive).hexdigest()}"
    assert sums(unpacked("tar_gz", archive)) == EXPECTED
    # What the name leads to now is the same, and the files by themselves.
    assert get(skill, f"/.well-known/agent-skills/{NAME}.tar.gz")[1] == archive
    root = entry["url"].rsplit("/", 1)[0]
    assert sums({path: get(skill, f"{root}/{quote(path)}")[1] for path in FILES}) == EXPECTED


def test_at_the_older_well_known_place(skill):
    entry = listed(skill, "/.well-known/skills/index.json")
    root = f"/.well-known/skills/{NAME}"
    assert sums({path: get(skill, f"{root}/{quote(path)}")[1] for path in entry["files"]}) == EXPECTED


def test_by_clawhub(skill):
    base = json.loads(get(skill, "/.well-known/clawhub.json")[1])["apiBase"] + "/api/v1"
    version = json.loads(get(skill, f"{base}/skills/{NAME}")[1])["latestVersion"]["version"]
    told = json.loads(get(skill, f"{base}/skills/{NAME}/versions/{version}")[1])["version"]["files"]
    assert {file["path"]: file["sha256"] for file in told} == EXPECTED
    for which in ("", f"&version={version}"):
        found = {path: get(skill, f"{base}/skills/{NAME}/file?path={quote(path)}{which}")[1] for path in FILES}
        assert sums(found) == EXPECTED
        _, archive = get(skill, f"{base}/download?slug={NAME}{which}")
        assert sums(unpacked("zip", archive)) == EXPECTED


# The largest skill has 16 MiB. In base64 it is a third more, and an answer of MCP has it twice.
LARGE = bytes(range(256)) * (15 * 4096)
# Sessions over HTTP are left out: they answer by events, and the client for Python takes events of 1 MiB.


@pytest.mark.parametrize("name", ["grpc", "http", "stdio", "bridge", "rest"])
def test_a_large_file_goes_in_and_comes_out(server, tmp_path, name):
    with (tmp_path / "stderr").open("w") as errors:
        make = {
            "grpc": lambda: Grpc(server),
            "http": lambda: over_http(server, "auto"),
            "stdio": lambda: over_stdio(errors, "--data", str(tmp_path / "data"), mode="auto", one_toolset=False),
            "bridge": lambda: over_stdio(
                errors, "--server", f"http://{server.address}", mode="legacy", one_toolset=False
            ),
            "rest": lambda: Rest(server),
        }
        face = make[name]()
        try:
            # Over stdio the client for Python takes a time that grows with the square of a line.
            large = LARGE if name in ("grpc", "http", "rest") else LARGE[: len(LARGE) // 3]
            file = {"skill_id": f"github/large/{name}", "path": "large.npy"}
            files = as_json({"SKILL.md": skill_md(name), "large.npy": large})
            published = face.ask("PublishSkill", {"skill_id": file["skill_id"], "files": files})
            assert published["outcome"] == "created", published
            if name in ("grpc", "rest"):
                found = base64.b64decode(face.ask("ReadFile", file)["content"])
            else:
                found = base64.b64decode(face.read(f"skill://{file['skill_id']}/{file['path']}").blob)
        finally:
            face.close()
    assert sums({"large.npy": found}) == sums({"large.npy": large})
