//! Memory for an answer, taken before the answer is made.
//!
//! An answer that is made and then waits for its memory would be in memory without being
//! booked: a peer that reads nothing could have one for each of its calls. So the code that
//! reads contents for an answer reserves the memory for them first, and the code that sends
//! the answer takes over the reservation.
//!
//! The reader of the answer belongs to the task, like the caller's deadline: passed by hand
//! it would be an argument of nearly every method.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Full, Peer, Permit, Resource};

/// Bytes up to which the permit of a call covers its answer while that waits.
const MAX_COVERED_BYTES: u64 = 128 * 1024;

/// The reservation for the answer to one call, between the code that makes it and the code
/// that sends it.
pub(super) type Reserved = Arc<Mutex<Option<Permit>>>;

tokio::task_local! {
    static READER: Peer;
}

/// Makes a peer the reader of the answer of a future.
pub fn with_reader<F: Future>(reader: Peer, making: F) -> impl Future<Output = F::Output> + use<F> {
    READER.scope(reader, making)
}

/// Waits for memory for an answer with this many bytes of contents, before they are read. A
/// small answer needs none, nor does one that this process reads itself.
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
    // In base64, which is the longest form that contents usually get, and the fields around
    // them.
    let kib = (bytes / 3 * 4 + MAX_COVERED_BYTES).div_ceil(1024);
    // A longer answer may still be read, alone.
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
    // Another content of the same call may have got its memory during the wait; the larger one
    // covers both.
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

    /// Takes the reservation for the answer, which the caller owns from now on.
    #[must_use]
    pub fn reserved(&self) -> Option<Permit> {
        let reserved = self.reserved.as_ref()?;
        let mut reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.take()
    }

    /// Acquires memory for an answer of this many KiB that is made: the reservation, resized to
    /// fit, or else free memory. The caller holds a permit for as long as it waits.
    ///
    /// # Errors
    /// None was free in time, or the answer outgrew its reservation and no more is free: it is
    /// in memory already, so it does not wait.
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
