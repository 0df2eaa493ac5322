//! Webhooks: a host of repositories reports a push.
//!
//! It is a nudge and nothing else: what was pushed is found out by looking. A call with a wrong
//! signature changes nothing, and neither does one without.

use hmac::{Hmac, Mac as _};
use secrecy::ExposeSecret as _;
use sha2::Sha256;

use super::{Engine, Error};
use model::Digest;

/// A request of a host.
#[derive(Debug, Clone, Copy)]
pub struct Webhook<'call> {
    /// `X-Hub-Signature-256`: `sha256=` and the HMAC of the body, in hex (GitHub, Gitea,
    /// Forgejo, Bitbucket).
    pub signature: Option<&'call str>,
    /// `X-Gitlab-Token`: the secret itself.
    pub token: Option<&'call str>,
    /// The body as it came.
    pub body: &'call [u8],
}

/// Why a webhook is refused. The same for each reason, so that no caller finds out which sources
/// there are.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is no such source, it has no webhooks, or the signature is not right.
    #[error(
        "no source takes this webhook: its signature is missing or not right, or there is no such source"
    )]
    NotOurs,
    /// The secret cannot be had.
    #[error("the secret of the source's webhooks cannot be read: {0}")]
    Secret(String),
}

/// The webhook is signed with the secret. The time does not depend on what is wrong with it.
fn is_signed(webhook: &Webhook<'_>, secret: &[u8]) -> bool {
    let keyed = || Hmac::<Sha256>::new_from_slice(secret).ok();
    match (webhook.signature, webhook.token) {
        (Some(signature), _) => {
            let hex = signature.strip_prefix("sha256=");
            let sent = hex.and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok());
            let (Some(sent), Some(mut mac)) = (sent, keyed()) else {
                return false;
            };
            mac.update(webhook.body);
            mac.verify_slice(sent.as_bytes()).is_ok()
        }
        (None, Some(token)) => {
            // Compared as digests: an attacker who measures the time of `==` finds the secret
            // byte by byte.
            let (Some(mut ours), Some(mut theirs)) = (keyed(), keyed()) else {
                return false;
            };
            ours.update(secret);
            theirs.update(token.as_bytes());
            ours.verify_slice(&theirs.finalize().into_bytes()).is_ok()
        }
        (None, None) => false,
    }
}

impl Engine {
    /// Has a source synced soon, since its host reports a change.
    ///
    /// # Errors
    /// The signature is wrong, or there is no such source.
    pub fn receive(&self, id: &str, webhook: &Webhook<'_>) -> Result<(), Refused> {
        let source = self.source(id).map_err(|_| Refused::NotOurs)?;
        let secret = source.webhook_secret.as_ref().ok_or(Refused::NotOurs)?;
        let secret = self.secret(secret, source.named_by, source.address());
        let secret = secret.map_err(Refused::Secret)?;
        if !is_signed(webhook, secret.expose_secret().as_bytes()) {
            return Err(Refused::NotOurs);
        }
        self.nudge(id).map_err(|_: Error| Refused::NotOurs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_taken_by_its_signature_alone() {
        // The example of GitHub's documentation of its webhooks.
        let secret = b"It's a Secret to Everybody";
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let taken = |signature: Option<&str>, token: Option<&str>, body: &[u8]| {
            let webhook = Webhook {
                signature,
                token,
                body,
            };
            is_signed(&webhook, secret)
        };
        assert!(taken(Some(right), None, b"Hello, World!"));
        assert!(taken(None, Some("It's a Secret to Everybody"), b""));
        for (signature, token, body) in [
            (None, None, b"Hello, World!".as_slice()),
            (Some(right), None, b"Hello, World"),
            (Some(&right[7..]), None, b"Hello, World!"),
            (Some("sha256="), None, b"Hello, World!"),
            (Some("sha256=7"), None, b"Hello, World!"),
            (Some("sha256=\u{e9}\u{e9}"), None, b"Hello, World!"),
            (Some("sha1=00"), Some("It's a Secret to Everybody"), b""),
            (None, Some(""), b""),
            (None, Some("It's a Secret to Everybody "), b""),
        ] {
            assert!(!taken(signature, token, body), "{signature:?} {token:?}");
        }
    }
}
