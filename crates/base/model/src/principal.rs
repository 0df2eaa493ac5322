//! The identity of a caller.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The caller that makes a call. Every write records it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal(String);

impl Principal {
    /// A caller of which nothing is known.
    #[must_use]
    pub fn anonymous() -> Self {
        Self("anonymous".to_owned())
    }

    /// A caller that may open the data directory: a command on this machine, over the
    /// socket in the directory or with the directory opened in its own process.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }

    /// The server itself, for the skills that come with it.
    #[must_use]
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    /// A source that skills are synced with, by its id.
    #[must_use]
    pub fn source(id: &str) -> Self {
        Self(format!("source:{id}"))
    }

    /// A caller with a token, by the token's name.
    #[must_use]
    pub fn token(name: &str) -> Self {
        Self(format!("token:{name}"))
    }

    /// The owner of the sessions and the like that it begins. None: it did not sign in, so it
    /// shares them with all callers that did not.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        (self.0 != "anonymous" && self.0 != "local").then_some(self.as_str())
    }

    /// The owner as the beginning of names within what belongs to it, `NAMESPACE/NAME`. What an
    /// issuer calls its caller may have a `/`, which is written `%2F` here: else the caller `a`
    /// could name what belongs to the caller `a/b`.
    #[must_use]
    pub fn namespace(&self) -> Option<Cow<'_, str>> {
        let owner = self.owner()?;
        let Some((issuer, name)) = owner.split_once('/') else {
            return Some(owner.into());
        };
        // `%` first: otherwise the callers `a/b` and `a%2Fb` would have one namespace.
        let name = name.replace('%', "%25").replace('/', "%2F");
        Some(format!("{issuer}/{name}").into())
    }

    /// A text has the form of the name of a caller that signed in. No request may give such a name
    /// to anything, or say it of its caller.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        let kinds = ["token:", "certificate:", "oidc:"];
        kinds.iter().any(|kind| text.starts_with(kind))
    }

    /// A caller with a certificate, by the name of the rule for it.
    #[must_use]
    pub fn certificate(name: &str) -> Self {
        Self(format!("certificate:{name}"))
    }

    /// It was signed in by a certificate.
    #[must_use]
    pub fn is_certificate(&self) -> bool {
        self.0.starts_with("certificate:")
    }

    /// A user of an OpenID Connect issuer, by the issuer's name in the config file, which has
    /// no `/`, and the issuer's name for the user.
    #[must_use]
    pub fn oidc(issuer: &str, name: &str) -> Self {
        Self(format!("oidc:{issuer}/{name}"))
    }

    /// It is a user of an OpenID Connect issuer.
    #[must_use]
    pub fn is_of_issuer(&self) -> bool {
        self.0.starts_with("oidc:")
    }

    /// It is a source.
    #[must_use]
    pub fn is_source(&self) -> bool {
        self.0.starts_with("source:")
    }

    /// The name of the caller.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_name_what_belongs_to_another_one() {
        let names = [
            Principal::anonymous(),
            Principal::local(),
            Principal::token("ada"),
            Principal::certificate("ci"),
            Principal::oidc("corp", "ada"),
            Principal::oidc("corp", "ada/bob"),
            Principal::oidc("corp", "ada%2Fbob"),
        ];
        let namespaces = names
            .each_ref()
            .map(|it| it.namespace().map(Cow::into_owned));
        let expected = [
            None,
            None,
            Some("token:ada"),
            Some("certificate:ci"),
            Some("oidc:corp/ada"),
            Some("oidc:corp/ada%2Fbob"),
            Some("oidc:corp/ada%252Fbob"),
        ];
        assert_eq!(namespaces, expected.map(|it| it.map(str::to_owned)));
        for (name, namespace) in names.iter().zip(&namespaces) {
            assert_eq!(
                Principal::is_name(name.as_str()),
                namespace.is_some(),
                "{name}"
            );
        }
    }
}
