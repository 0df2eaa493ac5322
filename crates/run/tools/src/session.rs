//! Sessions: which skills an agent has loaded, at which versions.
//!
//! A session is a handle that the server makes up and nobody can guess, and belongs to the
//! caller that began it: for another one it does not exist. Callers that need not
//! sign in share theirs. All sessions are in memory, within bounds; what changed is written a few
//! milliseconds later and before the server stops. Like counts of use they are this
//! server's own: no events, and a server that is killed may have forgotten the
//! last moment, in which case an agent has to load the skill again. A session
//! that was ended to stay within the bounds may come back when the server starts again, as it was
//! written some time before.
//!
//! A caller that signed in has a share of the bounds at most, and beyond it its own oldest
//! sessions end: nobody can end the sessions of others by beginning many.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Notify;

mod state;
#[cfg(test)]
mod tests;

use self::state::State;
use super::Error;
use model::{Clock, Digest, Principal, SkillId, SkillKey, VersionNumber};
use store::{Batch, CommitError, Expect, Packed, Packer, Store, StoreError, Table, TableId};

/// Sessions by their keys.
// Pages, not a record for each session: with those a third of the time of a server went into
// the store while agents began sessions.
const PAGES: Table<u64, Packed> = Table::new(TableId::Sessions);

/// The sessions of a page.
type OnPage = Vec<(Digest, Arc<Session>)>;

/// Skills that one session has at most.
pub(super) const MAX_SKILLS: usize = 64;
/// Bytes of context that one session keeps at most.
pub(super) const MAX_CONTEXT_BYTES: usize = 64 * 1024;
/// Bytes of sessions at which a page is full.
const PAGE_BYTES: usize = 24 * 1024;
/// Pages in one write.
const PAGES_PER_WRITE: usize = 16;
/// Sessions that are gone and still wait to be written, at most, on top of twice the
/// number of sessions.
const MAX_UNWRITTEN_SESSIONS: usize = 64;
/// How much older than in memory the last use of a stored session may be.
const TOUCH: SignedDuration = SignedDuration::from_mins(10);

/// Bounds of all sessions together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How long after its last use a session ends.
    pub(super) idle: SignedDuration,
    /// Sessions at most; beyond that the one unused for longest ends.
    pub(super) sessions: usize,
    /// Bytes that they take in memory, about.
    pub(super) bytes: usize,
    /// Share of one caller that signed in, of both, in percent.
    pub(super) share_percent: u8,
}

impl Bounds {
    /// The share of one caller of a bound.
    fn share(self, of: usize) -> usize {
        (of.saturating_mul(self.share_percent.into()) / 100).max(1)
    }
}

/// The key of a session: a digest of its id, so that a copy of the data opens none, and of
/// its owner.
fn key(id: &str, caller: &Principal) -> Digest {
    caller.owner().map_or_else(
        || Digest::of(id.as_bytes()),
        |owner| Digest::of(format!("{owner}\0{id}").as_bytes()),
    )
}

/// The skills that an agent has loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    /// When it began.
    pub(super) created_at: Timestamp,
    /// When it was last used.
    pub(super) used_at: Timestamp,
    /// Its skills, in the order in which they were first loaded.
    pub(super) skills: Vec<Loaded>,
    /// Digest of the caller that began it. None: one that did not sign in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<Digest>,
}

/// A skill in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// The skill.
    pub skill: SkillId,
    /// Number of the version.
    pub number: VersionNumber,
    /// Digest of the version.
    pub digest: Digest,
    /// It came from a folder of the caller, which no other caller may learn of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_local: bool,
    /// The short name by which it was last loaded; empty: it was by its id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub short_name: String,
    /// How often it was loaded.
    pub count: u32,
    /// When this version was loaded.
    pub loaded_at: Timestamp,
    /// Context that its handler gets with every call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub context: Map<String, Value>,
}

impl Session {
    /// A skill of the session.
    pub(super) fn loaded(&self, skill: &SkillKey) -> Option<&Loaded> {
        self.skills
            .iter()
            .find(|loaded| loaded.skill.key() == *skill)
    }

    /// Bytes that it takes, about.
    fn weight(&self) -> usize {
        let skill = |loaded: &Loaded| {
            let names = loaded.skill.as_str().len() + loaded.short_name.len();
            200 + names + size(&loaded.context)
        };
        300 + self.skills.iter().map(skill).sum::<usize>()
    }
}

/// Bytes of a context as JSON.
pub(super) fn size(context: &Map<String, Value>) -> usize {
    if context.is_empty() {
        return 0;
    }
    serde_json::to_vec(context).map_or(usize::MAX, |json| json.len())
}

/// All sessions.
pub(super) struct Sessions {
    store: Store,
    clock: Arc<dyn Clock>,
    bounds: Bounds,
    /// Notified of each session that waits to be written.
    pub(super) pending: Notify,
    state: Mutex<State>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// Reads those that are stored.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub(super) fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        bounds: Bounds,
    ) -> Result<Self, StoreError> {
        let mut state = State::default();
        for entry in store.scan(&PAGES, b"") {
            let (key, stored) = entry?;
            let Some(number) = key.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)) else {
                continue;
            };
            let page: OnPage = stored.value.unpack().map_err(|error| StoreError::Damaged {
                key: format!("{} {number}", TableId::Sessions.name()),
                reason: error.to_string(),
            })?;
            let keys = page.iter().map(|(key, _)| *key).collect();
            // Pages are scanned by number, so the latest page that has a session wins.
            for (key, session) in page {
                state.put(key, session);
            }
            state.written(number, keys);
        }
        let sessions = Self {
            store,
            clock,
            bounds,
            pending: Notify::new(),
            state: Mutex::new(state),
        };
        sessions.with(|state| {
            sessions.end(state);
            let owners: Vec<_> = state.of_owners.keys().copied().collect();
            for owner in owners {
                sessions.make_room(state, Some(owner));
            }
            sessions.make_room(state, None);
        });
        Ok(sessions)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A caller's session and its last use, which is now.
    ///
    /// # Errors
    /// The caller has no such session, or it has ended.
    pub(super) fn get(&self, id: &str, caller: &Principal) -> Result<Arc<Session>, Error> {
        let (key, now) = (key(id, caller), self.clock.now());
        self.with(|state| {
            let session = self.alive(state, &key, now)?;
            // To the second is near enough, and spares most calls the work.
            if session.used_at.duration_until(now) < SignedDuration::from_secs(1) {
                return Some(session);
            }
            let written = session.used_at.duration_until(now) < TOUCH;
            let mut used = (*session).clone();
            // A clock that was set back must not age a session.
            used.used_at = now.max(used.used_at);
            let used = Arc::new(used);
            state.put(key, Arc::clone(&used));
            if !written {
                state.differs(key);
                self.pending.notify_one();
            }
            Some(used)
        })
        .ok_or_else(|| Error::no_session(id))
    }

    fn alive(&self, state: &State, key: &Digest, now: Timestamp) -> Option<Arc<Session>> {
        let session = &state.sessions.get(key)?.session;
        (session.used_at.duration_until(now) < self.bounds.idle).then(|| Arc::clone(session))
    }

    /// When a session ends unless it is used before.
    pub(super) fn expires_at(&self, session: &Session) -> Timestamp {
        session
            .used_at
            .checked_add(self.bounds.idle)
            .unwrap_or(Timestamp::MAX)
    }

    /// Changes a caller's session, whole or not at all; without an id a new one. Gives
    /// its id.
    ///
    /// # Errors
    /// The caller has no such session, or the change is refused.
    pub(super) fn change<T>(
        &self,
        id: &str,
        caller: &Principal,
        change: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Result<(String, Arc<Session>, T), Error> {
        let now = self.clock.now();
        let is_new = id.is_empty();
        let id = if is_new {
            // Of a generator in the process (ChaCha, seeded by the system), which spares
            // a system call and can be guessed as little.
            uuid::Uuid::new_v4().simple().to_string()
        } else {
            id.to_owned()
        };
        let key = key(&id, caller);
        self.with(|state| {
            let mut session = if is_new {
                Session {
                    created_at: now,
                    used_at: now,
                    // Most have one, and there are many.
                    skills: Vec::with_capacity(1),
                    owner: caller.owner().map(|owner| Digest::of(owner.as_bytes())),
                }
            } else {
                let session = self.alive(state, &key, now);
                (*session.ok_or_else(|| Error::no_session(&id))?).clone()
            };
            let outcome = change(&mut session)?;
            if session.skills.len() > MAX_SKILLS {
                return Err(Error::SessionFull);
            }
            let context = session.skills.iter().map(|skill| size(&skill.context));
            if context.sum::<usize>() > MAX_CONTEXT_BYTES {
                return Err(Error::ContextTooLarge {
                    bytes: MAX_CONTEXT_BYTES,
                });
            }
            session.used_at = now.max(session.used_at);
            let session = Arc::new(session);
            state.put(key, Arc::clone(&session));
            state.differs(key);
            self.pending.notify_one();
            self.make_room(state, session.owner);
            Ok((id, session, outcome))
        })
    }

    /// Ends sessions until an owner is within its share, and all are within the bounds.
    fn make_room(&self, state: &mut State, owner: Option<Digest>) {
        let bounds = self.bounds;
        let share = (bounds.share(bounds.sessions), bounds.share(bounds.bytes));
        // A caller above its share gives up its own oldest first, so that nobody pushes out
        // the sessions of others.
        while let Some(owner) = owner
            && let Some(owned) = state.of_owners.get(&owner)
            && let Some(oldest) = owned.in_excess(share.0, share.1)
        {
            state.remove(&oldest);
        }
        while let Some(oldest) = state.by_use.in_excess(bounds.sessions, bounds.bytes) {
            state.remove(&oldest);
        }
    }

    /// Ends what has run out.
    fn end(&self, state: &mut State) {
        if let Ok(limit) = self.clock.now().checked_sub(self.bounds.idle) {
            while let Some((used_at, key)) = state.by_use.order.first().copied()
                && used_at <= limit
            {
                state.remove(&key);
            }
        }
    }

    /// Ends what has run out, and writes what changed.
    ///
    /// # Errors
    /// The store refuses; what was not written waits for the next time.
    pub(super) async fn write(&self) -> Result<(), CommitError> {
        self.with(|state| {
            self.end(state);
            // The order matters: a page is removed only once everything on it is on a later page.
            state.give_up_pages();
        });
        while self.write_pages().await? {}
        self.remove_pages().await
    }

    /// Writes some of what changed; says whether there may be more.
    async fn write_pages(&self) -> Result<bool, CommitError> {
        let pages = self.with(|state| {
            let pages = std::iter::from_fn(|| {
                let page = state.page();
                (!page.is_empty()).then(|| (state.pages.number(), page))
            });
            pages.take(PAGES_PER_WRITE).collect::<Vec<_>>()
        });
        if pages.is_empty() {
            return Ok(false);
        }
        let written = match batch(&pages).await {
            Ok(batch) => self.store.commit(batch).await,
            Err(error) => Err(CommitError::Failed(error.to_string())),
        };
        self.with(|state| {
            if written.is_ok() {
                let is_full = pages.len() == PAGES_PER_WRITE;
                for (number, page) in pages {
                    let keys = page.into_iter().map(|(key, _)| key).collect();
                    state.written(number, keys);
                }
                return Ok(is_full);
            }
            // They were taken off the list of unwritten sessions when the pages were made.
            for (key, _) in pages.iter().flat_map(|(_, page)| page) {
                state.differs(*key);
            }
            match written {
                // Another writer has taken a number: the next ones are tried.
                Err(CommitError::Conflict { .. }) => Ok(true),
                other => other.map(|_| false),
            }
        })
    }

    /// Removes the pages that were given up: what was on them is written.
    async fn remove_pages(&self) -> Result<(), CommitError> {
        let given_up = self.with(|state| std::mem::take(&mut state.given_up));
        if given_up.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for number in &given_up {
            batch.delete(&PAGES, number);
        }
        let removed = self.store.commit(batch).await;
        if removed.is_err() {
            self.with(|state| state.given_up.extend(given_up));
        }
        removed.map(|_| ())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.with(|state| state.sessions.len())
    }
}

/// Packs pages into a batch.
async fn batch(pages: &[(u64, OnPage)]) -> std::io::Result<Batch> {
    let mut batch = Batch::new();
    let mut packer = Packer::new()?;
    for (number, page) in pages {
        batch.expect(&PAGES, number, Expect::Absent);
        batch.put(&PAGES, number, &packer.pack(page)?);
        // Others have their turn between two pages.
        tokio::task::yield_now().await;
    }
    Ok(batch)
}
