"""Sources and syncs as an agent sees them: the five tools of the set `sync`, with the answers of the specification."""

import re

import pytest
from faces import over_http
from harness import skill_md

SKILLS = ["refunds", "orders", "letters"]


@pytest.fixture
def connection(start, tmp_path):
    """MCP to a server that follows a folder with three skills and one that is none."""
    folder = tmp_path / "skills"
    for name in SKILLS:
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_bytes(skill_md(name))
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_text("No front matter.\n")
    config = tmp_path / "sources.yaml"
    config.write_text(
        f"sources:\n  team:\n    name: Team\n    kind: directory\n    location: {folder}\n"
        "    namespace: team/shared\n    interval_seconds: 0\n"
    )
    server = start("--config", str(config)).ready()
    face = over_http(server, "legacy")
    face.one_toolset = True
    yield lambda tool, **arguments: face.call(tool, arguments, "sync").structured_content, folder
    face.close()


def test_an_agent_syncs_the_sources_and_hears_what_came_of_it(connection):
    call, folder = connection
    preview = call("force_full_sync")
    assert preview["success"] is True
    assert (preview["data"]["status"], preview["data"]["sync_id"]) == ("preview", "")
    assert "confirm" in preview["data"]["message"]

    answer = call("refresh_index", sources=["team"], force_check=False)
    assert answer["success"] is True
    data = answer["data"]
    assert re.fullmatch(r"sync_\d{8}_\d{6}(_\d+)?", data["sync_id"])
    assert (data["status"], data["total_skills_updated"]) == ("completed", 3)
    (team,) = data["sources_synced"]
    skipped = team.pop("skipped")
    assert team == {
        "source_id": "team", "source_name": "Team", "status": "success",
        "skills_added": 3, "skills_updated": 0, "skills_removed": 0, "skills_skipped": 1,
    }
    assert skipped[0]["path"] == "broken" and "front matter" in skipped[0]["reason"]
    assert answer["metadata"]["execution_time_ms"] >= 0

    (folder / "refunds" / "SKILL.md").write_bytes(skill_md("refunds", "# Other steps\n"))
    again = call("refresh_index")["data"]["sources_synced"][0]
    assert (again["skills_updated"], again["skills_added"], again["skills_removed"]) == (1, 0, 0)

    status = call("get_sync_status", include_history=True)["data"]
    assert "current_sync" not in status
    assert status["index_stats"]["by_source"]["team"] == 3
    assert set(status["index_stats"]["by_trust_tier"]) == {"official", "verified", "community", "unverified"}
    assert (status["last_sync"]["status"], status["last_sync"]["skills_updated"]) == ("success", 1)
    assert [sync["skills_updated"] for sync in status["sync_history"]] == [1, 3]

    health = call("get_source_health")["data"]
    assert health["overall_health"] == "healthy"
    (team,) = health["sources"]
    assert (team["source_id"], team["name"], team["status"]) == ("team", "Team", "healthy")
    assert (team["error_count_24h"], team["skills_contributed"]) == (0, 3)


def test_a_source_that_cannot_be_read_is_told_with_its_code_and_in_its_health(connection):
    call, folder = connection
    folder.rename(folder.with_name("elsewhere"))
    refused = call("refresh_index")
    assert (refused["success"], refused["error"]["code"]) == (False, "SYNC_FAILED")
    assert "'team' could not be synced" in refused["error"]["message"]
    health = call("get_source_health", source_id="team")["data"]
    assert (health["overall_health"], health["sources"][0]["status"]) == ("critical", "unavailable")
    assert "no folder" in health["sources"][0]["last_error"]


def test_an_agent_is_told_which_sources_and_syncs_there_are_none_of(connection):
    call, _ = connection
    for tool, arguments, code in [
        ("refresh_index", {"sources": ["none"]}, "SOURCE_NOT_FOUND"),
        ("force_full_sync", {"sources": ["none"], "confirm": True}, "SOURCE_NOT_FOUND"),
        ("get_sync_status", {"sync_id": "sync_1"}, "SYNC_NOT_FOUND"),
        ("get_source_health", {"source_id": "none"}, "SOURCE_NOT_FOUND"),
    ]:
        assert call(tool, **arguments)["error"]["code"] == code
