//! No learning: this build leaves it out.

#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "it is called as what it stands for"
)]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;

use super::{Feature, LearningConfig, StartError};
use ::tools::host::Host;
use contract::status;
use contract::v1::learning_server;
use model::Clock;
use registry::Registry;
use store::Store;

/// Answers every call of the Learning service with what is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learning;

impl NamedService for Learning {
    const NAME: &'static str = learning_server::SERVICE_NAME;
}

impl tower::Service<Request<Body>> for Learning {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(status(Feature::Learning.missing()).into_http()))
    }
}

pub(super) fn open(
    _store: Store,
    _clock: Arc<dyn Clock>,
    _config: &LearningConfig,
    _host: &Host,
    _registry: &Registry,
) -> Result<Learning, StartError> {
    Ok(Learning)
}

pub(super) fn add(routes: &mut RoutesBuilder, learning: &Learning) {
    routes.add_service(*learning);
}

/// There is no child that runs solutions.
#[must_use]
pub fn child() -> Option<ExitCode> {
    None
}

/// Settings of learning are refused before: see `features`.
pub(super) fn mistakes(_config: &LearningConfig) -> Vec<(String, String)> {
    Vec::new()
}

pub(super) async fn admit_all(_learning: &Learning, _config: &LearningConfig) {}

pub(super) async fn admit(_learning: &Learning, _config: &LearningConfig, _again: bool) -> bool {
    false
}
