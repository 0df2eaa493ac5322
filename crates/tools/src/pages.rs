//! Where sessions are stored: some to a page.
//!
//! Hundreds of sessions change between two writes, and a record of its own for each
//! costs the store ten times what the sessions do. So what changed is written as pages
//! that never change again, and a session is on the page on which it was written last.
//! A page that no session is on any more is removed; while pages hold twice of what
//! there is, the oldest is given up, and what is on it written again.
//!
//! A page is packed. Sessions are much alike, but for their ids, so that it takes a
//! sixth of the room, and packing costs less than writing the rest would.
//!
//! Which page a session is on, the session's own entry knows; here is what pages know.

use std::collections::BTreeMap;

use model::Digest;

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
    /// Pages that are to be removed.
    empty: Vec<u64>,
    /// Sessions on all pages, those that are on a later one again included.
    stored: usize,
    /// How many sessions are on pages.
    live: usize,
    next: u64,
}

impl Pages {
    /// The number of a new page.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A page was written, with the sessions that are on it from now on.
    pub(super) fn add(&mut self, number: u64, sessions: Vec<Digest>) {
        self.next = self.next.max(number);
        if sessions.is_empty() {
            self.empty.push(number);
            return;
        }
        let live = sessions.len();
        self.stored += live;
        self.live += live;
        self.all.insert(number, Page { sessions, live });
    }

    /// A session of a page is gone, or on its way to another one.
    pub(super) fn leave(&mut self, number: u64) {
        let Some(page) = self.all.get_mut(&number) else {
            return;
        };
        page.live -= 1;
        self.live -= 1;
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

    /// The oldest pages with whom was written on them, where pages hold too much in
    /// vain. They stay until those were written again.
    pub(super) fn in_vain(&self, pages: usize) -> impl Iterator<Item = (u64, &[Digest])> {
        let is_so = self.stored > 2 * self.live + IN_VAIN;
        let oldest = self.all.iter().take(if is_so { pages } else { 0 });
        oldest.map(|(number, page)| (*number, &*page.sessions))
    }

    /// How many pages there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
