//! Permits: the part of a resource that a peer holds.

use std::sync::Arc;

use super::{Full, Peer, Resource};

/// Some of a resource, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    peer: Peer,
    resource: Resource,
    units: u32,
}

impl Permit {
    pub(super) fn none(peer: &Peer, resource: Resource) -> Self {
        Self {
            // Without what the peer has reserved: that holds a permit, and the two would keep
            // each other alive for ever.
            peer: Arc::clone(&peer.account).into(),
            resource,
            units: 0,
        }
    }

    /// The peer that holds it.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Its size.
    #[must_use]
    pub const fn units(&self) -> u32 {
        self.units
    }

    /// Takes more, or nothing.
    ///
    /// # Errors
    /// So much is not free now.
    pub fn try_grow(&mut self, units: u32) -> Result<(), Full> {
        let account = &*self.peer.account;
        let share = match &account.free {
            None => None,
            Some(free) => {
                let share = free.of(self.resource).try_acquire_many(units);
                Some(share.map_err(|_| Full::Share)?)
            }
        };
        let all = account.admission.free.of(self.resource);
        let all = all.try_acquire_many(units).map_err(|_| Full::All)?;
        // From here on it is this permit that gives both back.
        all.forget();
        if let Some(share) = share {
            share.forget();
        }
        self.units += units;
        Ok(())
    }

    /// Takes more as soon as it is free.
    ///
    /// # Errors
    /// It is more than a peer may have.
    pub async fn grow(&mut self, units: u32) -> Result<(), Full> {
        let account = &*self.peer.account;
        let total = usize::try_from(self.units + units).unwrap_or(usize::MAX);
        self.peer.may_have(self.resource, total)?;
        let share = match &account.free {
            None => None,
            Some(free) => {
                // The share first: a caller that waits for its own share must hold nothing that
                // others could use.
                let share = free.of(self.resource).acquire_many(units).await;
                Some(share.map_err(|_| Full::Share)?)
            }
        };
        let all = account.admission.free.of(self.resource);
        let all = all.acquire_many(units).await;
        // Forgotten only now that both are there: a caller that leaves during the wait drops
        // them, and they go back.
        all.map_err(|_| Full::All)?.forget();
        if let Some(share) = share {
            share.forget();
        }
        self.units += units;
        Ok(())
    }

    /// Gives back what is more than `units`, or takes what is missing.
    ///
    /// # Errors
    /// So much is not free now.
    pub fn resize(&mut self, units: u32) -> Result<(), Full> {
        self.shrink_to(units);
        self.try_grow(units - self.units)
    }

    /// Takes over all of another permit of the same peer for the same resource.
    pub(super) fn absorb(&mut self, mut other: Self) {
        self.units += std::mem::take(&mut other.units);
    }

    /// Gives all but `units` back.
    pub fn shrink_to(&mut self, units: u32) {
        let back = self.units.saturating_sub(units);
        self.units -= back;
        let account = &*self.peer.account;
        let back = usize::try_from(back).unwrap_or(0);
        account.admission.free.of(self.resource).add_permits(back);
        if let Some(free) = &account.free {
            free.of(self.resource).add_permits(back);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
