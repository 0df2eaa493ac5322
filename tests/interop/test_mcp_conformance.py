"""The MCP conformance suite: the frozen sets against the product's handler with the
suite's fixtures, and what needs no fixture against the product itself.

The tables say how many checks of a scenario pass, its messages' check against the
official JSON schema among them: a scenario that ran no check has not passed.
"""

import pytest
from harness import publish, skill_md
from javascript import conformance

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(120)]

# Required for both revisions, and run on the wire of each.
REQUIRED = {
    "completion-complete": 2,
    "dns-rebinding-protection": 2,
    "prompts-get-embedded-resource": 2,
    "prompts-get-simple": 2,
    "prompts-get-with-args": 2,
    "prompts-get-with-image": 2,
    "prompts-list": 2,
    "resources-list": 2,
    "resources-read-binary": 2,
    "resources-read-text": 2,
    "resources-templates-read": 2,
    "tools-call-audio": 2,
    "tools-call-embedded-resource": 2,
    "tools-call-error": 2,
    "tools-call-image": 2,
    "tools-call-mixed-content": 2,
    "tools-call-simple-text": 2,
    "tools-call-with-progress": 2,
}

REQUIRED_2025_11_25 = REQUIRED | {
    "elicitation-sep1034-defaults": 6,
    "elicitation-sep1330-enums": 6,
    "logging-set-level": 2,
    "ping": 2,
    "resources-subscribe": 2,
    "resources-unsubscribe": 2,
    "server-initialize": 3,
    "server-sse-multiple-streams": 2,
    "tools-call-elicitation": 2,
    "tools-call-sampling": 2,
    "tools-call-with-logging": 2,
    "tools-list": 3,
}

REQUIRED_2026_07_28 = REQUIRED | {
    "caching": 8,
    "input-required-result-basic-elicitation": 3,
    "input-required-result-basic-list-roots": 3,
    "input-required-result-basic-sampling": 3,
    "input-required-result-capability-check": 2,
    "input-required-result-ignore-extra-params": 2,
    "input-required-result-missing-input-response": 2,
    "input-required-result-multi-round": 4,
    "input-required-result-multiple-input-requests": 3,
    "input-required-result-non-tool-request": 3,
    "input-required-result-request-state": 3,
    "input-required-result-result-type": 2,
    "input-required-result-tampered-state": 2,
    "input-required-result-unsupported-methods": 2,
    "input-required-result-validate-input": 3,
    "sep-2164-resource-not-found": 4,
    # An answer of one piece is JSON, not a stream: there is no message to check.
    "server-sse-multiple-streams": 1,
    "server-stateless": 30,
    "tools-list": 4,
}

# Run with a set but not part of it, since they came later or are pending.
BEYOND_2025_11_25 = {"json-schema-2020-12": 8, "server-session-lifecycle": 3}
BEYOND_2026_07_28 = {
    "http-custom-header-server-validation": 10,
    "http-header-validation": 14,
    "json-schema-2020-12": 8,
}

# What needs no fixture.
OURS_2025_11_25 = {
    "completion-complete": 2,
    "dns-rebinding-protection": 2,
    "ping": 2,
    "prompts-list": 2,
    "resources-list": 2,
    "server-initialize": 3,
    "server-session-lifecycle": 3,
    "server-sse-multiple-streams": 2,
    "tools-list": 3,
}
OURS_2026_07_28 = {
    "caching": 8,
    "completion-complete": 2,
    "dns-rebinding-protection": 2,
    "http-header-validation": 14,
    "input-required-result-unsupported-methods": 2,
    "prompts-list": 2,
    "resources-list": 2,
    "sep-2164-resource-not-found": 4,
    "server-sse-multiple-streams": 1,
    "tools-list": 4,
}
SKILLS = {
    "sep-2640-skills-directory": 7,
    "sep-2640-skills-enumeration": 32,
    "sep-2640-skills-manifest": 6,
}

# The suite looks up what the name stands for, and wants it to be this machine.
def localhost(program):
    return f"http://localhost:{program.address.rsplit(':', 1)[1]}/mcp"


@pytest.mark.parametrize(
    ("revision", "required", "beyond"),
    [
        ("2025-11-25", REQUIRED_2025_11_25, BEYOND_2025_11_25),
        ("2026-07-28", REQUIRED_2026_07_28, BEYOND_2026_07_28),
    ],
)
def test_the_set_that_a_revision_requires_passes(fixtures, tmp_path, revision, required, beyond):
    report = conformance(localhost(fixtures), "--requirements", revision, work=tmp_path)
    wanted = required | beyond
    assert report.passed(wanted) == wanted, {name: end for name, end in report.others.items()
                                             if name.split(":")[0] in wanted}
    assert report.code == 0, report.text


@pytest.mark.parametrize(
    ("revision", "ours"), [("2025-11-25", OURS_2025_11_25), ("2026-07-28", OURS_2026_07_28)]
)
def test_what_needs_no_fixture_passes_against_the_product(server, tmp_path, revision, ours):
    # The suite runs the rest of the set too, and misses the fixtures.
    report = conformance(localhost(server), "--requirements", revision, work=tmp_path)
    assert report.passed(ours) == ours, {name: end for name, end in report.others.items()
                                         if name.split(":")[0] in ours}


def test_the_stateless_protocol_lacks_only_the_fixtures(server, tmp_path):
    report = conformance(
        localhost(server), "--scenario", "server-stateless", "--spec-version", "2026-07-28", work=tmp_path
    )
    assert set(report.others) == {
        f"server-stateless:sep-2575-{check}"
        for check in (
            # Each calls a tool of the suite's.
            "http-server-no-independent-requests-on-stream",
            "missing-capability-http-400",
            "server-no-log-without-loglevel",
            "server-rejects-undeclared-capability",
            "server-sends-prompts-list-changed-on-subscription",
            "server-sends-tools-list-changed-on-subscription",
        )
    }, report.others
    assert report.scenarios["server-stateless"]["SUCCESS"] == 24


@pytest.mark.parametrize("scenario", SKILLS)
def test_skills_are_served_as_the_extension_says(server, tmp_path, scenario):
    # The suite looks into the first skill that is listed.
    publish(server, "a/conformance/with-folders", {
        "SKILL.md": skill_md("with-folders", "See `references/deep/more.md`.\n"),
        "references/more.md": b"# More\n",
        "references/deep/more.md": b"# Deeper\n",
        "assets/pixel.npy": bytes(range(256)),
    })
    report = conformance(localhost(server), "--scenario", scenario, work=tmp_path)
    assert report.passed([scenario]) == {scenario: SKILLS[scenario]}, report.others or report.text
    assert report.code == 0, report.text
