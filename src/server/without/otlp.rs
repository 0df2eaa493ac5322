//! No spans to a collector: this build leaves them out.

use http::HeaderMap;
use tracing::Span;
use tracing_subscriber::layer::Identity;

use super::Feature;

/// Sends spans: there is none.
#[derive(Debug)]
pub(super) enum Exporter {}

impl Exporter {
    pub(super) fn new(_endpoint: &str) -> Result<Self, String> {
        Err(Feature::Otlp.missing().message)
    }

    pub(super) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(super) fn stop(self) {
        match self {}
    }
}

pub(super) fn set_parent(_span: &Span, _headers: &HeaderMap) {}
