//! What is fetched, and as whom.

use std::path::PathBuf;

use egress::Egress;
use secrecy::SecretString;

use super::Error;
use super::address::Address;

/// Who fetches over https. Never prints a secret.
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

/// What a [`Remote`] is made of.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// `https://…`, `http://…`, `ssh://…`, `user@host:path`, or `file://…`.
    pub url: String,
    /// A branch, a tag, or a whole ref such as `refs/heads/main`. Empty: the branch that the
    /// remote shows first.
    pub reference: String,
    /// For https; it is sent only where the server asks for it, and never over http.
    pub credential: Option<Credential>,
    /// The file of a private key for ssh, without a passphrase. None: what ssh finds.
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
    pub(super) reference: String,
    pub(super) credential: Option<Credential>,
    pub(super) ssh_key: Option<PathBuf>,
    pub(super) known_hosts: Option<PathBuf>,
    pub(super) egress: Egress,
}

impl Remote {
    /// Checks URL and ref; nothing is called.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn new(options: RemoteOptions) -> Result<Self, Error> {
        let address = Address::parse(&options.url, options.permits_files)?;
        let reference = options.reference.trim().to_owned();
        if !is_reference(&reference) {
            return Err(Error::Invalid(format!(
                "`{}` is no name of a branch or a tag",
                model::shown(&reference, 100)
            )));
        }
        Ok(Self {
            address,
            reference,
            credential: options.credential,
            ssh_key: options.ssh_key,
            known_hosts: options.known_hosts,
            egress: options.egress,
        })
    }

    /// Its URL, for people: without a secret.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.shown()
    }

    /// The refs that the name may stand for, the first of them first.
    pub(super) fn candidates(&self) -> Vec<String> {
        let name = &self.reference;
        if name.is_empty() || name == "HEAD" {
            return vec!["HEAD".to_owned()];
        }
        if name.starts_with("refs/") {
            return vec![name.clone()];
        }
        vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")]
    }
}

/// Empty, or a name that Git has for refs.
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
