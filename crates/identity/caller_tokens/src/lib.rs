//! Signed identities of the callers of tools: for workers, and for the systems behind them.
//!
//! Rules:
//!
//! * A token is a JWT (RFC 7519) signed with Ed25519 (RFC 8037). It is for one worker (`aud`) and
//!   one invocation (`jti`), and ends with the time that the caller waits (`exp`), so it is worth
//!   nothing elsewhere and later.
//! * Its type is `repertoire-caller+jwt`. The server takes none of them for sign-in.
//! * The key is made when the server starts, and is nowhere but in its memory. Its public half
//!   is a JWK set (RFC 7517), named by its thumbprint (RFC 7638).
//! * A caller that did not sign in has none.
//!
//! Not here: callers (`access`), the choice of the worker (`tools`), the route of the keys
//! (`server`), and tokens for sign-in (`tokens`, `oidc`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use model::{Clock, Principal};

/// The type of the tokens, which no other kind of JWT has.
const TYPE: &str = "repertoire-caller+jwt";

/// The system gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server cannot create a key to sign callers: the system gives no random bytes")]
pub struct NoKey;

/// The call that a token is for.
#[derive(Debug, Clone, Copy)]
pub struct SignedCall<'a> {
    /// The worker that gets the call.
    pub audience: &'a str,
    /// The id of the call.
    pub id: &'a str,
    /// Id of the skill that declares the tool.
    pub skill: &'a str,
    /// Name of the tool; empty where no tool is called.
    pub tool: &'a str,
    /// How long the caller still waits.
    pub timeout: Duration,
}

/// Signs the callers of calls: see the crate.
pub struct CallerTokens {
    issuer: String,
    key: Ed25519KeyPair,
    header: String,
    /// The public key, as text of a JWK set.
    keys: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl CallerTokens {
    /// Makes a new key. `issuer` is the address of the server for others, or else its name.
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

    /// The public key that verifies them, as text of a JWK set.
    #[must_use]
    pub fn keys(&self) -> Arc<str> {
        Arc::clone(&self.keys)
    }

    /// Signs the caller of a call for the worker that is its audience. None: the caller did not
    /// sign in.
    #[must_use]
    pub fn sign(&self, caller: &Principal, call: &SignedCall<'_>) -> Option<String> {
        let subject = caller.owner()?;
        let now = self.clock.now().as_second();
        // Rounded up, so that no token ends before its call does.
        let seconds = call.timeout.as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "a deadline is no century")]
        let expires = now.saturating_add(seconds as i64);
        let claims = json!({
            "iss": self.issuer,
            "sub": subject,
            "aud": call.audience,
            "jti": call.id,
            "iat": now,
            "exp": expires,
            "skill": call.skill,
            "tool": call.tool,
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;

    /// It is always the same time.
    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0).expect("a time")
        }
    }

    const CALL: SignedCall<'_> = SignedCall {
        audience: "reports",
        id: "a",
        skill: "acme/ops/report",
        tool: "report",
        timeout: Duration::from_millis(19_500),
    };

    fn tokens() -> CallerTokens {
        let issuer = "https://skills.example.com".to_owned();
        CallerTokens::new(issuer, Arc::new(At(1_000))).expect("a key")
    }

    fn bytes(part: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(part).expect("base64url")
    }

    fn json(part: &str) -> Value {
        serde_json::from_slice(&bytes(part)).expect("JSON")
    }

    #[test]
    fn a_token_names_the_caller_the_worker_and_the_call_and_its_key_is_in_the_set() {
        let tokens = tokens();
        let token = tokens
            .sign(&Principal::token("ada"), &CALL)
            .expect("a token");
        let keys: Value = serde_json::from_str(&tokens.keys()).expect("JSON");
        let key = &keys["keys"][0];
        let parts: Vec<_> = token.split('.').collect();
        let [header, claims, signature] = parts[..] else {
            panic!("{token}")
        };
        assert_eq!(
            (json(header), json(claims)),
            (
                json!({"alg": "EdDSA", "typ": "repertoire-caller+jwt", "kid": key["kid"]}),
                json!({
                    "iss": "https://skills.example.com",
                    "sub": "token:ada",
                    "aud": "reports",
                    "jti": "a",
                    "iat": 1_000,
                    "exp": 1_020,
                    "skill": "acme/ops/report",
                    "tool": "report",
                })
            )
        );
        let (signed, _) = token.rsplit_once('.').expect("a signature");
        let x = bytes(key["x"].as_str().expect("a key"));
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, x);
        let verify = |text: &str| key.verify(text.as_bytes(), &bytes(signature));
        verify(signed).expect("signed by the server");
        verify(&signed.replace('.', "x.")).expect_err("something else");
    }

    #[test]
    fn who_did_not_sign_in_has_no_token_and_each_server_has_a_key_of_its_own() {
        for nobody in [Principal::anonymous(), Principal::local()] {
            assert_eq!(tokens().sign(&nobody, &CALL), None, "{nobody}");
        }
        assert_ne!(tokens().keys(), tokens().keys());
    }

    #[test]
    fn the_key_is_published_for_signatures_alone_and_named_by_its_thumbprint() {
        let keys: Value = serde_json::from_str(&tokens().keys()).expect("JSON");
        let x = keys["keys"][0]["x"].as_str().expect("a key");
        // RFC 7638, 3: in the order of the names, without white space.
        let members = [("crv", "Ed25519"), ("kty", "OKP"), ("x", x)];
        let members = members.map(|(name, value)| format!("\"{name}\":\"{value}\""));
        let thumbprint = Sha256::digest(format!("{{{}}}", members.join(",")));
        let key = json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "x": x,
            "kid": URL_SAFE_NO_PAD.encode(thumbprint),
            "alg": "EdDSA",
            "use": "sig",
        });
        assert_eq!(keys, json!({ "keys": [key] }));
    }

    #[test]
    fn a_token_ends_with_the_second_in_which_the_caller_waits_no_longer() {
        for (timeout, end) in [
            (Duration::ZERO, 1_000),
            (Duration::from_nanos(1), 1_001),
            (Duration::from_secs(1), 1_001),
            (Duration::from_millis(1_001), 1_002),
            (Duration::MAX, i64::MAX),
        ] {
            let call = SignedCall { timeout, ..CALL };
            let token = tokens().sign(&Principal::token("ada"), &call);
            let token = token.expect("a token");
            let claims = json(token.split('.').nth(1).expect("claims"));
            assert_eq!(claims["exp"], end, "{timeout:?}");
        }
    }
}
