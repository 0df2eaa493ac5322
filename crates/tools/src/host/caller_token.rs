//! Who calls, signed: for workers, and for what stands behind them.
//!
//! Rules:
//!
//! * A token is a JWT (RFC 7519) signed with Ed25519 (RFC 8037). It is for one worker (`aud`) and
//!   one invocation (`jti`), and ends with the time that the caller waits (`exp`), so it is worth
//!   nothing elsewhere and later.
//! * Its type is `repertoire-caller+jwt`. The server takes none of them for sign-in.
//! * The key is made when the server starts, and is nowhere but in its memory. Its public half
//!   is a JWK set (RFC 7517), named by its thumbprint (RFC 7638).
//! * Who did not sign in has none.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::Invocation;
use model::Clock;

/// The type of the tokens, which no other kind of JWT has.
const TYPE: &str = "repertoire-caller+jwt";

/// The system gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server cannot make a key to sign who calls: the system gives no random bytes")]
pub struct NoKey;

/// Signs who calls: see the module.
pub struct CallerTokens {
    issuer: String,
    key: Ed25519KeyPair,
    header: String,
    /// The public key, as text of a JWK set.
    keys: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl CallerTokens {
    /// Tokens with a new key. `issuer` is the address by which others know the server, or else
    /// its name.
    ///
    /// # Errors
    /// There is no key.
    pub fn new(issuer: String, clock: Arc<dyn Clock>) -> Result<Self, NoKey> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| NoKey)?;
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|_| NoKey)?;
        let x = URL_SAFE_NO_PAD.encode(key.public_key());
        // The members that are required, in the order of their names: RFC 7638, 3.
        let thumbprint = Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
        let kid = URL_SAFE_NO_PAD.encode(thumbprint);
        let keys = json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "alg": "EdDSA", "use": "sig"},
        ]});
        let header = json!({"alg": "EdDSA", "typ": TYPE, "kid": kid});
        Ok(Self {
            issuer,
            key,
            header: URL_SAFE_NO_PAD.encode(header.to_string()),
            keys: keys.to_string().into(),
            clock,
        })
    }

    /// The key to check them with, as text of a JWK set.
    #[must_use]
    pub fn keys(&self) -> Arc<str> {
        Arc::clone(&self.keys)
    }

    /// Who makes a call, for the worker of this name. None: nobody asked who it is.
    pub(super) fn sign(&self, audience: &str, invocation: &Invocation) -> Option<String> {
        let subject = invocation.caller.owner()?;
        let now = self.clock.now().as_second();
        let seconds = invocation.timeout.as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "a deadline is no century")]
        let expires = now.saturating_add(seconds as i64);
        let claims = json!({
            "iss": self.issuer,
            "sub": subject,
            "aud": audience,
            "jti": invocation.id,
            "iat": now,
            "exp": expires,
            "skill": invocation.skill.as_str(),
            "tool": invocation.tool,
        });
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let signed = format!("{}.{claims}", self.header);
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        Some(format!("{signed}.{signature}"))
    }
}

impl fmt::Debug for CallerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerTokens").field(&self.keys).finish()
    }
}
