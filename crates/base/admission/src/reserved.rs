//! Memory for an answer, taken before the answer is made.
//!
//! An answer that is made and then waits for its memory would be in memory without being
//! booked: a peer that reads nothing could have one for each of its calls. So whoever
//! reads contents for an answer reserves the memory for them first, and whoever sends the
//! answer takes what was reserved.
//!
//! Who reads the answer belongs to the task, like the caller's deadline does: handed
//! down by hand it would be an argument of nearly every method.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Full, Peer, Permit, Resource};

/// Bytes up to which the permit of a call covers its answer while that waits.
const MAX_COVERED_BYTES: u64 = 128 * 1024;

/// What is reserved for the answer to one call, between who makes it and who sends it.
pub(super) type Reserved = Arc<Mutex<Option<Permit>>>;

tokio::task_local! {
    static READER: Peer;
}

/// Has a peer read what a future makes.
pub fn with_reader<F: Future>(reader: Peer, making: F) -> impl Future<Output = F::Output> + use<F> {
    READER.scope(reader, making)
}

/// Waits for memory for an answer with so many bytes of contents, before they are read. A
/// small answer needs none, nor does what this process reads itself.
///
/// # Errors
/// It is more than its reader may have, or was not free in time.
pub async fn reserve(bytes: u64) -> Result<(), Full> {
    if bytes <= MAX_COVERED_BYTES {
        return Ok(());
    }
    let Ok(reader) = READER.try_with(Clone::clone) else {
        return Ok(());
    };
    let Some(reserved) = &reader.reserved else {
        return Ok(());
    };
    // In base64, which is the longest that contents usually become, and what is said of
    // them.
    let kib = (bytes / 3 * 4 + MAX_COVERED_BYTES).div_ceil(1024);
    // What is longer than that may still be read alone.
    let max = u64::try_from(reader.limit(Resource::Answers)).unwrap_or(u64::MAX);
    let kib = u32::try_from(kib.min(max)).unwrap_or(u32::MAX);
    let has = |reserved: &Option<Permit>| reserved.as_ref().map_or(0, Permit::units);
    let lock = || reserved.lock().unwrap_or_else(PoisonError::into_inner);
    // One call may read several contents: they are one answer after the other.
    if has(&lock()) >= kib {
        return Ok(());
    }
    let permit = reader.take_in_time(Resource::Answers, kib).await?;
    let mut reserved = lock();
    if permit.units() > has(&reserved) {
        *reserved = Some(permit);
    }
    Ok(())
}

impl Peer {
    /// The same peer, with memory of its own for the answer to one call.
    #[must_use]
    pub fn for_call(&self) -> Self {
        Self {
            account: Arc::clone(&self.account),
            reserved: Some(Arc::default()),
        }
    }

    /// What was reserved for the answer, and is the caller's from now on.
    #[must_use]
    pub fn reserved(&self) -> Option<Permit> {
        let reserved = self.reserved.as_ref()?;
        let mut reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.take()
    }

    /// Memory for an answer of so many KiB that is made: what was reserved for it, made to
    /// fit, else what is free. The caller holds a permit for as long as it waits.
    ///
    /// # Errors
    /// None was free in time, or the answer became longer than what was reserved and no
    /// more is free: it is in memory already, so it does not wait.
    pub async fn reserve(&self, kib: u32) -> Result<Permit, Full> {
        match self.reserved() {
            Some(mut memory) => memory.resize(kib).map(|()| memory),
            None => self.take_in_time(Resource::Answers, kib).await,
        }
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// None is free now.
    pub fn try_reserve(&self, kib: u32) -> Result<Permit, Full> {
        match self.reserved() {
            Some(mut memory) => memory.resize(kib).map(|()| memory),
            None => self.try_take(Resource::Answers, kib),
        }
    }
}
