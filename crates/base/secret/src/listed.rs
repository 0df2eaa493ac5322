//! Secrets that the config file lists for callers on the network.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use url::{Origin, Url};

use super::CredentialRef;

/// Who names a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedBy {
    /// The config file, or a caller on the server's machine: they may name any.
    // Records that were stored before there was another one have no name for it.
    #[default]
    Operator,
    /// A caller on the network, who may name what the config file lists.
    Network,
}

/// A secret that callers on the network may name, and the one origin that it may be sent to.
/// In YAML: `{env: NAME, origin: https://HOST}` or `{file: PATH, origin: https://HOST}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Entry")]
pub struct ListedSecret {
    reference: CredentialRef,
    origin: Origin,
}

/// A [`ListedSecret`] as the config file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    env: Option<String>,
    file: Option<PathBuf>,
    origin: String,
}

impl TryFrom<Entry> for ListedSecret {
    type Error = &'static str;

    fn try_from(Entry { env, file, origin }: Entry) -> Result<Self, &'static str> {
        let reference = match (env, file) {
            (Some(name), None) => CredentialRef::Env(name),
            (None, Some(path)) => CredentialRef::File(path),
            _ => return Err("name one of `env` and `file`"),
        };
        let wrong = "`origin` is a scheme, a host, and a port if it is not the usual one, such as `https://git.example.com`";
        let url = Url::parse(&origin).map_err(|_| wrong)?;
        // A path would look as if it bound the secret to a part of the host.
        let is_bare = url.as_str() == format!("{}/", url.origin().ascii_serialization());
        match url.scheme() {
            "http" | "https" if is_bare => Ok(Self {
                reference,
                origin: url.origin(),
            }),
            _ => Err(wrong),
        }
    }
}

/// Reads secrets for those who may name them: for callers on the network, those of a list.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Arc<[ListedSecret]>);

impl Secrets {
    /// Lets callers on the network name these.
    #[must_use]
    pub fn listing(listed: &[ListedSecret]) -> Self {
        Self(listed.into())
    }

    /// Reads a secret for an address, anew each time, so that a change counts.
    ///
    /// # Errors
    /// There is none, or it is not for who names it. Callers on the network get the same message
    /// whether it is missing, unreadable, of several lines, not listed, or for another origin.
    pub fn read(
        &self,
        reference: &CredentialRef,
        named_by: NamedBy,
        address: &str,
    ) -> Result<SecretString, String> {
        match named_by {
            NamedBy::Operator => reference.resolve(),
            NamedBy::Network => self.read_listed(reference, address).ok_or_else(|| {
                "`sync.secrets` of the config file does not permit the secret that it names for this address"
                    .to_owned()
            }),
        }
    }

    fn read_listed(&self, reference: &CredentialRef, address: &str) -> Option<SecretString> {
        // An address without a host, such as that of a file, has an origin that equals no other.
        let origin = Url::parse(address).ok()?.origin();
        let mut listed = self.0.iter();
        listed.find(|it| it.reference == *reference && it.origin == origin)?;
        let secret = reference.resolve().ok()?;
        // What no header can have is refused later, in words that would tell that it exists.
        let is_line = |secret: &str| secret.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        is_line(secret.expose_secret()).then_some(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(yaml: &str) -> Result<Vec<ListedSecret>, String> {
        serde_yaml::from_str(yaml).map_err(|error| error.to_string())
    }

    #[test]
    fn a_caller_on_the_network_gets_a_listed_secret_for_its_origin_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let (good, several) = (file("good", "s3cret\n"), file("several", "one\ntwo\n"));
        let (other, missing) = (file("other", "an0th3r\n"), folder.path().join("missing"));
        let entry = |path: &PathBuf| {
            let path = path.display();
            format!("- {{file: {path}, origin: 'https://git.example.com'}}\n")
        };
        let yaml = [&good, &several, &missing].map(entry).concat();
        let secrets = Secrets::listing(&listed(&yaml).expect("a list"));
        let read = |path: &PathBuf, named_by, address: &str| {
            let read = secrets.read(&CredentialRef::File(path.clone()), named_by, address);
            read.map(|secret| secret.expose_secret().to_owned())
        };
        let here = "https://git.example.com/acme/skills.git";
        for address in [here, "https://GIT.example.com:443/"] {
            let found = read(&good, NamedBy::Network, address);
            assert_eq!(found.as_deref(), Ok("s3cret"), "{address}");
        }
        let refused = [
            (&good, "https://git.example.com.attacker.example/acme"),
            (&good, "https://git.example.com@attacker.example/acme"),
            (&good, "https://git.example.com:8443/acme"),
            (&good, "http://git.example.com/acme"),
            (&good, "ssh://git.example.com/acme"),
            (&good, "file:///srv/skills"),
            (&good, ""),
            (&other, here),
            (&missing, here),
            (&several, here),
            (&folder.path().to_owned(), here),
        ];
        let words: std::collections::BTreeSet<_> = refused
            .map(|(path, address)| read(path, NamedBy::Network, address).expect_err(address))
            .into();
        assert_eq!(words.len(), 1, "{words:?}");
        assert_eq!(
            read(&other, NamedBy::Operator, "").as_deref(),
            Ok("an0th3r")
        );
    }

    #[test]
    fn a_variable_and_a_file_of_one_name_are_two_secrets() {
        let yaml = "- {env: PATH, origin: 'https://git.example.com'}";
        let secrets = Secrets::listing(&listed(yaml).expect("a list"));
        let read = |reference| {
            let address = "https://git.example.com/";
            secrets.read(&reference, NamedBy::Network, address).is_ok()
        };
        assert!(read(CredentialRef::Env("PATH".to_owned())));
        assert!(!read(CredentialRef::File("PATH".into())));
        assert!(!read(CredentialRef::Env("path".to_owned())));
        assert!(!read(CredentialRef::Env("HOME".to_owned())));
    }

    #[test]
    fn an_entry_names_one_secret_and_one_origin() {
        for wrong in [
            "- {origin: 'https://a.example'}",
            "- {env: A}",
            "- {env: A, file: /b, origin: 'https://a.example'}",
            "- {env: A, origin: a.example}",
            "- {env: A, origin: 'https://a.example/acme'}",
            "- {env: A, origin: 'https://me@a.example'}",
            "- {env: A, origin: 'file:///'}",
            "- {env: A, origin: 'https://a.example', host: b}",
        ] {
            assert!(listed(wrong).is_err(), "{wrong}");
        }
        assert!(listed("- {env: A, origin: 'http://127.0.0.1:8080/'}").is_ok());
    }
}
