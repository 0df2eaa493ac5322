//! Records of calls: how each ends, and what of it waits to be written.

use super::*;
use crate::RECORDS_PER_WRITE;
use crate::event::name;
use crate::pending_events::MAX_WAITING;

/// As many as are written without anybody who asks for it.
const MANY: u64 = MAX_WAITING as u64 / 10;

/// Has so many records wait.
fn push(call: &Call, records: u64) {
    let noted = call.noted();
    (0..records).for_each(|_| noted.item(None));
}

/// Waits until there is a record of this number; false where none comes.
async fn is_written(audit: &Audit, number: u64) -> bool {
    let mut follow = audit.follow(Filter::default(), number - 1);
    let found = tokio::time::timeout(LONG, follow.next()).await;
    found.is_ok()
}

fn ended(outcomes: &[&str]) -> Vec<(String, String, u64)> {
    let ended = |outcome: &&str| ("token:ci".to_owned(), (*outcome).to_owned(), 0);
    outcomes.iter().map(ended).collect()
}

#[tokio::test]
async fn a_record_names_what_was_found_and_not_how_its_caller_spelled_it() {
    let world = world(AuditConfig::default());
    let call = world.begin(&token("ci"));
    call.noted().names(["SQL-Query", "github/acme/sql"]);
    call.work(async {
        crate::found_as("SQL-Query", "sql_query");
        crate::found_as("other", "another");
    })
    .await;
    // Outside of the call there is nothing to name.
    crate::found_as("sql_query", "x");
    call.end(None).await.expect("recorded");
    world.audit.write().await.expect("written");
    let entries = world.listed(&Filter::default());
    let names: Vec<_> = entries.iter().map(|entry| &entry.event.names).collect();
    assert_eq!(names, [&["sql_query", "github/acme/sql"]]);
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_are_written_though_nobody_asks_for_it() {
    let world = world(AuditConfig::default());
    let call = world.begin(&token("ci"));
    push(&call, MANY - 1);
    assert!(!is_written(&world.audit, 1).await, "they are not many");
    push(&call, 1);
    assert!(is_written(&world.audit, MANY).await);
    push(&call, MANY);
    assert!(is_written(&world.audit, 2 * MANY).await, "and again");
}

#[tokio::test(start_paused = true)]
async fn many_from_a_thread_that_can_write_none_are_written_with_the_next() {
    let world = world(AuditConfig::default());
    let call = world.begin(&token("ci"));
    std::thread::scope(|scope| {
        scope.spawn(|| push(&call, MANY));
    });
    assert!(!is_written(&world.audit, 1).await);
    push(&call, 1);
    assert!(is_written(&world.audit, MANY + 1).await);
}

#[tokio::test]
async fn what_waits_is_written_so_many_records_at_a_time() {
    let world = world(AuditConfig::default());
    let call = world.begin(&token("ci"));
    push(&call, RECORDS_PER_WRITE as u64 + 1);
    let before = world.store.commit(some_write(None)).await.expect("written");
    world.audit.write().await.expect("written");
    let after = world.store.commit(some_write(None)).await.expect("written");
    assert_eq!(after - before, 3, "two, and this one");
}

#[tokio::test]
async fn two_who_write_at_once_write_each_record_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), &Options::default()).expect("a store");
    let world = world_of(store, AuditConfig::default());
    let call = world.begin(&token("ci"));
    push(&call, 3);
    let (one, other) = tokio::join!(world.audit.write(), world.audit.write());
    one.and(other).expect("written");
    assert_eq!(world.outcomes(), ended(&["OK"; 3]));
    world.store.close().await;
}

#[tokio::test]
async fn what_a_store_refuses_waits_for_the_next_time() {
    let world = world(AuditConfig::default());
    world.store.close().await;
    let call = world.begin(&token("ci"));
    let refused = call.end(None).await.expect_err("the store is closed");
    assert_eq!(refused.code, Code::StoreUnavailable);
    for _ in 0..2 {
        let refused = world.audit.write().await.expect_err("the store is closed");
        assert!(matches!(refused, CommitError::Closed), "{refused}");
        let waiting = world.audit.waiting();
        let (records, lost) = waiting.next(10);
        let outcomes: Vec<_> = records.map(|event| event.outcome.as_str()).collect();
        assert_eq!((outcomes, lost), (vec!["OK"], 0));
    }
}

#[tokio::test]
async fn who_leaves_while_the_record_is_written_leaves_one_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), &Options::default()).expect("a store");
    let world = world_of(store, AuditConfig::default());
    let call = world.begin(&token("ci"));
    {
        // The store takes the record, and nobody waits for its answer.
        let mut end = std::pin::pin!(call.end(None));
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(end.as_mut().poll(context).is_pending())
        });
        assert!(polled.await, "it is written by another thread");
    }
    world.audit.write().await.expect("written");
    assert_eq!(world.outcomes(), ended(&["OK", "CANCELLED"]));
    world.store.close().await;
}

#[tokio::test]
async fn a_caller_without_a_name_who_leaves_is_counted() {
    let world = world(AuditConfig::default());
    drop(world.begin(&of(Principal::anonymous(), [192, 0, 2, 1])));
    world.audit.close().await.expect("written");
    let counted = ("anonymous".to_owned(), "CANCELLED".to_owned(), 1);
    assert_eq!(world.outcomes(), [counted]);
}

#[tokio::test]
async fn a_stream_has_a_record_of_its_beginning_and_of_its_end() {
    let world = world(AuditConfig::default());
    let mut call = world.begin(&token("ci"));
    call.goes_on();
    call.note(None);
    drop(call);
    world.audit.write().await.expect("written");
    assert_eq!(world.outcomes(), ended(&["STARTED", "OK"]));
}

#[tokio::test]
async fn a_stream_that_wrote_and_failed_has_a_record_of_both() {
    let world = world(AuditConfig::default());
    let mut call = world.begin(&token("ci"));
    let written = call.work(world.store.commit(some_write(None))).await;
    written.expect("written");
    call.note(Some("TIMEOUT".to_owned()));
    drop(call);
    world.audit.write().await.expect("written");
    assert_eq!(world.outcomes(), ended(&["OK", "TIMEOUT"]));
}

#[tokio::test]
async fn no_more_names_of_items_are_held_than_so_many() {
    const MAX_ITEMS: u64 = 1_024;
    let world = world(AuditConfig::default());
    let call = world.begin(&token("ci"));
    for item in 0..=MAX_ITEMS {
        call.noted().names([format!("s/a/{item}").as_str()]);
    }
    push(&call, MAX_ITEMS + 1);
    world.audit.write().await.expect("written");
    let page = world.audit.list(&Filter::default(), 2, "").expect("a page");
    let names: Vec<_> = page.entries.into_iter().map(|it| it.event.names).collect();
    let last = format!("s/a/{}", MAX_ITEMS - 1);
    assert_eq!(names, [vec![], vec![last]]);
}

#[tokio::test]
async fn only_the_trace_id_of_a_traceparent_is_recorded() {
    let world = world(AuditConfig::default());
    let id = "0af7651916cd43dd8448eb211c80319c";
    let recorded = async |parent: String| {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", parent.parse().expect("a value"));
        let call = world
            .audit
            .begin(&rpc(Action::Publish), &token("ci"), &headers);
        call.end(None).await.expect("recorded");
        world.listed(&Filter::default()).remove(0).event.trace
    };
    assert_eq!(recorded(format!("00-{id}-b7ad6b7169203331-01")).await, id);
    for wrong in [&id[1..], &format!("{id}0"), &id.replace('f', "g"), ""] {
        let parent = format!("00-{wrong}-b7ad6b7169203331-01");
        assert_eq!(recorded(parent).await, "", "{wrong}");
    }
    assert_eq!(recorded(id.to_owned()).await, "");
}

#[test]
fn a_name_is_short_and_no_credential() {
    assert_eq!(name(&"x".repeat(200)), "x".repeat(200));
    assert_eq!(name(&"x".repeat(201)), "x".repeat(200) + "…");
    let token = format!("of rpt_{}", "A".repeat(21));
    assert_eq!(name(&token), "of rpt_…");
}
