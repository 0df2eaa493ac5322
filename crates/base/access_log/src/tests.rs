//! The line of a call: whether there is one, and what it says.

use std::convert::Infallible;
use std::fmt;
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

fn call(log: &Arc<AccessLog>, face: &'static str, uri: &str) -> Box<LoggedCall> {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = http::Request::get(uri).header("traceparent", trace);
    let request = request.body(()).expect("a request");
    let peer = [10, 0, 0, 1].into();
    log.begin(face, &request, peer).expect("a call")
}

#[test]
fn a_route_is_a_template_or_what_is_known_and_never_the_text_of_a_caller() {
    let _reader = read_lines();
    let log = Arc::new(AccessLog::new(AccessConfig::default()));
    let answer = |status: u16, code: Option<&str>, route: Option<&str>| {
        let mut answer = http::Response::builder()
            .status(status)
            .body(())
            .expect("it");
        if let Some(code) = code {
            let code = HeaderValue::from_str(code).expect("a code");
            answer.headers_mut().insert("grpc-status", code);
        }
        if let Some(route) = route {
            answer.extensions_mut().insert(RouteName(route.into()));
        }
        answer
    };
    for (face, uri, answer, route, failed) in [
        (
            "grpc",
            "/a.S/M?x=s3cret",
            answer(200, None, None),
            "/a.S/M",
            false,
        ),
        (
            "grpc",
            "/a.S/M",
            answer(200, Some("5"), None),
            "/a.S/M",
            true,
        ),
        ("grpc", "/s3cret", answer(200, Some("12"), None), "-", true),
        ("mcp", "/mcp", answer(200, None, None), "/mcp", false),
        ("mcp", "/mcp/s3cret", answer(404, None, None), "-", true),
        ("http", "/s3cret", answer(404, None, None), "-", true),
        (
            "http",
            "/a/s3cret",
            answer(200, None, Some("/a/{id}")),
            "/a/{id}",
            false,
        ),
        (
            "http",
            "/hooks/s3cret",
            answer(200, None, None),
            "/hooks/*",
            false,
        ),
        (
            "http",
            "/metrics?s3cret",
            answer(200, None, None),
            "/metrics",
            false,
        ),
        ("http", "/s3cret", answer(403, None, None), "-", true),
    ] {
        let mut call = call(&log, face, uri);
        call.answered(&answer, true);
        assert_eq!(
            (call.route().as_str(), call.failed()),
            (route, failed),
            "{uri}"
        );
        assert_eq!(call.trace(), Some("0af7651916cd43dd8448eb211c80319c"));
    }
    let off = Arc::new(AccessLog::new(AccessConfig {
        log: AccessMode::Off,
        sample: 1,
    }));
    let request = http::Request::get("/").body(()).expect("a request");
    assert!(off.begin("http", &request, [10, 0, 0, 1].into()).is_none());
}

/// The lines that were written, but for how long the calls took.
#[derive(Default, Clone)]
struct Lines(Arc<Mutex<Vec<String>>>);

/// One line, as `name=value` with a space between.
struct Line(Vec<String>);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !["message", "ms"].contains(&field.name()) {
            self.0.push(format!("{}={value:?}", field.name()));
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "repertoire::access"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(Vec::new());
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line.0.join(" "));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Reads the lines of a test that looks at none: tracing asks the thread that is the first to
/// write one, on behalf of all, whether anybody reads it.
fn read_lines() -> tracing::subscriber::DefaultGuard {
    tracing::subscriber::set_default(Lines::default())
}

/// What a log of this kind writes of calls.
fn lines(log: AccessMode, sample: u64, calls: impl FnOnce(&Arc<AccessLog>)) -> Vec<String> {
    let lines = Lines::default();
    let log = Arc::new(AccessLog::new(AccessConfig { log, sample }));
    tracing::subscriber::with_default(lines.clone(), || calls(&log));
    let lines = lines.0.lock().expect("no panic");
    lines.clone()
}

fn answer(status: u16, code: Option<&'static str>) -> http::Response<()> {
    let mut answer = http::Response::new(());
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    answer.headers_mut().extend(codes(code));
    answer
}

fn codes(code: Option<&'static str>) -> HeaderMap {
    let name = http::HeaderName::from_static("grpc-status");
    let code = code.map(|code| (name, HeaderValue::from_static(code)));
    code.into_iter().collect()
}

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

fn trailers(code: Option<&'static str>) -> Frame<Bytes> {
    Frame::trailers(codes(code))
}

#[test]
fn a_line_says_what_went_out_and_how_the_call_ended() {
    const TRACE: &str = "peer=10.0.0.1 trace=0af7651916cd43dd8448eb211c80319c";
    let started = |code, frames: Vec<(Option<Frame<Bytes>>, bool)>| {
        let lines = lines(AccessMode::All, 1, |log| {
            let mut call = call(log, "grpc", "/a.S/M");
            call.answered(&answer(200, code), false);
            for (frame, is_end) in frames {
                call.sent(&frame.map(Ok::<_, Infallible>), is_end);
            }
        });
        lines.join("\n")
    };
    let line = |rest: &str| format!("face=grpc method=GET route=/a.S/M status=200 {rest}");
    // Trailers say how a stream ended.
    let (ab, cde) = ((Some(data("ab")), false), (Some(data("cde")), false));
    assert_eq!(
        started(None, vec![ab, cde, (Some(trailers(Some("5"))), false)]),
        line(&format!("code=NotFound bytes=5 {TRACE}"))
    );
    // What the headers said stays true where they say nothing.
    assert_eq!(
        started(Some("13"), vec![(Some(trailers(None)), false)]),
        line(&format!("code=Internal bytes=0 {TRACE}"))
    );
    // An end is one, whatever is asked for after it.
    assert_eq!(
        started(None, vec![(Some(data("ab")), true), (None, false)]),
        line(&format!("bytes=2 {TRACE}"))
    );
    assert_eq!(
        started(None, vec![(Some(data("ab")), false)]),
        line(&format!("bytes=2 {TRACE} left=true"))
    );
    assert_eq!(
        started(Some("17"), vec![(None, true)]),
        line(&format!("code=Unknown bytes=0 {TRACE}"))
    );
}

#[test]
fn failures_have_a_line_and_the_other_calls_a_sample_of_them() {
    // Every fourth call fails.
    let logged = |log, sample| {
        let lines = lines(log, sample, |log| {
            for at in 0_u16..12 {
                let request = http::Request::get("/a").body(()).expect("a request");
                let call = log.begin("http", &request, [10, 0, 0, 1].into());
                let Some(mut call) = call else { continue };
                let status = if at % 4 == 3 { 400 } else { 200 + at };
                call.answered(&answer(status, None), true);
            }
        });
        let status = |line: &String| {
            let (_, rest) = line.split_once("status=").expect("a status");
            rest[..3].to_owned()
        };
        lines.iter().map(status).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(logged(AccessMode::Off, 1), "");
    assert_eq!(logged(AccessMode::Errors, 1), "400 400 400");
    assert_eq!(
        logged(AccessMode::All, 4),
        "200 400 205 400 210 400",
        "one of four that went well"
    );
    let all = "200 201 202 400 204 205 206 400 208 209 210 400";
    assert_eq!(logged(AccessMode::All, 1), all);
    assert_eq!(logged(AccessMode::All, 0), all, "no sample is all of them");
}

#[test]
fn a_page_is_told_by_its_folder_only_where_there_is_one() {
    let _reader = read_lines();
    let log = Arc::new(AccessLog::new(AccessConfig::default()));
    let route = |method: Method, status| {
        let request = http::Request::builder().method(method).uri("/hooks/s3cret");
        let request = request.body(()).expect("a request");
        let call = log.begin("http", &request, [10, 0, 0, 1].into());
        let mut call = call.expect("a call");
        call.answered(&answer(status, None), true);
        call.route()
    };
    for (status, shown) in [
        (200, "/hooks/*"),
        (399, "/hooks/*"),
        (400, "-"),
        (401, "/hooks/*"),
        (404, "-"),
        (500, "-"),
        (503, "/hooks/*"),
    ] {
        assert_eq!(route(Method::POST, status), shown, "{status}");
    }
    assert_eq!(route(Method::OPTIONS, 200), "-", "every path has options");
}

#[test]
fn a_trace_is_an_id_of_32_digits_or_none() {
    let log = Arc::new(AccessLog::new(AccessConfig::default()));
    for (header, trace) in [
        ("00-0af7651916cd43dd8448eb211c80319c-1-01", true),
        ("00-0af7651916cd43dd8448eb211c80319-1-01", false),
        ("00-0af7651916cd43dd8448eb211c80319c0-1-01", false),
        ("00-0af7651916cd43dd8448eb211c80319x-1-01", false),
        ("s3cret", false),
    ] {
        let request = http::Request::get("/").header("traceparent", header);
        let request = request.body(()).expect("a request");
        let call = log.begin("http", &request, [10, 0, 0, 1].into());
        let call = call.expect("a call");
        let expected = trace.then_some("0af7651916cd43dd8448eb211c80319c");
        assert_eq!(call.trace(), expected, "{header}");
    }
}

#[test]
fn answers_are_counted_by_the_class_of_their_status() {
    let log = AccessLog::new(AccessConfig::default());
    for status in [100, 200, 299, 404, 503, 599, 600, 999] {
        log.responded(StatusCode::from_u16(status).expect("a status"));
    }
    let counted: Vec<_> = log.responses().collect();
    let expected = [("1xx", 1), ("2xx", 2), ("3xx", 0), ("4xx", 1), ("5xx", 2)];
    assert_eq!(
        counted,
        expected.map(|(class, count)| (class.to_owned(), count))
    );
}
