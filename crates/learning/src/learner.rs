//! Whose progress it is.

use std::fmt;

use crate::Error;

/// A learner's name: 1 to 128 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Learner(String);

impl Learner {
    /// Who learns where no name is given.
    pub const DEFAULT: &'static str = "default";

    /// The learner of a name; of an empty one the default.
    ///
    /// # Errors
    /// The name is too long, or has a control character.
    pub fn new(name: &str) -> Result<Self, Error> {
        let wrong = |message: &str| Error::Parameter {
            field: "learner".into(),
            message: message.to_owned(),
        };
        if name.is_empty() {
            return Ok(Self(Self::DEFAULT.to_owned()));
        }
        if name.chars().count() > 128 {
            return Err(wrong("a learner's name has at most 128 characters"));
        }
        if name.chars().any(char::is_control) {
            return Err(wrong("a learner's name has no control characters"));
        }
        Ok(Self(name.to_owned()))
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
