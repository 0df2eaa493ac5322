//! Secrets of the config file: written there, or better in a variable of the
//! environment or a file.

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};

/// Where a secret is. In YAML: the secret itself, `{env: NAME}` or
/// `{file: PATH}`. Never prints it.
#[derive(Debug, Clone)]
pub enum SecretRef {
    /// In the config file.
    Given(SecretString),
    /// In a variable of the environment.
    Environment(String),
    /// In a file; white space around it is not part of it.
    File(PathBuf),
}

/// A secret cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the variable {0} of the environment is not set")]
    Environment(String),
    /// The file cannot be read.
    #[error("cannot read `{}`: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
}

impl SecretRef {
    /// The secret.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or it is empty.
    pub fn resolve(&self) -> Result<SecretString, SecretError> {
        let secret = match self {
            Self::Given(secret) => secret.clone(),
            Self::Environment(name) => std::env::var(name)
                .map_err(|_| SecretError::Environment(name.clone()))?
                .into(),
            Self::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|cause| SecretError::File {
                    path: path.clone(),
                    cause,
                })?;
                text.trim().to_owned().into()
            }
        };
        if secret.expose_secret().is_empty() {
            return Err(SecretError::Empty);
        }
        Ok(secret)
    }
}

impl PartialEq for SecretRef {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Given(a), Self::Given(b)) => a.expose_secret() == b.expose_secret(),
            (Self::Environment(a), Self::Environment(b)) => a == b,
            (Self::File(a), Self::File(b)) => a == b,
            _ => false,
        }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = SecretRef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret in quotes, `{env: NAME}` or `{file: PATH}`")
            }

            fn visit_str<E: de::Error>(self, secret: &str) -> Result<SecretRef, E> {
                Ok(SecretRef::Given(secret.to_owned().into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretRef, A::Error> {
                let Some((key, value)) = map.next_entry::<String, String>()? else {
                    return Err(de::Error::custom("name `env` or `file`"));
                };
                let source = match key.as_str() {
                    "env" => SecretRef::Environment(value),
                    "file" => SecretRef::File(value.into()),
                    _ => return Err(de::Error::unknown_field(&key, &["env", "file"])),
                };
                match map.next_key::<String>()? {
                    None => Ok(source),
                    Some(_) => Err(de::Error::custom("name one of `env` and `file`")),
                }
            }
        }

        deserializer.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<SecretRef, String> {
        serde_yaml::from_str(yaml).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_is_given_or_in_the_environment_or_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "from-a-file\n").expect("a file");
        let resolved = |yaml: &str| {
            let secret = read(yaml).expect("a reference").resolve();
            secret
                .map(|secret| secret.expose_secret().to_owned())
                .map_err(|error| error.to_string())
        };
        assert_eq!(resolved("plain").as_deref(), Ok("plain"));
        assert_eq!(
            resolved(&format!("file: {}", path.display())).as_deref(),
            Ok("from-a-file")
        );
        assert!(resolved("env: PATH").is_ok());
        assert_eq!(
            resolved("env: NO_SUCH_VARIABLE_HERE"),
            Err("the variable NO_SUCH_VARIABLE_HERE of the environment is not set".to_owned())
        );
        assert_eq!(resolved("\"\""), Err("it is empty".to_owned()));
    }

    #[test]
    fn a_secret_is_never_printed_and_a_wrong_form_says_so() {
        let secret = read("hunter2").expect("a reference");
        assert!(!format!("{secret:?}").contains("hunter2"));
        for yaml in ["{}", "{vault: x}", "{env: A, file: B}", "[a]"] {
            assert!(read(yaml).is_err(), "{yaml}");
        }
    }
}
