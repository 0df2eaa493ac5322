//! Transports for calls within the process.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt as _};

use access::Access;
use gateway::Transport;

/// Returns the transport of the server's own calls: services without the call layer. They see
/// all skills.
pub(super) fn inside(services: Router) -> Transport {
    transport(services.map_request(|mut request: Request<Body>| {
        request.extensions_mut().insert(Access::local());
        request
    }))
}

/// Makes a transport for generated clients of services.
pub(super) fn transport<S, B>(services: S) -> Transport
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    let services = services
        .map_request(|request: Request<tonic::body::Body>| request.map(Body::new))
        .map_response(|answer: Response<B>| answer.map(tonic::body::Body::new))
        .map_err(|never| match never {});
    BoxCloneSyncService::new(services)
}
