"""The OpenAPI document: two linters have nothing to say about it, and two generators make
clients of it that work."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from harness import CALL_SECONDS, as_json, clean_environment, skill_md
from javascript import NODE, PACKAGES, environment, run

pytestmark = pytest.mark.timeout(120)

HERE = Path(__file__).parent / "openapi"
GENERATE_SECONDS = 60


def fetch(url):
    with urllib.request.urlopen(url, timeout=CALL_SECONDS) as answer:
        return answer.read()


@pytest.fixture
def document(server, tmp_path):
    """The document of a running server, in a file."""
    file = tmp_path / "openapi.json"
    file.write_bytes(fetch(f"http://{server.address}/openapi.json"))
    return file


def operations(document):
    items = json.loads(document.read_text())["paths"].values()
    return [operation["operationId"] for item in items for operation in item.values()]


def test_spectral_has_nothing_to_say(node, document, tmp_path):
    done = run("@stoplight/spectral-cli", "spectral", "lint", document, "--ruleset", HERE / "spectral.yaml",
               "--fail-severity", "hint", "--format", "json", "--quiet", home=tmp_path / "home")
    assert (done.returncode, json.loads(done.stdout)) == (0, []), done.stderr


def test_redocly_has_nothing_to_say(node, document, tmp_path):
    done = run("@redocly/cli", "redocly", "lint", document, "--config", HERE / "redocly.yaml", "--format", "json",
               home=tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["problems"], told["totals"]) == ([], {"errors": 0, "warnings": 0, "ignored": 0})


@pytest.fixture
def rest_client(document, tmp_path, monkeypatch):
    """What openapi-python-client makes of the document, as a package that can be imported."""
    tools = Path(sys.executable).parent
    # It formats what it wrote with the ruff beside it.
    environment = clean_environment() | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    package = tmp_path / "rest_client"
    command = [tools / "openapi-python-client", "generate", "--path", document, "--meta", "none",
               "--output-path", package, "--config", HERE / "python.yaml", "--fail-on-warning"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GENERATE_SECONDS)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["Generating", str(package)], "")
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_openapi_python_client_makes_a_client_that_works(server, document, rest_client):
    from rest_client import Client, models
    from rest_client.api.lookup import get_skill, search
    from rest_client.api.registry import export_skill, publish_skill

    made = [file for file in (rest_client / "api").glob("*/*.py") if file.name != "__init__.py"]
    assert len(made) == len(operations(document))
    with Client(base_url=f"http://{server.address}", raise_on_unexpected_status=True) as client:
        page = skill_md("python-refunds", description="Pays customers back.")
        files = [models.File(**file) for file in as_json({"SKILL.md": page})]
        body = models.PublishSkillBody(skill_id="github/acme/python-refunds", files=files)
        published = publish_skill.sync(client=client, body=body)
        assert published.outcome == models.PublishSkillResponseOutcome.CREATED
        assert published.version.semantic_version == "1.0.0"

        # The index follows what is published.
        found, end = [], time.monotonic() + CALL_SECONDS
        while "github/acme/python-refunds" not in found:
            assert time.monotonic() < end, found
            results = search.sync(client=client, body=models.SearchBody(query="python-refunds")).results
            found = [result.id for result in results]

        got = get_skill.sync("python-refunds", client=client)
        assert (got.skill.id, got.skill.description) == ("github/acme/python-refunds", "Pays customers back.")

        archive = export_skill.sync("python-refunds", client=client, format_=models.ExportSkillFormat.ZIP)
        exported = fetch(f"http://{server.address}/api/v1/skills/python-refunds/export?format=zip")
        assert archive.payload.read() == exported

        missing = get_skill.sync_detailed("refundz", client=client)
        assert (missing.status_code, missing.parsed.code) == (404, "SKILL_NOT_FOUND")


def test_openapi_typescript_makes_types_that_hold_and_refuse_mistakes(node, server, document, tmp_path):
    home = tmp_path / "home"
    made = run("openapi-typescript", "openapi-typescript", document, "--output", tmp_path / "api.mts", home=home)
    assert (made.returncode, made.stderr) == (0, ""), made.stdout
    for file in ("client.mts", "tsconfig.json"):
        (tmp_path / file).write_bytes((HERE / file).read_bytes())
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    checked = run("typescript", "tsc", "--project", tmp_path, home=home)
    assert (checked.returncode, checked.stdout) == (0, "")

    command = [NODE, tmp_path / "client.mjs", f"http://{server.address}"]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=CALL_SECONDS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "published": "created",
        "found": True,
        "got": "Pays customers back.",
        "missing": "SKILL_NOT_FOUND",
    }
