//! Issuers of a server: this build leaves them out.

use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::config::{IssuerConfig, PublicUrl, check};
use crate::{ConfigError, ProtectedResource, Refused};
use access::Caller;

/// What may be a token of an issuer: nothing is.
#[derive(Debug)]
pub enum Jwt {}

/// What a call waits for before its token is looked at.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The issuers whose tokens a server accepts: none.
#[derive(Debug, Clone)]
pub struct Issuers {
    resource: Arc<ProtectedResource>,
}

impl Issuers {
    /// None of them.
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

    /// There are none still.
    ///
    /// # Errors
    /// There are some.
    pub fn set(&self, configs: &[IssuerConfig]) -> Result<(), ConfigError> {
        none(configs)
    }

    /// No token is of one.
    #[must_use]
    pub fn jwt(&self, _shown: &str) -> Option<Jwt> {
        None
    }

    /// Has nothing to keep.
    pub async fn keep(&self, stop: CancellationToken) {
        stop.cancelled().await;
    }

    /// There is nothing to wait for.
    #[must_use]
    pub fn waiting(&self, jwt: &Jwt) -> Option<Waiting> {
        match *jwt {}
    }

    /// Nobody's.
    ///
    /// # Errors
    /// Never: there is no such token.
    pub fn recognize(&self, jwt: &Jwt, _now: Timestamp) -> Result<Arc<Caller>, Refused> {
        match *jwt {}
    }

    /// What clients of OAuth are told of the server.
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
