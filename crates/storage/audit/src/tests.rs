//! The trail, over a store in memory and a data directory.

mod calls;
mod chain;
mod counted;
mod lists;
mod pruning;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::event::MAX_NAMES;
use crate::{
    Audit, AuditConfig, Call, Entry, Event, EventKind, Filter, LEFT_OUT, Rpc, Verified, verify,
};
use access::{Access, Action, Actions, Caller, Origin, Rights};
use model::{Clock, Code, Principal};
use store::{Batch, CommitError, Options, Store, Table, TableId};

/// More often than this no test asks for the time, unless it writes without an end.
const MAX_ASKED: u32 = 100_000;
/// Longer than anything here takes, on a clock that stands still while somebody works.
const LONG: Duration = Duration::from_secs(60);

/// Time that a test moves.
#[derive(Default)]
struct Hands {
    now: Mutex<Timestamp>,
    asked: AtomicU32,
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked < MAX_ASKED, "somebody asks for the time for ever");
        *self.now.lock().expect("a time")
    }
}

impl Hands {
    fn pass(&self, time: SignedDuration) {
        *self.now.lock().expect("a time") += time;
    }
}

struct World {
    store: Store,
    clock: Arc<Hands>,
    audit: Audit,
}

fn world(config: AuditConfig) -> World {
    world_of(Store::in_memory(&Options::default()), config)
}

fn world_of(store: Store, config: AuditConfig) -> World {
    let clock = Arc::new(Hands::default());
    let audit = Audit::new(store.clone(), config, Arc::clone(&clock) as Arc<dyn Clock>);
    World {
        store,
        clock,
        audit,
    }
}

fn kept(max_records: u64) -> AuditConfig {
    AuditConfig {
        max_records,
        ..AuditConfig::default()
    }
}

fn of(principal: Principal, address: [u8; 4]) -> Access {
    let caller = Caller::new(principal, Rights::to_all(Actions::all()));
    Access {
        caller: Arc::new(caller),
        signs_in: true,
        limit: None,
        origin: Origin {
            face: "grpc",
            address: Some(address.into()),
            forwarded: None,
        },
    }
}

fn token(name: &str) -> Access {
    of(Principal::token(name), [192, 0, 2, 1])
}

fn rpc(action: Action) -> Arc<Rpc> {
    Arc::new(Rpc {
        name: "Registry.PublishSkill".to_owned(),
        action: Some(action),
        is_recorded: true,
    })
}

impl World {
    fn listed(&self, filter: &Filter) -> Vec<Entry> {
        let page = self.audit.list(filter, 1000, "").expect("a page");
        assert_eq!(page.next, None);
        page.entries
    }

    fn outcomes(&self) -> Vec<(String, String, u64)> {
        let mut entries = self.listed(&Filter::default());
        entries.reverse();
        entries
            .into_iter()
            .map(|Entry { event, .. }| (event.principal, event.outcome, event.count))
            .collect()
    }

    fn begin(&self, access: &Access) -> Call {
        let (rpc, headers) = (rpc(Action::Publish), HeaderMap::new());
        self.audit.begin(&rpc, access, &headers)
    }

    async fn call(&self, access: &Access, code: Option<&str>) {
        let call = self.begin(access);
        call.end(code).await.expect("recorded");
    }
}

/// Anything that is written beside the record.
const OTHER: Table<str, String> = Table::new(TableId::Usage);

fn some_write(expects: Option<u64>) -> Batch {
    let mut batch = Batch::new();
    if let Some(revision) = expects {
        batch.expect(&OTHER, "x", store::Expect::Revision(revision));
    }
    batch.put(&OTHER, "x", &"y".to_owned());
    batch
}

/// What a write to a skill says in the log.
fn written_to(skill: &str) -> model::Event {
    model::Event {
        kind: model::EventKind::Activated,
        skill_id: skill.parse().expect("an id"),
        version: None,
        semantic_version: None,
        digest: None,
        active: None,
        held: false,
        time: Timestamp::UNIX_EPOCH,
        actor: Principal::token("ci"),
    }
}

#[tokio::test]
async fn a_call_has_one_record_with_what_is_known_of_it() {
    let World {
        audit,
        clock,
        store,
    } = &world(AuditConfig::default());
    let mut headers = HeaderMap::new();
    let parent = "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    headers.insert("traceparent", parent.parse().expect("a value"));
    let access = token("ci");
    let call = audit.begin(&rpc(Action::Publish), &access, &headers);
    let secret = format!("rpt_{}", "A".repeat(43));
    call.noted()
        .names(["github/acme/x", "", "a\nb\u{1b}[0m", &secret]);
    clock.pass(SignedDuration::from_secs(5));
    call.end(None).await.expect("recorded");
    let entries = audit
        .list(&Filter::default(), 10, "")
        .expect("a page")
        .entries;
    let [entry] = &entries[..] else {
        panic!("{entries:?}");
    };
    let names = entry.event.names.clone();
    assert_eq!((entry.number, &names[0]), (1, &"github/acme/x".to_owned()));
    assert!(!names[1].contains(['\n', '\u{1b}']), "{names:?}");
    assert!(!names[2].contains("AAAA"), "{names:?}");
    let expected = Event {
        principal: "token:ci".to_owned(),
        face: "grpc".to_owned(),
        address: Some([192, 0, 2, 1].into()),
        rpc: "Registry.PublishSkill".to_owned(),
        action: Some(Action::Publish),
        names,
        outcome: "OK".to_owned(),
        trace: "0af7651916cd43dd8448eb211c80319c".to_owned(),
        ..Event::new(Timestamp::from_second(5).expect("a time"), EventKind::Call)
    };
    assert_eq!(entry.event, expected);
    assert_eq!(
        store.chain_end().expect("an end").expect("one").digest,
        entry.digest
    );
}

#[tokio::test]
async fn a_record_goes_with_the_first_write_of_its_call_and_with_no_other() {
    let world = world(AuditConfig::default());
    let call = world
        .audit
        .begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new());
    let store = world.store.clone();
    let refused = call.work(async move {
        let refused = store.commit(some_write(Some(77))).await;
        let first = store.commit(some_write(None)).await.expect("written");
        let second = store.commit(some_write(None)).await.expect("written");
        // Each commit has its revision: the record had none of its own.
        assert_eq!(second, first + 1);
        refused
    });
    let refused = refused.await.expect_err("another revision");
    assert!(matches!(refused, CommitError::Conflict { .. }));
    let ok = ("token:ci".to_owned(), "OK".to_owned(), 0);
    assert_eq!(
        world.outcomes(),
        std::slice::from_ref(&ok),
        "before the answer"
    );
    call.end(None).await.expect("recorded");
    // What fails after it was written has a second one.
    let call = world
        .audit
        .begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new());
    let store = world.store.clone();
    call.work(async move { store.commit(some_write(None)).await })
        .await
        .expect("written");
    call.end(Some("TIMEOUT")).await.expect("recorded");
    world.audit.write().await.expect("written");
    let late = ("token:ci".to_owned(), "TIMEOUT".to_owned(), 0);
    assert_eq!(world.outcomes(), [ok.clone(), ok, late]);
}

#[tokio::test]
async fn a_record_says_how_many_names_it_leaves_out() {
    let world = world(AuditConfig::default());
    let skills: Vec<_> = (0..MAX_NAMES + 3)
        .map(|at| format!("github/acme/s{at}"))
        .collect();
    let called = async |named: usize, written: Option<&str>| {
        let (rpc, headers) = (rpc(Action::Publish), HeaderMap::new());
        let call = world.audit.begin(&rpc, &token("ci"), &headers);
        call.noted()
            .names(skills[..named].iter().map(String::as_str));
        if let Some(skill) = written {
            let mut batch = some_write(None);
            batch.event(written_to(skill));
            let store = world.store.clone();
            let written = call.work(async move { store.commit(batch).await });
            written.await.expect("written");
        }
        call.end(None).await.expect("recorded");
        let Event { names, details, .. } = world.listed(&Filter::default()).remove(0).event;
        (
            names.len(),
            names[0].clone(),
            details.get(LEFT_OUT).cloned(),
        )
    };
    let first = || "github/acme/s0".to_owned();
    assert_eq!(called(MAX_NAMES, None).await, (8, first(), None));
    let three = Some("3".to_owned());
    assert_eq!(
        called(MAX_NAMES + 3, None).await,
        (8, first(), three.clone())
    );
    // With what was written first: one of these, also where it is not among the first; or, where
    // all are there, one more.
    for (named, skill, left_out) in [
        (MAX_NAMES, "github/acme/s7", None),
        (MAX_NAMES, "github/acme/sx", Some("1".to_owned())),
        (MAX_NAMES - 1, "github/acme/sx", None),
        (MAX_NAMES + 3, "github/acme/s7", three.clone()),
        (MAX_NAMES + 3, "github/acme/s10", three.clone()),
    ] {
        let expected = (8, skill.to_owned(), left_out);
        assert_eq!(
            called(named, Some(skill)).await,
            expected,
            "{named} {skill}"
        );
    }
}

#[tokio::test]
async fn a_caller_that_leaves_leaves_a_record() {
    let world = world(AuditConfig::default());
    drop(
        world
            .audit
            .begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new()),
    );
    world.audit.write().await.expect("written");
    let left = ("token:ci".to_owned(), "CANCELLED".to_owned(), 0);
    assert_eq!(world.outcomes(), [left]);
}

#[tokio::test]
async fn items_of_a_stream_have_records_of_their_own_in_their_order() {
    let world = world(AuditConfig::default());
    let mut call = world
        .audit
        .begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new());
    let noted = call.noted();
    for name in ["a/b/1", "a/b/2", "a/b/3"] {
        noted.names([name]);
    }
    noted.item(None);
    noted.item(Some("SKILL_INVALID"));
    noted.item(None);
    call.note(None);
    drop(call);
    world.audit.write().await.expect("written");
    let mut entries = world.listed(&Filter::default());
    entries.reverse();
    let found: Vec<_> = entries
        .iter()
        .map(|it| (it.event.names.join(" "), it.event.outcome.as_str()))
        .collect();
    let expected = [
        ("a/b/1", "OK"),
        ("a/b/2", "SKILL_INVALID"),
        ("a/b/3", "OK"),
        ("", "OK"),
    ];
    assert_eq!(found, expected.map(|(name, end)| (name.to_owned(), end)));
}

/// Appends records behind the back of the trail.
async fn append(world: &World, records: u64) {
    let mut batch = Batch::new();
    for _ in 0..records {
        batch.append(Event::new(world.clock.now(), EventKind::Start).encode());
    }
    world.store.commit(batch).await.expect("written");
}

fn whole(records: u64) -> Verified {
    Verified {
        records,
        ..Verified::default()
    }
}

#[tokio::test]
async fn whoever_writes_is_told_of_each_record_that_waits() {
    let world = world(AuditConfig::default());
    let pending = async || {
        let pending = world.audit.pending();
        tokio::time::timeout(std::time::Duration::ZERO, pending)
            .await
            .is_ok()
    };
    assert!(!pending().await);
    world
        .audit
        .refused_early(&Principal::anonymous(), Origin::PROCESS, Code::TokenRefused);
    assert!(pending().await);
    world.audit.write().await.expect("written");
    assert!(!pending().await);
}
