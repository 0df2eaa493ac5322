//! Where sessions are stored: some to a page.
//!
//! Hundreds of sessions change between two writes, and a record of its own for each
//! costs the store ten times what the sessions do. So what changed is written as pages
//! that never change again, and a session is on the page on which it was written last.
//! A page that no session is on any more is removed; while pages hold twice of what
//! there is, the oldest is given up, and what is on it written again.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::model::Digest;

/// Sessions that may be on pages in vain, beside as many as there are.
const IN_VAIN: usize = 1_024;

/// A page as it is known.
#[derive(Debug, Default)]
struct Page {
    /// Who was written on it.
    sessions: Vec<Digest>,
    /// How many of these are on no later page.
    live: usize,
}

/// The pages that are stored.
#[derive(Debug, Default)]
pub(super) struct Pages {
    all: BTreeMap<u64, Page>,
    /// The page on which each session is.
    places: FxHashMap<Digest, u64>,
    /// Pages that are to be removed.
    empty: Vec<u64>,
    /// Sessions on all pages, those that are on a later one again included.
    stored: usize,
    next: u64,
}

impl Pages {
    /// The number of a new page.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A page was written, with the sessions that are still there.
    pub(super) fn add(&mut self, number: u64, sessions: Vec<Digest>) {
        self.next = self.next.max(number);
        for session in &sessions {
            self.leave(session);
            self.places.insert(*session, number);
        }
        if sessions.is_empty() {
            self.empty.push(number);
            return;
        }
        self.stored += sessions.len();
        let live = sessions.len();
        self.all.insert(number, Page { sessions, live });
    }

    /// A session is gone, or on its way to another page.
    pub(super) fn leave(&mut self, session: &Digest) {
        let Some(number) = self.places.remove(session) else {
            return;
        };
        let Some(page) = self.all.get_mut(&number) else {
            return;
        };
        page.live -= 1;
        if page.live == 0 {
            self.stored -= page.sessions.len();
            self.all.remove(&number);
            self.empty.push(number);
        }
    }

    /// The pages that nothing is on, once.
    pub(super) fn take_empty(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.empty)
    }

    /// These could not be removed.
    pub(super) fn give_back_empty(&mut self, numbers: Vec<u64>) {
        self.empty.extend(numbers);
    }

    /// The sessions of the oldest pages, where pages hold too much in vain. Their pages
    /// stay until these were written again.
    pub(super) fn in_vain(&self, pages: usize) -> Vec<Digest> {
        if self.stored <= 2 * self.places.len() + IN_VAIN {
            return Vec::new();
        }
        let oldest = self.all.iter().take(pages);
        let written = oldest.flat_map(|(number, page)| {
            let sessions = page.sessions.iter();
            sessions.filter(move |session| self.places.get(session) == Some(number))
        });
        written.copied().collect()
    }

    /// How many pages there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
