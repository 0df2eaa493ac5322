//! No spans to a collector: this build leaves them out.

use http::HeaderMap;
use tracing::Span;
use tracing_subscriber::layer::Identity;

use model::Failure;

/// Sends spans: there is none.
#[derive(Debug)]
pub(super) enum Exporter {}

impl Exporter {
    pub(super) fn new(_endpoint: &str) -> Result<Self, String> {
        Err(Failure::not_built("otlp").message)
    }

    pub(super) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(super) fn stop(self) {
        match self {}
    }
}

/// No span has a parent elsewhere.
pub fn set_parent(_span: &Span, _headers: &HeaderMap) {}
