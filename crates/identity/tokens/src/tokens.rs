//! The tokens of a server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use imbl::{HashMap, OrdMap};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{Error, Secret, Unrecognized};
use access::{Caller, Rights};
use model::{Digest, Principal};
use store::{
    Batch, Change, CommitError, Expect, Fold, Mirror, Store, Stored, Table, TableId, to_the_end,
};

/// By name.
const TOKENS: Table<str, Token> = Table::new(TableId::Tokens);
/// Names of revoked tokens, with the time at which the token was created. Never removed: a caller is
/// known by the name of its token, so whoever got it next would own what that one owned.
const USED_NAMES: Table<str, Timestamp> = Table::new(TableId::UsedTokenNames);
/// The most tokens: all are in memory, and a list has all.
pub(crate) const MAX_TOKENS: usize = 10_000;
/// The most characters of a name.
const MAX_NAME: usize = 64;
const SECONDS_PER_MINUTE: i64 = 60;

/// A token, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// SHA-256 of its random bytes.
    digest: Digest,
    /// Its rights.
    pub rights: Rights,
    /// When it was created.
    pub created_at: Timestamp,
    /// The caller that created it.
    pub created_by: Principal,
    /// When it expires; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// Its rights.
    pub rights: Rights,
    /// When it expires; none: never.
    pub expires_at: Option<Timestamp>,
}

/// A token in memory, with the time of its last use.
struct Entry {
    /// As the store has it.
    stored: Stored<Token>,
    caller: Arc<Caller>,
    /// The second at which it was last used, to the minute; 0: not yet. It grows with calls, and
    /// is that of the store as soon as it is written. Shared by all entries of one token.
    used: Arc<AtomicI64>,
}

impl Entry {
    fn new(stored: Stored<Token>) -> Self {
        let token = &stored.value;
        Self {
            caller: Arc::new(Caller {
                principal: Principal::token(&token.name),
                rights: token.rights.clone(),
                expires_at: token.expires_at,
                ended: CancellationToken::new(),
                scope: None,
            }),
            used: Arc::new(AtomicI64::new(seconds(token.last_used_at))),
            stored,
        }
    }

    /// The entry after a write of its token. None: the write made another token of its name.
    fn renewed(&self, stored: &Stored<Token>) -> Option<Self> {
        let same = Token {
            last_used_at: stored.value.last_used_at,
            ..self.stored.value.clone()
        };
        if same != stored.value {
            return None;
        }
        self.used
            .fetch_max(seconds(stored.value.last_used_at), Ordering::Relaxed);
        Some(Self {
            stored: stored.clone(),
            caller: Arc::clone(&self.caller),
            used: Arc::clone(&self.used),
        })
    }

    /// The token with its last use.
    fn now(&self) -> Token {
        let used = self.used.load(Ordering::Relaxed);
        Token {
            last_used_at: Timestamp::from_second(used).ok().filter(|_| used > 0),
            ..self.stored.value.clone()
        }
    }
}

fn seconds(time: Option<Timestamp>) -> i64 {
    time.map_or(0, Timestamp::as_second)
}

/// Persistent maps: a copy with one token more shares the rest.
#[derive(Default, Clone)]
struct TokenIndex {
    by_name: OrdMap<String, Arc<Entry>>,
    by_digest: HashMap<Digest, Arc<Entry>>,
    /// The callers of tokens that went with the last change.
    ended: Vec<Arc<Caller>>,
}

impl Fold for TokenIndex {
    type Record = Token;

    fn fold(&self, changes: Vec<Change<Token>>) -> Self {
        let mut next = Self {
            ended: Vec::new(),
            ..self.clone()
        };
        for Change { key, stored } in changes {
            let before = next.by_name.remove(&key);
            let renewed = stored.as_ref().zip(before.as_ref());
            let renewed = renewed.and_then(|(stored, before)| before.renewed(stored));
            if let Some(before) = before.filter(|_| renewed.is_none()) {
                next.by_digest.remove(&before.stored.value.digest);
                next.ended.push(Arc::clone(&before.caller));
            }
            if let Some(entry) = renewed.or_else(|| stored.map(Entry::new)) {
                let entry = Arc::new(entry);
                next.by_digest
                    .insert(entry.stored.value.digest, Arc::clone(&entry));
                next.by_name.insert(key, entry);
            }
        }
        next
    }

    fn shown(&self) {
        // Only now: a stream that ends here and connects again at once must find the token gone.
        for caller in &self.ended {
            caller.ended.cancel();
        }
    }
}

/// The tokens of a server. Cheap to clone.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    store: Store,
    known: Mirror<TokenIndex>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_right) {
        return Ok(());
    }
    Err(Error::Parameter {
        field: "name",
        message: format!("a name has 1 to {MAX_NAME} letters, digits, `.`, `_` and `-`"),
    })
}

impl Tokens {
    /// Opens the tokens of a store.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn open(store: Store) -> Result<Self, Error> {
        let known = store.follow_table(&TOKENS, &TokenIndex::default())?;
        Ok(Self(Arc::new(Inner { store, known })))
    }

    /// Returns the caller of a token.
    ///
    /// # Errors
    /// It is none of this server, or has expired.
    pub fn recognize(&self, secret: &Secret, now: Timestamp) -> Result<Arc<Caller>, Unrecognized> {
        let known = self.0.known.load();
        let entry = known
            .by_digest
            // By digest, so a comparison that stops early tells an attacker nothing of the secret.
            .get(&secret.digest())
            .ok_or(Unrecognized::Unknown)?;
        let expires_at = entry.stored.value.expires_at;
        if let Some(expired) = expires_at.filter(|expires| *expires <= now) {
            return Err(Unrecognized::Expired(expired));
        }
        // After the check: a refused attempt is no use of the token.
        // To the minute, so that a busy token is written down once a minute and not with every
        // call.
        let minute = now.as_second() / SECONDS_PER_MINUTE * SECONDS_PER_MINUTE;
        // Most calls only load: a store with each call would have the processors fight over the
        // cache line of a busy token. Relaxed, and two callers may race: both write the same
        // minute.
        if entry.used.load(Ordering::Relaxed) < minute {
            entry.used.store(minute, Ordering::Relaxed);
        }
        Ok(Arc::clone(&entry.caller))
    }

    /// Creates a token with a text of random bytes.
    ///
    /// # Errors
    /// Its name is no name, or is or was that of a token; there are too many, or the store cannot
    /// be written.
    pub async fn create(
        &self,
        new: NewToken,
        secret: &Secret,
        by: &Principal,
        now: Timestamp,
    ) -> Result<Token, Error> {
        let NewToken {
            name,
            rights,
            expires_at,
        } = new;
        check_name(&name)?;
        let token = Token {
            name,
            digest: secret.digest(),
            rights,
            created_at: now,
            created_by: by.clone(),
            expires_at,
            last_used_at: None,
        };
        let this = self.clone();
        to_the_end(async move { this.add(token).await }).await
    }

    async fn add(&self, token: Token) -> Result<Token, Error> {
        let exists = |token: Token| Error::Exists { name: token.name };
        let known = self.0.known.load_full();
        if known.by_name.contains_key(&token.name) {
            return Err(exists(token));
        }
        // Two calls at once may both pass, so the limit may be exceeded by a few.
        if known.by_name.len() >= MAX_TOKENS {
            return Err(Error::TooMany { max: MAX_TOKENS });
        }
        if let Some(used) = self.0.store.get(&USED_NAMES, &token.name)? {
            let (name, created_at) = (token.name, used.value);
            return Err(Error::Used { name, created_at });
        }
        let mut batch = Batch::new();
        // Of two calls that create one name at the same moment, the store lets one through.
        batch.expect(&TOKENS, &token.name, Expect::Absent);
        batch.expect(&USED_NAMES, &token.name, Expect::Absent);
        batch.put(&TOKENS, &token.name, &token);
        match self.0.store.commit(batch).await {
            Ok(_) => Ok(token),
            Err(CommitError::Conflict { .. }) => Err(exists(token)),
            Err(error) => Err(error.into()),
        }
    }

    /// All tokens, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Token> {
        let known = self.0.known.load();
        known.by_name.values().map(|entry| entry.now()).collect()
    }

    /// Gives a token the text of other random bytes, and another time at which it expires where
    /// one is given. Its name, its rights and what belongs to it stay; what was begun with the text
    /// before ends.
    ///
    /// # Errors
    /// There is none of this name, it would have expired already, or the store cannot be written.
    pub async fn rotate(
        &self,
        name: &str,
        secret: &Secret,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Token, Error> {
        let (this, name, digest) = (self.clone(), name.to_owned(), secret.digest());
        let rotate = async move {
            let known = this.0.known.load_full();
            let known = known.by_name.get(&name).map(|entry| &entry.stored.value);
            let ends = expires_at.or_else(|| known?.expires_at);
            if ends.is_some_and(|ends| ends <= now) {
                return Err(Error::Parameter {
                    field: "expires_in_days",
                    message: "the token has expired: say for how many days its new text holds"
                        .to_owned(),
                });
            }
            let with = |token: Token| Token {
                digest,
                expires_at: expires_at.or(token.expires_at),
                ..token
            };
            this.replace(&name, |token| Some(with(token))).await
        };
        to_the_end(rotate).await
    }

    /// Revokes a token, and ends what was begun with it. Its name is not given again.
    ///
    /// # Errors
    /// There is none of this name, or the store cannot be written.
    pub async fn revoke(&self, name: &str) -> Result<Token, Error> {
        let (this, name) = (self.clone(), name.to_owned());
        to_the_end(async move { this.replace(&name, |_| None).await }).await
    }

    /// Replaces a token, or revokes it where there is none instead; returns the new one, else the
    /// old.
    async fn replace(
        &self,
        name: &str,
        with: impl Fn(Token) -> Option<Token>,
    ) -> Result<Token, Error> {
        loop {
            let stored = self.0.store.get(&TOKENS, name)?;
            let stored = stored.ok_or_else(|| Error::NotFound {
                name: name.to_owned(),
            })?;
            // With the last use, which is in memory first.
            let known = self.0.known.load().by_name.get(name).cloned();
            let known = known.filter(|entry| entry.stored.value.digest == stored.value.digest);
            let token = known.map_or(stored.value, |entry| entry.now());
            let next = with(token.clone());
            let mut batch = Batch::new();
            batch.expect(&TOKENS, name, Expect::Revision(stored.revision));
            if let Some(next) = &next {
                batch.put(&TOKENS, name, next);
            } else {
                batch.delete(&TOKENS, name);
                batch.put(&USED_NAMES, name, &token.created_at);
            }
            match self.0.store.commit(batch).await {
                Ok(_) => return Ok(next.unwrap_or(token)),
                // Its last use was written meanwhile, which happens once a minute; or it was
                // revoked.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Stores when tokens were last used.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn write_uses(&self) -> Result<(), Error> {
        let (mut batch, mut is_empty) = (Batch::new(), true);
        for (name, entry) in &self.0.known.load_full().by_name {
            let token = entry.now();
            if token.last_used_at != entry.stored.value.last_used_at {
                // A token that was revoked meanwhile must not come back.
                let revision = Expect::Revision(entry.stored.revision);
                batch.expect(&TOKENS, name, revision);
                batch.put(&TOKENS, name, &token);
                is_empty = false;
            }
        }
        if is_empty {
            return Ok(());
        }
        match self.0.store.commit(batch).await {
            // Another write was faster. The next call has the uses still.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
