"""A server with TLS, its own or that of nginx as docs/proxies.md has it: gRPC, REST, events, MCP, the command line and the bridge."""

import json

from harness import CALL_SECONDS, skill_md
from proxies import secured  # noqa: F401
from repertoire.v1 import lookup_pb2, lookup_pb2_grpc, registry_pb2, registry_pb2_grpc


def test_everything_goes_over_tls(secured):  # noqa: F811
    files = [registry_pb2.File(path="SKILL.md", content=skill_md("refunds"))]
    with secured.channel() as channel:
        registry, lookup = registry_pb2_grpc.RegistryStub(channel), lookup_pb2_grpc.LookupStub(channel)
        begun = registry.Watch(registry_pb2.WatchRequest(max_events=1, max_wait_seconds=CALL_SECONDS))
        token = next(begun).resume_token
        registry.PublishSkill(registry_pb2.PublishSkillRequest(skill_id="acme/team/refunds", files=files))
        assert next(begun).event.skill_id == "acme/team/refunds"
        found = lookup.GetSkill(lookup_pb2.GetSkillRequest(skill_id="acme/team/refunds"))
        assert found.skill.id == "acme/team/refunds"

    rest = secured.connection()
    rest.request("GET", "/api/v1/skills/acme%2Fteam%2Frefunds")
    answer = rest.getresponse()
    assert (answer.status, json.loads(answer.read())["skill"]["id"]) == (200, "acme/team/refunds")

    events = secured.connection()
    events.request("GET", f"/api/v1/events?resume_token={token}&max_events=1")
    answer = events.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "acme/team/refunds" in answer.read().decode()

    mcp = secured.connection()
    ask = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        },
    }
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    mcp.request("POST", "/mcp", json.dumps(ask), headers)
    answer = mcp.getresponse()
    assert answer.status == 200
    assert '"repertoire"' in answer.read().decode()

    listed = secured.command("list", "--source", "acme", "--json")
    assert [skill["id"] for skill in json.loads(listed.stdout)["skills"]] == ["acme/team/refunds"], listed.stderr
    bridge = secured.command("mcp", input=json.dumps(ask) + "\n")
    assert json.loads(bridge.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "repertoire", bridge.stderr
