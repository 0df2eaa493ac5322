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
