//! Where MCP is served: `/mcp` with all tools, `/mcp/<toolset>` with some.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::{Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::guard::WebConfig;
use crate::http::{Bodies, refused};
use crate::mcp::{Aside, Face, Handler, Kind, Service, Sessions, check, http_service};
use crate::model::{Code, Failure};

/// All endpoints. Cheap to clone.
#[derive(Clone)]
pub(super) struct Endpoints(Arc<Inner>);

struct Inner {
    /// By path.
    endpoints: HashMap<String, Arc<Endpoint>>,
    /// Names of the sets.
    names: Vec<String>,
    entrance: Arc<Entrance>,
    web: Arc<WebConfig>,
}

/// One set of tools.
struct Endpoint {
    service: Service<Handler>,
    entrance: Arc<Entrance>,
}

/// What a message passes before a handler sees it.
struct Entrance {
    sessions: Arc<Sessions>,
    bodies: Bodies,
}

/// A request with a message that a handler may see.
struct Admitted {
    request: Request<Full<bytes::Bytes>>,
    kind: Kind,
    /// For as long as the message is in work.
    _room: OwnedSemaphorePermit,
}

impl Endpoints {
    /// The endpoints of a face. `most` sessions at once; requests of the stateless
    /// era need none.
    pub(super) fn new(
        face: &Face,
        most: usize,
        bodies: Bodies,
        web: Arc<WebConfig>,
        stop: &CancellationToken,
    ) -> Self {
        let sessions = Arc::new(Sessions::new(most));
        let entrance = Arc::new(Entrance { sessions, bodies });
        let names: Vec<_> = face.gateway().contract().toolsets().into_keys().collect();
        let sets = names.iter().map(|name| Some(name.as_str()));
        let sets = std::iter::once(None).chain(sets);
        let endpoints = sets.filter_map(|set| {
            let sessions = Arc::clone(&entrance.sessions);
            let service = http_service(face.handlers(set)?, sessions, stop.clone());
            let entrance = Arc::clone(&entrance);
            let path = set.map_or_else(|| "/mcp".to_owned(), |set| format!("/mcp/{set}"));
            Some((path, Arc::new(Endpoint { service, entrance })))
        });
        Self(Arc::new(Inner {
            endpoints: endpoints.collect(),
            names,
            entrance,
            web,
        }))
    }

    /// The endpoints for who comes through the layers that browsers need.
    pub(super) fn routes(&self) -> Router {
        let mut routes = Router::new();
        for (path, endpoint) in &self.0.endpoints {
            let endpoint = Arc::clone(endpoint);
            let answer = move |request| Arc::clone(&endpoint).answer(request);
            routes = routes.route(path, any(answer));
        }
        let inner = Arc::clone(&self.0);
        let unknown = move |request| Arc::clone(&inner).unknown(request);
        routes.route("/mcp/{*other}", any(unknown))
    }

    /// The answer to a message that no page sends, which needs no such layers.
    /// None: it is something else.
    pub(super) fn direct(
        &self,
        request: &Request,
    ) -> Option<impl FnOnce(Request) -> Answering + use<>> {
        let page = request.headers().contains_key(header::ORIGIN);
        if page || request.method() != Method::POST {
            return None;
        }
        let endpoint = self.0.endpoints.get(request.uri().path())?;
        let (endpoint, web) = (Arc::clone(endpoint), Arc::clone(&self.0.web));
        Some(move |request: Request| -> Answering {
            Box::pin(async move {
                match web.check(request.uri(), request.headers()) {
                    Ok(()) => endpoint.answer(request).await,
                    Err(failure) => refused(failure),
                }
            })
        })
    }
}

pub(super) type Answering = std::pin::Pin<Box<dyn Future<Output = Response> + Send>>;

impl Inner {
    async fn unknown(self: Arc<Self>, request: Request) -> Response {
        let asked = request.uri().path().to_owned();
        if request.method() == Method::POST
            && let Err(refusal) = self.entrance.admit(request).await
        {
            return refusal;
        }
        let names = self.names.join(", ");
        refused(
            Failure::new(
                Code::RouteNotFound,
                format!("There is no MCP endpoint {asked}"),
            )
            .suggest(format!("Use /mcp, or /mcp/TOOLSET with one of {names}")),
        )
    }
}

impl Endpoint {
    async fn answer(self: Arc<Self>, request: Request) -> Response {
        if request.method() != Method::POST {
            return self.service.handle(request).await.map(Body::new);
        }
        let admitted = match self.entrance.admit(request).await {
            Ok(admitted) => admitted,
            Err(refusal) => return refusal,
        };
        let Admitted {
            mut request,
            kind,
            _room,
        } = admitted;
        if kind != Kind::Newest {
            return self.service.handle(request).await.map(Body::new);
        }
        let aside = Aside::default();
        request.extensions_mut().insert(aside.clone());
        let answer = self.service.handle(request).await;
        if !aside.is_left() {
            return answer.map(Body::new);
        }
        let (head, body) = answer.into_parts();
        let Ok(body) = body.collect().await;
        match aside.complete(body.to_bytes()) {
            Ok(body) => Response::from_parts(head, Body::from(body)),
            Err(error) => refused(Failure::fault(error.to_string())),
        }
    }
}

impl Entrance {
    /// Refuses what no handler should see: a session for which there is no place,
    /// and a text that is no message, or has a key twice.
    async fn admit(&self, request: Request) -> Result<Admitted, Response> {
        let (parts, body) = request.into_parts();
        let (body, room) = self.bodies.take(body).await.map_err(refused)?;
        let kind = check(&body).map_err(|answer| {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (StatusCode::BAD_REQUEST, json, answer).into_response()
        })?;
        if kind == Kind::Initialize && self.sessions.is_full().await {
            let mut full = Failure::new(
                Code::Overloaded,
                "The server has as many MCP sessions as it takes on at once",
            )
            .suggest(
                "Try again in a minute, or use protocol version 2026-07-28, which needs no session",
            );
            full.retry_after = Some(Duration::from_secs(60));
            return Err(refused(full));
        }
        Ok(Admitted {
            request: Request::from_parts(parts, Full::new(body)),
            kind,
            _room: room,
        })
    }
}
