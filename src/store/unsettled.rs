//! What is written and not yet durable: nobody may read it.
//!
//! sled shows a batch to every reader as soon as it is applied. A reader that
//! acted on it could acknowledge what a crash then takes back, so a read of a
//! record that a group in work has written waits for that group.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{StoreError, TableId};

#[derive(Debug, Default)]
struct State {
    /// Keys, and whether the group made their records.
    keys: HashMap<Vec<u8>, bool>,
    failed: bool,
}

/// What to make of a record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is durable.
    Durable,
    /// It was not when it was read, and is now: read it again.
    Again,
    /// It was made by a group that failed: there is none.
    Absent,
}

/// The records of the group in work.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// There are some; spares readers the lock.
    any: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

impl Unsettled {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before a group is applied. Contents are left out: they are what their
    /// digest says, durable or not. With each key: the group makes its record.
    pub(super) fn begin(&self, keys: impl Iterator<Item = (Vec<u8>, bool)>) {
        let mut state = self.state();
        state
            .keys
            .extend(keys.filter(|(key, _)| TableId::of(key) != Some(TableId::Contents)));
        self.any.store(true, Ordering::SeqCst);
    }

    /// The group is durable.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        state.keys.clear();
        self.any.store(false, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// The group may be there after a restart, or not: until then there are no
    /// records that it made, and what it overwrote cannot be read.
    pub(super) fn fail(&self) {
        self.state().failed = true;
        self.changed.notify_all();
    }

    /// To be called after a record was read: waits until it is durable.
    pub(super) fn wait(&self, key: &[u8]) -> Result<Verdict, StoreError> {
        if !self.any.load(Ordering::SeqCst) {
            return Ok(Verdict::Durable);
        }
        let mut state = self.state();
        let mut verdict = Verdict::Durable;
        while let Some(made) = state.keys.get(key) {
            if state.failed && *made {
                return Ok(Verdict::Absent);
            }
            if state.failed {
                return Err(StoreError::Engine(
                    "its last write failed; a restart shows what is there".to_owned(),
                ));
            }
            verdict = Verdict::Again;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_read_of_what_a_group_writes_waits_for_the_group() {
        let unsettled = Arc::new(Unsettled::default());
        assert_eq!(unsettled.wait(b"a").expect("a verdict"), Verdict::Durable);
        unsettled.begin([(b"a".to_vec(), false)].into_iter());
        assert_eq!(unsettled.wait(b"b").expect("a verdict"), Verdict::Durable);
        let reader = std::thread::spawn({
            let unsettled = Arc::clone(&unsettled);
            move || unsettled.wait(b"a")
        });
        unsettled.settle();
        // The reader may have come before or after.
        let verdict = reader.join().expect("a reader").expect("a verdict");
        assert!(
            matches!(verdict, Verdict::Again | Verdict::Durable),
            "{verdict:?}"
        );
    }

    #[test]
    fn after_a_failed_group_what_it_made_is_absent_and_what_it_overwrote_is_unread() {
        let unsettled = Unsettled::default();
        unsettled.begin([(b"made".to_vec(), true), (b"overwritten".to_vec(), false)].into_iter());
        unsettled.fail();
        assert_eq!(unsettled.wait(b"made").expect("a verdict"), Verdict::Absent);
        unsettled.wait(b"overwritten").expect_err("unread");
        assert_eq!(
            unsettled.wait(b"other").expect("a verdict"),
            Verdict::Durable
        );
    }
}
