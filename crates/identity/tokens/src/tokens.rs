//! The tokens of a server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use imbl::{HashMap, OrdMap};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{Error, Secret, Unrecognized};
use access::{Caller, Rights};
use model::{Digest, Principal};
use store::{Batch, Expect, Store, Table, TableId, to_the_end};

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

/// A token in memory, with the fields that change without a write.
struct Entry {
    token: Token,
    caller: Arc<Caller>,
    /// The second at which it was last used, to the minute; 0: not yet.
    used: AtomicI64,
    /// The same as the store has it.
    written: AtomicI64,
}

impl Entry {
    fn new(token: Token) -> Arc<Self> {
        let used = token.last_used_at.map_or(0, Timestamp::as_second);
        Arc::new(Self {
            caller: Arc::new(Caller {
                principal: Principal::token(&token.name),
                rights: token.rights.clone(),
                expires_at: token.expires_at,
                ended: CancellationToken::new(),
                scope: None,
            }),
            used: AtomicI64::new(used),
            written: AtomicI64::new(used),
            token,
        })
    }

    /// The token with its last use.
    fn now(&self) -> Token {
        let used = self.used.load(Ordering::Relaxed);
        Token {
            last_used_at: Timestamp::from_second(used).ok().filter(|_| used > 0),
            ..self.token.clone()
        }
    }
}

/// Persistent maps: a copy with one token more shares the rest.
#[derive(Default, Clone)]
struct TokenIndex {
    by_name: OrdMap<String, Arc<Entry>>,
    by_digest: HashMap<Digest, Arc<Entry>>,
}

impl TokenIndex {
    fn add(&mut self, entry: Arc<Entry>) {
        self.by_digest
            .insert(entry.token.digest, Arc::clone(&entry));
        self.by_name.insert(entry.token.name.clone(), entry);
    }
}

/// The tokens of a server. Cheap to clone.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    store: Store,
    known: ArcSwap<TokenIndex>,
    /// One write at a time: else `write_uses` could put a token back that was just revoked.
    writing: Mutex<()>,
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
        let mut known = TokenIndex::default();
        for entry in store.scan(&TOKENS, b"") {
            known.add(Entry::new(entry?.1.value));
        }
        Ok(Self(Arc::new(Inner {
            store,
            known: ArcSwap::from_pointee(known),
            writing: Mutex::new(()),
        })))
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
        if let Some(expired) = entry.token.expires_at.filter(|expires| *expires <= now) {
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
        // The caller may cancel meanwhile. A token that was stored and is not known here
        // would be refused until a restart.
        to_the_end(async move { this.add(token).await }).await
    }

    async fn add(&self, token: Token) -> Result<Token, Error> {
        let _writing = self.0.writing.lock().await;
        let known = self.0.known.load_full();
        if known.by_name.contains_key(&token.name) {
            return Err(Error::Exists { name: token.name });
        }
        if known.by_name.len() >= MAX_TOKENS {
            return Err(Error::TooMany { max: MAX_TOKENS });
        }
        if let Some(used) = self.0.store.get(&USED_NAMES, &token.name)? {
            let (name, created_at) = (token.name, used.value);
            return Err(Error::Used { name, created_at });
        }
        let mut batch = Batch::new();
        // Every write also states what it read, so that a mistake here, or another writer, can
        // never replace a token.
        batch.expect(&TOKENS, &token.name, Expect::Absent);
        batch.expect(&USED_NAMES, &token.name, Expect::Absent);
        batch.put(&TOKENS, &token.name, &token);
        self.0.store.commit(batch).await?;
        // Only when it is durable: a token must not work and be gone after a power cut.
        self.change(|known| known.add(Entry::new(token.clone())));
        Ok(token)
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
    /// There is none of this name, or the store cannot be written.
    pub async fn rotate(
        &self,
        name: &str,
        secret: &Secret,
        expires_at: Option<Timestamp>,
    ) -> Result<Token, Error> {
        let (this, name, digest) = (self.clone(), name.to_owned(), secret.digest());
        let rotate = async move {
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
        with: impl FnOnce(Token) -> Option<Token>,
    ) -> Result<Token, Error> {
        let _writing = self.0.writing.lock().await;
        let not_found = || Error::NotFound {
            name: name.to_owned(),
        };
        let entry = self.0.known.load().by_name.get(name).cloned();
        let entry = entry.ok_or_else(not_found)?;
        let stored = self.0.store.get(&TOKENS, name)?.ok_or_else(not_found)?;
        let mut batch = Batch::new();
        batch.expect(&TOKENS, name, Expect::Revision(stored.revision));
        let token = entry.now();
        let created_at = token.created_at;
        let next = with(token);
        if let Some(next) = &next {
            batch.put(&TOKENS, name, next);
        } else {
            batch.delete(&TOKENS, name);
            batch.put(&USED_NAMES, name, &created_at);
        }
        self.0.store.commit(batch).await?;
        self.change(|known| {
            known.by_name.remove(name);
            known.by_digest.remove(&entry.token.digest);
            if let Some(next) = &next {
                known.add(Entry::new(next.clone()));
            }
        });
        // Last: a stream that ends here and connects again at once must find the token gone.
        entry.caller.ended.cancel();
        Ok(next.unwrap_or_else(|| entry.now()))
    }

    /// Stores when tokens were last used.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn write_uses(&self) -> Result<(), Error> {
        let _writing = self.0.writing.lock().await;
        let mut batch = Batch::new();
        let mut written = Vec::new();
        for entry in self.0.known.load().by_name.values() {
            let used = entry.used.load(Ordering::Relaxed);
            // A use while this runs is stored by the next call: `written` then has the older
            // minute.
            if used == entry.written.load(Ordering::Relaxed) {
                continue;
            }
            // From the store: a token that another writer has replaced or revoked stays so.
            if let Some(stored) = self.0.store.get(&TOKENS, &entry.token.name)? {
                let last_used_at = entry.now().last_used_at;
                let token = Token {
                    last_used_at,
                    ..stored.value
                };
                batch.expect(&TOKENS, &token.name, Expect::Revision(stored.revision));
                batch.put(&TOKENS, &token.name, &token);
                written.push((Arc::clone(entry), used));
            }
        }
        if written.is_empty() {
            return Ok(());
        }
        self.0.store.commit(batch).await?;
        // Only after the commit: if that fails, the next call tries again.
        for (entry, used) in written {
            entry.written.store(used, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Replaces the index. The caller holds `writing`, so no other change is lost.
    fn change(&self, change: impl FnOnce(&mut TokenIndex)) {
        let mut known = TokenIndex::clone(&self.0.known.load());
        change(&mut known);
        self.0.known.store(Arc::new(known));
    }
}
