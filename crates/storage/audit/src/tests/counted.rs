//! What is counted, because it cannot all be recorded.

use super::*;
use crate::pending_events::{MAX_COUNTED, MAX_FAILED, MAX_SUMMARIES, MAX_WAITING, PendingEvents};
use model::Code;

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
    // Those that have been told are not told again.
    refused(0);
    world.audit.close().await.expect("written");
    let counts: Vec<_> = world.listed(&Filter::default());
    let counts: Vec<_> = counts.into_iter().map(|it| it.event.count).collect();
    assert_eq!((counts.len(), counts[0]), (MAX_SUMMARIES + 2, 1));
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
async fn what_the_queue_could_not_hold_is_counted_in_a_record() {
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
async fn after_an_hour_a_caller_has_records_of_failures_again() {
    let world = world(AuditConfig::default());
    let recorded = async || {
        world.audit.write().await.expect("written");
        let filter = Filter {
            kind: Some(EventKind::Call),
            ..Filter::default()
        };
        let page = world.audit.list(&filter, 5000, "").expect("a page");
        page.entries.len()
    };
    let ci = token("ci");
    for _ in 0..MAX_FAILED + 5 {
        world.call(&ci, Some("PERMISSION_DENIED")).await;
    }
    assert_eq!(recorded().await, MAX_FAILED as usize);
    world.clock.pass(SignedDuration::from_hours(1));
    world.call(&ci, Some("PERMISSION_DENIED")).await;
    assert_eq!(
        recorded().await,
        MAX_FAILED as usize,
        "the hour is not over"
    );
    world.clock.pass(SignedDuration::from_secs(1));
    world.call(&ci, Some("PERMISSION_DENIED")).await;
    assert_eq!(recorded().await, MAX_FAILED as usize + 1);
}

#[tokio::test]
async fn after_a_long_silence_refusals_are_counted_for_a_minute_again() {
    let world = world(AuditConfig::default());
    let refused = || {
        let nobody = Principal::anonymous();
        world
            .audit
            .refused_early(&nobody, Origin::PROCESS, Code::TokenRefused);
    };
    let counts = async || {
        world.audit.write().await.expect("written");
        let counts = world.outcomes().into_iter();
        counts.map(|(_, _, count)| count).collect::<Vec<_>>()
    };
    refused();
    world.clock.pass(SignedDuration::from_mins(1));
    assert_eq!(counts().await, [1]);
    world.clock.pass(SignedDuration::from_hours(3));
    refused();
    assert_eq!(counts().await, [1], "more may come");
    refused();
    world.clock.pass(SignedDuration::from_mins(1));
    assert_eq!(counts().await, [1, 2]);
}

#[test]
fn what_was_lost_is_told_once() {
    let mut waiting = PendingEvents::default();
    for _ in 0..MAX_WAITING + 3 {
        waiting.push(Event::new(Timestamp::UNIX_EPOCH, EventKind::Start));
    }
    let next = |waiting: &PendingEvents| {
        let (records, lost) = waiting.next(2);
        (records.count(), lost)
    };
    assert_eq!(next(&waiting), (2, 3));
    waiting.written(2, 3);
    assert_eq!(next(&waiting), (2, 0));
}
