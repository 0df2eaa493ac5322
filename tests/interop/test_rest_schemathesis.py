"""REST, driven by its own OpenAPI document: schemathesis makes up requests, good and bad,
and holds every answer against what the document says."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from harness import clean_environment, publish, skill_md

# The run itself is bounded below; this is for when it hangs.
pytestmark = pytest.mark.timeout(240)

RUN_SECONDS = 110
EXAMPLES = 8

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]


def test_no_request_breaks_the_server_and_every_answer_is_as_described(server, tmp_path):
    files = {"SKILL.md": skill_md("refunds", "See `references/more.md`.\n"), "references/more.md": b"# More\n"}
    publish(server, "github/acme/refunds", files)
    report = tmp_path / "report.ndjson"
    command = [
        Path(sys.executable).parent / "schemathesis", "run", f"http://{server.address}/openapi.json",
        "--url", f"http://{server.address}",
        "--checks", ",".join(CHECKS),
        "--phases", "examples,coverage,fuzzing",
        "--max-examples", str(EXAMPLES),
        "--max-time", str(RUN_SECONDS),
        "--request-timeout", "10",
        "--continue-on-failure",
        "--suppress-health-check", "all",
        "--seed", "1",
        "--no-color",
        "--report", "ndjson", "--report-ndjson-path", str(report),
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=2 * RUN_SECONDS
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
