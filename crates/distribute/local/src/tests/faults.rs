//! What goes wrong with a place for a moment, and what is there afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use embed::{EmbedError, Embedder};
use model::Digest;

/// One that fails so often before it makes vectors.
#[derive(Debug)]
struct Faulty {
    left: AtomicUsize,
    panics: bool,
    /// How often it was asked for this text alone.
    asked: AtomicUsize,
}

/// A text that no skill has.
const ASKED: &str = "which kumquat";

impl Embedder for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn digest(&self) -> Digest {
        Digest::of(b"faulty")
    }

    fn dimensions(&self) -> usize {
        8
    }

    fn batch(&self) -> usize {
        8
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts == [ASKED] {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        let takes = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if self.left.fetch_update(order, order, takes).is_ok() {
            assert!(!self.panics, "it panics");
            return Err(EmbedError("it is away".to_owned()));
        }
        Ok(texts.iter().map(|_| vec![0.3; 8]).collect())
    }
}

/// A world whose embedder fails so often.
fn faulty(left: usize, panics: bool) -> World {
    let world = World::new();
    let embedder = Arc::new(Faulty {
        left: AtomicUsize::new(left),
        panics,
        asked: AtomicUsize::new(0),
    });
    let folder = world.folder.path().join("faulty");
    let search = SearchIndex::new(world.registry.clone(), folder, Some(embedder));
    let overlays = Overlays::new(world.registry.clone(), search, Options::default());
    World { overlays, ..world }
}

/// How many skills of the place are found by a word.
fn found(seen: &OverlaySnapshot, word: &str) -> usize {
    let query = SearchQuery {
        text: word.to_owned(),
        limit: 10,
        words_only: true,
        ..SearchQuery::default()
    };
    let found = seen.search.search(&query, &Stop::never());
    found.map_or(0, |found| found.hits.len())
}

#[tokio::test]
async fn what_could_not_be_indexed_is_indexed_later() {
    let world = faulty(2, false);
    write(&world.project(".claude/skills/a"), "kumquat");
    world.says("local/project/a", "kumquat").await;
    let is_found = |seen: &OverlaySnapshot| found(seen, "kumquat") == 1;
    let (_, took) = world.until("found", is_found).await;
    // Nothing else happens there, and a place is looked at seldom.
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[tokio::test]
async fn a_place_is_followed_on_after_a_look_that_broke() {
    let world = faulty(2, true);
    let mut changes = world.overlays.changes(&world.place).await.expect("a place");
    let folder = world.project(".claude/skills/a");
    write(&folder, "kumquat");
    let is_found = |seen: &OverlaySnapshot| found(seen, "kumquat") == 1;
    world.until("found", is_found).await;
    write(&folder, "quince");
    let told = async {
        loop {
            let change = changes.next().await;
            if change
                .iter()
                .any(|event| event.version.is_some_and(|version| version.get() == 2))
            {
                return;
            }
        }
    };
    let told = tokio::time::timeout(LIMIT, told).await;
    told.expect("whoever followed is told of the second version");
}

#[tokio::test]
async fn whoever_was_too_slow_is_told_what_is_gone_meanwhile() {
    let world = World::new();
    let folder = world.project(".claude/skills/a");
    let other = world.project(".claude/skills/b");
    write(&folder, "first");
    world.says("local/project/a", "first").await;
    let mut changes = world.overlays.changes(&world.place).await.expect("a place");
    fs::remove_dir_all(&folder).expect("removed");
    world.until("gone", |seen| seen.local.is_empty()).await;
    // More than waits for anybody.
    for save in 0..80 {
        let says = format!("save-{save}");
        write(&other, &says);
        world.says("local/project/b", &says).await;
    }
    let change = tokio::time::timeout(LIMIT, changes.next()).await;
    let change = change.expect("told");
    let told: Vec<_> = change
        .iter()
        .map(|event| (event.kind, event.skill_id.as_str()))
        .collect();
    let gone = (EventKind::Deleted, "local/project/a");
    assert_eq!(told, [gone, (EventKind::Published, "local/project/b")]);
}

#[tokio::test]
async fn numbers_go_on_after_a_skill_that_was_broken_gone_or_in_another_folder() {
    let world = World::new();
    let folder = world.project(".claude/skills/a");
    let id: SkillId = "local/project/a".parse().expect("an id");
    let number = |seen: &OverlaySnapshot| {
        let skill = seen.local.get(&id.key());
        skill.map(|skill| skill.version().number.get())
    };
    write(&folder, "one");
    world.says(id.as_str(), "one").await;
    assert_eq!(number(&*world.seen().await), Some(1));
    // Half of it is typed.
    let broken = "---\nname: [\n---\n";
    fs::write(folder.join("SKILL.md"), broken).expect("a file");
    world.until("broken", |seen| seen.local.is_empty()).await;
    write(&folder, "two");
    world.says(id.as_str(), "two").await;
    assert_eq!(number(&*world.seen().await), Some(2));
    // It is gone, and is what it was afterwards.
    fs::remove_dir_all(&folder).expect("removed");
    world.until("gone", |seen| seen.local.is_empty()).await;
    write(&folder, "two");
    world.says(id.as_str(), "two").await;
    assert_eq!(number(&*world.seen().await), Some(2));
    // It is another agent's from now on.
    fs::remove_dir_all(&folder).expect("removed");
    world.until("gone", |seen| seen.local.is_empty()).await;
    write(&world.project(".cursor/skills/a"), "three");
    world.says(id.as_str(), "three").await;
    assert_eq!(number(&*world.seen().await), Some(3));
}

#[tokio::test]
async fn a_query_is_embedded_once_for_the_skills_of_the_store_and_of_folders() {
    let world = World::new();
    let id: SkillId = "github/acme/b".parse().expect("an id");
    let bundle = registry::Bundle {
        files: [(model::FilePath::skill_md(), text("b", "kumquat").into())].into(),
        id: Some(id),
        ..registry::Bundle::default()
    };
    let prepared = world.registry.prepare(bundle).await.expect("prepared");
    let caller = Caller::new(model::Principal::local());
    let published = world.registry.publish(prepared, "", true, &caller).await;
    published.expect("published");
    let embedder = Arc::new(Faulty {
        left: AtomicUsize::new(0),
        panics: false,
        asked: AtomicUsize::new(0),
    });
    let folder = world.folder.path().join("asked");
    let index = SearchIndex::new(world.registry.clone(), folder, Some(embedder.clone()));
    let stop = tokio_util::sync::CancellationToken::new();
    let (following, until) = (index.clone(), stop.clone());
    tokio::spawn(async move { following.follow(until).await });
    index.complete().await;
    let overlays = Overlays::new(world.registry.clone(), index, Options::default());
    let world = World { overlays, ..world };
    write(&world.project(".claude/skills/a"), "other");
    let is_found = |seen: &OverlaySnapshot| found(seen, "other") == 1;
    let (seen, _) = world.until("found", is_found).await;
    let query = SearchQuery {
        text: ASKED.to_owned(),
        limit: 10,
        ..SearchQuery::default()
    };
    // The store answers it better, so the folders are asked twice.
    seen.search.search(&query, &Stop::never()).expect("found");
    assert_eq!(embedder.asked.load(Ordering::SeqCst), 1);
    stop.cancel();
}

#[tokio::test]
async fn what_cannot_be_read_is_a_fault_of_the_skill_and_of_the_place() {
    let world = World::new();
    let folder = world.project(".claude/skills/a");
    write(&folder, "first");
    world.says("local/project/a", "first").await;
    // Paths too long for the system, which nobody can read, not even who may read everything:
    // two of half the length, one moved into the other.
    let half = |root: &Path| {
        let deep = (0..9).fold(root.to_owned(), |path, _| path.join("x".repeat(250)));
        fs::create_dir_all(&deep).expect("a folder");
        deep
    };
    let other = world.project("other");
    half(&other);
    let inner = half(&folder.join("deep"));
    fs::rename(&other, inner.join("o")).expect("moved");
    let is_told = |seen: &OverlaySnapshot| {
        let mut skipped = seen.skipped.iter();
        seen.local.is_empty() && skipped.any(|one| one.reason.contains("cannot be read"))
    };
    world.until("told", is_told).await;
    fs::remove_dir_all(folder.join("deep")).expect("removed");
    world.says("local/project/a", "first").await;
    // A root that leads in a ring.
    let root = world.project(".cursor/skills");
    fs::create_dir_all(world.project(".cursor")).expect("a folder");
    std::os::unix::fs::symlink(&root, &root).expect("a link");
    let is_told = |seen: &OverlaySnapshot| seen.skipped.iter().any(|one| one.folder == root);
    world.until("told of the place", is_told).await;
}
