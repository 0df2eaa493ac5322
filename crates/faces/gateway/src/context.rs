//! What comes with a call beside its message.

use http::{Extensions, HeaderMap, HeaderValue};
use tonic::metadata::MetadataMap;

use access::Access;
use admission::Peer;

/// What a call says in its metadata where a model reads the answer: it is not told unasked
/// of skills whose authors leave them to people.
pub const FOR_MODEL: &str = "for-model";

/// What a call says in its metadata where the caller need not be told which session of
/// loaded skills it is in, since its connection remembers.
pub const SESSION_REMEMBERED: &str = "session-remembered";

/// What an answer that was found in the index says in its metadata: the state of the index,
/// `LOG-POSITION`. It changes with every publish, and with a restore of an older backup.
pub const INDEX_VERSION: &str = "index-version";

/// Headers of a caller that go on to the services: the deadline, the trace, the
/// name of the call.
const PASSED_ON: [&str; 4] = ["grpc-timeout", "traceparent", "tracestate", REQUEST_ID];
const REQUEST_ID: &str = "x-request-id";

/// What comes with a call.
#[derive(Debug, Clone, Default)]
pub struct Context {
    headers: HeaderMap,
    /// Whose call it is: the services hold it against that peer's share.
    peer: Option<Peer>,
    /// What the caller may do.
    access: Option<Access>,
}

impl Context {
    /// What a caller's HTTP request says that concerns a call.
    #[must_use]
    pub fn of(request: &http::request::Parts) -> Self {
        let mut headers = HeaderMap::new();
        for name in PASSED_ON {
            let value = request.headers.get(name);
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

    /// Puts who calls beside a request.
    pub(crate) fn mark(&self, extensions: &mut Extensions) {
        if let Some(peer) = &self.peer {
            extensions.insert(peer.clone());
        }
        if let Some(access) = &self.access {
            extensions.insert(access.clone());
        }
    }

    /// The same for an answer that a model reads.
    #[must_use]
    pub fn for_model(mut self) -> Self {
        let yes = HeaderValue::from_static("1");
        self.headers.insert(FOR_MODEL, yes);
        self
    }

    /// The same for a caller whose session of loaded skills is remembered.
    #[must_use]
    pub fn remembering(mut self) -> Self {
        let yes = HeaderValue::from_static("1");
        self.headers.insert(SESSION_REMEMBERED, yes);
        self
    }

    /// Name of the call: the caller's, else a new one, which goes with the call.
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
