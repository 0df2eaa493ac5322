//! All issuers of a server, and the callers of their tokens.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use quick_cache::sync::Cache;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::claims::{is_for, principal, rights, valid_until};
use crate::config::{IssuerConfig, PublicUrl, ScopeUse, check};
use crate::issuer::Issuer;
use crate::verify::{UnverifiedToken, is_jwt, peek, verified};
use crate::{ConfigError, ProtectedResource, Refused, crypto};
use access::Caller;
use model::Digest;

/// Verified tokens in the cache.
const TOKEN_CACHE_CAPACITY: usize = 10_000;

/// A text in the form of a JWT, which may be one of an issuer's.
pub struct Jwt {
    text: String,
    /// Its key in the cache: hashed once for all that is asked of it.
    digest: Digest,
    /// The issuers when it was presented. A reload between two questions changes no answer.
    of: Arc<Inner>,
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").finish_non_exhaustive()
    }
}

/// A wait before a call's token is checked.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The issuers whose tokens a server accepts. Cheap to clone.
#[derive(Clone)]
pub struct Issuers(Arc<Current>);

struct Current {
    now: ArcSwap<Inner>,
    /// Notified when the issuers change.
    changed: Notify,
}

/// The issuers of a config file as it was read.
struct Inner {
    issuers: Vec<Arc<Issuer>>,
    remembered: Cache<Digest, Arc<Remembered>>,
    /// The metadata for clients, with the address by which they know the server.
    resource: Arc<ProtectedResource>,
}

/// A token that was verified.
struct Remembered {
    caller: Arc<Caller>,
    until: Timestamp,
    issuer: Arc<Issuer>,
    /// The version of the keys that verified it.
    version: u64,
}

impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.0.now.load();
        let names = now.issuers.iter().map(|it| &it.config.name.0);
        f.debug_list().entries(names).finish()
    }
}

impl Issuers {
    /// Makes the issuers of a server that its clients know by an address.
    ///
    /// # Errors
    /// They cannot be used together.
    pub fn new(
        configs: &[IssuerConfig],
        public_url: Option<&PublicUrl>,
    ) -> Result<Self, ConfigError> {
        crypto::provide();
        let now = Inner::new(configs, public_url, &[])?;
        Ok(Self(Arc::new(Current {
            now: ArcSwap::from_pointee(now),
            changed: Notify::new(),
        })))
    }

    /// Accepts tokens of these issuers from now on. What was begun with a token of one that is
    /// gone, or has other settings, ends.
    ///
    /// # Errors
    /// They cannot be used together; those that were there stay.
    pub fn set(&self, configs: &[IssuerConfig]) -> Result<(), ConfigError> {
        let before = self.0.now.load_full();
        let now = Inner::new(
            configs,
            before.resource.public_url.as_ref(),
            &before.issuers,
        )?;
        // First the new set, then the withdrawals: a call in between finds the new rules, and one
        // that was just accepted by the old ones ends at once.
        let stay = now.issuers.clone();
        self.0.now.store(Arc::new(now));
        for issuer in &before.issuers {
            if !stay.iter().any(|one| Arc::ptr_eq(one, issuer)) {
                issuer.withdraw();
            }
        }
        self.0.changed.notify_one();
        Ok(())
    }

    /// Returns the credential as a JWT, of an issuer or not, if it has that form and there are
    /// issuers.
    #[must_use]
    pub fn jwt(&self, token: &str) -> Option<Jwt> {
        let of = self.0.now.load();
        (!of.issuers.is_empty() && is_jwt(token)).then(|| Jwt {
            text: token.to_owned(),
            digest: Digest::of(token.as_bytes()),
            of: Arc::clone(&of),
        })
    }

    /// Keeps the keys of all issuers up to date, until it is stopped.
    pub async fn keep(&self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let mut kept: Vec<Arc<Issuer>> = Vec::new();
        while !stop.is_cancelled() {
            let now = self.0.now.load_full();
            for issuer in &now.issuers {
                // One that stays across a reload has its task already.
                if !kept.iter().any(|one| Arc::ptr_eq(one, issuer)) {
                    tasks.spawn(Arc::clone(issuer).keep(stop.clone()));
                }
            }
            kept.clone_from(&now.issuers);
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.0.changed.notified() => {}
                Some(ended) = tasks.join_next() => log_end(ended),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            log_end(ended);
        }
    }

    /// What to wait for before a token is checked: keys that are not known yet. `None`: it
    /// can be checked now.
    #[must_use]
    pub fn waiting(&self, jwt: &Jwt) -> Option<Waiting> {
        jwt.of.waiting(jwt)
    }

    /// Returns the caller of a token.
    ///
    /// # Errors
    /// It is not accepted.
    pub fn recognize(&self, jwt: &Jwt, now: Timestamp) -> Result<Arc<Caller>, Refused> {
        jwt.of.recognize(jwt, now)
    }

    /// The metadata of the server for OAuth clients.
    #[must_use]
    pub fn resource(&self) -> Arc<ProtectedResource> {
        Arc::clone(&self.0.now.load().resource)
    }
}

/// Logs that a task which kept the keys of an issuer has failed.
fn log_end(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the keys of an issuer are no longer fetched");
    }
}

impl Inner {
    /// An issuer with the same settings as before keeps its keys and its callers' streams.
    fn new(
        configs: &[IssuerConfig],
        public_url: Option<&PublicUrl>,
        before: &[Arc<Issuer>],
    ) -> Result<Self, ConfigError> {
        check(configs, public_url)?;
        let issuer = |config: &IssuerConfig| {
            let same = before.iter().find(|issuer| issuer.config == *config);
            match same {
                Some(issuer) => Ok(Arc::clone(issuer)),
                None => Issuer::new(config.clone()).map(Arc::new),
            }
        };
        let issuers: Result<Vec<_>, _> = configs.iter().map(issuer).collect();
        let resource = ProtectedResource {
            public_url: public_url.cloned(),
            issuers: configs.iter().map(|it| it.issuer.text.clone()).collect(),
            has_scopes: configs.iter().any(|it| it.scopes == ScopeUse::Require),
        };
        Ok(Self {
            issuers: issuers?,
            remembered: Cache::new(TOKEN_CACHE_CAPACITY),
            resource: Arc::new(resource),
        })
    }

    fn waiting(&self, jwt: &Jwt) -> Option<Waiting> {
        if self.remembered(&jwt.digest).is_some() {
            return None;
        }
        let token = peek(&jwt.text).ok()?;
        let wait = self.issuer(&token)?.wait_for(token.kid.as_deref())?;
        Some(Box::pin(wait))
    }

    fn recognize(&self, jwt: &Jwt, now: Timestamp) -> Result<Arc<Caller>, Refused> {
        let Jwt { text, digest, .. } = jwt;
        if let Some(known) = self.remembered(digest).filter(|known| now < known.until) {
            return Ok(Arc::clone(&known.caller));
        }
        let token = peek(text)?;
        let issuer = self.issuer(&token).ok_or(Refused::Issuer)?;
        let config = &issuer.config;
        let keys = issuer.keys();
        let keys = keys.ok_or_else(|| Refused::Unavailable(config.name.0.clone()))?;
        let (claims, key) = verified(text, &token, &keys)?;
        // RFC 8705 and 9449: whoever stole such a token could not use it at a server that checks
        // the key. Here a thief would pass, so it is refused.
        if claims.contains_key("cnf") {
            return Err(Refused::Bound);
        }
        if !is_for(&claims, config, self.resource.public_url.as_ref()) {
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
        // Only accepted tokens: with refusals an attacker could push those of all callers out of
        // the cache.
        self.remembered.insert(*digest, Arc::new(known));
        Ok(caller)
    }

    fn issuer(&self, token: &UnverifiedToken) -> Option<&Arc<Issuer>> {
        let mut issuers = self.issuers.iter();
        issuers.find(|issuer| issuer.config.issuer.text == token.issuer)
    }

    /// Finds a token in the cache that was verified by the keys that its issuer still has.
    fn remembered(&self, digest: &Digest) -> Option<Arc<Remembered>> {
        // Other keys may mean that this token's key was withdrawn, so it is verified again.
        let known = self.remembered.get(digest)?;
        let keys = known.issuer.keys();
        keys.is_some_and(|keys| keys.version == known.version)
            .then_some(known)
    }
}
