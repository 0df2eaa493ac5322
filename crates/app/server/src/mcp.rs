//! The MCP endpoints: `/mcp` with all tools, `/mcp/<toolset>` with some.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::{Method, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use tokio_util::sync::CancellationToken;

use super::domain::Domain;
use access::{Access, Action};
use admission::{Peer, Permit, Resource};
use audit::Audit;
use mcp::{Handler, McpServer};
use mcp_transport::{
    Checked, DeferredBody, HttpService, MessageKind, SessionRequest, Sessions, check, http_service,
};
use model::{Code, Failure};
use oidc::{Issuers, StepUp};
use origins::WebConfig;
use rest::{oauth, read_bytes, refused};

/// The largest request for a stream of changes, which is held in memory while that is open.
const MAX_LISTEN_BYTES: usize = 128 * 1024;

/// All endpoints. Cheap to clone.
#[derive(Clone)]
pub(super) struct Endpoints(Arc<Inner>);

struct Inner {
    /// By path.
    endpoints: HashMap<String, Arc<Endpoint>>,
    /// Names of the sets.
    names: Vec<String>,
    web: Arc<WebConfig>,
    issuers: Issuers,
}

/// One set of tools.
struct Endpoint {
    service: HttpService<Handler>,
    sessions: Arc<Sessions>,
    sign_in: Arc<SignInCheck>,
}

/// Asks a caller to sign in, or to sign in for more rights, before a message is handled: an MCP
/// client acts on a 401 or 403, and not on a tool's error.
struct SignInCheck {
    step_up: StepUp,
    audit: Audit,
}

impl SignInCheck {
    fn check(&self, access: &Access, tool: &str) -> Result<(), Failure> {
        self.step_up.check(access, tool).inspect_err(|failure| {
            // It does not reach the call layer, which records the other refusals.
            let (caller, origin) = (&access.caller.principal, access.origin);
            self.audit.refused_early(caller, origin, failure.code);
        })
    }
}

/// A request with a message that a handler may see.
struct CheckedRequest {
    request: Request<Full<bytes::Bytes>>,
    kind: MessageKind,
    /// For as long as the message is in work.
    _memory: Option<Permit>,
}

impl Endpoints {
    /// Makes the endpoints of a face. A session ends when its client has sent nothing for
    /// `idle`; requests of the stateless protocol need none.
    pub(super) fn new(
        face: &McpServer,
        domain: &Domain,
        (idle, web): (Duration, Arc<WebConfig>),
        stop: &CancellationToken,
    ) -> Self {
        let issuers = domain.sign_in.issuers();
        let actions: HashMap<_, _> = contract::actions().collect();
        let methods = face.gateway().contract().methods().iter();
        let needs = methods.flat_map(|method| {
            // As in `rpc`: one without an action is for administrators alone.
            let action = actions.get(method.path()).copied();
            let action = action.unwrap_or(Some(Action::Administer));
            let names = method.tool_names();
            names.map(move |name| (name.to_owned(), action))
        });
        let sign_in = Arc::new(SignInCheck {
            step_up: StepUp::new(issuers.clone(), needs),
            audit: domain.audit.clone(),
        });
        // One table for all endpoints: the one idle for longest of all makes room.
        let sessions = Arc::new(Sessions::new(idle));
        tokio::spawn(Arc::clone(&sessions).sweep(stop.clone()));
        let names: Vec<_> = face.gateway().contract().toolsets().into_keys().collect();
        let sets = names.iter().map(|name| Some(name.as_str()));
        let sets = std::iter::once(None).chain(sets);
        let endpoints = sets.filter_map(|set| {
            let sessions = Arc::clone(&sessions);
            let service = http_service(face.handlers(set)?, Arc::clone(&sessions), stop.clone());
            let path = set.map_or_else(|| "/mcp".to_owned(), |set| format!("/mcp/{set}"));
            let endpoint = Endpoint {
                service,
                sessions,
                sign_in: Arc::clone(&sign_in),
            };
            Some((path, Arc::new(endpoint)))
        });
        Self(Arc::new(Inner {
            endpoints: endpoints.collect(),
            names,
            web,
            issuers,
        }))
    }

    /// The endpoints as routes, for requests that come through the layers for browsers.
    pub(super) fn routes(&self) -> Router {
        let mut routes = oauth(&self.0.issuers);
        for (path, endpoint) in &self.0.endpoints {
            let endpoint = Arc::clone(endpoint);
            let answer = move |request| Arc::clone(&endpoint).answer(request);
            routes = routes.route(path, any(answer));
        }
        let inner = Arc::clone(&self.0);
        let unknown = move |request| Arc::clone(&inner).unknown(request);
        routes.route("/mcp/{*other}", any(unknown))
    }

    /// Returns what answers a message that is not from a page, without the layers for browsers.
    /// None: it is something else.
    pub(super) fn direct(
        &self,
        request: &Request,
    ) -> Option<impl FnOnce(Request) -> Answering + use<>> {
        // A browser names the origin of a page with each POST; other clients have no reason to.
        let page = request.headers().contains_key(header::ORIGIN);
        if page || request.method() != Method::POST {
            return None;
        }
        let endpoint = self.0.endpoints.get(request.uri().path())?;
        let (endpoint, web) = (Arc::clone(endpoint), Arc::clone(&self.0.web));
        Some(move |request: Request| -> Answering {
            Box::pin(async move {
                // `Host` has to be right all the same: DNS rebinding.
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
            && let Err(refusal) = admit(request, None).await
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
        let peer = Peer::of(request.extensions());
        match *request.method() {
            Method::POST => {}
            // A stream of changes, for as long as the client likes.
            Method::GET => return self.stream(request, &peer).await,
            Method::DELETE if !self.has_session(&request).await => return no_session(),
            _ => return self.handle(request, None).await.map(Body::new),
        }
        let CheckedRequest {
            mut request,
            kind,
            _memory,
        } = match admit(request, Some(&self.sign_in)).await {
            Ok(admitted) => admitted,
            Err(refusal) => return refusal,
        };
        match kind {
            MessageKind::Newest => {}
            MessageKind::Listen => return self.stream(request, &peer).await,
            MessageKind::Initialize => return self.begin(request, &peer).await,
            MessageKind::Other => return self.handle(request, None).await.map(Body::new),
        }
        let deferred = DeferredBody::default();
        request.extensions_mut().insert(deferred.clone());
        let answer = self.handle(request, None).await;
        if !deferred.is_left() {
            return answer.map(Body::new);
        }
        let (head, body) = answer.into_parts();
        // The library wrote a mark where the text of the tool belongs.
        let Ok(body) = body.collect().await;
        match deferred.complete(body.to_bytes()) {
            Ok(body) => Response::from_parts(head, Body::from(body)),
            Err(error) => refused(Failure::fault(error.to_string())),
        }
    }

    /// Answers with a stream, which holds a permit until it ends.
    async fn stream<B>(&self, request: http::Request<B>, peer: &Peer) -> Response
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let permit = match peer.try_take(Resource::Streams, 1) {
            Ok(permit) => permit,
            Err(full) => return refused(Failure::from(full)),
        };
        let answer = self.handle(request, None).await;
        answer.map(|body| {
            Body::new(body.map_frame(move |frame| {
                // Moves the permit into the body: both are dropped together.
                let _until_its_end = &permit;
                frame
            }))
        })
    }

    /// Begins a session, where there is a permit for it.
    async fn begin(&self, request: http::Request<Full<bytes::Bytes>>, peer: &Peer) -> Response {
        let permit = match self.sessions.admit(peer).await {
            Ok(permit) => permit,
            Err(full) => {
                let whose = match full {
                    admission::Full::All => "The server has the maximum number of MCP sessions",
                    admission::Full::Share => {
                        "This caller has as many MCP sessions as one caller may have"
                    }
                };
                let sentence = format!("{whose}, and all of them have streams open");
                let mut failure = Failure::new(Code::Overloaded, sentence).suggest(
                    "Try again in a minute, or use protocol version 2026-07-28, which needs no \
                     session",
                );
                failure.retry_after = Some(Duration::from_secs(60));
                return refused(failure);
            }
        };
        self.handle(request, Some(permit)).await.map(Body::new)
    }

    /// Hands a request on, with the permit for a session that it begins.
    fn handle<B>(
        &self,
        request: http::Request<B>,
        permit: Option<Permit>,
    ) -> impl Future<Output = http::Response<BoxBody<bytes::Bytes, Infallible>>> + use<'_, B>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let of = session_request(&request, permit);
        Sessions::handle(of, self.service.handle(request))
    }

    /// Whether the session that a request ends is there, for its caller: of one that is not, the
    /// library says that it was ended. A request that names none is left to the library.
    fn has_session<'a>(&'a self, request: &Request) -> impl Future<Output = bool> + use<'a> {
        let id = request.headers().get("mcp-session-id");
        let id = id.map(|id| id.to_str().unwrap_or_default().to_owned());
        let of = session_request(request, None);
        async move {
            let Some(id) = id else { return true };
            Sessions::handle(of, self.sessions.is_there(&id)).await
        }
    }
}

fn session_request<B>(request: &http::Request<B>, permit: Option<Permit>) -> SessionRequest {
    let caller = request.extensions().get::<Access>();
    let owner = caller.and_then(|access| access.caller.principal.owner());
    SessionRequest {
        owner: owner.map(ToOwned::to_owned),
        permit: RefCell::new(permit),
    }
}

/// The answer that the library gives to a message of a session that is not there.
fn no_session() -> Response {
    (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response()
}

/// Refuses what no handler should see: a text that is no message, or has a key twice, and too
/// long a request for a stream, which would be held while that is open.
async fn admit(
    request: Request,
    sign_in: Option<&SignInCheck>,
) -> Result<CheckedRequest, Response> {
    let (parts, body) = request.into_parts();
    let peer = Peer::of(&parts.extensions);
    let (body, memory) = read_bytes(&peer, body).await.map_err(refused)?;
    let Checked { kind, tool } = check(&body).map_err(|answer| {
        let json = [(header::CONTENT_TYPE, "application/json")];
        (StatusCode::BAD_REQUEST, json, answer).into_response()
    })?;
    let access = parts.extensions.get::<Access>();
    if let (Some(sign_in), Some(access), Some(tool)) = (sign_in, access, &tool) {
        sign_in.check(access, tool).map_err(refused)?;
    }
    if kind == MessageKind::Listen && body.len() > MAX_LISTEN_BYTES {
        let kib = MAX_LISTEN_BYTES >> 10;
        let sentence = format!("A request for a stream of changes has {kib} KiB at most");
        let failure = Failure::new(Code::BodyTooLarge, sentence);
        return Err(refused(failure.suggest("Name fewer resources")));
    }
    Ok(CheckedRequest {
        request: Request::from_parts(parts, Full::new(body)),
        kind,
        _memory: memory,
    })
}
