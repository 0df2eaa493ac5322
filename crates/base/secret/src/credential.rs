//! References to secrets.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// A reference to a secret; never the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialRef {
    /// In a variable of the server's environment.
    Env(String),
    /// In a file of the server's machine; white space around it is not part of it.
    File(PathBuf),
}

impl CredentialRef {
    /// Reads the secret, anew each time, so that a change counts.
    ///
    /// # Errors
    /// There is none; the message says where it should be.
    // Not for other crates: a reference may come from any caller.
    pub(crate) fn resolve(&self) -> Result<SecretString, String> {
        let secret = match self {
            Self::Env(name) => std::env::var(name)
                .map_err(|_| format!("the variable {name} of the environment is not set"))?,
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?
                .trim()
                .to_owned(),
        };
        if secret.is_empty() {
            return Err(match self {
                Self::Env(name) => format!("the variable {name} of the environment is empty"),
                Self::File(path) => format!("`{}` is empty", path.display()),
            });
        }
        Ok(secret.into())
    }
}
