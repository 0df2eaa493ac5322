//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{EmbedderError, SourcesError, ToolsError};
use config_file::SettingLocations;

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] store::OpenError),
    /// What is stored cannot be read.
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
    /// Who calls cannot be signed for workers.
    #[error(transparent)]
    CallerKey(#[from] caller_tokens::NoKey),
    /// The contract cannot be reflected.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The contract cannot be read.
    #[error(transparent)]
    Contract(#[from] gateway::Error),
    /// A setting of the config file cannot be used; it says where it is.
    #[error("{0}")]
    Setting(String),
    /// A setting asks for what this build leaves out; it says where it is.
    #[error("{0}")]
    NotBuilt(String),
    /// A setting of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] ::tls::Mistake),
    /// A setting of the tools cannot be used.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// The model of the search cannot be used.
    #[error(transparent)]
    Embedder(#[from] EmbedderError),
    /// A source of the settings cannot be used.
    #[error(transparent)]
    Source(#[from] SourcesError),
    /// What is known of tokens cannot be read.
    #[error("cannot read the tokens: {0}")]
    Tokens(::tokens::Error),
    /// What is said of namespaces cannot be read.
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
    /// What is known of sources cannot be read.
    #[error(transparent)]
    Sync(#[from] ::sync::Error),
    /// Nobody can be told where it listens.
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
    /// What is wrong with a setting says where in the file it is.
    pub(super) fn located(self, places: &SettingLocations) -> Self {
        let key = match &self {
            Self::Tls(error) => error.key(),
            Self::Tools(error) => error.key(),
            Self::Embedder(_) => EmbedderError::KEY,
            Self::Source(error) => error.key(),
            _ => return self,
        };
        Self::Setting(format!("{}{self}", places.at(key)))
    }
}
