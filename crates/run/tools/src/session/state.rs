//! The sessions in memory, by their last use and by their owners, and what of them is not stored
//! yet.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::super::pages::Pages;
use super::{MAX_UNWRITTEN_SESSIONS, OnPage, PAGE_BYTES, PAGES_PER_WRITE, Session};
use model::Digest;

/// A session, and where it is stored.
#[derive(Debug)]
pub(super) struct KnownSession {
    pub(super) session: Arc<Session>,
    /// The page on which it was written last.
    pub(super) page: Option<u64>,
    /// It differs from what is there.
    pub(super) unwritten: bool,
}

/// Sessions by their last use, and the bytes that they take.
#[derive(Debug, Default)]
pub(super) struct ByUse {
    pub(super) order: BTreeSet<(Timestamp, Digest)>,
    pub(super) bytes: usize,
}

impl ByUse {
    pub(super) fn add(&mut self, key: Digest, session: &Session) {
        self.order.insert((session.used_at, key));
        self.bytes += session.weight();
    }

    pub(super) fn remove(&mut self, key: Digest, session: &Session) {
        self.order.remove(&(session.used_at, key));
        // This is the weight that was added: a session in an `Arc` never changes, it is replaced.
        self.bytes -= session.weight();
    }

    /// The one unused for longest, where there are too many or they take too much. The newest
    /// stays, whatever it weighs.
    pub(super) fn in_excess(&self, sessions: usize, bytes: usize) -> Option<Digest> {
        let count = self.order.len();
        let is_over = count > sessions || self.bytes > bytes;
        let oldest = self.order.first().filter(|_| is_over && count > 1);
        oldest.map(|(_, key)| *key)
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sessions: FxHashMap<Digest, KnownSession>,
    pub(super) by_use: ByUse,
    /// Of those whose owner signed in, by the digest of the owner.
    pub(super) of_owners: FxHashMap<Digest, ByUse>,
    /// Those that differ from what is stored; some of them may be gone.
    pub(super) unwritten: Vec<Digest>,
    pub(super) pages: Pages,
    /// Pages that are removed once all that was on them is on later ones.
    pub(super) given_up: Vec<u64>,
}

impl State {
    /// Keeps a session as it is now.
    pub(super) fn put(&mut self, key: Digest, session: Arc<Session>) {
        let now = Arc::clone(&session);
        let before = match self.sessions.entry(key) {
            Occupied(mut entry) => Some(std::mem::replace(&mut entry.get_mut().session, session)),
            Vacant(slot) => {
                slot.insert(KnownSession {
                    session,
                    page: None,
                    unwritten: false,
                });
                None
            }
        };
        if let Some(before) = before {
            self.uncount(key, &before);
        }
        self.by_use.add(key, &now);
        if let Some(owner) = now.owner {
            self.of_owners.entry(owner).or_default().add(key, &now);
        }
    }

    /// A session is no longer what it was.
    pub(super) fn uncount(&mut self, key: Digest, before: &Session) {
        self.by_use.remove(key, before);
        if let Some(owner) = before.owner
            && let Occupied(mut owned) = self.of_owners.entry(owner)
        {
            owned.get_mut().remove(key, before);
            if owned.get().order.is_empty() {
                owned.remove();
            }
        }
    }

    /// A session differs from what is stored.
    pub(super) fn differs(&mut self, key: Digest) {
        if let Some(entry) = self.sessions.get_mut(&key)
            && !std::mem::replace(&mut entry.unwritten, true)
        {
            self.unwritten.push(key);
            // While nothing can be written, what is gone must not add up.
            if self.unwritten.len() > 2 * self.sessions.len() + MAX_UNWRITTEN_SESSIONS {
                self.unwritten.retain(|key| self.sessions.contains_key(key));
            }
        }
    }

    pub(super) fn remove(&mut self, key: &Digest) {
        if let Some(KnownSession { session, .. }) = self.sessions.remove(key) {
            self.uncount(*key, &session);
        }
    }

    /// A page of what is unwritten; empty where nothing is.
    pub(super) fn page(&mut self) -> OnPage {
        let (mut page, mut bytes) = (Vec::new(), 0);
        while bytes < PAGE_BYTES
            && let Some(key) = self.unwritten.pop()
        {
            if let Some(entry) = self.sessions.get_mut(&key)
                && std::mem::take(&mut entry.unwritten)
            {
                bytes += entry.session.weight();
                page.push((key, Arc::clone(&entry.session)));
            }
        }
        page
    }

    /// A page was written, or read.
    pub(super) fn written(&mut self, number: u64, keys: Vec<Digest>) {
        for key in &keys {
            if let Some(entry) = self.sessions.get_mut(key) {
                entry.page = Some(number);
            }
        }
        self.pages.add(number, keys);
    }

    /// Gives up pages that hold too much in vain: what is on no later one differs now.
    pub(super) fn give_up_pages(&mut self) {
        for _ in 0..PAGES_PER_WRITE {
            let Some((number, keys)) = self.pages.give_up(self.sessions.len()) else {
                break;
            };
            for key in keys {
                let entry = self.sessions.get(&key);
                if entry.is_some_and(|entry| entry.page == Some(number)) {
                    self.differs(key);
                }
            }
            self.given_up.push(number);
        }
    }
}
