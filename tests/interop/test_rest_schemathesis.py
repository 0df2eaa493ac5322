"""REST, driven by its own OpenAPI document: schemathesis makes up requests, good and bad,
and holds every answer against what the document says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import clean_environment, publish, skill_md
from repertoire.v1 import learning_pb2

# Some hundred operations with dozens of requests each.
RUN_SECONDS = 600
pytestmark = pytest.mark.timeout(RUN_SECONDS + 30)

# Beyond these, schemathesis checks what this server does not promise: that whatever the
# schema allows is accepted, where `skill_id` is a name that may or may not exist.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]


def schemathesis(server, work, *options, config=""):
    """Runs schemathesis over all that the document names; its report."""
    (work / "schemathesis.toml").write_text(config)
    report = work / "report.json"
    command = [
        Path(sys.executable).parent / "schemathesis", "--config-file", work / "schemathesis.toml",
        "run", f"http://{server.address}/openapi.json", "--url", f"http://{server.address}",
        "--checks", ",".join(CHECKS),
        "--request-timeout", "2",
        "--continue-on-failure", "--no-shrink",
        "--suppress-health-check", "all",
        "--generation-database", "none",
        "--seed", "1",
        "--no-color", "--warnings", "off",
        "--report", "json", "--report-json-path", report,
        *options,
    ]
    done = subprocess.run(
        command, cwd=work, env=clean_environment(), capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    return json.loads(report.read_text())


def refunds(version):
    return {
        "SKILL.md": skill_md("refunds", "See `references/more.md`.\n", version=f"{version}.0.0"),
        "references/more.md": f"# More {version}\n".encode(),
    }


# A stream that does not end is looked at for so long; the test of a skill that is there has
# those that do.
STREAMS = """
    [[operations]]
    include-path-regex = "/(events|progress)$"
    request-timeout = 0.5
"""


@pytest.mark.parametrize(
    ("phases", "examples", "at_least"),
    [("fuzzing", "3", 200), pytest.param("coverage,fuzzing", "15", 1000, marks=pytest.mark.nightly)],
    ids=["few", "many"],
)
def test_no_made_up_request_breaks_the_server_and_every_answer_is_as_described(server, tmp_path, phases, examples, at_least):
    report = schemathesis(server, tmp_path, "--phases", phases, "--max-examples", examples, config=STREAMS)
    operations = report["operations"]
    assert operations["total"] == operations["tested"] > 0
    assert report["test_cases"]["with_failures"] == 0
    assert report["test_cases"]["generated"] > at_least


@pytest.mark.nightly
def test_requests_about_a_skill_that_is_there_are_answered_as_described(start, tmp_path):
    # A source, so that there is something to sync.
    folder = tmp_path / "skills" / "letters"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(skill_md("letters"))
    settings = tmp_path / "sources.yaml"
    settings.write_text(f"sources:\n  team: {{kind: directory, location: {folder.parent}, interval_seconds: 0}}\n")
    server = start("--config", str(settings)).ready()
    for version in (1, 2, 3):
        publish(server, "github/acme/refunds", refunds(version))
    # Deleted, it would no longer be there; made-up skills are mostly none.
    left_out = ["--exclude-method", "DELETE", "--exclude-method", "PUT", "--exclude-path", "/api/v1/skills"]
    # Sets of made-up names are refused as a whole.
    left_out += ["--exclude-path", "/api/v1/skills:compose", "--exclude-path", "/api/v1/tools:check"]
    # Sessions are made by the server: none that is made up is there. test_tools.py has these.
    # Reviews, installs, namespaces, sources and tokens are for callers on the server's machine.
    regex = r"/sessions/|/details/|/tools/\{name\}/|/(approve|reject)$|/api/v1/(installed|priorities|namespaces/|sources$|tokens$)"
    left_out += ["--exclude-path-regex", regex]
    publish(server, "github/acme/harmful", {"SKILL.md": skill_md("harmful")})
    # For a reviewer: no made-up one waits.
    handed_in = {"exercise_id": "write-a-runbook", "learner": "ann", "solution": "Wake somebody.", "practice": True}
    waiting = server.learning().SubmitSolution(learning_pb2.SubmitSolutionRequest(**handed_in), timeout=20)
    config = f"""
        [parameters]
        "path.exercise_id" = "test-first-unit-test"
        "path.submission_id" = "{waiting.submission_id}"
        "path.skill_id" = "refunds"
        "path.skill_id_1" = "github"
        "path.skill_id_2" = "acme"
        "path.skill_id_3" = "refunds"
        "path.version_number" = 2
        "path.path" = "references/more.md"
        "query.version_number" = 1
        "query.semantic_version" = ""
        "query.from_version" = 1
        "query.to_version" = 3
        "query.uri" = "skill://github/acme/refunds/references/more.md"
        "query.resume_token" = ""
        "query.max_wait_seconds" = 1
        "body.command" = "refunds"

        # Not the version that is to be activated.
        [[operations]]
        include-path-regex = "/yank$"
        parameters = {{ "path.version_number" = 1 }}

        [[operations]]
        include-path-regex = "/skills:(scan|checkConflicts|auditActivation)$"
        parameters = {{ "body.skill_id" = "refunds", "body.semantic_version" = "", "body.against_skills" = [] }}

        [[operations]]
        include-path-regex = "/skills:estimateBudget$"
        parameters = {{ "body.skill_ids" = ["refunds"] }}

        [[operations]]
        include-path-regex = "/sync(:full)?$"
        parameters = {{ "body.sources" = ["team"], "query.sync_id" = "" }}

        # Not the skill that the others ask for.
        [[operations]]
        include-path-regex = "/blocklist$"
        parameters = {{ "body.skill_id" = "github/acme/harmful" }}
    """
    report = schemathesis(
        server, tmp_path, "--phases", "coverage,fuzzing", "--max-examples", "5", *left_out, config=config
    )
    accepted = {
        operation: sum(phase["accepted"] for phase in phases.values())
        for operation, phases in report["valid_rates"].items()
    }
    assert len(accepted) == report["operations"]["selected"]
    assert [operation for operation, times in accepted.items() if times == 0] == []
