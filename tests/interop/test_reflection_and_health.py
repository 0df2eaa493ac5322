"""What the server says of itself: reflection, in both versions, and health."""

import re

import pytest
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from harness import OFFERED

# What the proto files say; grpcurl sorts by name.
RPCS = {service.name: sorted(method.name for method in service.methods) for service in OFFERED}


def test_reflection_names_exactly_the_services(grpcurl):
    listed = grpcurl.text("list").split()
    # Reflection may name both its versions or one of them.
    assert [name for name in listed if not name.startswith("grpc.reflection.")] == [
        "grpc.health.v1.Health",
        *sorted(service.full_name for service in OFFERED),
    ]


@pytest.mark.parametrize("service", RPCS)
def test_reflection_describes_every_rpc_with_its_comments(grpcurl, service):
    described = grpcurl.text("describe", f"repertoire.v1.{service}")
    assert re.findall(r"^  rpc (\w+) ", described, re.M) == RPCS[service]
    assert f"repertoire.v1.{service} is a service:" in described
    comments = re.findall(r"^  // ", described, re.M)
    assert len(comments) >= len(RPCS[service])
    # A stream in both directions has no route.
    assert ("option (.google.api.http)" in described) == (service != "ToolHost")


def test_a_client_made_of_reflection_alone_can_call(server):
    channel = server.channel()
    pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    method = pool.FindServiceByName("repertoire.v1.Lookup").FindMethodByName("GetSkill")
    request = message_factory.GetMessageClass(method.input_type)(skill_id="write_sql")
    answer = message_factory.GetMessageClass(method.output_type)
    call = channel.unary_unary(
        "/repertoire.v1.Lookup/GetSkill",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString,
    )
    assert call(request, timeout=10).skill.id == "builtin/repertoire/write_sql"


@pytest.mark.parametrize("service", ["", "repertoire.v1.Registry", "repertoire.v1.Lookup"])
def test_a_server_that_runs_is_serving(grpcurl, service):
    assert grpcurl.call("grpc.health.v1.Health/Check", {"service": service}).answer == {"status": "SERVING"}


def test_a_watch_of_health_begins_with_serving(server):
    health = health_pb2_grpc.HealthStub(server.channel())
    watch = health.Watch(health_pb2.HealthCheckRequest(service="repertoire.v1.Lookup"), timeout=10)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()
