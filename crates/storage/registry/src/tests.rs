mod activation;
mod archives;
mod blocklist;
mod catalog;
mod dependents;
mod diffs;
mod facets;
mod follow;
mod holds;
mod in_review;
mod local;
mod log;
mod publishing;
mod random;
mod repair;
mod repeats;
mod scans;
mod short_names;
mod space;
mod storage;
mod submissions;
mod usage;
mod versions;
mod withdrawals;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use executor::Kind;
use model::{Code, EventKind, Failure, FilePath, Principal, SkillId, VersionSelector};
use store::{Options, StoreError};

/// A clock that a test moves.
#[derive(Default)]
struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        let second = self.0.load(Ordering::Relaxed);
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }
}

struct World {
    directory: TempDir,
    clock: Arc<Hands>,
    registry: Registry,
}

impl World {
    fn new() -> Self {
        let directory = TempDir::new().expect("a folder");
        let clock = Arc::new(Hands::default());
        let registry = Self::open(&directory, &clock);
        Self {
            directory,
            clock,
            registry,
        }
    }

    fn open(directory: &TempDir, clock: &Arc<Hands>) -> Registry {
        let options = Options {
            reserve_bytes: 0,
            ..Options::default()
        };
        let store = Store::open(&directory.path().join("data"), &options).expect("a store");
        let clock: Arc<dyn Clock> = clock.clone();
        Registry::open(store, clock).expect("a registry")
    }

    /// The same data directory in a new process, as far as a test can have one.
    async fn again(self) -> Self {
        let Self {
            directory,
            clock,
            registry,
        } = self;
        registry.store().close().await;
        drop(registry);
        let registry = Self::open(&directory, &clock);
        Self {
            directory,
            clock,
            registry,
        }
    }

    async fn publish(&self, id: &str, text: &str) -> Result<Published, Error> {
        publish(&self.registry, id, &[("SKILL.md", text)], &caller("")).await
    }

    async fn published(&self, id: &str, text: &str) -> u32 {
        self.publish(id, text)
            .await
            .expect("a published version")
            .version
            .number
            .get()
    }

    /// Withdraws a version of the skill that most tests have.
    async fn withdraw(&self, n: u32, reason: &str) -> Withdrawn {
        let (id, caller) = (skill(ID), caller(""));
        let yanked = self.registry.yank(&id, number(n), reason, &caller).await;
        yanked.expect("withdrawn")
    }

    async fn put_back(&self, n: u32) -> Withdrawn {
        let (id, caller) = (skill(ID), caller(""));
        let back = self.registry.unyank(&id, number(n), &caller).await;
        back.expect("put back")
    }

    fn versions(&self, id: &str) -> Vec<(u32, String, bool, bool)> {
        let page = self
            .registry
            .list_versions(&skill(id), 100, "")
            .expect("versions");
        let versions = page.versions.iter().map(|d| {
            (
                d.version.number.get(),
                d.version.semantic.to_string(),
                d.is_active(),
                d.yank.is_some(),
            )
        });
        versions.collect()
    }

    fn events(&self) -> Vec<(EventKind, String, Option<u32>, Option<u32>)> {
        let events = self.registry.store().events_after(0, 1000);
        let events = events.expect("events").expect("the whole log");
        let number = |number: Option<VersionNumber>| number.map(VersionNumber::get);
        let events = events.into_iter().map(|(_, event)| {
            (
                event.kind,
                event.skill_id.to_string(),
                number(event.version),
                number(event.active),
            )
        });
        events.collect()
    }
}

fn skill(id: &str) -> SkillId {
    id.parse().expect("an id")
}

fn number(number: u32) -> VersionNumber {
    VersionNumber::new(number).expect("a number")
}

fn caller(key: &str) -> Caller {
    named(key, "")
}

/// A caller that names its write, and what the request said.
fn named(key: &str, request: &str) -> Caller {
    let request = || Digest::of(request.as_bytes());
    Caller::named(Principal::anonymous(), key, request)
}

fn bundle(id: &str, files: &[(&str, &str)]) -> Bundle {
    let files: BTreeMap<FilePath, Bytes> = files
        .iter()
        .map(|(path, text)| {
            (
                path.parse().expect("a path"),
                Bytes::from((*text).to_owned()),
            )
        })
        .collect();
    Bundle {
        id: Some(skill(id)),
        files,
        folder: String::new(),
        strict: false,
    }
}

async fn publish(
    registry: &Registry,
    id: &str,
    files: &[(&str, &str)],
    caller: &Caller,
) -> Result<Published, Error> {
    let prepared = registry.prepare(bundle(id, files)).await?;
    registry.publish(prepared, "", true, caller).await
}

/// A SKILL.md with a body; `version` may be empty.
fn text(version: &str, body: &str) -> String {
    let version = if version.is_empty() {
        String::new()
    } else {
        format!("version: \"{version}\"\n")
    };
    format!("---\nname: refunds\ndescription: Handles refunds.\n{version}---\n{body}\n")
}

const ID: &str = "github/acme/refunds";

fn code(error: Error) -> Code {
    Failure::from(error).code
}
