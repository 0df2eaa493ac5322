//! Storage of sessions: some to a page.
//!
//! Hundreds of sessions change between two writes, and a record of its own for each
//! costs the store ten times what the sessions do. So what changed is written as pages
//! that never change again, and the page with the highest number that has a session has it
//! as it was written last. Once pages hold more than twice of what there is, the oldest is
//! given up: what is on no later page is written again, and the page removed.
//!
//! A page is packed. Sessions are much alike, but for their ids, so that it takes a
//! sixth of the bytes, and packing costs less than writing the rest would.

use std::collections::VecDeque;

use model::Digest;

/// Outdated sessions that pages may hold, on top of twice the number of sessions.
pub(super) const MAX_ORPHANED_SESSIONS: usize = 1_024;

/// The pages that are stored.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Number and sessions of each, oldest first.
    all: VecDeque<(u64, Vec<Digest>)>,
    /// Sessions on all pages together.
    stored: usize,
    next: u64,
}

impl Pages {
    /// The number of a new page.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A page was written, or read.
    pub(super) fn add(&mut self, number: u64, sessions: Vec<Digest>) {
        self.next = self.next.max(number);
        self.stored += sessions.len();
        self.all.push_back((number, sessions));
    }

    /// Gives up the oldest page, with what is on it, where pages hold too much for this
    /// number of sessions.
    pub(super) fn give_up(&mut self, sessions: usize) -> Option<(u64, Vec<Digest>)> {
        if sessions > 0 && self.stored <= 2 * sessions + MAX_ORPHANED_SESSIONS {
            return None;
        }
        let oldest = self.all.pop_front()?;
        self.stored -= oldest.1.len();
        Some(oldest)
    }
}
