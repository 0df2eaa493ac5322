//! The trail, over a store in memory and a data directory.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::event::MAX_NAMES;
use crate::retention::MAX_PRUNED;
use crate::verify::MAX_TOLD;
use crate::waiting::{MAX_COUNTED, MAX_FAILED, MAX_SUMMARIES, MAX_WAITING};
use crate::{Audit, AuditConfig, Entry, Event, EventKind, Filter, LEFT_OUT, Rpc, Verified, verify};
use access::{Access, Action, Actions, Caller, Origin, Rights};
use model::{Clock, Code, Principal};
use store::{Batch, CommitError, Options, Store, Table, TableId};

/// Time that a test moves.
#[derive(Default)]
struct Hands(Mutex<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("a time")
    }
}

impl Hands {
    fn pass(&self, time: SignedDuration) {
        *self.0.lock().expect("a time") += time;
    }
}

struct World {
    store: Store,
    clock: Arc<Hands>,
    audit: Audit,
}

fn world(config: AuditConfig) -> World {
    let store = Store::in_memory(&Options::default());
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

    async fn call(&self, access: &Access, code: Option<&str>) {
        let call = self
            .audit
            .begin(&rpc(Action::Publish), access, &HeaderMap::new());
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

#[tokio::test]
async fn refusals_of_nobody_in_particular_are_counted_and_push_out_nothing() {
    let world = world(AuditConfig::default());
    world.call(&token("ci"), None).await;
    for peer in 0..=255 {
        for _ in 0..=peer {
            let access = of(Principal::anonymous(), [10, 0, 0, peer]);
            let (rpc, headers) = (rpc(Action::Publish), HeaderMap::new());
            world
                .audit
                .refused(&rpc, &access, &headers, Code::SignInRequired);
        }
    }
    world.audit.write().await.expect("written");
    assert_eq!(world.outcomes().len(), 1, "they are not due");
    world.clock.pass(SignedDuration::from_mins(1));
    world.audit.write().await.expect("written");
    let entries = world.listed(&Filter::default());
    assert_eq!(entries.len(), 1 + MAX_SUMMARIES + 1);
    let most = &entries[entries.len() - 2].event;
    let address = most.address.map(|it| it.to_string());
    assert_eq!(
        (
            most.kind,
            address.as_deref(),
            most.outcome.as_str(),
            most.count
        ),
        (
            EventKind::Refusals,
            Some("10.0.0.255"),
            "SIGN_IN_REQUIRED",
            256
        )
    );
    let all: u64 = entries.iter().map(|entry| entry.event.count).sum();
    assert_eq!(all, 256 * 257 / 2, "none is lost");
    // The next ones are due an hour after the last.
    world
        .audit
        .refused_early(&Principal::anonymous(), Origin::PROCESS, Code::TokenRefused);
    world.clock.pass(SignedDuration::from_mins(59));
    world.audit.write().await.expect("written");
    assert_eq!(world.listed(&Filter::default()).len(), entries.len());
    world.clock.pass(SignedDuration::from_mins(1));
    world.audit.write().await.expect("written");
    let last = world.listed(&Filter::default()).remove(0).event;
    assert_eq!((last.outcome.as_str(), last.count), ("TOKEN_REFUSED", 1));
}

#[tokio::test]
async fn no_more_callers_than_so_many_are_counted_apart_and_no_refusal_is_lost() {
    let world = world(AuditConfig::default());
    let refused = |peer: usize| {
        let [.., high, low] = peer.to_be_bytes();
        let access = of(Principal::anonymous(), [10, 0, high, low]);
        let (rpc, headers) = (rpc(Action::Publish), HeaderMap::new());
        world
            .audit
            .refused(&rpc, &access, &headers, Code::SignInRequired);
    };
    (0..MAX_COUNTED).for_each(refused);
    // The most of all, and too late.
    (0..100).for_each(|_| refused(MAX_COUNTED));
    world.audit.close().await.expect("written");
    let counts: Vec<_> = world.listed(&Filter::default());
    let mut counts: Vec<_> = counts.into_iter().map(|it| it.event.count).collect();
    let others = (MAX_COUNTED - MAX_SUMMARIES + 100) as u64;
    assert_eq!(counts.remove(0), others);
    assert_eq!(counts, [1; MAX_SUMMARIES]);
}

#[tokio::test]
async fn a_caller_who_is_known_has_so_many_failures_recorded_and_the_rest_counted() {
    let world = world(AuditConfig::default());
    for _ in 0..MAX_FAILED + 5 {
        world.call(&token("ci"), Some("PERMISSION_DENIED")).await;
    }
    world.call(&token("other"), Some("PERMISSION_DENIED")).await;
    world.audit.close().await.expect("written");
    let outcomes = {
        let filter = Filter {
            principal: Some("token:ci".to_owned()),
            ..Filter::default()
        };
        let page = world.audit.list(&filter, 5000, "").expect("a page");
        page.entries
    };
    let one = outcomes
        .iter()
        .filter(|it| it.event.kind == EventKind::Call);
    assert_eq!(one.count(), MAX_FAILED as usize);
    let counted: u64 = outcomes.iter().map(|it| it.event.count).sum();
    assert_eq!(counted, 5);
}

#[tokio::test]
async fn what_there_was_no_place_for_is_counted_in_a_record() {
    let world = world(AuditConfig::default());
    for _ in 0..MAX_WAITING + 3 {
        let tool = world
            .audit
            .begin(&rpc(Action::Call), &token("ci"), &HeaderMap::new());
        tool.end(None).await.expect("recorded");
    }
    world.audit.write().await.expect("written");
    let filter = Filter {
        kind: Some(EventKind::Lost),
        ..Filter::default()
    };
    let page = world.audit.list(&filter, 10, "").expect("a page");
    let next = page.next.expect("it has looked at many");
    let rest = world.audit.list(&filter, 10, &next).expect("a page");
    let lost: Vec<_> = page.entries.into_iter().chain(rest.entries).collect();
    let counts: Vec<_> = lost.iter().map(|it| it.event.count).collect();
    assert_eq!(counts, [3]);
    let newest = world.audit.last().expect("a number");
    assert_eq!(newest, MAX_WAITING as u64 + 1);
}

#[tokio::test]
async fn filters_find_what_they_say_and_pages_lead_on() {
    let world = world(AuditConfig::default());
    for (name, code) in [
        ("github/acme/a", None),
        ("github/acme/b", Some("PERMISSION_DENIED")),
        ("github/other/a", None),
    ] {
        let call = world
            .audit
            .begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new());
        call.noted().names([name]);
        call.end(code).await.expect("recorded");
        world.audit.write().await.expect("written");
        world.clock.pass(SignedDuration::from_hours(1));
    }
    let found = |filter: Filter| {
        let names = world.listed(&filter).into_iter();
        names
            .map(|entry| entry.event.names.join(" "))
            .collect::<Vec<_>>()
    };
    let text = |text: &str| Some(text.to_owned());
    let hours = |hours: i64| Some(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours));
    let all = ["github/other/a", "github/acme/b", "github/acme/a"];
    for (filter, expected) in [
        (Filter::default(), &all[..]),
        (
            Filter {
                principal: text("token:ci"),
                ..Filter::default()
            },
            &all,
        ),
        (
            Filter {
                principal: text("token:c"),
                ..Filter::default()
            },
            &[],
        ),
        (
            Filter {
                rpc: text("PublishSkill"),
                ..Filter::default()
            },
            &all,
        ),
        (
            Filter {
                rpc: text("Registry.PublishSkill"),
                ..Filter::default()
            },
            &all,
        ),
        (
            Filter {
                rpc: text("Publish"),
                ..Filter::default()
            },
            &[],
        ),
        (
            Filter {
                action: Some(Action::Delete),
                ..Filter::default()
            },
            &[],
        ),
        (
            Filter {
                name: text("github/acme/*"),
                ..Filter::default()
            },
            &all[1..],
        ),
        (
            Filter {
                name: text("github/acme"),
                ..Filter::default()
            },
            &[],
        ),
        (
            Filter {
                name: text("github/acme/a"),
                ..Filter::default()
            },
            &all[2..],
        ),
        (
            Filter {
                outcome: text("PERMISSION_DENIED"),
                ..Filter::default()
            },
            &all[1..2],
        ),
        (
            Filter {
                since: hours(1),
                ..Filter::default()
            },
            &all[..2],
        ),
        (
            Filter {
                until: hours(1),
                ..Filter::default()
            },
            &all[2..],
        ),
        (
            Filter {
                kind: Some(EventKind::Start),
                ..Filter::default()
            },
            &[],
        ),
    ] {
        assert_eq!(found(filter.clone()), expected, "{filter:?}");
    }
    let filter = Filter::default();
    let (mut token, mut numbers) = (String::new(), Vec::new());
    loop {
        let page = world.audit.list(&filter, 1, &token).expect("a page");
        numbers.extend(page.entries.iter().map(|entry| entry.number));
        let Some(next) = page.next else { break };
        token = next;
    }
    assert_eq!(numbers, [3, 2, 1]);
    let other = Filter {
        outcome: text("OK"),
        ..Filter::default()
    };
    for wrong in [token.as_str(), "x"] {
        let refused = world.audit.list(&other, 1, wrong).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "the page token is not one of this list with these filters"
        );
    }
}

#[tokio::test]
async fn who_follows_gets_each_record_once_from_where_it_was() {
    let world = world(AuditConfig::default());
    for _ in 0..3 {
        world.call(&token("ci"), None).await;
    }
    let mut follow = world.audit.follow(Filter::default(), 1);
    let numbers = |entries: Option<Vec<Entry>>| {
        let entries = entries.expect("some").into_iter();
        entries.map(|entry| entry.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(follow.next().await.expect("read")), [2, 3]);
    let ci = token("ci");
    let (next, ()) = tokio::join!(follow.next(), world.call(&ci, None));
    assert_eq!(numbers(next.expect("read")), [4]);
}

#[tokio::test]
async fn the_fewest_records_that_may_be_kept_are_pruned_once_and_not_for_ever() {
    let world = world(kept(2));
    for _ in 0..5 {
        world.call(&token("ci"), None).await;
    }
    for _ in 0..3 {
        world.audit.write().await.expect("written");
        let kinds: Vec<_> = world.listed(&Filter::default());
        let kinds: Vec<_> = kinds.into_iter().map(|it| it.event.kind).collect();
        assert_eq!(kinds, [EventKind::Pruned, EventKind::Call]);
    }
    assert_eq!(verify(&world.store), whole(2));
}

#[tokio::test]
async fn the_oldest_are_pruned_by_number_and_by_age_and_the_chain_says_so() {
    let world = world(kept(50));
    for _ in 0..50 {
        world.call(&token("ci"), None).await;
    }
    world.audit.write().await.expect("written");
    assert_eq!(world.listed(&Filter::default()).len(), 50);
    world.call(&token("ci"), None).await;
    world.audit.write().await.expect("written");
    let entries = world.listed(&Filter::default());
    let pruned = &entries[0];
    assert_eq!(pruned.event.kind, EventKind::Pruned);
    assert_eq!((pruned.event.count, entries.len()), (5, 47));
    assert_eq!(entries.last().expect("one").number, 6);
    assert_eq!(world.store.chain_start().expect("a start").number, 5);
    assert_eq!(verify(&world.store), whole(47));
    world.clock.pass(SignedDuration::from_hours(400 * 24 + 1));
    world.audit.write().await.expect("written");
    // The last one there was is what the next is chained to.
    let kinds: Vec<_> = world
        .listed(&Filter::default())
        .into_iter()
        .map(|it| it.event.kind)
        .collect();
    assert_eq!(kinds, [EventKind::Pruned, EventKind::Pruned]);
    assert_eq!(verify(&world.store), whole(2));
}

/// Appends records behind the back of the trail.
async fn append(world: &World, records: u64) {
    let mut batch = Batch::new();
    for _ in 0..records {
        batch.append(Event::new(world.clock.now(), EventKind::Start).encode());
    }
    world.store.commit(batch).await.expect("written");
}

#[tokio::test]
async fn one_write_prunes_so_many_and_the_next_ones_go_on() {
    let prunes = async |world: &World| {
        world.audit.write().await.expect("written");
        let newest = world.listed(&Filter {
            kind: Some(EventKind::Pruned),
            ..Filter::default()
        });
        newest.first().map(|it| it.event.count)
    };
    for (max_records, days) in [(10, 0), (1_000_000, 401)] {
        let world = world(kept(max_records));
        append(&world, 2 * MAX_PRUNED + 100).await;
        world.clock.pass(SignedDuration::from_hours(24 * days));
        assert_eq!(prunes(&world).await, Some(MAX_PRUNED));
        assert_eq!(prunes(&world).await, Some(MAX_PRUNED));
        let rest = prunes(&world).await.expect("pruned");
        assert!((90..=102).contains(&rest), "{rest}");
        let left = world.audit.last().expect("a number")
            - world.store.chain_start().expect("a start").number;
        assert!(left <= 10, "{left}");
        assert_eq!(verify(&world.store).damage, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_trail_that_has_not_grown_is_looked_at_once_an_hour() {
    let world = world(kept(50));
    let count = |world: &World| world.listed(&Filter::default()).len();
    world.audit.write().await.expect("written");
    // Whoever looks finds too many.
    append(&world, 60).await;
    for _ in 0..3 {
        world.audit.write().await.expect("written");
        assert_eq!(count(&world), 60);
    }
    world.clock.pass(SignedDuration::from_hours(1));
    world.audit.write().await.expect("written");
    assert_eq!(count(&world), 50);
    append(&world, 10).await;
    world.audit.write().await.expect("written");
    assert_eq!(count(&world), 50, "it has grown by what was pruned");
    append(&world, 10).await;
    world.call(&token("ci"), None).await;
    world.audit.write().await.expect("written");
    assert_eq!(count(&world), 50);
}

#[tokio::test]
async fn no_more_gaps_than_so_many_are_told_and_the_last_reaches_to_the_end() {
    let world = world(AuditConfig::default());
    let gaps = MAX_TOLD as u64 + 50;
    append(&world, 2 * gaps + 1).await;
    let mut forged = store::Forgery::of(&world.store);
    (1..=gaps).for_each(|gap| assert!(forged.remove(2 * gap)));
    world.store.commit(forged.batch()).await.expect("written");
    let found = verify(&world.store);
    assert_eq!(
        (found.damage.len(), found.missing.len()),
        (MAX_TOLD, MAX_TOLD)
    );
    assert_eq!(found.damage[0], "the audit trail has no record 2");
    assert_eq!(found.missing.last(), Some(&(2 * MAX_TOLD as u64, 2 * gaps)));
}

fn whole(records: u64) -> Verified {
    Verified {
        records,
        ..Verified::default()
    }
}

#[tokio::test]
async fn a_server_says_that_it_starts_and_stops_and_tells_two_config_files_apart() {
    let world = world(AuditConfig::default());
    world.audit.resume().await.expect("resumed");
    let digest = |text: &[u8]| Some(model::Digest::of(text));
    for config in [digest(b"a"), digest(b"a"), digest(b"b")] {
        world.audit.started("1.2.3", config).await.expect("written");
        world.audit.close().await.expect("written");
    }
    // A command closes what it opened, and is no server.
    world.audit.close().await.expect("written");
    let mut entries = world.listed(&Filter::default());
    entries.reverse();
    let kinds: Vec<_> = entries.iter().map(|it| it.event.kind).collect();
    assert_eq!(kinds, [EventKind::Start, EventKind::Stop].repeat(3));
    let config = |at: usize| entries[at].event.details["config"].clone();
    assert_eq!(entries[0].event.details["version"], "1.2.3");
    assert_eq!(config(0), config(2));
    assert_ne!(config(0), config(4));
    assert_ne!(
        config(0),
        digest(b"a").expect("one").to_string(),
        "it is keyed"
    );
}

#[tokio::test]
async fn a_restored_trail_goes_on_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::default();
    let clock = Arc::new(Hands::default());
    let open = |directory: &std::path::Path| {
        let store = Store::open(directory, &options).expect("a store");
        let audit = Audit::new(
            store.clone(),
            AuditConfig::default(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        );
        (store, audit)
    };
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let (store, audit) = open(&old);
    audit.resume().await.expect("resumed");
    let call = audit.begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new());
    call.end(None).await.expect("recorded");
    let backup = folder.path().join("backup");
    store.backup(&backup, false, |_| Ok(())).expect("a backup");
    store.close().await;
    store::restore(&backup, &new, &options, |_| {}).expect("restored");
    for _ in 0..2 {
        let (store, audit) = open(&new);
        assert_eq!(verify(&store).damage, Vec::<String>::new());
        audit.resume().await.expect("resumed");
        let page = audit.list(&Filter::default(), 10, "").expect("a page");
        let kinds: Vec<_> = page.entries.iter().map(|it| it.event.kind).collect();
        assert_eq!(kinds, [EventKind::Restored, EventKind::Call], "once");
        assert_eq!(verify(&store), whole(2));
        store.close().await;
    }
}

#[tokio::test]
async fn what_a_salvage_lost_is_told_by_the_write_that_goes_on_without_it() {
    let world = world(AuditConfig::default());
    append(&world, 5).await;
    let mut forged = store::Forgery::of(&world.store);
    assert!(forged.remove(2) && forged.remove(5));
    let mut batch = forged.batch();
    batch.put(&crate::STATE, crate::LOG, &"another".to_owned());
    let before = world.store.commit(batch).await.expect("written");
    world.audit.resume().await.expect("resumed");
    let after = world.store.commit(some_write(None)).await.expect("written");
    // A kill between two commits would lose what is missing: the end that says so is forgotten.
    assert_eq!(after, before + 2, "it is one commit");
    let newest = world.listed(&Filter::default()).remove(0);
    assert_eq!((newest.number, newest.event.kind), (5, EventKind::Restored));
    assert_eq!(newest.event.details["missing"], "2-2,5-5");
    assert_eq!(verify(&world.store), whole(4));
}

/// What somebody does to the records, who can write to the files.
#[derive(Debug, Clone)]
enum Tampering {
    Remove(prop::sample::Index),
    Change(prop::sample::Index, prop::sample::Index, u8),
    Swap(prop::sample::Index, prop::sample::Index),
    CutOff(prop::sample::Index),
    Prune(prop::sample::Index),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        index().prop_map(Tampering::Remove),
        (index(), index(), 1_u8..).prop_map(|(at, byte, flip)| Tampering::Change(at, byte, flip)),
        (index(), index()).prop_map(|(a, b)| Tampering::Swap(a, b)),
        index().prop_map(Tampering::CutOff),
        index().prop_map(Tampering::Prune),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_was_changed_removed_or_moved_shows(
        records in 2_usize..12,
        pruned in any::<bool>(),
        tampering in tampering(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let found = runtime.block_on(async {
            let world = world(if pruned { kept(3) } else { AuditConfig::default() });
            for number in 0..records {
                world.call(&token(&format!("t{number}")), None).await;
                world.audit.write().await.expect("written");
            }
            assert_eq!(verify(&world.store).damage, Vec::<String>::new());
            let numbers: Vec<u64> = world
                .store
                .links(0, u64::MAX)
                .map(|link| link.expect("a record").mark.number)
                .collect();
            let at = |index: prop::sample::Index| numbers[index.index(numbers.len())];
            let mut forged = store::Forgery::of(&world.store);
            let changes = match tampering {
                Tampering::Remove(index) => forged.remove(at(index)),
                Tampering::Change(index, byte, flip) => forged.change(at(index), |value| {
                    let byte = byte.index(value.len());
                    value[byte] ^= flip;
                }),
                Tampering::Swap(a, b) => forged.swap(at(a), at(b)),
                Tampering::CutOff(index) => {
                    let from = at(index);
                    numbers.iter().filter(|number| **number >= from).fold(false, |_, number| forged.remove(*number))
                }
                Tampering::Prune(index) => forged.start_after(at(index)),
            };
            if !changes {
                return None;
            }
            world.store.commit(forged.batch()).await.expect("written");
            Some(verify(&world.store).damage)
        });
        if let Some(damage) = found {
            prop_assert!(!damage.is_empty());
        }
    }
}
