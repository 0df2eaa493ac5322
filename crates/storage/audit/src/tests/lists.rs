//! Lists of records: filters, pages, and who follows.

use super::*;
use crate::{Follow, RECORDS_PER_WRITE};

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
async fn what_happened_before_and_was_written_after_hides_nothing_from_a_list() {
    let world = world(AuditConfig::default());
    world.clock.pass(SignedDuration::from_hours(2));
    let since = Some(world.clock.now());
    world.call(&token("ci"), None).await;
    // It began to wait before the first did.
    world.clock.pass(SignedDuration::from_mins(-30));
    world.call(&token("ci"), None).await;
    let found = world.listed(&Filter {
        since,
        ..Filter::default()
    });
    let numbers: Vec<_> = found.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [1]);
}

#[tokio::test]
async fn a_list_since_a_time_ends_where_all_are_older() {
    let world = world(AuditConfig::default());
    // More than one page looks at.
    append(&world, 4_001).await;
    world.clock.pass(SignedDuration::from_hours(2));
    let since = Some(world.clock.now());
    world.call(&token("ci"), None).await;
    let filter = Filter {
        since,
        ..Filter::default()
    };
    let page = world.audit.list(&filter, 10, "").expect("a page");
    assert_eq!((page.entries.len(), page.next), (1, None));
}

/// The numbers of what comes next; none where nothing comes.
async fn next(follow: &mut Follow) -> Option<Vec<u64>> {
    let next = tokio::time::timeout(LONG, follow.next()).await.ok()?;
    let entries = next.expect("read").expect("some").into_iter();
    Some(entries.map(|entry| entry.number).collect())
}

#[tokio::test(start_paused = true)]
async fn who_follows_gets_no_more_at_once_than_one_write_has() {
    let world = world(AuditConfig::default());
    append(&world, 300).await;
    let mut follow = world.audit.follow(Filter::default(), 0);
    let most = RECORDS_PER_WRITE as u64;
    assert_eq!(next(&mut follow).await, Some((1..=most).collect()));
    assert_eq!(next(&mut follow).await, Some((most + 1..=300).collect()));
    assert_eq!(next(&mut follow).await, None);
}

#[tokio::test(start_paused = true)]
async fn who_follows_is_led_past_any_number_of_others() {
    let world = world(AuditConfig::default());
    append(&world, 3 * RECORDS_PER_WRITE as u64).await;
    world.call(&token("ci"), None).await;
    let calls = Filter {
        kind: Some(EventKind::Call),
        ..Filter::default()
    };
    let mut follow = world.audit.follow(calls, 0);
    let last = world.audit.last().expect("a number");
    assert_eq!(next(&mut follow).await, Some(vec![last]));
}

#[tokio::test(start_paused = true)]
async fn who_follows_is_told_of_what_goes_with_another_write() {
    let world = world(AuditConfig::default());
    let mut follow = world.audit.follow(Filter::default(), 0);
    let call = world.begin(&token("ci"));
    let write = call.work(world.store.commit(some_write(None)));
    let (found, written) = tokio::join!(next(&mut follow), write);
    written.expect("written");
    assert_eq!(found, Some(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn who_follows_is_told_of_what_another_of_the_same_store_wrote() {
    let world = world(AuditConfig::default());
    let other = world_of(world.store.clone(), AuditConfig::default());
    let mut follow = world.audit.follow(Filter::default(), 0);
    let ci = token("ci");
    let (found, ()) = tokio::join!(next(&mut follow), other.call(&ci, None));
    assert_eq!(found, Some(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn who_follows_is_told_of_what_was_pruned() {
    let world = world(kept(2));
    append(&world, 5).await;
    let mut follow = world.audit.follow(Filter::default(), 5);
    let (found, written) = tokio::join!(next(&mut follow), world.audit.write());
    written.expect("written");
    assert_eq!(found, Some(vec![6]));
}
