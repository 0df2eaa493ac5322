"""A client that Python's usual tools make from the .proto files."""

import gzip
import io
import tarfile
import threading
import time
import zipfile

import grpc
import pytest
from harness import bundle_digest, skill_md, told
from repertoire.v1 import lookup_pb2, registry_pb2

MIB = 1024 * 1024
SECONDS = 30


def files(contents):
    return [registry_pb2.File(path=path, content=content) for path, content in contents.items()]


def publish(server, skill_id, contents, **more):
    request = registry_pb2.PublishSkillRequest(skill_id=skill_id, files=files(contents), **more)
    return server.registry().PublishSkill(request, timeout=SECONDS)


def lives(server):
    """The server still answers."""
    answer = server.lookup().GetSkill(lookup_pb2.GetSkillRequest(skill_id="write_sql"), timeout=SECONDS)
    return answer.skill.id == "builtin/repertoire/write_sql"


def test_fifty_skills_over_one_stream_are_answered_in_order_and_two_bad_ones_stop_nothing(server):
    def contents(n):
        if n == 7:
            return {"SKILL.md": b"---\nname: bulk-07\n---\nno description\n"}
        return {"SKILL.md": skill_md(f"bulk-{n:02}", f"Body {n}\n"), "data.npy": bytes([n]) * (n * 1000)}

    def items():
        for n in range(50):
            skill = registry_pb2.PublishSkillRequest(skill_id=f"github/bulk/bulk-{n:02}", files=files(contents(n)))
            if n == 23:
                skill.skill_id = "x" * 401
            yield registry_pb2.PublishSkillsRequest(skill=skill)

    answers = list(server.registry().PublishSkills(items(), timeout=SECONDS))
    assert [answer.index for answer in answers] == list(range(50))

    def brief(answer):
        if answer.WhichOneof("result") == "refused":
            return answer.refused.code, [(p.file, p.line, p.rule) for p in answer.refused.problems]
        return answer.published.skill_id, answer.published.outcome, answer.published.version.digest

    expected = [
        (f"github/bulk/bulk-{n:02}", registry_pb2.PUBLISH_OUTCOME_CREATED, bundle_digest(contents(n)))
        for n in range(50)
    ]
    expected[7] = ("SKILL_INVALID", [("SKILL.md", 1, "description-missing")])
    expected[23] = ("INVALID_PARAMETER", [])
    assert [brief(answer) for answer in answers] == expected

    listed = server.lookup().ListSkills(
        lookup_pb2.ListSkillsRequest(source="github", author="bulk", page_size=100), timeout=SECONDS
    )
    assert [s.id for s in listed.skills] == [f"github/bulk/bulk-{n:02}" for n in range(50) if n not in (7, 23)]


def test_versions_of_one_skill_over_one_stream_are_numbered_in_order(server):
    def items():
        for n in range(10):
            contents = {"SKILL.md": skill_md("ordered", f"Body {n}\n")}
            skill = registry_pb2.PublishSkillRequest(skill_id="github/bulk2/ordered", files=files(contents))
            yield registry_pb2.PublishSkillsRequest(skill=skill)

    answers = server.registry().PublishSkills(items(), timeout=SECONDS)
    numbers = [(a.published.version.version_number, a.published.version.semantic_version) for a in answers]
    assert numbers == [(n + 1, f"1.0.{n}") for n in range(10)]


def test_many_publishes_at_once_get_a_number_each(server):
    registry, numbers = server.registry(), []

    def one(n):
        contents = {"SKILL.md": skill_md("raced", f"Body {n}\n")}
        request = registry_pb2.PublishSkillRequest(skill_id="github/race/raced", files=files(contents))
        numbers.append(registry.PublishSkill(request, timeout=SECONDS).version.version_number)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(numbers) == list(range(1, 17))


def exported(server, archive_format):
    request = registry_pb2.ExportSkillRequest(skill_id="github/acme/archived", format=archive_format)
    answers = list(server.registry().ExportSkill(request, timeout=SECONDS))
    assert all(len(answer.chunk) <= 64 * 1024 for answer in answers)
    assert [answer.HasField("info") for answer in answers] == [True] + [False] * (len(answers) - 1)
    info = answers[0].info
    return (info.file_name, info.mime_type), b"".join(answer.chunk for answer in answers)


def test_an_archive_holds_the_published_bytes_and_is_the_same_every_time(server):
    contents = {
        "SKILL.md": skill_md("archived", version="2.1.0"),
        "references/deep/er.md": "ünïcode\r\n".encode(),
        "scripts/big.npy": bytes(n * n % 251 for n in range(300_000)),
        "empty": b"",
        "references/" + "long-" * 30 + "name.md": b"long\n",
    }
    publish(server, "github/acme/archived", contents)

    named, tar = exported(server, registry_pb2.ARCHIVE_FORMAT_TAR_GZ)
    assert named == ("archived-2.1.0.tar.gz", "application/gzip")
    assert exported(server, registry_pb2.ARCHIVE_FORMAT_TAR_GZ)[1] == tar
    assert exported(server, registry_pb2.ARCHIVE_FORMAT_UNSPECIFIED)[1] == tar
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        assert {m.name: archive.extractfile(m).read() for m in archive.getmembers()} == contents
        assert archive.getnames() == sorted(contents)
    assert gzip.decompress(tar)

    named, packed = exported(server, registry_pb2.ARCHIVE_FORMAT_ZIP)
    assert named == ("archived-2.1.0.zip", "application/zip")
    assert exported(server, registry_pb2.ARCHIVE_FORMAT_ZIP)[1] == packed
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == contents


def test_a_deadline_is_honoured(server):
    contents = {"SKILL.md": skill_md("late"), "big.npy": b"x" * (4 * MIB)}
    began = time.monotonic()
    try:
        publish_late = registry_pb2.PublishSkillRequest(skill_id="github/acme/late", files=files(contents))
        server.registry().PublishSkill(publish_late, timeout=0.001)
    except grpc.RpcError as refusal:
        assert refusal.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 5
    assert lives(server)


def test_a_deadline_ends_a_watch(server):
    began = time.monotonic()
    with pytest.raises(grpc.RpcError) as refusal:
        for _ in server.registry().Watch(registry_pb2.WatchRequest(), timeout=0.3):
            pass
    assert refusal.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 5


def test_five_mebibytes_go_there_and_back(server):
    contents = {"SKILL.md": skill_md("large"), "large.npy": bytes(range(256)) * (5 * MIB // 256)}
    publish(server, "github/acme/large", contents)
    request = lookup_pb2.ReadFileRequest(skill_id="github/acme/large", path="large.npy")
    assert server.lookup().ReadFile(request, timeout=SECONDS).content == contents["large.npy"]
    part = lookup_pb2.ReadFileRequest(
        skill_id="github/acme/large", path="large.npy", offset_bytes=3 * MIB + 1, limit_bytes=1000
    )
    answer = server.lookup().ReadFile(part, timeout=SECONDS)
    assert answer.content == contents["large.npy"][3 * MIB + 1 :][:1000]


def test_a_skill_of_more_than_sixteen_mebibytes_is_refused_in_words(server):
    contents = {"SKILL.md": skill_md("huge"), "a.bin": b"a" * (9 * MIB), "b.bin": b"b" * (9 * MIB)}
    with pytest.raises(grpc.RpcError) as refusal:
        publish(server, "github/acme/huge", contents)
    refusal = told(refusal.value)
    assert (refusal["code"], refusal["ErrorInfo"]["reason"]) == ("INVALID_ARGUMENT", "SKILL_INVALID")
    assert refusal["BadRequest"]["fieldViolations"][0]["description"].startswith("skill-too-large: ")


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_a_message_beyond_the_limit_is_refused_and_the_server_lives(server, compression):
    # Compressed it is a few KiB: what counts is what it would take in memory.
    request = registry_pb2.PublishSkillRequest(
        skill_id="github/acme/vast", files=files({"SKILL.md": skill_md("vast"), "vast.bin": bytes(21 * MIB)})
    )
    with pytest.raises(grpc.RpcError) as refusal:
        server.registry().PublishSkill(request, timeout=SECONDS, compression=compression)
    assert refusal.value.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.OUT_OF_RANGE)
    assert lives(server)


def test_text_that_is_not_utf_8_is_refused_and_the_server_lives(server):
    get = server.channel().unary_unary("/repertoire.v1.Lookup/GetSkill")
    with pytest.raises(grpc.RpcError) as refusal:
        get(b"\x0a\x02\xff\xfe", timeout=SECONDS)
    # gRPC names INTERNAL for a request that cannot be parsed.
    assert refusal.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT)
    assert lives(server)


@pytest.mark.parametrize("noise", [b"\xff" * 64, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\x0b" * 200])
def test_noise_is_refused_and_the_server_lives(server, noise):
    get = server.channel().unary_unary("/repertoire.v1.Lookup/GetSkill")
    with pytest.raises(grpc.RpcError) as refusal:
        get(noise, timeout=SECONDS)
    assert refusal.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT)
    assert lives(server)


def test_fields_of_a_later_contract_are_passed_over(server):
    get = server.channel().unary_unary("/repertoire.v1.Lookup/GetSkill")
    request = lookup_pb2.GetSkillRequest(skill_id="write_sql").SerializeToString() + b"\xa2\x06\x03new"
    answer = lookup_pb2.GetSkillResponse.FromString(get(request, timeout=SECONDS))
    assert answer.skill.id == "builtin/repertoire/write_sql"


def test_calls_compressed_with_gzip_work_both_ways(server):
    contents = {"SKILL.md": skill_md("packed", "again and again\n" * 5000)}
    more = {"timeout": SECONDS, "compression": grpc.Compression.Gzip}
    request = registry_pb2.PublishSkillRequest(skill_id="github/acme/packed", files=files(contents))
    server.registry(compression=grpc.Compression.Gzip).PublishSkill(request, **more)
    lookup = server.lookup(compression=grpc.Compression.Gzip)
    read = lookup_pb2.ReadSkillRequest(uri="skill://github/acme/packed")
    answer, call = lookup.ReadSkill.with_call(read, **more)
    assert answer.text.encode() == contents["SKILL.md"]
    assert dict(call.initial_metadata()).get("grpc-encoding", "gzip") == "gzip"

    def items():
        for _ in range(3):
            yield registry_pb2.PublishSkillsRequest(skill=request)

    answers = list(server.registry().PublishSkills(items(), **more))
    assert [answer.published.outcome for answer in answers] == [registry_pb2.PUBLISH_OUTCOME_UNCHANGED] * 3
