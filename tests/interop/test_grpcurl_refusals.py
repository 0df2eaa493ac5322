"""Refusals, with every detail a caller can act on."""

import json

import grpc
import pytest
from harness import as_json, refused, skill_md


def test_an_unknown_skill_is_not_found_and_the_caller_learns_what_to_do(grpcurl):
    assert grpcurl.call("Lookup/GetSkill", {"skillId": "no-such"}).refusal == refused(
        "NOT_FOUND",
        "Skill 'no-such' not found in index",
        "SKILL_NOT_FOUND",
        2000,
        metadata={"skill_id": "no-such"},
        help=[
            "Verify the skill ID is correct: it is `source/author/slug` or a short name",
            "Find a skill by what it is to do: the answer has the names",
        ],
    )


def test_grpcurl_prints_the_details_in_words(grpcurl):
    # It knows no more types than the server reflects.
    ask = ("-d", '{"skill_id": "no-such"}', grpcurl.address, "repertoire.v1.Lookup/GetSkill")
    done = grpcurl.run("-format-error", *ask)
    details = json.loads(done.stderr)["details"]
    assert [(detail["@type"].rsplit("/", 1)[1], detail.get("@error")) for detail in details] == [
        ("google.rpc.ErrorInfo", None),
        ("google.rpc.Help", None),
    ]


NAME_A_SKILL = "Name a skill: `source/author/slug` or a short name; the list of skills has both"
CHECK_FIRST = "Validate the skill first, which reports every problem and publishes nothing"


@pytest.mark.parametrize("request_", [{"command": ""}, {}])
def test_an_empty_command_is_refused_in_its_own_words(grpcurl, request_):
    assert grpcurl.call("Lookup/ActivateSkill", request_).refusal == refused(
        "INVALID_ARGUMENT",
        "Skill name cannot be empty",
        "MISSING_PARAMETER",
        1002,
        fields=[("command", "Skill name cannot be empty")],
        help=[NAME_A_SKILL],
    )


def test_every_missing_field_is_named(grpcurl):
    assert grpcurl.call("Lookup/ReadFile", {}).refusal == refused(
        "INVALID_ARGUMENT",
        "2 fields are wrong: skill_id, path",
        "MISSING_PARAMETER",
        1002,
        fields=[("skill_id", "Skill id cannot be empty"), ("path", "File path cannot be empty")],
        help=[NAME_A_SKILL, "Write a path inside the skill, such as `SKILL.md`; the list of its files has them all"],
    )


def test_a_skill_of_nothing_is_a_missing_parameter(grpcurl):
    assert grpcurl.call("Registry/PublishSkill", {}).refusal == refused(
        "INVALID_ARGUMENT",
        "A skill needs its files, or a name and a description",
        "MISSING_PARAMETER",
        1002,
        fields=[("files", "Required")],
        help=["Send `files` with a SKILL.md among them, or `name`, `description` and `core_content`"],
    )


def test_a_value_out_of_bounds_is_refused_with_its_field(grpcurl):
    assert grpcurl.call("Lookup/ListSkills", {"pageSize": 1001}).refusal == refused(
        "INVALID_ARGUMENT",
        "page_size: must be at most 1000, is 1001",
        "INVALID_PARAMETER",
        1001,
        fields=[("page_size", "must be at most 1000, is 1001")],
    )


def test_an_invalid_skill_is_refused_with_the_file_the_line_and_the_rule(grpcurl):
    files = {"SKILL.md": b"---\nname: broken\ndescription: [1, 2]\nname: twice\n---\nbody\n"}
    problem = "front-matter-duplicate-key: The key `name` is here and on line 2; keep one of them"
    assert grpcurl.call("Registry/PublishSkill", {"files": as_json(files)}).refusal == refused(
        "INVALID_ARGUMENT",
        f"The skill cannot be published: SKILL.md:4: {problem}",
        "SKILL_INVALID",
        2010,
        fields=[("SKILL.md:4", problem)],
        help=["Fix the listed problems and publish again", CHECK_FIRST],
    )


def test_a_skill_without_its_skill_md_is_refused(grpcurl):
    refusal = grpcurl.call("Registry/PublishSkill", {"files": as_json({"README.md": b"hello\n"})}).refusal
    assert (refusal["code"], refusal["ErrorInfo"]["reason"]) == ("INVALID_ARGUMENT", "SKILL_INVALID")
    (violation,) = refusal["BadRequest"]["fieldViolations"]
    assert violation["description"].startswith("skill-md-missing: ")


@pytest.mark.parametrize("path", ["../up.md", "/etc/passwd", "a//b", "a\\b", "a/./b", "nul\0"])
def test_a_path_that_leaves_the_skill_is_refused(grpcurl, path):
    files = as_json({"SKILL.md": skill_md("paths"), path: b"x"})
    refusal = grpcurl.call("Registry/PublishSkill", {"files": files}).refusal
    assert (refusal["code"], refusal["ErrorInfo"]["reason"]) == ("INVALID_ARGUMENT", "INVALID_PARAMETER")
    assert [violation["field"] for violation in refusal["BadRequest"]["fieldViolations"]] == ["files[1].path"]


@pytest.mark.parametrize(
    "method, more",
    [
        ("Registry/YankVersion", {"versionNumber": 1}),
        ("Registry/DeleteSkill", {}),
        ("Registry/ActivateVersion", {"versionNumber": 1}),
        ("Registry/PublishSkill", {"files": as_json({"SKILL.md": skill_md("write_sql")})}),
    ],
)
def test_a_bundled_skill_cannot_be_changed(grpcurl, method, more):
    skill_id = "builtin/repertoire/write_sql"
    assert grpcurl.call(method, {"skillId": skill_id, **more}).refusal == refused(
        "FAILED_PRECONDITION",
        f"'{skill_id}' comes with the server and cannot be changed",
        "SKILL_READ_ONLY",
        2011,
        metadata={"skill_id": skill_id},
        help=[
            "Publish a skill of your own under another name; on the server's machine one of the same name in "
            "`local/project/` or `local/user/` hides this one"
        ],
    )


@pytest.mark.parametrize("skill_id", ["local/project/mine", "Local/User/mine"])
def test_places_of_the_servers_machine_are_closed_to_the_network(grpcurl, skill_id):
    ask = {"skillId": skill_id, "files": as_json({"SKILL.md": skill_md("mine")})}
    assert grpcurl.call("Registry/PublishSkill", ask).refusal == refused(
        "PERMISSION_DENIED",
        f"'{skill_id}' is a place of the server's own machine, which no call over the network can write to",
        "LOCATION_NOT_LOCAL",
        2021,
        metadata={"skill_id": skill_id},
        help=[
            "Publish it as `SOURCE/AUTHOR/mine` of your own, or as `local/global/mine`",
            "On the server's machine, `repertoire import DIR --location project` without --server reaches it "
            "through its data directory",
        ],
    )


@pytest.mark.parametrize(
    "skill_id, name, whose, step",
    [
        (
            "github/acme/xlsx", "xlsx", "is, or looks like, the bundled skill `xlsx`",
            "Publish it under a name of its own, such as `acme-xlsx`",
        ),
        (
            "built-in/repertoire/x", "built-in",
            "looks like `builtin`, the source of the skills that come with the server",
            "Choose another source, such as the host of its repository",
        ),
    ],
)
def test_names_of_the_server_are_reserved(grpcurl, skill_id, name, whose, step):
    ask = {"skillId": skill_id, "files": as_json({"SKILL.md": skill_md("mine")})}
    assert grpcurl.call("Registry/PublishSkill", ask).refusal == refused(
        "PERMISSION_DENIED",
        f"'{name}' {whose}",
        "NAME_RESERVED",
        2019,
        metadata={"name": name, "skill_id": skill_id},
        help=[step],
    )
    checked = grpcurl.call("Registry/ValidateSkill", ask).answer
    assert "valid" not in checked
    assert checked["problems"][0] == {
        "rule": "name-refused", "message": f"'{name}' {whose}. {step}", "severity": "SEVERITY_ERROR",
    }


def test_a_semantic_version_never_gets_other_bytes(grpcurl):
    ask = {"skillId": "github/acme/fixed"}
    first = {**ask, "files": as_json({"SKILL.md": skill_md("fixed", "one\n", version="1.0.0")})}
    grpcurl.call("Registry/PublishSkill", first).answer
    other = {**ask, "files": as_json({"SKILL.md": skill_md("fixed", "two\n", version="1.0.0")})}
    assert grpcurl.call("Registry/PublishSkill", other).refusal == refused(
        "FAILED_PRECONDITION",
        "Version 1.0.0 of 'github/acme/fixed' exists with other content, as number 1",
        "VERSION_CONFLICT",
        2013,
        metadata={"skill_id": "github/acme/fixed", "semantic_version": "1.0.0", "version_number": "1"},
        help=["Raise `version` in the front matter, or leave it out to have the patch raised"],
    )


def test_an_unknown_version_and_an_unknown_file_are_not_found(grpcurl):
    skill_id = "builtin/repertoire/write_sql"
    assert grpcurl.call("Lookup/GetSkill", {"skillId": skill_id, "versionNumber": 99}).refusal == refused(
        "NOT_FOUND",
        f"Skill '{skill_id}' has no version 99",
        "VERSION_NOT_FOUND",
        2012,
        metadata={"skill_id": skill_id, "version": "99"},
        help=["It has version 1 alone, 2.0.0"],
    )
    assert grpcurl.call("Lookup/ReadFile", {"skillId": skill_id, "path": "skill.md"}).refusal == refused(
        "NOT_FOUND",
        f"Version 1 of '{skill_id}' has no file 'skill.md'",
        "FILE_NOT_FOUND",
        2015,
        metadata={"skill_id": skill_id, "version": "1", "path": "skill.md"},
        help=["Did you mean SKILL.md?", "Loading the skill names its files; paths are compared with their case"],
    )


def test_a_file_that_is_not_text_is_not_read_as_text(grpcurl):
    files = {"SKILL.md": skill_md("binary"), "logo.png": b"\x89PNG\xff"}
    grpcurl.call("Registry/PublishSkill", {"skillId": "github/acme/binary", "files": as_json(files)}).answer
    assert grpcurl.call("Lookup/ReadSkill", {"uri": "skill://github/acme/binary/logo.png"}).refusal == refused(
        "FAILED_PRECONDITION",
        "'logo.png' of 'github/acme/binary' is not text",
        "FILE_NOT_TEXT",
        2016,
        metadata={"skill_id": "github/acme/binary", "path": "logo.png"},
        help=["Read its bytes, as a file of the skill"],
    )


def test_an_rpc_that_does_not_exist_is_unimplemented(server):
    call = server.channel().unary_unary("/repertoire.v1.Lookup/NoSuch")
    with pytest.raises(grpc.RpcError) as refusal:
        call(b"", timeout=10)
    assert refusal.value.code() == grpc.StatusCode.UNIMPLEMENTED
