//! Admission: how much of the server a peer may have at once.
//!
//! Rules:
//!
//! * Every resource that a peer can hold has a limit for all, and a share of it that
//!   one peer has at most: connections, handshakes, calls, streams, sessions, and the bytes of
//!   requests and answers. There is one mechanism for all of them: a [`Peer`] takes a
//!   [`Permit`], and dropping the permit gives it back. Behind it are two semaphores each,
//!   the peer's and the one for all, so that waiting is in order.
//! * A peer is a caller that signed in, wherever it calls from, or else an address. Calls of
//!   the server's own process, and those through a local socket, are no peer that could
//!   lock others out: they have no share, only the limits for all. Behind a proxy all clients
//!   are one address, so that addresses have no shares where callers sign in
//!   ([`Admission::by_caller`]).
//! * A peer that sends a request sends it at a least rate ([`Pace`]), and its bytes are
//!   booked as they arrive ([`Intake`]).
//! * An answer that is large has its memory before it is made ([`reserve`]).
//! * A request that waits for memory holds a permit of a call or of a stream, so that a peer
//!   has no more of them waiting than it has of those. It holds hardly any memory meanwhile,
//!   since those that hold a part and wait for the rest would wait for one another.
//!
//! * A call for which there is no permit waits a little, and so does a refusal ([`Patience`]).
//!
//! Not here: the wording of refusals (`server`, `http`, `mcp`), deadlines of calls
//! (`server::calls`), except for how a caller writes one ([`timeout()`]).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod intake;
mod metered;
mod pace;
mod patience;
mod permit;
mod refusal;
mod reserved;
mod resource;
#[cfg(test)]
mod tests;
mod timeout;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use intake::{Collected, Intake, IntakeError, Length, Replay};
pub use metered::Metered;
pub use pace::Pace;
pub use patience::{Patience, is_refusal};
pub use permit::Permit;
use reserved::Reserved;
pub use reserved::{reserve, with_reader};
pub use resource::{Amounts, Resource};
pub use timeout::timeout;

/// The free part of each resource, in the order of [`Resource::ALL`].
#[derive(Debug)]
struct Free([Semaphore; Resource::ALL.len()]);

impl Free {
    fn new(amount: impl Fn(Resource) -> usize) -> Self {
        Self(
            Resource::ALL
                // tokio panics above `MAX_PERMITS`, and an operator may write any number.
                .map(|resource| Semaphore::new(amount(resource).min(Semaphore::MAX_PERMITS))),
        )
    }

    #[expect(clippy::indexing_slicing, reason = "a semaphore for every resource")]
    fn of(&self, resource: Resource) -> &Semaphore {
        &self.0[resource as usize]
    }
}

/// The limits of a server, and how much of them each peer has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    amounts: Amounts,
    share_percent: u8,
    pace: Pace,
    free: Free,
    /// Addresses have shares.
    by_address: bool,
    // Weak, so that the table keeps no peer alive: the last permit or connection drops the
    // account, which takes itself out.
    peers: Mutex<HashMap<PeerId, Weak<Account>>>,
}

/// The identity of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PeerId {
    Address(IpAddr),
    Caller(String),
}

/// The resources of one peer.
#[derive(Debug)]
struct Account {
    admission: Arc<Inner>,
    /// None: it is a peer of its own.
    who: Option<PeerId>,
    /// The free part of its shares. None: it has no share.
    free: Option<Free>,
}

/// The other end of a connection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peer {
    account: Arc<Account>,
    /// The memory that is reserved for the answer to one call.
    reserved: Option<Reserved>,
}

/// There is nothing free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// All peers together have what there is.
    #[error("the server is at its limit for this")]
    All,
    /// The peer has its share.
    #[error("this caller is at its limit for this")]
    Share,
}

impl Admission {
    /// Limits for all, of which one peer has `share_percent` at most, and at least one.
    #[must_use]
    pub fn new(amounts: Amounts, share_percent: u8, pace: Pace) -> Self {
        Self::with(amounts, share_percent.clamp(1, 100), pace, true)
    }

    fn with(amounts: Amounts, share_percent: u8, pace: Pace, by_address: bool) -> Self {
        Self(Arc::new(Inner {
            free: Free::new(|resource| amounts.of(resource)),
            amounts,
            share_percent,
            pace,
            by_address,
            peers: Mutex::default(),
        }))
    }

    /// The same, with shares for callers alone: all come from one address, that of a proxy.
    #[must_use]
    pub fn by_caller(self) -> Self {
        let Inner {
            amounts,
            share_percent,
            pace,
            ..
        } = *self.0;
        Self::with(amounts, share_percent, pace, false)
    }

    /// Addresses have no shares.
    #[must_use]
    pub fn is_by_caller(&self) -> bool {
        !self.0.by_address
    }

    /// The peer at an address. An IPv6 host has as many addresses as it likes, so a
    /// network of 64 bits is one peer.
    #[must_use]
    pub fn peer(&self, address: IpAddr) -> Peer {
        let address = match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & (u128::MAX << 64);
                // Addresses of this machine and of no network stay as they are.
                if network == 0 {
                    IpAddr::V6(address)
                } else {
                    IpAddr::V6(network.into())
                }
            }
            address @ IpAddr::V4(_) => address,
        };
        self.known(PeerId::Address(address), self.0.by_address)
    }

    /// A caller, by the name that it signed in with.
    #[must_use]
    pub fn caller(&self, name: &str) -> Peer {
        // Also where addresses have no shares: a token is one caller, whatever proxy it comes
        // through.
        self.known(PeerId::Caller(name.to_owned()), true)
    }

    fn known(&self, who: PeerId, has_share: bool) -> Peer {
        let mut peers = self.peers();
        if let Some(account) = peers.get(&who).and_then(Weak::upgrade) {
            return account.into();
        }
        let account = Arc::new(Account {
            admission: Arc::clone(&self.0),
            who: Some(who.clone()),
            free: has_share.then(|| Free::new(|resource| self.share(resource))),
        });
        peers.insert(who, Arc::downgrade(&account));
        account.into()
    }

    /// The server's own process, or a caller through a local socket: no share.
    #[must_use]
    pub fn local(&self) -> Peer {
        let account = Account {
            admission: Arc::clone(&self.0),
            who: None,
            free: None,
        };
        Arc::new(account).into()
    }

    /// The most that one peer may have.
    #[must_use]
    pub fn share(&self, resource: Resource) -> usize {
        let amount = self.0.amounts.of(resource);
        if resource == Resource::Workers {
            return amount;
        }
        let percent = usize::from(self.0.share_percent);
        // In this order, since an amount may be as large as a number can be.
        let share = amount / 100 * percent + (amount % 100 * percent).div_ceil(100);
        share.max(1)
    }

    /// The most that all peers together may have.
    #[must_use]
    pub fn limit(&self, resource: Resource) -> usize {
        self.0.amounts.of(resource)
    }

    /// The amount that is in use now.
    #[must_use]
    pub fn taken(&self, resource: Resource) -> usize {
        let free = self.0.free.of(resource).available_permits();
        let limit = self.0.amounts.of(resource).min(Semaphore::MAX_PERMITS);
        limit.saturating_sub(free)
    }

    /// Counts the peers that have a connection now, or something that outlives one.
    #[must_use]
    pub fn peer_count(&self) -> usize {
        self.peers().len()
    }

    fn peers(&self) -> std::sync::MutexGuard<'_, HashMap<PeerId, Weak<Account>>> {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let Some(who) = &self.who else { return };
        let peers = &self.admission.peers;
        let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
        // Unless the peer came back in the meantime.
        if peers
            .get(who)
            .is_some_and(|known| known.strong_count() == 0)
        {
            peers.remove(who);
        }
    }
}

impl From<Arc<Account>> for Peer {
    fn from(account: Arc<Account>) -> Self {
        Self {
            account,
            reserved: None,
        }
    }
}

impl Peer {
    /// A peer without limits, for services without a server.
    #[must_use]
    pub fn unlimited() -> Self {
        Admission::new(Amounts::UNLIMITED, 100, Pace::default()).local()
    }

    /// The peer of a request, as the listener attached it. A request that came through no
    /// listener is of this process.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(Self::unlimited)
    }

    /// Its name: the one that it signed in with, or its address. None: it is of this process,
    /// or came through a local socket.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        Some(match self.account.who.as_ref()? {
            PeerId::Caller(name) => name.clone(),
            PeerId::Address(address) => address.to_string(),
        })
    }

    /// It is the caller that signed in with this name.
    #[must_use]
    pub fn is_caller(&self, name: &str) -> bool {
        matches!(&self.account.who, Some(PeerId::Caller(own)) if own == name)
    }

    /// The rate at which it has to send.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.account.admission.pace
    }

    /// The two are one peer.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.account, &other.account)
    }

    /// The most that it may have of a resource.
    #[must_use]
    pub fn limit(&self, resource: Resource) -> usize {
        match self.account.free {
            None => self.admission().limit(resource),
            Some(_) => self.admission().share(resource),
        }
    }

    fn admission(&self) -> Admission {
        Admission(Arc::clone(&self.account.admission))
    }

    /// Checks that a wait for this much can end: no peer may have more, however long it waits.
    fn may_have(&self, resource: Resource, units: usize) -> Result<(), Full> {
        if units > self.admission().limit(resource) {
            return Err(Full::All);
        }
        if units > self.limit(resource) {
            return Err(Full::Share);
        }
        Ok(())
    }

    /// Takes some of a resource, or nothing at all.
    ///
    /// # Errors
    /// This much is not free now.
    pub fn try_take(&self, resource: Resource, units: u32) -> Result<Permit, Full> {
        let mut permit = Permit::none(self, resource);
        permit.try_grow(units)?;
        Ok(permit)
    }

    /// Takes some of a resource as soon as it is free, if that is within the time that
    /// requests and answers wait for memory.
    ///
    /// # Errors
    /// It was not free in time, or is more than a peer may have.
    pub async fn take_in_time(&self, resource: Resource, units: u32) -> Result<Permit, Full> {
        if let Ok(permit) = self.try_take(resource, units) {
            return Ok(permit);
        }
        self.take_until(resource, units, Instant::now() + self.pace().wait)
            .await
    }

    /// The same until a given time.
    ///
    /// # Errors
    /// It was not free by then, or is more than a peer may have.
    pub async fn take_until(
        &self,
        resource: Resource,
        units: u32,
        until: Instant,
    ) -> Result<Permit, Full> {
        let taken = tokio::time::timeout_at(until, self.take(resource, units)).await;
        // The last attempt finds out whether the share or the whole is exhausted.
        taken.unwrap_or_else(|_late| self.try_take(resource, units))
    }

    /// Takes some of a resource as soon as it is free, in the order of asking: first of
    /// the peer's share, then of what there is for all.
    ///
    /// # Errors
    /// It is more than a peer may have.
    pub async fn take(&self, resource: Resource, units: u32) -> Result<Permit, Full> {
        let mut permit = Permit::none(self, resource);
        permit.grow(units).await?;
        Ok(permit)
    }
}
