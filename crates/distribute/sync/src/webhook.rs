//! Webhooks: a host of repositories says that something was pushed.
//!
//! It is a nudge and nothing else: what was pushed is found out by looking. A call whose
//! signature is not right changes nothing, and neither does one without.

use hmac::{Hmac, Mac as _};
use secrecy::ExposeSecret as _;
use sha2::Sha256;

use super::{Engine, Error};

/// What a host sent.
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

/// Why a webhook is refused. No caller is told which sources there are.
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

/// The bytes of a text of hex digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// The webhook is signed with the secret. Takes as long whatever is wrong with it.
fn is_signed(webhook: &Webhook<'_>, secret: &[u8]) -> bool {
    let keyed = || Hmac::<Sha256>::new_from_slice(secret).ok();
    match (webhook.signature, webhook.token) {
        (Some(signature), _) => {
            let sent = signature.strip_prefix("sha256=").and_then(bytes);
            let (Some(sent), Some(mut mac)) = (sent, keyed()) else {
                return false;
            };
            mac.update(webhook.body);
            mac.verify_slice(&sent).is_ok()
        }
        (None, Some(token)) => {
            // As digests, so that how much of it is right does not show in the time.
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
    /// Has a source synced soon, because its host says that something happened there.
    ///
    /// # Errors
    /// The host is not who it says, or there is no such source.
    pub fn receive(&self, id: &str, webhook: &Webhook<'_>) -> Result<(), Refused> {
        let source = self.source(id).map_err(|_| Refused::NotOurs)?;
        let secret = source.webhook_secret.as_ref().ok_or(Refused::NotOurs)?;
        let secret = secret.resolve().map_err(Refused::Secret)?;
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
