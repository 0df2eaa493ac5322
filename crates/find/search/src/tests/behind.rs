//! An index that is behind: after a start, and where the log went on without it.

use super::super::follow::IndexWork;
use super::*;
use store::faults::{Disk, Unreadable, begun};

fn keeping(folder: &Path, keep_events: u64) -> Registry {
    let options = Options {
        keep_events,
        ..options()
    };
    with_store(folder, &options).1
}

async fn skill(registry: &Registry, name: &str) {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nBody.\n");
    publish(
        registry,
        &format!("a/b/{name}"),
        &[("SKILL.md", text.as_bytes())],
    )
    .await;
}

/// The index had to be made anew since the last time that it caught up.
fn is_made_anew(index: &SearchIndex) -> bool {
    index
        .inner
        .failed
        .load(std::sync::atomic::Ordering::Relaxed)
}

fn found(index: &SearchIndex, text: &str) -> (Vec<String>, usize) {
    let query = SearchQuery {
        text: text.to_owned(),
        limit: 5,
        words_only: true,
        ..SearchQuery::default()
    };
    let found = index.search(&query, &Stop::never()).expect("an answer");
    (slugs(&found), found.total)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_the_log_left_behind_is_compared_and_not_made_anew() {
    let directory = TempDir::new().expect("a folder");
    let registry = keeping(directory.path(), 2);
    let folder = directory.path().join("search");
    let world = World::over(directory, folder, registry);
    world.index.caught_up().await;
    let kept = world.folder.join(follow::INDEX).join("kept");
    std::fs::write(&kept, "").expect("a file");
    let publishers: Vec<_> = (0..8)
        .map(|publisher| {
            let registry = world.registry.clone();
            tokio::spawn(async move {
                for n in 0..20 {
                    skill(&registry, &format!("skill-{publisher}-{n}")).await;
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.expect("a publisher");
    }
    world.index.caught_up().await;
    assert_eq!(world.index.progress().indexed, 160);
    assert!(!is_made_anew(&world.index));
    assert!(kept.exists(), "the index was made anew");
    world.stop.cancel();
    world.following.await.expect("it stops");
}

#[tokio::test]
async fn new_skills_are_found_before_all_that_was_behind_is_indexed() {
    let directory = TempDir::new().expect("a folder");
    let registry = registry(directory.path());
    for n in 0..30 {
        skill(&registry, &format!("old-{n}")).await;
    }
    let index = index(&registry, &directory.path().join("search"));
    let mut work =
        IndexWork::open(&index.inner, false, CancellationToken::new()).expect("an index");
    work.compare(&index.inner);
    assert_eq!(work.behind.as_ref().map(Vec::len), Some(30));
    skill(&registry, "new").await;
    let position = registry.log().borrow().end;
    let events = ([id("a/b/new").key()].into(), position);
    let some = |done| done >= 10;
    work.index(&index.inner, Some(events), some)
        .expect("indexed");
    assert_eq!(found(&index, "new").0, ["new"]);
    let progress = index.progress();
    assert_eq!((progress.indexed, progress.caught_up), (11, false));
    assert!(progress.position < position);
    work.index(&index.inner, None, |_| false).expect("indexed");
    let progress = index.progress();
    assert_eq!((progress.indexed, progress.caught_up), (31, true));
    assert_eq!(progress.position, position);
}

#[tokio::test]
async fn what_is_gone_is_not_counted_before_the_index_has_caught_up() {
    let directory = TempDir::new().expect("a folder");
    let registry = registry(directory.path());
    for name in ["kept", "gone"] {
        skill(&registry, name).await;
    }
    let folder = directory.path().join("search");
    let index = index(&registry, &folder);
    let open = || IndexWork::open(&index.inner, false, CancellationToken::new()).expect("an index");
    let mut work = open();
    work.compare(&index.inner);
    // No event waits that the comparison did not see.
    let end = registry.log().borrow().end;
    assert_eq!((work.seen, end > 0), (end, true));
    work.index(&index.inner, None, |_| false).expect("indexed");
    assert_eq!(found(&index, "does").1, 2);
    drop(work);
    let deleted = registry.delete(&id("a/b/gone"), &caller()).await;
    deleted.expect("deleted");
    let _work = open();
    assert_eq!(found(&index, "does"), (vec!["kept".to_owned()], 1));
}

#[tokio::test]
async fn a_head_that_changed_while_nobody_looked_is_the_one_that_is_sorted_by() {
    let directory = TempDir::new().expect("a folder");
    let registry = registry(directory.path());
    skill(&registry, "one").await;
    let index = index(&registry, &directory.path().join("search"));
    let mut work =
        IndexWork::open(&index.inner, false, CancellationToken::new()).expect("an index");
    work.compare(&index.inner);
    work.index(&index.inner, None, |_| false).expect("indexed");
    work.compare(&index.inner);
    assert_eq!(work.behind, Some(Vec::new()));
    // Another version that is not active changes the head alone.
    let text = "---\nname: one\ndescription: Does more.\n---\nBody.\n";
    testing::publish(
        &registry,
        "a/b/one",
        &[("SKILL.md", text.as_bytes())],
        false,
    )
    .await;
    work.compare(&index.inner);
    assert_eq!(work.behind, Some(vec![id("a/b/one").key()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_index_whose_store_is_opened_again_meanwhile_is_kept() {
    let directory = TempDir::new().expect("a folder");
    let (disk, sync) = Disk::new();
    let options = Options {
        sync,
        reopen_patience: std::time::Duration::ZERO,
        ..options()
    };
    let (store, registry) = with_store(directory.path(), &options);
    skill(&registry, "old").await;
    // Without vectors to be made it waits for events and for nothing else.
    let folder = directory.path().join("search");
    let index = SearchIndex::new(registry.clone(), folder.clone(), None);
    let stop = CancellationToken::new();
    let following = tokio::spawn({
        let (index, stop) = (index.clone(), stop.clone());
        async move { index.follow(stop).await }
    });
    index.caught_up().await;
    let kept = folder.join(follow::INDEX).join("kept");
    std::fs::write(&kept, "").expect("a file");

    disk.stall();
    let publishing = tokio::spawn({
        let registry = registry.clone();
        async move { skill(&registry, "new").await }
    });
    disk.reached();
    let unreadable = Unreadable::new(&store);
    disk.go();
    publishing.await.expect("published");
    // The index was told of it before the publisher was.
    begun().await;
    assert!(!is_made_anew(&index));
    unreadable.open_again();
    index.caught_up().await;
    assert!(kept.exists(), "the index was made anew");
    assert_eq!(found(&index, "new").0, ["new"]);
    assert_eq!(index.progress().indexed, 2);
    stop.cancel();
    following.await.expect("it stops");
}

#[tokio::test]
async fn a_skill_that_cannot_be_read_for_a_moment_stays_in_the_index() {
    let directory = TempDir::new().expect("a folder");
    let options = Options {
        reopen_patience: std::time::Duration::ZERO,
        ..options()
    };
    let (store, registry) = with_store(directory.path(), &options);
    skill(&registry, "one").await;
    let index = index(&registry, &directory.path().join("search"));
    let mut work =
        IndexWork::open(&index.inner, false, CancellationToken::new()).expect("an index");
    work.compare(&index.inner);
    let unreadable = Unreadable::new(&store);
    let error = work.index(&index.inner, None, |_| false);
    let error = error.expect_err("a store that cannot be read");
    assert!(error.passes(), "{error}");
    unreadable.open_again();
    work.compare(&index.inner);
    work.index(&index.inner, None, |_| false).expect("indexed");
    assert_eq!(found(&index, "one").0, ["one"]);
}
