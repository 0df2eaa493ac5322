//! All issuers of a server, and whom their tokens are of.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use quick_cache::sync::Cache;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::claims::{is_for, principal, rights, valid_until};
use crate::config::{IssuerConfig, PublicUrl, ScopeUse, check};
use crate::issuer::Issuer;
use crate::verify::{Shown, is_jwt, peek, verified};
use crate::{ConfigError, ProtectedResource, Refused, crypto};
use access::Caller;
use model::Digest;

/// Verified tokens that are remembered.
const REMEMBERED: usize = 10_000;

/// What has the form of a JWT, and may be one of an issuer's.
pub struct Jwt {
    text: String,
    /// By which it is remembered: made once for all that is asked of it.
    digest: Digest,
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").finish_non_exhaustive()
    }
}

/// What a call waits for before its token is looked at.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The issuers whose tokens a server accepts. Cheap to clone.
#[derive(Clone)]
pub struct Issuers(Arc<Inner>);

struct Inner {
    issuers: Vec<Arc<Issuer>>,
    public_url: Option<PublicUrl>,
    remembered: Cache<Digest, Arc<Remembered>>,
}

/// A token that was verified.
struct Remembered {
    caller: Arc<Caller>,
    until: Timestamp,
    issuer: Arc<Issuer>,
    /// The keys by which it was.
    version: u64,
}

impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.issuers.iter().map(|it| &it.config.name.0);
        f.debug_list().entries(names).finish()
    }
}

impl Issuers {
    /// The issuers of a server that its clients know by an address.
    ///
    /// # Errors
    /// They cannot be used together.
    pub fn new(
        configs: &[IssuerConfig],
        public_url: Option<&PublicUrl>,
    ) -> Result<Self, ConfigError> {
        check(configs, public_url)?;
        crypto::provide();
        let issuers = configs.iter().cloned().map(Issuer::new);
        let issuers: Result<Vec<_>, _> = issuers.map(|it| it.map(Arc::new)).collect();
        Ok(Self(Arc::new(Inner {
            issuers: issuers?,
            public_url: public_url.cloned(),
            remembered: Cache::new(REMEMBERED),
        })))
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.issuers.is_empty()
    }

    /// What is shown, where it is a JWT, of an issuer or not, and there are issuers.
    #[must_use]
    pub fn jwt(&self, shown: &str) -> Option<Jwt> {
        (!self.is_empty() && is_jwt(shown)).then(|| Jwt {
            text: shown.to_owned(),
            digest: Digest::of(shown.as_bytes()),
        })
    }

    /// Keeps the keys of all issuers up to date, until it is stopped.
    pub async fn keep(&self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        for issuer in &self.0.issuers {
            tasks.spawn(Arc::clone(issuer).keep(stop.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the keys of an issuer are no longer fetched");
            }
        }
    }

    /// What to wait for before a token is looked at: keys that are not known yet. None: it
    /// can be looked at now.
    #[must_use]
    pub fn waiting(&self, jwt: &Jwt) -> Option<Waiting> {
        if self.remembered(&jwt.digest).is_some() {
            return None;
        }
        let shown = peek(&jwt.text).ok()?;
        let wait = self.issuer(&shown)?.wait_for(shown.kid.as_deref())?;
        Some(Box::pin(wait))
    }

    /// Whose token this is.
    ///
    /// # Errors
    /// It is not accepted.
    pub fn recognize(&self, jwt: &Jwt, now: Timestamp) -> Result<Arc<Caller>, Refused> {
        let Jwt { text, digest } = jwt;
        if let Some(known) = self.remembered(digest).filter(|known| now < known.until) {
            return Ok(Arc::clone(&known.caller));
        }
        let shown = peek(text)?;
        let issuer = self.issuer(&shown).ok_or(Refused::Issuer)?;
        let config = &issuer.config;
        let keys = issuer.keys();
        let keys = keys.ok_or_else(|| Refused::Unavailable(config.name.0.clone()))?;
        let (claims, key) = verified(text, &shown, &keys)?;
        if claims.contains_key("cnf") {
            return Err(Refused::Bound);
        }
        if !is_for(&claims, config, self.0.public_url.as_ref()) {
            return Err(Refused::Audience);
        }
        let until = valid_until(&claims, now)?;
        let (rights, scope) = rights(&claims, config);
        let caller = Arc::new(Caller {
            expires_at: Some(until),
            ended: key.withdrawn.clone(),
            scope,
            ..Caller::new(principal(&claims, config)?, rights)
        });
        let known = Remembered {
            caller: Arc::clone(&caller),
            until,
            issuer: Arc::clone(issuer),
            version: keys.version,
        };
        self.0.remembered.insert(*digest, Arc::new(known));
        Ok(caller)
    }

    fn issuer(&self, shown: &Shown) -> Option<&Arc<Issuer>> {
        let mut issuers = self.0.issuers.iter();
        issuers.find(|issuer| issuer.config.issuer.text == shown.issuer)
    }

    /// A token that was verified by the keys that its issuer still has.
    fn remembered(&self, digest: &Digest) -> Option<Arc<Remembered>> {
        let known = self.0.remembered.get(digest)?;
        let keys = known.issuer.keys();
        keys.is_some_and(|keys| keys.version == known.version)
            .then_some(known)
    }

    /// What clients of OAuth are told of the server.
    #[must_use]
    pub fn resource(&self) -> ProtectedResource {
        let configs = || self.0.issuers.iter().map(|issuer| &issuer.config);
        ProtectedResource {
            public_url: self.0.public_url.clone(),
            issuers: configs().map(|it| it.issuer.text.clone()).collect(),
            has_scopes: configs().any(|it| it.scopes == ScopeUse::Require),
        }
    }
}
