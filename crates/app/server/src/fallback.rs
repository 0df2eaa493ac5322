//! Requests in the call layer that are no rpc of the contract: health, reflection, and rpcs
//! that do not exist.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::Span;

use super::answer::{AnswerBody, Guard, refused, unbooked};
use admission::{IntakeError, Metered, Peer, Resource};
use contract::status;

/// The health service, and its unary rpc.
const HEALTH: &str = "/grpc.health.v1.Health/";
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// The body of a request that streams messages.
pub(super) fn metered(peer: &Peer, body: Body, idle: Option<Duration>) -> Body {
    let body = Metered::new(peer, body, idle);
    Body::new(body.map_err(|error| match error {
        IntakeError::Broken(error) => error.into_inner(),
        // tonic finds the status, and ends the stream with it.
        error => status(error).into(),
    }))
}

/// Answers health, reflection, and what is no rpc. None of it does work of ours, but its
/// streams count, and its senders have limits.
pub(super) async fn other<S>(
    mut inner: S,
    request: Request<Body>,
    (idle, stop): (Duration, CancellationToken),
    reader: Option<Peer>,
) -> Result<Response<AnswerBody>, Infallible>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let Some(peer) = reader else {
        return Ok(unbooked(inner.call(request).await?));
    };
    // A full server is not an ill one: an orchestrator that is refused here would restart it.
    let permit = if request.uri().path() == HEALTH_CHECK {
        Ok(None)
    } else {
        peer.try_take(Resource::Streams, 1).map(Some)
    };
    let permit = match permit {
        Ok(permit) => permit,
        Err(full) => return Ok(unbooked(refused(full.into()))),
    };
    let request = request.map(|body| metered(&peer, body, Some(idle)));
    let guard = Guard {
        _permit: permit,
        deadline: None,
        // A watcher of the health hears from the health service itself that the server stops.
        stop: (!request.uri().path().starts_with(HEALTH)).then(|| Box::pin(stop.cancelled_owned())),
        token_end: None,
        span: Span::none(),
        record: None,
        call: None,
        ended: false,
    };
    let answer = inner.call(request).await?;
    Ok(answer.map(|body| AnswerBody::new(body, Some(peer), Some(guard))))
}
