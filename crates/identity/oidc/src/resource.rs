//! Metadata of the server for OAuth clients: the issuers whose tokens it accepts (RFC 9728),
//! and the challenge of a refused call (RFC 6750, 3).

use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use access::{Action, Role};
use model::{Code, Failure};

use crate::PublicUrl;

/// The path of a server's metadata.
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The header that a client has to send, as messages write it.
pub const HEADER: &str = "authorization: Bearer TOKEN";
/// The most characters of a challenge.
pub(crate) const MAX_CHALLENGE: usize = 4_096;

/// A server as clients of OAuth see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedResource {
    pub(crate) public_url: Option<PublicUrl>,
    pub(crate) issuers: Vec<String>,
    /// The scopes of a token say what may be done with it.
    pub(crate) has_scopes: bool,
}

impl ProtectedResource {
    /// The metadata of the server, or of its MCP endpoint, by the path that is
    /// asked for.
    ///
    /// # Errors
    /// A client finds no issuer by it; the failure says what it has to send.
    pub fn metadata(&self, path: &str) -> Result<Value, Failure> {
        let part = path
            .strip_prefix(METADATA)
            .map(|part| part.trim_end_matches('/'));
        let is_ours = |part: &&str| matches!(*part, "" | "/mcp") || part.starts_with("/mcp/");
        let (Some(url), Some(part)) = (self.address(), part.filter(is_ours)) else {
            return Err(self.without(path));
        };
        let mut metadata = json!({
            "resource": format!("{url}{part}"),
            "resource_name": "Repertoire",
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
        });
        if self.has_scopes
            && let Some(members) = metadata.as_object_mut()
        {
            members.insert("scopes_supported".to_owned(), scopes());
        }
        Ok(metadata)
    }

    /// Tells whether a client can find an issuer.
    pub(crate) fn has_issuers(&self) -> bool {
        self.address().is_some()
    }

    /// The address of a server at which a client can find an issuer.
    fn address(&self) -> Option<&str> {
        let url = self.public_url.as_ref().map(|url| url.0.as_str());
        url.filter(|_| !self.issuers.is_empty())
    }

    fn without(&self, path: &str) -> Failure {
        let failure = Failure::new(Code::RouteNotFound, format!("There is no {path} here"));
        if let Some(url) = self.address() {
            return failure.suggest(format!(
                "{url}{METADATA}/mcp names the issuers, which have this"
            ));
        }
        failure
            .suggest(format!(
                "This server takes tokens: send `{HEADER}` with each call"
            ))
            .suggest("The operator creates tokens: `repertoire token create NAME --role ROLE`")
    }

    /// Adds to the `WWW-Authenticate` of a refusal where the issuers are named, and which
    /// scopes to ask for. `path`: that of the request.
    pub fn challenge(&self, path: &str, headers: &mut HeaderMap) {
        let Some(url) = self.address() else { return };
        let refusal = headers.get(header::WWW_AUTHENTICATE);
        let Some(Ok(refusal)) = refusal.map(HeaderValue::to_str) else {
            return;
        };
        // RFC 9728, 3.3: a client compares the `resource` of the metadata with the URL that it
        // called. The path is copied into a quoted string, so only harmless characters pass.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_".contains(&byte);
        let is_mcp = path == "/mcp" || path.starts_with("/mcp/");
        let part = if is_mcp && path.bytes().all(is_plain) {
            path
        } else {
            ""
        };
        let mut text = format!("{refusal}, resource_metadata=\"{url}{METADATA}{part}\"");
        if self.has_scopes && !refusal.contains("scope=") {
            // A first sign-in asks for reading alone. For more the client is refused again, with a
            // `scope` of its own.
            let first: Vec<_> = Role::Reader.actions().iter().map(Action::name).collect();
            text = format!("{text}, scope=\"{}\"", first.join(" "));
        }
        if text.len() <= MAX_CHALLENGE
            && let Ok(value) = HeaderValue::from_str(&text)
        {
            headers.insert(header::WWW_AUTHENTICATE, value);
        }
    }
}

/// The scopes that a token may have: the actions of the contract, then the roles.
fn scopes() -> Value {
    let actions = Action::ALL.iter().map(|action| action.name());
    actions
        .chain(Role::ALL.iter().map(|role| role.name()))
        .collect()
}
