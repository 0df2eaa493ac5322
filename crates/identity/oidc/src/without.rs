//! The same names without issuers, for builds without the feature.

use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::config::{IssuerConfig, PublicUrl, check};
use crate::{ConfigError, ProtectedResource, Refused};
use access::Caller;

/// A token of an issuer: there is none.
#[derive(Debug)]
pub enum Jwt {}

/// A wait before a call's token is checked.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The issuers whose tokens a server accepts: none.
#[derive(Debug, Clone)]
pub struct Issuers {
    resource: Arc<ProtectedResource>,
}

impl Issuers {
    /// Makes a server without issuers.
    ///
    /// # Errors
    /// There are some.
    pub fn new(
        configs: &[IssuerConfig],
        public_url: Option<&PublicUrl>,
    ) -> Result<Self, ConfigError> {
        check(configs, public_url)?;
        none(configs)?;
        let resource = ProtectedResource {
            public_url: public_url.cloned(),
            issuers: Vec::new(),
            has_scopes: false,
        };
        Ok(Self {
            resource: Arc::new(resource),
        })
    }

    /// Refuses issuers.
    ///
    /// # Errors
    /// There are some.
    pub fn set(&self, configs: &[IssuerConfig]) -> Result<(), ConfigError> {
        none(configs)
    }

    /// Takes no text for a token.
    #[must_use]
    pub fn jwt(&self, _shown: &str) -> Option<Jwt> {
        None
    }

    /// Waits until it is stopped: there are no keys to keep.
    pub async fn keep(&self, stop: CancellationToken) {
        stop.cancelled().await;
    }

    /// There is nothing to wait for.
    #[must_use]
    pub fn waiting(&self, jwt: &Jwt) -> Option<Waiting> {
        match *jwt {}
    }

    /// Returns the caller of a token.
    ///
    /// # Errors
    /// Never: there is no such token.
    pub fn recognize(&self, jwt: &Jwt, _now: Timestamp) -> Result<Arc<Caller>, Refused> {
        match *jwt {}
    }

    /// The metadata of the server for OAuth clients.
    #[must_use]
    pub fn resource(&self) -> Arc<ProtectedResource> {
        Arc::clone(&self.resource)
    }
}

fn none(configs: &[IssuerConfig]) -> Result<(), ConfigError> {
    if configs.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::NotBuilt)
    }
}
