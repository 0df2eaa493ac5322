//! The settings of sign-in.

use serde::{Deserialize, Deserializer};

use crate::CertificateRule;
use crate::certificates::rules;
use access::Actions;
use oidc::{IssuerConfig, PublicUrl};

/// How callers identify themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They do not.
    #[default]
    None,
    /// They present a token of this server or of an issuer, or a certificate for which there is a
    /// rule.
    Tokens,
}

/// Who may call over loopback where nobody signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loopback {
    /// The user who runs the server, and root. Systems other than Linux do not give the user of
    /// a connection, so there it is anyone.
    #[default]
    Owner,
    /// Every user of this machine.
    Anyone,
}

/// The settings of sign-in: callers and their rights.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignInConfig {
    /// How callers identify themselves.
    pub sign_in: Mode,
    /// Who may call over loopback where nobody signs in.
    pub loopback: Loopback,
    /// The rights of callers without a token, where callers sign in: actions, and roles.
    #[serde(deserialize_with = "actions")]
    pub anonymous: Actions,
    /// The callers that client certificates sign in.
    #[serde(deserialize_with = "rules")]
    pub certificates: Vec<CertificateRule>,
    /// A proxy in front of the server has TLS, so that tokens do not go over a network in
    /// clear.
    pub behind_proxy: bool,
    /// The address by which clients know the server, such as `https://skills.example.com`.
    pub public_url: Option<PublicUrl>,
    /// Issuers of OpenID Connect whose tokens are accepted.
    pub issuers: Vec<IssuerConfig>,
}

pub(crate) fn actions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Actions, D::Error> {
    let mut all = Vec::new();
    for name in Vec::<String>::deserialize(deserializer)? {
        let named = Actions::named(&name).map_err(serde::de::Error::custom)?;
        all.extend(named.iter());
    }
    Ok(all.into_iter().collect())
}

impl SignInConfig {
    /// Callers are told apart by their credentials alone, since all come from a proxy's address.
    #[must_use]
    pub fn names_callers(&self) -> bool {
        self.sign_in != Mode::None && self.behind_proxy
    }

    /// Returns the key of a setting without effect, and why. `asks`: the server asks clients for
    /// certificates.
    #[must_use]
    pub fn mistake(&self, asks: bool) -> Option<(&'static str, &'static str)> {
        let why = match (self.certificates.is_empty(), self.sign_in) {
            (false, Mode::None) => {
                "certificates authenticate no caller without `access.sign_in: tokens`, which is for both"
            }
            (false, Mode::Tokens) if !asks => {
                "the server asks for no certificates: set `tls.client_certificates` to optional or required, and `tls.client_ca`"
            }
            _ => return None,
        };
        Some(("access.certificates", why))
    }

    /// Checks settings together that are right by themselves.
    ///
    /// # Errors
    /// They make no sense together; the message says why.
    pub fn check(&self) -> Result<(), String> {
        if self.sign_in == Mode::None && !self.issuers.is_empty() {
            return Err(
                "there are issuers, but no caller has to sign in: set `access.sign_in: tokens`"
                    .to_owned(),
            );
        }
        let checked = oidc::check(&self.issuers, self.public_url.as_ref());
        checked.map_err(|error| error.to_string())
    }

    /// Why a server with callers on other machines does not start with these; `None`: it does.
    /// `has_tls`: it speaks TLS itself.
    #[must_use]
    pub fn why_unsafe(&self, has_tls: bool) -> Option<&'static str> {
        match (self.sign_in, self.behind_proxy || has_tls) {
            (Mode::None, _) => Some(
                "every caller that reaches it could do everything. Set `access.sign_in: tokens`, with what everybody may do in `access.anonymous`, such as [reader]; or listen on 127.0.0.1",
            ),
            (Mode::Tokens, false) => Some(
                "tokens would go over the network in clear. Set `tls.certificate` and `tls.key` (docs/tls.md), or put a proxy with TLS in front (docs/proxies.md) and set `access.behind_proxy: true`; or listen on 127.0.0.1",
            ),
            (Mode::Tokens, true) => None,
        }
    }
}
