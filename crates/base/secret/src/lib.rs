//! Secrets of the config file and of sources: in a variable of the environment or a
//! file, or, less well, in the config file itself.
//!
//! A [`SecretRef`] of the config file leads to its secret. A [`CredentialRef`] alone does not:
//! callers name those, and [`Secrets`] reads them for who may name them.
//!
//! Not here: which settings are secrets (`server`), tokens that the server makes (`tokens`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod credential;
mod listed;

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};

pub use credential::CredentialRef;
pub use listed::{ListedSecret, NamedBy, Secrets};

/// A secret, or a reference to one. In YAML: the secret itself, `{env: NAME}` or
/// `{file: PATH}`. Never prints it.
#[derive(Debug, Clone)]
pub enum SecretRef {
    /// In the config file.
    Given(SecretString),
    /// In a variable of the environment, or a file.
    Named(CredentialRef),
}

/// A secret cannot be read; the message says where it should be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(String);

impl SecretRef {
    /// The secret.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or it is empty.
    pub fn resolve(&self) -> Result<SecretString, SecretError> {
        match self {
            Self::Given(secret) if secret.expose_secret().is_empty() => {
                Err(SecretError("it is empty".to_owned()))
            }
            Self::Given(secret) => Ok(secret.clone()),
            Self::Named(reference) => reference.resolve().map_err(SecretError),
        }
    }
}

impl PartialEq for SecretRef {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Given(a), Self::Given(b)) => a.expose_secret() == b.expose_secret(),
            (Self::Named(a), Self::Named(b)) => a == b,
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

            fn visit_newtype_struct<D: de::Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<SecretRef, D::Error> {
                deserializer.deserialize_any(self)
            }

            // Text alone: YAML reads `0123` without quotes as a number, which is another secret.
            fn visit_str<E: de::Error>(self, secret: &str) -> Result<SecretRef, E> {
                Ok(SecretRef::Given(secret.to_owned().into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretRef, A::Error> {
                let Some((key, value)) = map.next_entry::<String, String>()? else {
                    return Err(de::Error::custom("name `env` or `file`"));
                };
                let reference = match key.as_str() {
                    "env" => CredentialRef::Env(value),
                    "file" => CredentialRef::File(value.into()),
                    _ => return Err(de::Error::unknown_field(&key, &["env", "file"])),
                };
                match map.next_key::<String>()? {
                    None => Ok(SecretRef::Named(reference)),
                    Some(_) => Err(de::Error::custom("name one of `env` and `file`")),
                }
            }
        }

        // By this name `config_file` knows which keys it must not show.
        deserializer.deserialize_newtype_struct(config_file::SECRET, Form)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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

    #[test]
    fn a_reference_is_the_same_only_where_it_leads_to_the_same_place() {
        let all = ["a", "b", "{env: a}", "{env: b}", "{file: a}", "{file: b}"];
        for (at, yaml) in all.iter().enumerate() {
            let secret = read(yaml).expect("a reference");
            let same = |other: &&str| read(other).is_ok_and(|other| other == secret);
            let same: Vec<_> = all.iter().map(same).collect();
            let expected: Vec<_> = (0..all.len()).map(|other| other == at).collect();
            assert_eq!(same, expected, "{yaml}");
        }
    }

    #[test]
    fn the_config_file_lists_a_secret_without_its_value() {
        let text = "db: hunter2\nmail: {env: MAIL}\nkey: {file: /run/key}\n";
        let document = config_file::Document::parse(text).expect("YAML");
        let read = document.read::<BTreeMap<String, SecretRef>>(|_| 0..=u64::MAX);
        let settings = document.settings(&read.expect("settings"));
        let settings = settings.iter().map(|it| (it.key.as_str(), &*it.value));
        assert_eq!(
            settings.collect::<Vec<_>>(),
            [
                ("db", "(secret)"),
                ("mail", "{env: MAIL}"),
                ("key", "{file: /run/key}"),
            ]
        );
    }

    #[test]
    fn a_config_file_with_secrets_that_everybody_may_read_is_warned_of() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.yaml");
        let warned = |text: &str, mode| {
            std::fs::write(&path, text).expect("a file");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("a mode");
            let document = config_file::Document::parse(text).expect("YAML");
            let read = document.read::<BTreeMap<String, SecretRef>>(|_| 0..=u64::MAX);
            let places = config_file::SettingLocations::new(&path, &document, &read.expect("read"));
            places.exposed_secrets()
        };
        let (given, named) = ("db: hunter2\nmail: {env: MAIL}\n", "db: {env: DB}\n");
        let warning = warned(given, 0o644).expect("a warning");
        assert!(
            warning.contains("(db)") && !warning.contains("hunter2"),
            "{warning}"
        );
        assert!(warned(given, 0o602).is_some());
        assert_eq!(warned(given, 0o640), None);
        assert_eq!(warned(named, 0o644), None);
    }
}
