"""Spans, metrics and logs go through the OpenTelemetry Collector, and are what they are to be behind it."""

import json
import queue
from concurrent import futures

import grpc
import harness
import pytest
from conftest import need
from harness import skill_md
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2
from repertoire.v1 import lookup_pb2, registry_pb2

# Behind a collector that takes minutes to build. `tests/services/otlp.rs` has one of its own.
pytestmark = pytest.mark.nightly
SECONDS = 30
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SECRET = "xyzzy-plugh-secret"


class Receiver:
    """Keeps what is exported to it, of one signal."""

    def __init__(self, exports, response):
        self.exports, self.response = exports, response

    def Export(self, request, context):
        self.exports.put(request)
        return self.response()


class Backend:
    """Keeps what is exported to it."""

    def __init__(self):
        self.exports = queue.Queue()
        self.server = grpc.server(futures.ThreadPoolExecutor(3))
        traces = Receiver(self.exports, trace_service_pb2.ExportTraceServiceResponse)
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(traces, self.server)
        metrics = Receiver(self.exports, metrics_service_pb2.ExportMetricsServiceResponse)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(metrics, self.server)
        logs = Receiver(self.exports, logs_service_pb2.ExportLogsServiceResponse)
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server(logs, self.server)
        self.url = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def received(self):
        return [self.exports.get_nowait() for _ in range(self.exports.qsize())]


class Collector(harness.Program):
    """The OpenTelemetry Collector, which passes on what it takes."""

    def __init__(self, backend):
        pipeline = {"receivers": ["otlp"], "exporters": ["otlp_grpc"]}
        config = {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
            "exporters": {"otlp_grpc": {"endpoint": backend.url, "tls": {"insecure": True}}},
            "service": {
                "pipelines": dict.fromkeys(("traces", "metrics", "logs"), pipeline),
                "telemetry": {"metrics": {"level": "none"}, "logs": {"encoding": "json"}},
            },
        }
        super().__init__(harness.OTELCOL, "--config", "yaml:" + json.dumps(config))

    def ready(self):
        """Waits for the line that names its address."""
        while line := self.log.next(harness.START_SECONDS):
            if (told := json.loads(line)).get("msg") == "Starting GRPC server":
                self.address = told["endpoint"]
                return self
        self.kill()
        raise AssertionError(f"the collector does not listen: {self.log.text()}")


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """What came out of the collector after some calls, once the server and the collector had stopped."""
    need(harness.OTELCOL, "the OpenTelemetry Collector")
    backend = Backend()
    collector = Collector(backend).ready()
    endpoint = f"http://{collector.address}"
    server = harness.Server(tmp_path_factory.mktemp("traced") / "data", "--otlp-endpoint", endpoint).ready()
    try:
        lookup, registry = server.lookup(), server.registry()
        file = registry_pb2.File(path="SKILL.md", content=skill_md("traced", f"{SECRET}\n"))
        request = registry_pb2.PublishSkillRequest(skill_id="github/acme/traced", files=[file])
        registry.PublishSkill(request, timeout=SECONDS)
        list(registry.ExportSkill(registry_pb2.ExportSkillRequest(skill_id="traced"), timeout=SECONDS))
        lookup.ReadSkill(lookup_pb2.ReadSkillRequest(uri="skill://traced"), timeout=SECONDS)
        headers = [("traceparent", f"00-{TRACE}-{PARENT}-01")]
        lookup.GetSkill(lookup_pb2.GetSkillRequest(skill_id="traced"), timeout=SECONDS, metadata=headers)
        with pytest.raises(grpc.RpcError):
            lookup.ReadSkill(lookup_pb2.ReadSkillRequest(uri="skill://no-such"), timeout=SECONDS)
    finally:
        codes = server.stop(), collector.stop()
        backend.server.stop(0).wait(SECONDS)
    assert codes == (0, 0), server.log.text() + collector.log.text()
    return backend.received()


def spans(exports):
    found = {}
    for export in exports:
        for resource in getattr(export, "resource_spans", ()):
            assert ("service.name", "repertoire") in attributes(resource.resource).items()
            for scope in resource.scope_spans:
                for span in scope.spans:
                    found.setdefault(span.name, []).append(span)
    return found


def attributes(of):
    return {a.key: getattr(a.value, a.value.WhichOneof("value") or "string_value") for a in of.attributes}


def test_every_call_is_a_span(exports):
    assert {name: len(of) for name, of in spans(exports).items() if name.startswith("repertoire.")} == {
        "repertoire.v1.Registry/PublishSkill": 1,
        "repertoire.v1.Registry/ExportSkill": 1,
        "repertoire.v1.Lookup/ReadSkill": 2,
        "repertoire.v1.Lookup/GetSkill": 1,
    }


def test_a_span_continues_the_trace_of_its_caller(exports):
    (span,) = spans(exports)["repertoire.v1.Lookup/GetSkill"]
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.kind) == (
        TRACE,
        PARENT,
        trace_pb2.Span.SPAN_KIND_SERVER,
    )
    assert span.end_time_unix_nano >= span.start_time_unix_nano > 0
    told = {key: value for key, value in attributes(span).items() if key.startswith("rpc.")}
    assert {key: str(value) for key, value in told.items()} == {
        "rpc.system": "grpc",
        "rpc.service": "repertoire.v1.Lookup",
        "rpc.method": "GetSkill",
        "rpc.grpc.status_code": "0",
    }


def test_a_call_without_a_trace_begins_one(exports):
    (span,) = spans(exports)["repertoire.v1.Registry/PublishSkill"]
    assert span.parent_span_id == b"" and span.trace_id.hex() != TRACE


def test_the_span_of_a_refused_call_says_so(exports):
    reads = spans(exports)["repertoire.v1.Lookup/ReadSkill"]
    codes = [str(attributes(span).get("rpc.grpc.status_code")) for span in reads]
    assert sorted(codes) == ["0", "5"]


def test_the_status_code_of_a_span_is_a_number(exports):
    # As the OpenTelemetry conventions for gRPC have it; collectors filter on it.
    (span,) = spans(exports)["repertoire.v1.Lookup/GetSkill"]
    assert attributes(span)["rpc.grpc.status_code"] == 0


def test_what_a_server_counts_and_logs_arrives_beside_its_spans(exports):
    metrics = [
        metric.name
        for export in exports
        for resource in getattr(export, "resource_metrics", ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert "grpc_server_handled_total" in metrics
    records = {
        record.body.string_value: record.trace_id
        for export in exports
        for resource in getattr(export, "resource_logs", ())
        for scope in resource.scope_logs
        for record in scope.log_records
    }
    (published,) = spans(exports)["repertoire.v1.Registry/PublishSkill"]
    assert records["published a version"] == published.trace_id


def test_nothing_that_is_sent_holds_what_is_in_a_file(exports):
    assert exports and not any(SECRET.encode() in export.SerializeToString() for export in exports)


def test_a_collector_that_is_away_holds_nothing_up(start):
    server = start("--otlp-endpoint", "http://127.0.0.1:1").ready()
    answer = server.lookup().GetSkill(lookup_pb2.GetSkillRequest(skill_id="write_sql"), timeout=SECONDS)
    assert answer.skill.slug == "write_sql"
    assert server.stop() == 0
