//! The protocol router: finds out which protocol a request speaks, and hands it to gRPC, MCP,
//! or the layers for all that browsers send.
//!
//! A native gRPC call goes straight to the call layer: CORS and gRPC-Web are of no
//! use to it and cost a third of the call. So does a message of MCP that names no
//! origin, to its endpoint. Everything else goes through them: gRPC-Web, a browser's
//! preflight, and what is no rpc.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt as _;
use http::{Method, Request, Response, Version, header};
use hyper::body::Incoming;
use tower::Service;

use super::answer::{AnswerBody, log_answer, to_peer, unbooked, until};
use super::calls::CallService;
use super::guard;
use super::mcp::{Answering, Endpoints};
use access::{Access, Action, Limit};
use access_log::AccessLog;
use admission::{Admission, Peer};
use audit::Audit;
use contract::status;
use contract::v1::tool_host_server;
use model::{Failure, Principal};
use origins::WebConfig;
use rest::refused;
use tokens::{PresentedCredential, SignIn};

/// Serves the connections of a peer. Each request has a clone.
#[derive(Clone)]
pub(super) struct ProtocolRouter(Arc<Protocols>);

/// The services by protocol, and what finds out who calls.
#[derive(Clone)]
pub(super) struct Protocols {
    /// For native gRPC.
    pub(super) grpc: CallService<Router>,
    /// For MCP, unless a page asks.
    pub(super) mcp: Endpoints,
    /// For everything else.
    pub(super) web: Router,
    /// The rules for browsers, for requests that are refused before they come to `web`.
    pub(super) pages: Arc<WebConfig>,
    /// The limits on what peers hold at once.
    pub(super) admission: Admission,
    /// The peer by its address.
    pub(super) peer: Peer,
    /// The caller that signed in first over the connection: nearly always the only one.
    pub(super) caller: OnceLock<Peer>,
    /// The address of the client.
    pub(super) address: IpAddr,
    pub(super) access: Arc<AccessLog>,
    /// Recognizes the caller.
    pub(super) sign_in: SignIn,
    pub(super) audit: Audit,
}

impl Protocols {
    /// Returns the peer that has the share: the caller, where it signed in, else the address.
    /// Behind a proxy all that did not sign in are one.
    fn peer_of(&self, caller: Option<&Access>) -> Peer {
        let principal = caller.map(|access| &access.caller.principal);
        let name = match principal.and_then(Principal::owner) {
            None if self.admission.is_by_caller() => Some("anonymous"),
            name => name,
        };
        let Some(name) = name else {
            return self.peer.clone();
        };
        // A look-up takes a lock that all connections share; the first caller's needs none.
        let first = self.caller.get_or_init(|| self.admission.caller(name));
        if first.is_caller(name) {
            return first.clone();
        }
        self.admission.caller(name)
    }

    /// Returns the same for a new connection of a peer.
    pub(super) fn for_peer(&self, peer: Peer, address: IpAddr) -> Self {
        Self {
            peer,
            // Another connection, another caller: a clone of the cell would hold the old one.
            caller: OnceLock::new(),
            address,
            ..self.clone()
        }
    }
}

impl From<Protocols> for ProtocolRouter {
    fn from(protocols: Protocols) -> Self {
        Self(Arc::new(protocols))
    }
}

impl Service<Request<Incoming>> for ProtocolRouter {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each of the services always is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let protocols = &self.0;
        let shown = protocols.sign_in.shown(request.headers());
        match protocols.sign_in.waiting(&shown) {
            None => protocols.answer(request, &shown),
            Some(waiting) => {
                let protocols = Arc::clone(protocols);
                Box::pin(async move {
                    waiting.await;
                    protocols.answer(request, &shown).await
                })
            }
        }
    }
}

impl Protocols {
    /// Answers a request, once the keys that its token needs are there.
    fn answer(
        &self,
        request: Request<Incoming>,
        shown: &PresentedCredential,
    ) -> <ProtocolRouter as Service<Request<Incoming>>>::Future {
        let native = is_grpc(&request);
        let mut request = request.map(Body::new);
        let face = if native { "grpc" } else { face(&request) };
        let (sign_in, headers) = (&self.sign_in, request.headers());
        let origin = sign_in.origin(headers, face, self.address);
        let caller = sign_in.recognize(shown, is_of_worker(&request));
        let caller = caller.map(|caller| {
            // A browser lets any page of this machine call, and a person may only have opened it.
            let is_limited = !caller.signs_in
                && caller.limit.is_none()
                && self.pages.is_of_other_page(request.uri(), headers);
            let caller = if is_limited {
                caller.limited(Limit::OtherPage)
            } else {
                caller
            };
            caller.from(origin)
        });
        // Before the rights are checked: a known caller that is refused has its own share and
        // its own name in the trail, and not those of its address.
        let peer = self.peer_of(caller.as_ref().ok()).for_call();
        let known = caller.as_ref().ok().map(|it| it.caller.principal.clone());
        // A browser's preflight, which never has a token: the layers of the web answer it.
        let asks_first = !native && request.method() == Method::OPTIONS;
        let caller = caller.and_then(|caller| {
            if !asks_first {
                permit(face, request.uri().path(), &caller)?;
            }
            Ok(caller)
        });
        if let Err(failure) = &caller
            && !asks_first
        {
            let known = known.unwrap_or_else(Principal::anonymous);
            self.audit.refused_early(&known, origin, failure.code);
        }
        request.extensions_mut().insert(peer.clone());
        if native {
            let logged = self.access.begin(face, &request, self.address);
            let caller = match caller {
                Ok(caller) => caller,
                Err(failure) => {
                    let answer = unbooked(status(failure).into_http());
                    return Box::pin(async { Ok(log_answer(answer, logged)) });
                }
            };
            request.extensions_mut().insert(caller);
            let answer = self.grpc.clone().call(request);
            // Without a line to write the answer is handed on as it is: one future less a call.
            return match logged {
                None => answer,
                logged => Box::pin(async move { Ok(log_answer(answer.await?, logged)) }),
            };
        }
        let access = Arc::clone(&self.access);
        let logged = access.begin(face, &request, self.address);
        let (resource, asked) = (self.sign_in.resource(), request.uri().clone());
        let mut token_end = None;
        let answer: Answering = match caller {
            Err(failure) => {
                let pages = Arc::clone(&self.pages);
                Box::pin(guard::refuse(pages, request, failure.into()))
            }
            Ok(caller) => {
                // For streams; a single answer is done long before.
                token_end = self.sign_in.ended(&caller);
                request.extensions_mut().insert(caller);
                match self.mcp.direct(&request) {
                    Some(direct) => direct(request),
                    None => Box::pin(self.web.clone().call(request).map(|Ok(answer)| answer)),
                }
            }
        };
        Box::pin(async move {
            let answer = to_peer(answer.await, &peer, refused).await;
            let mut answer = until(answer, token_end);
            // Last, since a 401 may come from any layer: a client finds the issuer by it.
            resource.challenge(asked.path(), answer.headers_mut());
            access.responded(answer.status());
            Ok(log_answer(answer, logged))
        })
    }
}

/// Checks the rights for what is no rpc: the metrics, and MCP for a caller without any right. An
/// MCP client asks its user to sign in where HTTP answers 401, and not where a tool fails.
fn permit(face: &str, path: &str, caller: &Access) -> Result<(), Failure> {
    if !caller.signs_in && caller.limit.is_none() {
        return Ok(());
    }
    match face {
        "mcp" if caller.caller.rights.actions.is_empty() => caller.require(Action::Read),
        "http" if path == "/metrics" && caller.signs_in => caller.require(Action::Operate),
        _ => Ok(()),
    }
}

/// It is for the service of workers, whose tokens are in the config file.
fn is_of_worker<B>(request: &Request<B>) -> bool {
    request.uri().path().split('/').nth(1) == Some(tool_host_server::SERVICE_NAME)
}

/// Returns the face of a request that is not native gRPC, as the access log names it.
fn face<B>(request: &Request<B>) -> &'static str {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    if content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/grpc")) {
        return "grpc-web";
    }
    match request.uri().path().strip_prefix("/mcp") {
        // Not `/mcpx`: that is a path of HTTP.
        Some(rest) if rest.is_empty() || rest.starts_with('/') => "mcp",
        _ => "http",
    }
}

/// gRPC as its own clients speak it: HTTP/2 and `application/grpc`, with the name
/// of a message format or without.
fn is_grpc<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let format = content_type.and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"));
    request.version() == Version::HTTP_2
        && matches!(format.map(<[u8]>::first), Some(None | Some(b'+' | b';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_native_grpc_goes_past_what_browsers_need() {
        let asked = |version, content_type: &str| {
            let request = Request::post("/x")
                .version(version)
                .header("content-type", content_type);
            is_grpc(&request.body(()).expect("a request"))
        };
        for native in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;charset=utf-8",
        ] {
            assert!(asked(Version::HTTP_2, native), "{native}");
            assert!(!asked(Version::HTTP_11, native), "{native}");
        }
        for other in [
            "application/grpc-web",
            "application/grpc-web-text+proto",
            "text/html",
            "",
        ] {
            assert!(!asked(Version::HTTP_2, other), "{other}");
        }
        assert!(!is_grpc(
            &Request::options("/x")
                .version(Version::HTTP_2)
                .body(())
                .expect("a request")
        ));
    }
}
