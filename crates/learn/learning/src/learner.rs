//! The learner that progress belongs to.

use std::fmt;

use crate::Error;
use model::Principal;

/// Bytes of a name: what an issuer may call its caller, and the 128 characters by which a
/// request may name a learner of that caller. It is a part of keys in the store.
pub(crate) const MAX_BYTES: usize = 1_600;

/// A learner's name, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Learner(String);

impl Learner {
    /// The learner where no name is given.
    pub const DEFAULT: &'static str = "default";

    /// The learner of a name; of an empty one the default.
    ///
    /// # Errors
    /// The name is too long, or has a control character.
    pub fn new(name: &str) -> Result<Self, Error> {
        let wrong = |message: &str| Error::parameter("learner", message);
        if name.is_empty() {
            return Ok(Self(Self::DEFAULT.to_owned()));
        }
        if name.len() > MAX_BYTES {
            return Err(wrong("a learner's name has at most 1600 bytes"));
        }
        if name.chars().any(char::is_control) {
            return Err(wrong("a learner's name has no control characters"));
        }
        Ok(Self(name.to_owned()))
    }

    /// A learner of a caller: the caller itself, or one that it names. Learners of two callers
    /// that signed in are never the same. `owner` is the namespace of such a caller; none: those
    /// that did not sign in share their learners, and have none of the others.
    ///
    /// # Errors
    /// As of [`Learner::new`]; the name is that of a caller that signed in.
    pub fn of(owner: Option<&str>, name: &str) -> Result<Self, Error> {
        let Some(owner) = owner else {
            if Principal::is_name(name) {
                let message =
                    "this learner belongs to a caller that signs in; sign in as that caller";
                return Err(Error::parameter("learner", message));
            }
            return Self::new(name);
        };
        if name.is_empty() || name == owner {
            return Self::new(owner);
        }
        // The full name, as it comes in answers, means the same learner as its end.
        let own = name
            .strip_prefix(owner)
            .and_then(|rest| rest.strip_prefix('/'));
        Self::new(&format!("{owner}/{}", own.unwrap_or(name)))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signed_in_has_learners_of_its_own() {
        for (name, expected) in [
            ("", "token:ada"),
            ("token:ada", "token:ada"),
            ("bob", "token:ada/bob"),
            ("token:ada/bob", "token:ada/bob"),
            ("token:eve", "token:ada/token:eve"),
            ("token:adam", "token:ada/token:adam"),
            ("token:ada/", "token:ada/"),
        ] {
            let learner = Learner::of(Some("token:ada"), name).expect("a learner");
            assert_eq!(learner.as_str(), expected, "{name}");
        }
    }

    #[test]
    fn who_did_not_sign_in_has_no_learner_of_those_that_did() {
        for name in [
            "token:ada",
            "token:ada/child",
            "certificate:ci",
            "oidc:corp/ada",
        ] {
            assert!(Learner::of(None, name).is_err(), "{name}");
        }
        for name in ["", "ada", "team:ada"] {
            assert_eq!(
                Learner::of(None, name).ok(),
                Learner::new(name).ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn whoever_may_sign_in_may_learn_and_name_a_learner() {
        // What an issuer calls its caller has 256 characters at most, and is longest in bytes
        // where these are of four, or each is written as three.
        for character in ["a", "%2F", "\u{20000}"] {
            let owner = format!("oidc:{}/{}", "i".repeat(32), character.repeat(256));
            let learner = Learner::of(Some(&owner), "").expect("a learner");
            assert_eq!(learner.as_str(), owner);
            let name = "\u{20000}".repeat(128);
            let learner = Learner::of(Some(&owner), &name).expect("a learner");
            assert_eq!(learner.as_str(), format!("{owner}/{name}"));
        }
        assert!(Learner::new(&"b".repeat(MAX_BYTES)).is_ok());
        assert!(Learner::new(&"b".repeat(MAX_BYTES + 1)).is_err());
    }
}
