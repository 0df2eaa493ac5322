//! Lists of records: filters, pages, and who follows.

use super::*;

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
