//! A registry in a folder, and skills in it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use model::{Clock, Principal};
use registry::{Bundle, Caller, Published, Registry};
use store::{Options, Store};

/// A clock that a test moves.
#[derive(Debug)]
pub struct Hands(Mutex<Timestamp>);

impl Hands {
    /// At the beginning of 1970.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Timestamp::UNIX_EPOCH)))
    }

    /// Moves them on.
    pub fn pass(&self, time: SignedDuration) {
        let mut now = self.0.lock().expect("a clock");
        *now = now.checked_add(time).expect("a time");
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("a clock")
    }
}

/// A store that writes to a disk however full.
#[must_use]
pub fn options() -> Options {
    Options {
        reserve_bytes: 0,
        ..Options::default()
    }
}

/// The registry in a folder, and its store.
#[must_use]
pub fn registry(folder: &Path, options: &Options, clock: Arc<dyn Clock>) -> (Store, Registry) {
    let store = Store::open(&folder.join("data"), options).expect("a store");
    let registry = Registry::open(store.clone(), clock).expect("a registry");
    (store, registry)
}

/// Whoever may do everything.
#[must_use]
pub fn caller() -> Caller {
    Caller::new(Principal::system())
}

/// A SKILL.md.
#[must_use]
pub fn skill_md(front_matter: &str, body: &str) -> String {
    format!("---\n{front_matter}\n---\n{body}\n")
}

/// Publishes a version of a skill, active where it is to be. What the scan holds is approved:
/// tests that are about that publish by themselves.
pub async fn publish(
    registry: &Registry,
    id: &str,
    files: &[(&str, &[u8])],
    activate: bool,
) -> Published {
    let files = files.iter().map(|(path, bytes)| {
        let path = path.parse().expect("a path");
        (path, Bytes::copy_from_slice(bytes))
    });
    let bundle = Bundle {
        id: Some(id.parse().expect("an id")),
        files: files.collect(),
        ..Bundle::default()
    };
    let prepared = registry.prepare(bundle).await.expect("a skill");
    let published = registry.publish(prepared, "", activate, &caller()).await;
    let published = published.expect("published");
    if published.version.held.is_some() {
        let (number, local) = (published.version.number, Caller::new(Principal::local()));
        let approved = registry.approve(&published.id, number, "a test", &local);
        approved.await.expect("approved");
    }
    published
}
