//! The services of the contract, each found by its name in the path.
//!
//! A router of the web between the call layer and the services puts the future of every
//! call, and the body of every answer, into boxes of its own, for paths that are known.
//! So calls of the contract go straight to their service, and only what is none of them
//! (health, reflection, an rpc that there is not) to a router.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use tonic::codec::CompressionEncoding::Gzip;
use tonic::service::Routes;
use tower::Service;

use super::{Domain, MAX_MESSAGE_BYTES};
use crate::contract::v1::composition_server::{self, CompositionServer};
use crate::contract::v1::lookup_server::{self, LookupServer};
use crate::contract::v1::registry_server::{self, RegistryServer};
use crate::contract::v1::tool_host_server::{self, ToolHostServer};
use crate::grpc::{CompositionService, LookupService, RegistryService, ToolHostService};

/// The services as one. Cheap to clone.
#[derive(Clone)]
pub(super) struct Services(Arc<All>);

#[derive(Clone)]
struct All {
    registry: RegistryServer<RegistryService>,
    lookup: LookupServer<LookupService>,
    composition: CompositionServer<CompositionService>,
    host: ToolHostServer<ToolHostService>,
    /// Whatever else is asked for.
    others: Router,
}

impl Services {
    /// The services of a domain, and no others.
    pub(super) fn new(domain: &Domain) -> Self {
        let registry = RegistryServer::new(RegistryService::new(domain.registry.clone()))
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let lookup = LookupServer::new(LookupService::new(
            domain.registry.clone(),
            domain.tools.clone(),
            domain.search.clone(),
            domain.codebases.clone(),
        ));
        let composition = CompositionServer::new(CompositionService::new(
            domain.composition.clone(),
            domain.tools.clone(),
        ));
        let host = ToolHostServer::new(ToolHostService::new(domain.host.clone()))
            .max_decoding_message_size(domain.host.max_message_bytes());
        Self(Arc::new(All {
            registry: registry.accept_compressed(Gzip).send_compressed(Gzip),
            lookup: lookup.accept_compressed(Gzip).send_compressed(Gzip),
            composition: composition.accept_compressed(Gzip).send_compressed(Gzip),
            host: host.accept_compressed(Gzip).send_compressed(Gzip),
            others: Router::new().fallback(super::unknown),
        }))
    }

    /// The same, with what answers all other calls.
    pub(super) fn with_others(&self, others: Router) -> Self {
        let all = All::clone(&self.0);
        Self(Arc::new(All { others, ..all }))
    }

    /// The services as routes, for what other layers are put around.
    pub(super) fn routes(&self) -> Routes {
        let all = &*self.0;
        Routes::new(all.registry.clone())
            .add_service(all.lookup.clone())
            .add_service(all.composition.clone())
            .add_service(all.host.clone())
    }
}

type Boxed<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

/// What becomes an answer.
pub(super) enum Answering {
    /// Of a service.
    Call(Boxed<tonic::body::Body>),
    /// Of whatever else.
    Other(Boxed<Body>),
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Call(call) => {
                let answer = call.as_mut().poll(cx);
                answer.map_ok(|answer| answer.map(Body::new))
            }
            Self::Other(other) => other.as_mut().poll(cx),
        }
    }
}

impl Service<Request<Body>> for Services {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each of them always is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answering {
        let all = &*self.0;
        match service(request.uri().path()) {
            Some(lookup_server::SERVICE_NAME) => Answering::Call(all.lookup.clone().call(request)),
            Some(registry_server::SERVICE_NAME) => {
                Answering::Call(all.registry.clone().call(request))
            }
            Some(composition_server::SERVICE_NAME) => {
                Answering::Call(all.composition.clone().call(request))
            }
            Some(tool_host_server::SERVICE_NAME) => Answering::Call(all.host.clone().call(request)),
            _ => Answering::Other(Box::pin(all.others.clone().call(request))),
        }
    }
}

/// The name of the service in the path of a call: `/SERVICE/METHOD`.
fn service(path: &str) -> Option<&str> {
    let (service, _) = path.strip_prefix('/')?.split_once('/')?;
    Some(service)
}
