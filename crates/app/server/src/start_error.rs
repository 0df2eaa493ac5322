//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use config_file::SettingLocations;

/// A setting cannot be used. Never holds a secret.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingError {
    pub(super) key: String,
    pub(super) message: String,
}

impl SettingError {
    pub(super) fn new(key: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self {
            key: key.into(),
            message: message.to_string(),
        }
    }
}

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] store::OpenError),
    /// The stored records cannot be read.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// The data directory takes no socket, which is all that a server without a port has.
    #[error("cannot listen on a socket in the data directory `{}`: {cause}", directory.display())]
    Socket {
        /// The directory.
        directory: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is no key to sign callers for workers with.
    #[error(transparent)]
    CallerKey(#[from] caller_tokens::NoKey),
    /// The contract cannot be reflected.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The contract cannot be read.
    #[error(transparent)]
    Contract(#[from] gateway::Error),
    /// A setting of the config file cannot be used; with its line.
    #[error("{0}")]
    Setting(String),
    /// A setting needs a feature that this build leaves out; with its line.
    #[error("{0}")]
    NotBuilt(String),
    /// A setting of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] ::tls::Mistake),
    /// A setting of tools, search or sources cannot be used.
    #[error(transparent)]
    Unusable(#[from] SettingError),
    /// The stored tokens cannot be read.
    #[error("cannot read the tokens: {0}")]
    Tokens(::tokens::Error),
    /// The stored namespaces cannot be read.
    #[error("cannot read the namespaces: {0}")]
    Namespaces(::namespaces::Error),
    /// The audit trail cannot be read or written.
    #[error("the audit trail: {0}")]
    Audit(audit::Error),
    /// Callers on other machines would not be told apart, or not safely.
    #[error("the server does not listen on {address}, where other machines reach it: {why}")]
    Unsafe {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// The stored sources cannot be read.
    #[error(transparent)]
    Sync(#[from] ::sync::Error),
    /// The address that it listens on cannot be announced.
    #[error("cannot write where the server listens: {0}")]
    Announce(std::io::Error),
    /// Nothing can run solutions.
    #[error("cannot identify this program: {0}")]
    Sandbox(std::io::Error),
    /// A route of the contract cannot be read.
    #[error(transparent)]
    Route(#[from] gateway::TemplateError),
}

impl StartError {
    /// Puts the file and line of a setting in front of what is wrong with it.
    pub(super) fn located(self, places: &SettingLocations) -> Self {
        let key = match &self {
            Self::Tls(error) => error.key(),
            Self::Unusable(error) => &error.key,
            _ => return self,
        };
        Self::Setting(format!("{}{self}", places.at(key)))
    }
}
