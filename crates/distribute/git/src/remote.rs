//! A remote repository, and the credential for it.

use std::path::PathBuf;

use egress::Egress;
use secrecy::SecretString;

use super::Error;
use super::address::Address;

/// The credential for https. Its debug output has no secret.
#[derive(Debug, Clone)]
pub enum Credential {
    /// A token alone.
    Token(SecretString),
    /// A user with a password or a token.
    Login {
        /// The user.
        user: String,
        /// The password.
        password: SecretString,
    },
}

/// The settings of a [`Remote`].
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// `https://…`, `http://…`, `ssh://…`, `user@host:path`, or `file://…`.
    pub url: String,
    /// A branch, a tag, or a whole ref such as `refs/heads/main`. Empty: the branch that the
    /// remote shows first.
    pub reference: String,
    /// For https; it is sent only where the server asks for it, and never over http.
    pub credential: Option<Credential>,
    /// The file of a private key for ssh, without a passphrase. None: the keys that ssh finds.
    pub ssh_key: Option<PathBuf>,
    /// The file of hosts that ssh knows. None: those of the user and of the machine.
    pub known_hosts: Option<PathBuf>,
    /// `file://` may be fetched.
    pub permits_files: bool,
    /// Which addresses may be called.
    pub egress: Egress,
}

/// A repository somewhere else, and one ref of it.
#[derive(Debug, Clone)]
pub struct Remote {
    pub(super) address: Address,
    pub(super) options: RemoteOptions,
}

impl Remote {
    /// Checks URL and ref; nothing is called.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn new(mut options: RemoteOptions) -> Result<Self, Error> {
        let address = Address::parse(&options.url, options.permits_files)?;
        options.reference = options.reference.trim().to_owned();
        if !is_reference(&options.reference) {
            return Err(Error::Invalid(format!(
                "`{}` is no name of a branch or a tag",
                model::shown(&options.reference, 100)
            )));
        }
        Ok(Self { address, options })
    }

    /// Its URL, for people: without a secret.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.shown()
    }

    /// The refs that the name may stand for, in the order of preference.
    pub(super) fn candidates(&self) -> Vec<String> {
        let name = &self.options.reference;
        if name.is_empty() || name == "HEAD" {
            return vec!["HEAD".to_owned()];
        }
        if name.starts_with("refs/") {
            return vec![name.clone()];
        }
        // The branch first, unlike `git rev-parse`, which prefers a tag of the same name.
        vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")]
    }
}

/// Empty, or a valid name of a ref.
fn is_reference(name: &str) -> bool {
    if name.is_empty() {
        return true;
    }
    let whole = if name.starts_with("refs/") {
        name.to_owned()
    } else {
        format!("refs/heads/{name}")
    };
    !name.starts_with('-') && gix::validate::reference::name(whole.as_str().into()).is_ok()
}
