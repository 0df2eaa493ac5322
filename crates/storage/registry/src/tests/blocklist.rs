//! The blocklist outlives the skill, a restart, and what is written meanwhile.

use super::*;

fn operator() -> Caller {
    Caller::new(Principal::local())
}

fn listed(registry: &Registry) -> Vec<(String, String, bool)> {
    let page = registry.blocklist(100, "").expect("a page");
    let entry = |block: &Arc<model::Block>| {
        (
            block.skill.to_string(),
            block.reason.clone(),
            block.from_feed,
        )
    };
    page.blocks.iter().map(entry).collect()
}

#[tokio::test]
async fn a_blocked_skill_is_as_it_was_once_it_is_unblocked() {
    let world = World::new();
    for body in ["one", "two", "three"] {
        world.published(ID, &text("", body)).await;
    }
    let id = skill(ID);
    let blocked = world.registry.block(&id, "leaks", &caller("")).await;
    assert_eq!(blocked.expect("blocked").size, 1);
    let head = world.registry.head(&id).expect("a head");
    for selector in [VersionSelector::Active, number(1).into()] {
        let refused = world.registry.version(&head, &selector);
        assert!(matches!(refused, Err(Error::Blocked { .. })), "{refused:?}");
    }
    // Its history can be looked at, and withdrawn from.
    world.withdraw(2, "wrong").await;
    let world = world.again().await;
    assert_eq!(
        listed(&world.registry),
        [(ID.to_owned(), "leaks".to_owned(), false)]
    );
    let refused = world.publish(ID, &text("", "four")).await;
    assert!(matches!(refused, Err(Error::Blocked { .. })), "{refused:?}");
    let refused = world.registry.activate(&id, number(1), &caller("")).await;
    assert!(matches!(refused, Err(Error::Blocked { .. })), "{refused:?}");
    let unblocked = world.registry.unblock(&id, &operator()).await;
    assert_eq!(unblocked.expect("unblocked").size, 0);
    let versions = world.versions(ID).into_iter();
    let states: Vec<_> = versions
        .map(|(n, _, active, yanked)| (n, active, yanked))
        .collect();
    assert_eq!(
        states,
        [(3, true, false), (2, false, true), (1, false, false)]
    );
}

#[tokio::test]
async fn an_entry_outlives_its_skill() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let id = skill(ID);
    let blocked = world.registry.block(&id, "leaks", &caller("")).await;
    blocked.expect("blocked");
    let deleted = world.registry.delete(&id, &caller("")).await;
    deleted.expect("deleted");
    let refused = world.publish(ID, &text("", "two")).await;
    assert!(matches!(refused, Err(Error::Blocked { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_feed_changes_nothing_that_people_put_there() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let (id, other) = (skill(ID), skill("github/acme/other"));
    let blocked = world.registry.block(&id, "by hand", &caller("")).await;
    blocked.expect("blocked");
    let feed = |reason: &str| {
        let entry = |id: &SkillId| (id.clone(), reason.to_owned());
        vec![entry(&id), entry(&other)]
    };
    let registry = &world.registry;
    let by_hand = (ID.to_owned(), "by hand".to_owned(), false);
    let by_feed = |reason: &str| (other.to_string(), reason.to_owned(), true);
    for (entries, expected, changes) in [
        (feed("told"), vec![by_feed("told"), by_hand.clone()], (1, 0)),
        (feed("told"), vec![by_feed("told"), by_hand.clone()], (0, 0)),
        (feed("anew"), vec![by_feed("anew"), by_hand.clone()], (1, 0)),
        (Vec::new(), vec![by_hand.clone()], (0, 1)),
    ] {
        let refreshed = registry.follow_feed(entries, &operator()).await;
        let refreshed = refreshed.expect("the feed");
        assert_eq!((refreshed.added, refreshed.removed), changes);
        assert_eq!(listed(registry), expected);
    }
}

#[tokio::test]
async fn pages_of_the_list_hold_every_entry_once() {
    let world = World::new();
    let ids = (0..7).map(|n| skill(&format!("github/acme/s{n}")));
    let feed = ids.clone().map(|id| (id, "told".to_owned())).collect();
    let refreshed = world.registry.follow_feed(feed, &operator()).await;
    assert_eq!(refreshed.expect("the feed").size, 7);
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = world.registry.blocklist(3, &token).expect("a page");
        assert!(page.blocks.len() <= 3 && page.size == 7);
        found.extend(page.blocks.iter().map(|block| block.skill.clone()));
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(found, ids.collect::<Vec<_>>());
    let forged = world.registry.blocklist(3, "x");
    assert!(matches!(forged, Err(Error::PageToken)));
}

#[tokio::test]
async fn a_blocked_skill_of_the_server_is_put_in_its_place_all_the_same() {
    let world = World::new();
    let (id, registry) = ("builtin/repertoire/refunds", &world.registry);
    let system = Caller::new(Principal::system());
    for (body, number) in [("one", 1), ("two", 2)] {
        let text = text("", body);
        let published = publish(registry, id, &[("SKILL.md", &text)], &system).await;
        assert_eq!(published.expect("published").version.number.get(), number);
        let blocked = registry.block(&skill(id), "leaks", &operator()).await;
        blocked.expect("blocked");
    }
}

#[tokio::test]
async fn a_feed_is_a_file_of_some_megabytes_at_most() {
    let world = World::new();
    let path = world.directory.path().join("feed.json");
    let feed = Feed::new(Some(path.clone()));
    let entries = |reason: &str| {
        serde_json::json!({"blocked": [{"skill_id": ID, "reason": reason}]}).to_string()
    };
    let told = async |text: String| {
        std::fs::write(&path, text).expect("a file");
        feed.take_in(&world.registry, &operator()).await
    };
    let taken = told(entries(&"r".repeat(1 << 20))).await.expect("the feed");
    assert_eq!((taken.added, taken.size), (1, 1));
    let kept = listed(&world.registry)[0].1.clone();
    assert_eq!(kept, format!("{}…", "r".repeat(1_024)));
    let refused = told(entries(&"r".repeat(8 << 20))).await;
    let refused = Failure::from(refused.expect_err("refused"));
    assert!(
        refused.message.contains("more than 8388608 bytes"),
        "{}",
        refused.message
    );
    assert_eq!(listed(&world.registry).len(), 1);
}
