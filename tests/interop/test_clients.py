"""The clients' packages, each with a program that was built on what `clients/build` made, against the real server."""

import json
from pathlib import Path

import harness
from drivers import LANGUAGES, SKILLS, drive, each_language, start_driver, wait_for
from harness import CALL_SECONDS, skill_md
from proxies import secured  # noqa: F401
from repertoire.v1 import lookup_pb2, registry_pb2, registry_pb2_grpc
from test_examples import SAID, Worker, hosting  # noqa: F401


@each_language
def test_clients_publish_search_load_and_call_in_the_lines_of_their_readme(hosting, language):  # noqa: F811
    with Worker("python", hosting):
        process = start_driver(language, hosting.address, program=1, cwd=SKILLS)
        try:
            out, err = process.communicate(timeout=2 * CALL_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1].startswith("3 words; most frequent: so 2 "), out


@each_language
def test_clients_publish_a_folder_with_all_that_is_part_of_the_skill(server, tmp_path, language):
    folder = tmp_path / f"whole-{language}"
    wanted = {
        "SKILL.md": skill_md(folder.name),
        "references/deep/page.md": b"# Page\n",
        "assets/image.npy": bytes(range(256)),
        ".env.example": b"KEY=\n",
    }
    left_out = [".git/config", "node_modules/a/index.js", "scripts/__pycache__/a.pyc", ".env", "id_rsa", ".DS_Store", "a.pem"]
    for path, content in wanted.items() | {(path, b"no part of it") for path in left_out}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "link.md").symlink_to(__file__)
    (folder / "linked").symlink_to(Path(__file__).parent)

    skill = f"github/acme/{folder.name}"
    told = [drive(language, server.address, "publish", folder, skill) for _ in range(2)]
    assert told == [
        [{"skill_id": skill, "outcome": "PUBLISH_OUTCOME_CREATED"}],
        [{"skill_id": skill, "outcome": "PUBLISH_OUTCOME_UNCHANGED"}],
    ]
    listed = server.lookup().ListFiles(lookup_pb2.ListFilesRequest(skill_id=skill), timeout=CALL_SECONDS)
    assert {file.path: file.digest for file in listed.files} == {
        path: harness.digest(content) for path, content in wanted.items()
    }


@each_language
def test_clients_refuse_a_folder_over_the_limits_or_with_patterns_before_they_send_it(server, tmp_path, language):
    for name, path, size, message in [
        ("large", "big.npy", (16 << 20) + 1, "with big.npy the skill has more than 16 MiB"),
        ("patterns", ".skillignore", 1, ".skillignore says what stays out of the skill, which this client does not read"),
    ]:
        folder = tmp_path / name
        folder.mkdir()
        with (folder / path).open("wb") as file:
            file.truncate(size)
        (told,) = drive(language, server.address, "publish", folder, "github/acme/refused")
        assert (told["code"], told["kind"], told["message"]) == ("SKILL_INVALID", "refused", message)


@each_language
def test_clients_tell_a_refusal_by_its_code_and_what_to_do_next(server, language):
    status = LANGUAGES[language][2]
    for command in ["load", "stub"]:
        (told,) = drive(language, server.address, command, "nobody/has/it")
        assert (told["code"], told["kind"], told["status"]) == ("SKILL_NOT_FOUND", "not_found", status("NOT_FOUND"))
        assert told["message"] == "Skill 'nobody/has/it' not found in index" and told["next"] != []
    (told,) = drive(language, server.address, "stub", "x" * 401)
    assert (told["code"], told["kind"]) == ("INVALID_PARAMETER", "refused")
    assert [violation["field"] for violation in told["violations"]] == ["skill_id"]


@each_language
def test_clients_send_no_token_in_clear_to_another_machine(language):
    (told,) = drive(language, "http://skills.example.com", "search", "anything", REPERTOIRE_TOKEN="a-token")
    assert (told["code"], told["kind"]) == ("INVALID_PARAMETER", "refused")
    assert told["message"] == "refusing to send a token over plain HTTP to http://skills.example.com"
    assert "a-token" not in json.dumps(told)


@each_language
def test_clients_reach_a_server_with_tls_and_trust_nobody_else(secured, server, language):  # noqa: F811
    files = [registry_pb2.File(path="SKILL.md", content=skill_md("hidden"))]
    with secured.channel() as channel:
        request = registry_pb2.PublishSkillRequest(skill_id="github/acme/hidden", files=files)
        registry_pb2_grpc.RegistryStub(channel).PublishSkill(request, timeout=CALL_SECONDS)
    trusting = {"REPERTOIRE_CA": str(secured.ca), "REPERTOIRE_TOKEN": "a-token"}
    wait_for(
        lambda: drive(language, secured.url, "search", "hidden", **trusting) == [{"found": ["github/acme/hidden"]}],
        "what was published is not found",
    )
    (told,) = drive(language, secured.url, "search", "hidden")
    assert (told["code"], told["kind"]) == ("SERVER_UNREACHABLE", "unavailable")
    # An empty variable is not set; what is not TLS is not tried.
    (told,) = drive(language, f"https://{server.address}", "search", "hidden", REPERTOIRE_CA="")
    assert told["code"] == "SERVER_UNREACHABLE"
