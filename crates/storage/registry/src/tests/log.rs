//! What watchers are told, and what a token says.

use super::*;

fn open(path: &std::path::Path, keep_events: u64) -> Registry {
    let options = Options {
        reserve_bytes: 0,
        keep_events,
        ..Options::default()
    };
    let store = Store::open(path, &options).expect("a store");
    Registry::open(store, Arc::new(Hands::default())).expect("a registry")
}

#[tokio::test]
async fn a_token_of_before_a_restore_is_refused_however_much_was_published_since() {
    let world = World::new();
    world.published(ID, &text("", "kept")).await;
    let folder = world.directory.path();
    let (file, copy) = (folder.join("backup"), folder.join("copy"));
    let backup = world.registry.store().backup(&file, false, |_| Ok(()));
    backup.expect("a backup");
    world.published(ID, &text("", "lost")).await;
    let token = world.registry.resume_token();
    let restored = store::restore(&file, &copy, &Options::default(), |_| {});
    restored.expect("a restore");
    let registry = open(&copy, 100);
    for n in 0..5 {
        let error = registry.watch(&token, WatchFilter::default()).map(|_| ());
        assert_eq!(
            code(error.expect_err("another log")),
            Code::ResumeTokenExpired
        );
        let text = text("", &format!("new {n}"));
        let published = publish(&registry, ID, &[("SKILL.md", &text)], &caller("")).await;
        published.expect("published");
    }
}

#[tokio::test]
async fn writes_that_change_no_skill_do_not_move_a_watcher_out_of_the_log() {
    let directory = TempDir::new().expect("a folder");
    let registry = open(&directory.path().join("data"), 3);
    let token = registry.resume_token();
    for n in 0..2 {
        let text = text("", &format!("body {n}"));
        for repeat in 0..20 {
            // The repeats only remember an answer each.
            let named = caller(&format!("{n}-{repeat}"));
            let published = publish(&registry, ID, &[("SKILL.md", &text)], &named).await;
            published.expect("published");
        }
    }
    let mut watch = registry
        .watch(&token, WatchFilter::default())
        .expect("a watcher");
    for version in 1..=2 {
        let (_, event) = watch.next().await.expect("an event");
        assert_eq!(event.version, Some(number(version)));
    }
}

/// Publishers are faster than watchers, and the log is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_at_the_edge_of_the_log_see_every_version_or_are_told_to_list() {
    const SKILLS: u32 = 12;
    const VERSIONS: u32 = 25;
    let directory = TempDir::new().expect("a folder");
    let registry = open(&directory.path().join("data"), 6);
    let start = registry.resume_token();
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let (registry, start) = (registry.clone(), start.clone());
            tokio::spawn(async move {
                let mut gaps = Vec::new();
                let mut last = BTreeMap::new();
                let mut watch = registry.watch(&start, WatchFilter::default()).ok();
                while last.values().sum::<u32>() < SKILLS * VERSIONS {
                    let Some(watching) = &mut watch else {
                        // The token first, then what it goes on from.
                        watch = registry.watch("", WatchFilter::default()).ok();
                        for head in registry.catalog().after("", None) {
                            last.insert(head.id.to_string(), head.last_number.get());
                        }
                        continue;
                    };
                    let event = match watching.next().await {
                        Ok((_, event)) => event,
                        Err(Error::ResumeTokenExpired) => {
                            watch = None;
                            continue;
                        }
                        Err(error) => panic!("{error}"),
                    };
                    let found = event.version.map_or(0, VersionNumber::get);
                    let before = last.entry(event.skill_id.to_string()).or_default();
                    // A list may be ahead of the token that was taken before it.
                    if found > *before + 1 {
                        gaps.push((event.skill_id, *before, found));
                    }
                    *before = found.max(*before);
                }
                gaps
            })
        })
        .collect();
    let publishers: Vec<_> = (0..SKILLS)
        .map(|skill| {
            let registry = registry.clone();
            tokio::spawn(async move {
                for n in 0..VERSIONS {
                    let (id, text) = (format!("a/b/s{skill}"), text("", &format!("body {n}")));
                    let files = [("SKILL.md", text.as_str())];
                    let published = publish(&registry, &id, &files, &caller("")).await;
                    published.expect("published");
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.expect("a publisher");
    }
    for watcher in watchers {
        assert_eq!(watcher.await.expect("a watcher"), []);
    }
}

#[tokio::test]
async fn a_watcher_sees_every_event_once_and_goes_on_where_it_was() {
    let world = World::new();
    world.published(ID, &text("", "before")).await;
    let mut watch = world
        .registry
        .watch("", WatchFilter::default())
        .expect("a watcher");
    let start = watch.resume_token();
    world.published(ID, &text("", "one")).await;
    world.published("github/acme/other", &text("", "two")).await;
    let (_, first) = watch.next().await.expect("an event");
    assert_eq!(
        (first.skill_id, first.version),
        (skill(ID), Some(number(2)))
    );
    let middle = watch.resume_token();
    drop(watch);

    let world = world.again().await;
    let mut resumed = world
        .registry
        .watch(&middle, WatchFilter::default())
        .expect("a watcher");
    let (_, second) = resumed.next().await.expect("an event");
    assert_eq!(second.skill_id, skill("github/acme/other"));
    let filter = WatchFilter::default().skill(&skill("github/acme/other"));
    let mut filtered = world.registry.watch(&start, filter).expect("a watcher");
    assert_eq!(filtered.next().await.expect("an event").1, second);
}

#[tokio::test]
async fn a_watcher_whose_place_is_gone_is_told_to_list_again() {
    let directory = TempDir::new().expect("a folder");
    let options = Options {
        reserve_bytes: 0,
        keep_events: 3,
        ..Options::default()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let registry = Registry::open(store, Arc::new(Hands::default())).expect("a registry");
    let start = registry.resume_token();
    for n in 0..10 {
        publish(
            &registry,
            ID,
            &[("SKILL.md", &text("", &n.to_string()))],
            &caller(""),
        )
        .await
        .expect("published");
    }
    let watch = |token: &str| registry.watch(token, WatchFilter::default()).map(|_| ());
    assert_eq!(
        code(watch(&start).expect_err("too old")),
        Code::ResumeTokenExpired
    );
    assert_eq!(
        code(watch("x").expect_err("no token")),
        Code::ResumeTokenInvalid
    );
    assert!(watch(&registry.resume_token()).is_ok());
    let other = World::new();
    assert_eq!(
        code(watch(&other.registry.resume_token()).expect_err("another log")),
        Code::ResumeTokenExpired
    );
}

#[tokio::test]
async fn pages_of_versions_are_whole_and_their_tokens_serve_one_skill() {
    let world = World::new();
    for n in 0..7 {
        world.published(ID, &text("", &n.to_string())).await;
        world
            .published("github/acme/other", &text("", &n.to_string()))
            .await;
    }
    let mut numbers = Vec::new();
    let mut token = String::new();
    for _ in 0..4 {
        let page = world
            .registry
            .list_versions(&skill(ID), 3, &token)
            .expect("a page");
        numbers.push(
            page.versions
                .iter()
                .map(|d| d.version.number.get())
                .collect::<Vec<_>>(),
        );
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(numbers, [vec![7, 6, 5], vec![4, 3, 2], vec![1]]);
    let other = world
        .registry
        .list_versions(&skill("github/acme/other"), 3, &token)
        .map(|_| ());
    assert_eq!(
        code(other.expect_err("another query")),
        Code::PageTokenInvalid
    );
}
