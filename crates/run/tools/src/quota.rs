//! Bounds the calls in work of each session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Error;
use model::Digest;

/// How many calls each session has in work.
#[derive(Debug)]
pub(super) struct Quota {
    limit: usize,
    in_work: Mutex<HashMap<Digest, usize>>,
}

/// A permit among the calls in work; given back when dropped.
#[derive(Debug)]
pub(super) struct CallPermit<'a> {
    quota: &'a Quota,
    session: Digest,
}

impl Quota {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            in_work: Mutex::default(),
        }
    }

    /// Acquires a permit for one more call of a session.
    ///
    /// # Errors
    /// The session has as many in work as it may have.
    pub(super) fn acquire(&self, session: &str) -> Result<CallPermit<'_>, Error> {
        let session = Digest::of(session.as_bytes());
        let mut in_work = self.in_work.lock().unwrap_or_else(PoisonError::into_inner);
        let count = in_work.entry(session).or_default();
        if *count >= self.limit {
            return Err(Error::Quota { limit: self.limit });
        }
        *count += 1;
        Ok(CallPermit {
            quota: self,
            session,
        })
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        let in_work = self.quota.in_work.lock();
        let mut in_work = in_work.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_work.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                in_work.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_that_is_given_back_is_one_permit_and_the_last_leaves_nothing() {
        let quota = Quota::new(2);
        let first = quota.acquire("a").expect("a permit");
        let second = quota.acquire("a").expect("a permit");
        drop(first);
        let third = quota.acquire("a").expect("the permit of the first");
        assert!(quota.acquire("a").is_err(), "two are in work");
        drop((second, third));
        assert!(quota.in_work.lock().expect("a lock").is_empty());
    }
}
