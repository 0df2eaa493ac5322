//! The context of a call: metadata, peer, and rights.

use http::{Extensions, HeaderMap, HeaderValue};
use tonic::metadata::MetadataMap;

use access::Access;
use admission::Peer;

/// The metadata key of a call whose answer a model reads: lists then leave out skills that their
/// authors reserve for people.
pub const FOR_MODEL: &str = "for-model";

/// The metadata key of a call whose connection remembers the session of loaded skills, so that the
/// answer need not name it.
pub const SESSION_REMEMBERED: &str = "session-remembered";

/// The metadata key of an answer that was found in the index: the state of the index,
/// `LOG-POSITION`. It changes with every publish, and with a restore of an older backup.
pub const INDEX_VERSION: &str = "index-version";

/// Headers of a caller that go on to the services: the deadline, the trace, the
/// name of the call.
const PASSED_ON: [&str; 4] = ["grpc-timeout", "traceparent", "tracestate", REQUEST_ID];
const REQUEST_ID: &str = "x-request-id";

/// The context of a call.
#[derive(Debug, Clone, Default)]
pub struct Context {
    headers: HeaderMap,
    /// The peer whose share of the server the call uses.
    peer: Option<Peer>,
    /// The rights of the caller.
    access: Option<Access>,
}

impl Context {
    /// Reads the context of an HTTP request.
    #[must_use]
    pub fn of(request: &http::request::Parts) -> Self {
        let mut headers = HeaderMap::new();
        for name in PASSED_ON {
            let value = request.headers.get(name);
            // A caller must not have the server pass on and log text of any length.
            if let Some(value) = value.filter(|value| value.len() <= 256) {
                headers.insert(name, value.clone());
            }
        }
        Self {
            headers,
            peer: request.extensions.get().cloned(),
            access: request.extensions.get().cloned(),
        }
    }

    /// A request of generated code, with what comes with the call.
    #[must_use]
    pub fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        *request.metadata_mut() = MetadataMap::from_headers(self.headers.clone());
        self.mark(request.extensions_mut());
        request
    }

    /// Puts peer and rights into the extensions of a request.
    pub(crate) fn mark(&self, extensions: &mut Extensions) {
        if let Some(peer) = &self.peer {
            extensions.insert(peer.clone());
        }
        if let Some(access) = &self.access {
            extensions.insert(access.clone());
        }
    }

    /// Returns the same for an answer that a model reads.
    #[must_use]
    pub fn for_model(mut self) -> Self {
        let yes = HeaderValue::from_static("1");
        self.headers.insert(FOR_MODEL, yes);
        self
    }

    /// Returns the same for a caller whose session of loaded skills is remembered.
    #[must_use]
    pub fn remembering(mut self) -> Self {
        let yes = HeaderValue::from_static("1");
        self.headers.insert(SESSION_REMEMBERED, yes);
        self
    }

    /// Returns the id of the call: the caller's, else a new one, which goes with the call.
    pub fn request_id(&mut self) -> String {
        let given = self.headers.get(REQUEST_ID);
        if let Some(id) = given.and_then(|id| id.to_str().ok()) {
            return id.to_owned();
        }
        let id = uuid::Uuid::new_v4().to_string();
        if let Ok(value) = id.parse() {
            self.headers.insert(REQUEST_ID, value);
        }
        id
    }
}
