"""Stopping, starting again, and two servers over one data directory."""

import http.client
import socket
import threading
import time
from contextlib import closing

import grpc
import pytest
from google.protobuf import json_format
from harness import skill_md, told
from repertoire.v1 import lookup_pb2, registry_pb2

SECONDS = 30


def publish(server, name, body="# Steps\n", **more):
    file = registry_pb2.File(path="SKILL.md", content=skill_md(name, body))
    request = registry_pb2.PublishSkillRequest(skill_id=f"github/acme/{name}", files=[file], **more)
    return server.registry().PublishSkill(request, timeout=SECONDS)


def state(server):
    """All that is visible of the skills."""
    lookup, registry = server.lookup(), server.registry()
    skills = lookup.ListSkills(lookup_pb2.ListSkillsRequest(page_size=1000), timeout=SECONDS).skills
    visible = {}
    for skill in skills:
        get = lookup_pb2.GetSkillRequest(skill_id=skill.id, include_versions=True)
        read = lookup_pb2.ReadSkillRequest(uri=f"skill://{skill.id}")
        metrics = registry_pb2.GetMetricsRequest(skill_id=skill.id)
        visible[skill.id] = (
            json_format.MessageToDict(lookup.GetSkill(get, timeout=SECONDS)),
            json_format.MessageToDict(registry.GetMetrics(metrics, timeout=SECONDS)),
            lookup.ReadSkill(read, timeout=SECONDS).text,
        )
    return visible


def without_metrics(visible):
    return {skill_id: (detail, text) for skill_id, (detail, _, text) in visible.items()}


def test_sigterm_ends_a_watch_with_unavailable_and_the_process_in_time(start):
    server = start().ready()
    watch = server.registry().Watch(registry_pb2.WatchRequest(), timeout=SECONDS)
    next(watch)
    publish(server, "seen")
    seen = next(watch)

    began = time.monotonic()
    server.terminate()
    with pytest.raises(grpc.RpcError) as refusal:
        next(watch)
    code = server.exit_code()
    assert (code, time.monotonic() - began < 5) == (0, True)
    refusal = told(refusal.value)
    assert (refusal["code"], refusal["message"]) == ("UNAVAILABLE", "The server is about to stop")
    assert refusal["ErrorInfo"]["reason"] == "SHUTTING_DOWN"

    # And the token goes on after the restart.
    server = start().ready()
    missed = publish(server, "missed")
    again = server.registry().Watch(registry_pb2.WatchRequest(resume_token=seen.resume_token), timeout=SECONDS)
    assert not next(again).HasField("event")
    event = next(again).event
    assert (event.skill_id, event.digest) == ("github/acme/missed", missed.version.digest)


def test_after_a_restart_everything_is_still_there(start):
    server = start().ready()
    for n in range(5):
        publish(server, f"kept-{n}")
    publish(server, "kept-0", "# Other steps\n", change_summary="Other")
    registry = server.registry()
    yank = registry_pb2.YankVersionRequest(skill_id="github/acme/kept-0", version_number=2, reason="Why not")
    registry.YankVersion(yank, timeout=SECONDS)
    page = lookup_pb2.ListSkillsRequest(source="github", page_size=2)
    first = server.lookup().ListSkills(page, timeout=SECONDS)
    before = state(server)
    assert server.stop() == 0

    server = start().ready()
    after = state(server)
    assert without_metrics(after) == without_metrics(before)
    # The reads of `state` itself were counted, and the counts were kept.
    assert {skill_id: metrics.get("totalReads") for skill_id, (_, metrics, _) in after.items()} == {
        skill_id: "1" for skill_id in before
    }
    page.page_token = first.next_page_token
    second = server.lookup().ListSkills(page, timeout=SECONDS)
    assert [skill.id for skill in second.skills] == ["github/acme/kept-2", "github/acme/kept-3"]


def test_what_was_acknowledged_survives_a_kill(start):
    server = start().ready()
    publish(server, "durable")
    before = without_metrics(state(server))
    server.kill()
    assert without_metrics(state(start().ready())) == before


def test_a_second_server_on_the_same_data_refuses_and_the_first_goes_on(start):
    first = start().ready()
    second = start()
    assert second.exit_code() == 1
    assert f"is in use by process {first.process.pid}" in second.log.text()
    assert str(first.data) in second.log.text()
    assert publish(first, "still-here").skill_id == "github/acme/still-here"
    assert first.stop() == 0


def test_an_address_in_use_is_refused_in_words(start, tmp_path):
    first = start().ready()
    second = start(data=tmp_path / "other", listen=first.address)
    assert second.exit_code() == 1
    assert f"cannot listen on {first.address}" in second.log.text()


def test_callers_that_keep_still_do_not_hold_a_stop_up(start):
    server = start().ready()
    still = threading.Event()
    answers = server.registry().PublishSkills(iter(still.wait, True), timeout=SECONDS)
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), SECONDS) as silent, closing(
        http.client.HTTPConnection(host, int(port), timeout=SECONDS)
    ) as idle:
        silent.sendall(b"POST /repertoire.v1.Lookup/GetSkill HTTP/1.1\r\n")
        idle.request("GET", "/")
        idle.getresponse().read()
        began = time.monotonic()
        server.terminate()
        with pytest.raises(grpc.RpcError) as refusal:
            next(answers)
        assert refusal.value.code() == grpc.StatusCode.UNAVAILABLE
        assert (server.exit_code(), time.monotonic() - began < 5) == (0, True)
    still.set()
