//! What the kills came to, and what was found wrong.

use std::fmt;

/// What sort of failure was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// An acknowledged write is not there.
    Lost,
    /// A part of a write is there and a part is not.
    Half,
    /// Something is there that nobody asked for, or an answer is not true.
    Wrong,
}

pub(super) struct Found(pub(super) Sort, pub(super) String);

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:.2000}", self.0, self.1)
    }
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kills: usize,
    pub(super) starting: usize,
    /// During `compact`, `backup`, `restore` and `salvage`.
    pub(super) commands: [usize; 4],
    /// Compactions of a server that served, and how many came to their end.
    pub(super) served: usize,
    pub(super) served_whole: usize,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) repeated: u64,
    pub(super) unanswered: u64,
    pub(super) unanswered_there: u64,
    pub(super) bytes_read: u64,
    pub(super) found: Vec<Found>,
}

impl Tally {
    pub(super) fn find(&mut self, sort: Sort, what: impl fmt::Display) {
        self.found.push(Found(sort, what.to_string()));
    }

    fn count(&self, sort: Sort) -> usize {
        self.found.iter().filter(|found| found.0 == sort).count()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills ({} while starting, {} compacting, {} backing up, {} restoring, {} salvaging), {} compactions while serving, of which {} were done, \
             {} acknowledged writes, {} lost, {} half, {} wrong; \
             {} refusals and {} repeated answers as expected, {} writes without an answer, of which {} are there, \
             {} MiB read back",
            self.kills,
            self.starting,
            self.commands[0],
            self.commands[1],
            self.commands[2],
            self.commands[3],
            self.served,
            self.served_whole,
            self.acknowledged,
            self.count(Sort::Lost),
            self.count(Sort::Half),
            self.count(Sort::Wrong),
            self.refused,
            self.repeated,
            self.unanswered,
            self.unanswered_there,
            self.bytes_read >> 20,
        )
    }
}
