//! What passes the call layer and is no rpc of the contract: health, reflection, and what there
//! is not.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::Span;

use super::answer::{AnswerBody, Guard};
use super::calls::refused;
use admission::{IntakeError, Metered, Peer, Resource};
use contract::status;

/// The service that says whether the server is well, and its rpc that is asked once.
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

/// Health, reflection, and what is no rpc. None of it does work of ours, but streams
/// are streams, and whoever sends does so within limits.
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
        let answer = inner.call(request).await?;
        return Ok(answer.map(|body| AnswerBody::new(body, None, None)));
    };
    // Whether the server is well can always be asked.
    let permit = if request.uri().path() == HEALTH_CHECK {
        Ok(None)
    } else {
        peer.try_take(Resource::Streams, 1).map(Some)
    };
    let permit = match permit {
        Ok(permit) => permit,
        Err(full) => return Ok(refused(full.into()).map(|body| AnswerBody::new(body, None, None))),
    };
    let request = request.map(|body| metered(&peer, body, Some(idle)));
    let guard = Guard {
        _permit: permit,
        deadline: None,
        // Who watches the server's health is told by it that the server stops.
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
