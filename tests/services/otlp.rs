//! Spans, metrics and records of the log, at a collector: the real binary, and the services of
//! OpenTelemetry's own contract.

#![cfg(feature = "otlp")]

mod collector;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use contract::v1::GetSkillRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};
use tonic::Request;

use collector::{Collector, Export, said, text};
use model::{Clock as _, SystemClock};

use crate::support::web::get;
use crate::support::{Server, skill};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// What a test of something that needs no time may take.
const LIMIT: Duration = Duration::from_secs(30);

fn config(collector: &Collector, more: &str) -> String {
    format!("otlp_endpoint: {}\n{more}", collector.url)
}

/// Publishes a skill, within the trace of a caller.
async fn publish(server: &Server, id: &str) {
    let mut request = Request::new(skill(id, "", "x"));
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let parent = parent.parse().expect("a header");
    request.metadata_mut().insert("traceparent", parent);
    let mut registry = server.registry().await;
    registry.publish_skill(request).await.expect("published");
}

fn hex(id: &[u8]) -> String {
    id.iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The lines of a page of metrics: a series, its labels in order, and its value.
fn series(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let labels = labels.trim_end_matches('}');
            let labels = labels
                .split_inclusive("\",")
                .map(|it| it.trim_end_matches(','));
            let value = value.parse().expect("a number");
            (named(name, labels.map(str::to_owned).collect()), value)
        })
        .collect()
}

fn named(name: &str, mut labels: Vec<String>) -> String {
    labels.sort();
    format!("{name}{{{}}}", labels.join(","))
}

/// The types of the families of a page that have a series.
fn types(page: &str) -> BTreeMap<String, String> {
    let mut types = BTreeMap::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a type");
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let is_there = |line: &str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ', '_']))
        };
        if page.lines().any(is_there) {
            types.insert(format!("{name}{suffix}"), kind.to_owned());
        }
    }
    types
}

/// A whole number, as a page is read here.
fn number_of(whole: impl std::fmt::Display) -> f64 {
    whole.to_string().parse().expect("a number")
}

/// What was sent, as a page would have it.
fn series_sent(metrics: &[Metric]) -> BTreeMap<String, f64> {
    let labels = |attributes: &[KeyValue]| -> Vec<String> {
        let label = |it: &KeyValue| format!("{}=\"{}\"", it.key, said(it.value.as_ref()));
        attributes.iter().map(label).collect()
    };
    let mut series = BTreeMap::new();
    for metric in metrics {
        let name = &metric.name;
        let mut number = |point: &NumberDataPoint| {
            let value = match point.value {
                Some(Value::AsInt(value)) => number_of(value),
                Some(Value::AsDouble(value)) => value,
                None => panic!("{name} has no value"),
            };
            series.insert(named(name, labels(&point.attributes)), value);
        };
        match metric.data.as_ref().expect("data") {
            Data::Gauge(gauge) => gauge.data_points.iter().for_each(&mut number),
            Data::Sum(sum) => sum.data_points.iter().for_each(&mut number),
            Data::Histogram(histogram) => {
                for point in &histogram.data_points {
                    let labels = labels(&point.attributes);
                    let mut insert = |name: String, labels: Vec<String>, value: f64| {
                        series.insert(named(&name, labels), value);
                    };
                    insert(
                        format!("{name}_sum"),
                        labels.clone(),
                        point.sum.expect("a sum"),
                    );
                    insert(
                        format!("{name}_count"),
                        labels.clone(),
                        number_of(point.count),
                    );
                    let bounds = point.explicit_bounds.iter().map(|it| format!("{it:?}"));
                    let bounds = bounds.chain(["+Inf".to_owned()]);
                    let mut below = 0;
                    for (bound, count) in bounds.zip(&point.bucket_counts) {
                        below += count;
                        let mut labels = labels.clone();
                        labels.push(format!("le=\"{bound}\""));
                        insert(format!("{name}_bucket"), labels, number_of(below));
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
    series
}

fn types_sent(metrics: &[Metric]) -> BTreeMap<String, String> {
    let kind = |metric: &Metric| match metric.data.as_ref().expect("data") {
        Data::Gauge(_) => "gauge",
        Data::Sum(sum) if sum.is_monotonic => "counter",
        Data::Sum(_) => "info",
        Data::Histogram(_) => "histogram",
        other => panic!("{other:?}"),
    };
    let metrics = metrics.iter();
    metrics
        .map(|metric| (metric.name.clone(), kind(metric).to_owned()))
        .collect()
}

/// When metrics were read, in nanoseconds since 1970.
fn read_at(metrics: &[Metric]) -> i128 {
    let skills = metrics.iter().find(|it| it.name == "repertoire_skills");
    let Some(Data::Gauge(gauge)) = skills.and_then(|it| it.data.as_ref()) else {
        panic!("{metrics:?}")
    };
    gauge.data_points[0].time_unix_nano.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_a_collector_are_those_of_the_page_at_the_same_time() {
    let mut collector = Collector::start().await;
    let more = "otlp_signals: [metrics]\notlp_interval_seconds: 1\n";
    let server = Server::with(&[], &config(&collector, more));
    publish(&server, "github/acme/one").await;
    publish(&server, "github/acme/two").await;
    get(&server.url, "/api/v1/skills/no-such-skill").await;
    let before = get(&server.url, "/metrics").await.text();
    let since = SystemClock.now().as_nanosecond();
    let sent = loop {
        if let Export::Metrics(metrics) = collector.next().await
            && read_at(&metrics) > since
        {
            break metrics;
        }
    };
    let after = get(&server.url, "/metrics").await.text();
    assert_eq!(types_sent(&sent), types(&before));

    // What has not changed meanwhile was the same when it was sent.
    let (before, after, sent) = (series(&before), series(&after), series_sent(&sent));
    let names = |series: &BTreeMap<String, f64>| series.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&sent), names(&before));
    // And whoever reads the page is there while it is read.
    let ours = ["repertoire_peers{", "repertoire_connections{", "process_"];
    let same: Vec<_> = before
        .iter()
        .filter(|(name, value)| after.get(*name) == Some(value))
        .filter(|(name, _)| !ours.iter().any(|it| name.starts_with(it)))
        .collect();
    for (name, value) in &same {
        assert_eq!(sent.get(*name), Some(*value), "{name}");
    }
    let published = "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"PublishSkill\",grpc_service=\"repertoire.v1.Registry\",grpc_type=\"unary\"}";
    let count = "grpc_server_handling_seconds_count{grpc_method=\"PublishSkill\",grpc_service=\"repertoire.v1.Registry\",grpc_type=\"unary\"}";
    for (name, value) in [(published, 2.0), (count, 2.0)] {
        assert!(same.contains(&(&name.to_owned(), &value)), "{sent:#?}");
    }
    // That is nearly all of it.
    assert!(same.len() * 10 > before.len() * 9, "{same:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_sent_when_the_server_stops() {
    let collector = Collector::start().await;
    let server = Server::with(&["--log", "info"], &config(&collector, ""));
    publish(&server, "github/acme/one").await;
    let (code, took) = server.terminate();
    assert_eq!(code, Some(0));
    assert!(took < LIMIT, "{took:?}");
    let received = collector.received();
    let calls = received.spans.iter().map(|span| span.name.as_str());
    let calls: Vec<_> = calls
        .filter(|name| name.starts_with("repertoire."))
        .collect();
    assert_eq!(calls, ["repertoire.v1.Registry/PublishSkill"]);
    let published = "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"PublishSkill\",grpc_service=\"repertoire.v1.Registry\",grpc_type=\"unary\"}";
    let sent = series_sent(&received.metrics);
    assert_eq!(sent.get(published), Some(&1.0), "{sent:#?}");
    let records = received.records.iter();
    let last = records.filter(|(_, record)| said(record.body.as_ref()) == "stopped");
    assert_eq!(last.count(), 1, "{:#?}", received.records);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_the_log_has_the_span_of_the_call_that_made_it() {
    let collector = Collector::start().await;
    let server = Server::with(&["--log", "info"], &config(&collector, ""));
    publish(&server, "github/acme/one").await;
    server.terminate();
    let received = collector.received();
    let call = received.spans.iter();
    let call = call.filter(|it| it.name == "repertoire.v1.Registry/PublishSkill");
    let [call] = call.collect::<Vec<_>>()[..] else {
        panic!("{:#?}", received.spans)
    };
    assert_eq!(
        (hex(&call.trace_id), hex(&call.parent_span_id)),
        (TRACE.to_owned(), PARENT.to_owned())
    );
    let record = |body: &str| {
        let mut records = received.records.iter();
        let found = records.find(|(_, record)| said(record.body.as_ref()) == body);
        found.unwrap_or_else(|| panic!("{:#?}", received.records))
    };
    let (target, published) = record("published a version");
    assert_eq!(
        (target.as_str(), published.severity_text.as_str()),
        ("repertoire_registry::outcome", "INFO")
    );
    let skill = text(&published.attributes, "skill");
    assert_eq!(skill.as_deref(), Some("github/acme/one"));
    assert_eq!(hex(&published.trace_id), TRACE);
    // In the call's own span, or in one of the work that it waits for.
    let spans = received.spans.iter();
    let span = spans.clone().find(|it| it.span_id == published.span_id);
    let span = span.expect("the span of the record");
    assert_eq!(span.trace_id, call.trace_id);
    assert_eq!(span.span_id, call.span_id);
    let (_, serving) = record("serving");
    assert_eq!((serving.trace_id.len(), serving.span_id.len()), (0, 0));
}

/// Whose records may say what is sent: see `SENDERS` in `telemetry`.
const SENDERS: [&str; 6] = [
    "h2",
    "hyper",
    "opentelemetry",
    "repertoire_telemetry",
    "tonic",
    "tower",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_records_that_are_sent_are_those_of_the_log_but_of_what_sends_them() {
    let collector = Collector::start().await;
    let server = Server::with(&["--log", "debug"], &config(&collector, ""));
    publish(&server, "github/acme/one").await;
    get(&server.url, "/api/v1/skills/no-such-skill").await;
    let log = server.terminate_logged();
    let sent: Vec<_> = collector.received().records;
    for (target, record) in &sent {
        assert!(
            !SENDERS.iter().any(|it| target.starts_with(it)),
            "{target}: {record:?}"
        );
        let body = said(record.body.as_ref());
        // What came through the library `log` says who logged it beside it.
        let logged_by = text(&record.attributes, "log.target").map(|_| "");
        let line = format!("{}: {body}", logged_by.unwrap_or(target));
        let level = &record.severity_text;
        let is_logged = |it: &str| it.contains(&line) && it.contains(level.as_str());
        assert!(
            body.contains('\n') || log.lines().any(is_logged),
            "{line}\n{log}"
        );
    }
    // Its own connections are told of at this level, so there was something to leave out.
    assert!(log.contains(" h2::") || log.contains(" hyper"), "{log}");
    let own = log.lines().filter(|line| line.contains(" repertoire"));
    let own = own.filter(|line| !line.contains(" repertoire_telemetry"));
    let sent = sent
        .iter()
        .filter(|(target, _)| target.starts_with("repertoire"));
    assert_eq!(sent.count(), own.count(), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_is_not_named_is_not_sent() {
    let collector = Collector::start().await;
    let more = "otlp_signals: [logs]\n";
    let server = Server::with(&["--log", "info"], &config(&collector, more));
    publish(&server, "github/acme/one").await;
    server.terminate();
    let received = collector.received();
    assert!(
        received.spans.is_empty() && received.metrics.is_empty(),
        "{received:#?}"
    );
    assert!(!received.records.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_of_traces_alone_is_told_of_once_and_gets_its_traces() {
    let mut collector = Collector::of_spans().await;
    let more = "otlp_interval_seconds: 1\naccess_log: all\n";
    let server = Server::with(&["--log", "info"], &config(&collector, more));
    let (mut spans, mut metrics, mut records) = (0, 0, 0);
    while spans < 2 || metrics < 3 || records < 3 {
        publish(&server, "github/acme/one").await;
        match collector.next().await {
            Export::Spans(_) => spans += 1,
            Export::Metrics(_) => metrics += 1,
            Export::Records(_) => records += 1,
        }
    }
    let log = server.log();
    let told = |signal: &str| {
        let line = format!(
            "repertoire_telemetry::otlp::reporting_exporter: the collector of otlp_endpoint takes none of these; they are lost until it does signal={signal}"
        );
        log.lines()
            .filter(|it| it.contains(&line) && it.contains("Unimplemented"))
            .count()
    };
    assert_eq!(["traces", "metrics", "logs"].map(told), [0, 1, 1], "{log}");
    let of_libraries = log.lines().filter(|line| line.contains(" opentelemetry"));
    assert_eq!(of_libraries.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_delays_no_call_and_a_stop_by_no_more_than_its_bound() {
    // Takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let config = format!("otlp_endpoint: {url}\notlp_interval_seconds: 1\naccess_log: all\n");
    let server = Server::with(&["--log", "info"], &config);
    let mut lookup = server.lookup().await;
    // More records and spans than there is room for.
    let mut slowest = Duration::ZERO;
    for _ in 0..4_000 {
        let began = Instant::now();
        let request = GetSkillRequest {
            skill_id: "write_sql".to_owned(),
            ..Default::default()
        };
        lookup.get_skill(request).await.expect("an answer");
        slowest = slowest.max(began.elapsed());
    }
    let began = Instant::now();
    let log = server.terminate_logged();
    let took = began.elapsed();
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    // Five seconds for the three of them, and not for each.
    assert!(took < Duration::from_secs(9), "{took:?}");
    // What found no room is told of once, and what was lost at the end too.
    for (told, times) in [
        ("BatchSpanProcessor.SpanDroppingStarted", 1),
        ("BatchLogProcessor.LogDroppingStarted", 1),
        ("the remaining telemetry was not sent to the collector", 3),
    ] {
        assert_eq!(log.matches(told).count(), times, "{told}");
    }
}
