//! The access log: a line for a call over the network, when its answer has ended, however it
//! ended. It says which route, never which arguments: no query, no header, no body.
//!
//! A line costs as much as a small call, so by default only failures have one.
//!
//! Not here: serving calls, and where the log goes.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body::Frame;
use serde::Deserialize;

/// Codes of gRPC by number, as gRPC's other servers write them.
pub const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// An extension of an answer: the template of its route.
#[derive(Debug, Clone)]
pub struct RouteName(pub Arc<str>);

/// Selects the calls that have a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessMode {
    /// None.
    Off,
    /// Those that failed.
    #[default]
    Errors,
    /// Those that failed, and the others or a sample of them.
    All,
}

impl AccessMode {
    /// All of them, by their names.
    pub const ALL: [(&str, Self); 3] = [
        ("off", Self::Off),
        ("errors", Self::Errors),
        ("all", Self::All),
    ];
}

/// The calls that have a line, and the sampling of those that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessConfig {
    /// The calls that have a line.
    pub log: AccessMode,
    /// One of this many successful calls has a line.
    pub sample: u64,
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self {
            log: AccessMode::default(),
            sample: 1,
        }
    }
}

/// The access log, and the answers by their status.
#[derive(Debug)]
pub struct AccessLog {
    config: AccessConfig,
    /// Calls that succeeded.
    succeeded: AtomicU64,
    responses: [AtomicU64; 5],
}

/// A call that has a line when it ends, if it is one of those.
#[derive(Debug)]
pub struct LoggedCall {
    log: Arc<AccessLog>,
    face: &'static str,
    method: Method,
    uri: Uri,
    route: Option<RouteName>,
    trace: Option<HeaderValue>,
    peer: IpAddr,
    started: Instant,
    status: Option<StatusCode>,
    code: Option<usize>,
    bytes: u64,
    ended: bool,
}

impl AccessLog {
    /// An empty log.
    #[must_use]
    pub fn new(config: AccessConfig) -> Self {
        Self {
            config,
            succeeded: AtomicU64::new(0),
            responses: Default::default(),
        }
    }

    /// Begins the record of a request; none: no line is wanted, however it ends.
    pub fn begin<B>(
        self: &Arc<Self>,
        face: &'static str,
        request: &http::Request<B>,
        peer: IpAddr,
    ) -> Option<Box<LoggedCall>> {
        (self.config.log != AccessMode::Off).then(|| {
            Box::new(LoggedCall {
                log: Arc::clone(self),
                face,
                method: request.method().clone(),
                uri: request.uri().clone(),
                route: None,
                trace: request.headers().get("traceparent").cloned(),
                peer,
                started: Instant::now(),
                status: None,
                code: None,
                bytes: 0,
                ended: false,
            })
        })
    }

    /// Counts an answer that is not gRPC.
    pub fn responded(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.responses.get(class) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers by the class of their status.
    pub fn responses(&self) -> impl Iterator<Item = (String, u64)> {
        let classes = self.responses.iter().enumerate();
        classes.map(|(at, counter)| (format!("{}xx", at + 1), counter.load(Ordering::Relaxed)))
    }
}

impl LoggedCall {
    /// Notes the head of its answer.
    pub fn answered<B>(&mut self, answer: &http::Response<B>, ended: bool) {
        self.status = Some(answer.status());
        self.route = answer.extensions().get().cloned();
        self.ended = ended;
        self.note(answer.headers());
    }

    /// Notes a frame of the body, or its end.
    pub fn sent<E>(&mut self, frame: &Option<Result<Frame<Bytes>, E>>, is_end: bool) {
        self.ended |= is_end;
        let Some(Ok(frame)) = frame else { return };
        if let Some(data) = frame.data_ref() {
            self.bytes += data.len() as u64;
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.ended = true;
            self.note(trailers);
        }
    }

    fn note(&mut self, headers: &HeaderMap) {
        let code = headers
            .get("grpc-status")
            .and_then(|code| code.to_str().ok());
        // Trailers come last and decide; where they have no status, that of the headers stays.
        self.code = code.and_then(|code| code.parse().ok()).or(self.code);
    }

    fn failed(&self) -> bool {
        let status = self.status.is_some_and(|status| status.as_u16() >= 400);
        status || self.code.is_some_and(|code| code != 0)
    }

    /// The template of its route, or a substitute: for a page its folder, which is no text of
    /// the caller where there is such a page.
    fn route(&self) -> String {
        const UNIMPLEMENTED_CODE: usize = 12;
        let path = self.uri.path();
        let status = self.status.map_or(0, |status| status.as_u16());
        let is_there = match self.face {
            "http" => matches!(status, 200..=399 | 401 | 503) && self.method != Method::OPTIONS,
            _ => !matches!(status, 0 | 404) && self.code != Some(UNIMPLEMENTED_CODE),
        };
        match &self.route {
            Some(RouteName(route)) => route.to_string(),
            // A path that leads nowhere is the caller's own text, and may hold a secret.
            None if !is_there => "-".to_owned(),
            None if self.face != "http" => path.to_owned(),
            None => match path.get(1..).and_then(|path| path.split_once('/')) {
                Some((folder, _)) => format!("/{folder}/*"),
                None => path.to_owned(),
            },
        }
    }

    /// The trace that the caller is in.
    fn trace(&self) -> Option<&str> {
        let id = self.trace.as_ref()?.to_str().ok()?.split('-').nth(1)?;
        // Checked, as the header is the caller's own text.
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some(id)
    }
}

// On drop, so that a call whose client went away has its line as well.
impl Drop for LoggedCall {
    fn drop(&mut self) {
        let AccessConfig { log, sample } = self.log.config;
        if !self.failed() {
            let succeeded = || self.log.succeeded.fetch_add(1, Ordering::Relaxed);
            if log != AccessMode::All || succeeded() % sample.max(1) != 0 {
                return;
            }
        }
        let code = self
            .code
            .map(|code| CODES.get(code).copied().unwrap_or("Unknown"));
        tracing::info!(
            target: "repertoire::access",
            parent: None,
            face = %self.face,
            method = %self.method,
            route = %self.route(),
            status = self.status.map(|status| status.as_u16()),
            code = code.map(tracing::field::display),
            ms = (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e3,
            bytes = self.bytes,
            peer = %self.peer,
            trace = self.trace().map(tracing::field::display),
            left = (!self.ended).then_some(true),
            "call"
        );
    }
}

#[cfg(test)]
mod tests;
