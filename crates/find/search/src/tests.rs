//! The index: what is found, in which order, why, and that it is always the index of
//! the skills that there are.

mod behind;
mod consistency;
mod damaged;
mod ranking;
mod similar;
mod view;

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use embed::Table;
use model::{SkillId, SystemClock, VersionNumber};
use store::{Options, Store};
use testing::{caller, options, skill_md};

/// A registry with an index that follows it.
struct World {
    directory: TempDir,
    /// Where the index is.
    folder: PathBuf,
    registry: Registry,
    index: SearchIndex,
    stop: CancellationToken,
    following: tokio::task::JoinHandle<()>,
}

fn registry(folder: &Path) -> Registry {
    with_store(folder, &options()).1
}

fn with_store(folder: &Path, options: &Options) -> (Store, Registry) {
    testing::registry(folder, options, Arc::new(SystemClock))
}

fn index(registry: &Registry, folder: &Path) -> SearchIndex {
    let table: Arc<dyn Embedder> = Arc::new(Table);
    SearchIndex::new(registry.clone(), folder.to_owned(), Some(table))
}

fn id(text: &str) -> SkillId {
    text.parse().expect("an id")
}

impl World {
    fn new() -> Self {
        let directory = TempDir::new().expect("a folder");
        let registry = registry(directory.path());
        let folder = directory.path().join("search");
        Self::over(directory, folder, registry)
    }

    fn over(directory: TempDir, folder: PathBuf, registry: Registry) -> Self {
        let index = index(&registry, &folder);
        let stop = CancellationToken::new();
        let following = tokio::spawn({
            let (index, stop) = (index.clone(), stop.clone());
            async move { index.follow(stop).await }
        });
        Self {
            directory,
            folder,
            registry,
            index,
            stop,
            following,
        }
    }

    /// Stops the index and begins again with what is on disk.
    async fn restarted(self) -> Self {
        self.stop.cancel();
        self.following.await.expect("the index stops");
        Self::over(self.directory, self.folder, self.registry)
    }

    /// Begins again with the files as they were seen in the middle of the work, one
    /// after the other: a kill leaves no worse. In a folder of its own: segments may
    /// still be merged in the old one after the index has stopped.
    async fn killed(self, looks: usize) -> Self {
        let mut seen = Vec::new();
        for _ in 0..=looks {
            seen = files_below(&self.folder);
        }
        self.stop.cancel();
        self.following.await.expect("the index stops");
        let folder = TempDir::new_in(&self.directory).expect("a folder").keep();
        for (path, bytes) in seen {
            let path = folder.join(path.strip_prefix(&self.folder).expect("a file of it"));
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, bytes).expect("written");
        }
        Self::over(self.directory, folder, self.registry)
    }

    async fn with(self, id: &str, front_matter: &str, body: &str) -> Self {
        let text = skill_md(front_matter, body);
        self.with_files(id, &[("SKILL.md", text.as_bytes())]).await
    }

    async fn with_files(self, id: &str, files: &[(&str, &[u8])]) -> Self {
        publish(&self.registry, id, files).await;
        self
    }

    async fn found(&self, text: &str) -> SearchResults {
        self.ask(SearchQuery {
            text: text.to_owned(),
            limit: 50,
            ..SearchQuery::default()
        })
        .await
    }

    async fn ask(&self, query: SearchQuery) -> SearchResults {
        self.index.complete().await;
        self.index
            .search(&query, &Stop::never())
            .expect("an answer")
    }

    /// Slugs of what is found, the best first.
    async fn slugs(&self, text: &str) -> Vec<String> {
        slugs(&self.found(text).await)
    }
}

/// Files with what is in them. What goes away meanwhile is not among them.
fn files_below(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten();
    let read = |entry: walkdir::DirEntry| {
        let bytes = std::fs::read(entry.path()).ok()?;
        Some((entry.into_path(), bytes))
    };
    files.filter_map(read).collect()
}

fn slugs(found: &SearchResults) -> Vec<String> {
    let hits = found.hits.iter();
    hits.map(|hit| hit.head.id.slug().to_owned()).collect()
}

async fn publish(registry: &Registry, id: &str, files: &[(&str, &[u8])]) {
    testing::publish(registry, id, files, true).await;
}

#[test]
fn a_scan_gives_the_products_of_all_rows_whatever_the_processor() {
    let dimensions = 48;
    let vector = |seed: u32| -> Vec<f32> {
        let values = (0..dimensions).map(|at: u32| {
            let mixed = (at + 1).wrapping_mul(2_654_435_761).wrapping_mul(seed + 1);
            f32::from(u16::try_from(mixed >> 16).expect("16 bits")) / 32_768.0 - 1.0
        });
        let values: Vec<f32> = values.collect();
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        values.into_iter().map(|value| value / length).collect()
    };
    let mut vectors = vectors::Vectors::new(dimensions as usize);
    for ordinal in 0..3_000 {
        let vector = vector(ordinal);
        vectors.set(ordinal, &vectors::row(&vector, scale(vector.len())));
    }
    assert!(vectors.clear(7), "it was there");
    assert!(!vectors.clear(7), "it is gone");
    let query = vector(5);
    let mut near = Vec::new();
    vectors.scan(&vectors::Query::new(&query, scale(query.len())), &mut near);
    for ordinal in [0, 5, 6, 1_023, 1_024, 2_999] {
        let wanted: f32 = vector(ordinal).iter().zip(&query).map(|(a, b)| a * b).sum();
        let found = near[ordinal as usize];
        assert!(
            (found - wanted).abs() < 0.03,
            "{ordinal}: {found} for {wanted}"
        );
    }
    assert!(
        near[7].abs() < f32::EPSILON,
        "a row that was cleared says nothing"
    );
}

#[tokio::test]
async fn vectors_are_made_once_for_a_text_and_found_again() {
    let world = World::new()
        .with(
            "a/b/one",
            "name: one\ndescription: Deploys to a cluster.",
            "x",
        )
        .await;
    world.index.complete().await;
    let digest = Table.digest().hex();
    let file = format!("search/vectors-{}", &digest[..16]);
    let file = world.directory.path().join(file);
    let size = std::fs::metadata(&file).expect("a file").len();
    let world = world.restarted().await;
    world.index.complete().await;
    assert_eq!(std::fs::metadata(&file).expect("a file").len(), size);
    assert_eq!(world.slugs("rollout on kubernetes").await, ["one"]);
    // What a kill left half is cut off.
    std::fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"half a record"))
        .expect("written");
    let world = world.restarted().await;
    world.index.complete().await;
    assert_eq!(std::fs::metadata(&file).expect("a file").len(), size);
}

/// Puts another file in the place of one that may still be mapped: what merges segments
/// does so after the index has stopped, and a mapped file that is cut is a `SIGBUS`.
fn replace(file: &Path, bytes: &[u8]) {
    let new = file.with_extension("replaced");
    std::fs::write(&new, bytes).expect("written");
    std::fs::rename(new, file).expect("renamed");
}

#[tokio::test]
async fn an_index_that_is_damaged_or_gone_is_made_anew() {
    let mut world = World::new()
        .with("a/b/one", "name: one\ndescription: Deploys.", "x")
        .await;
    assert_eq!(world.slugs("deploy").await, ["one"]);
    let bytes = |folder: &std::path::Path| -> u64 {
        let files = std::fs::read_dir(folder).expect("a folder");
        let files = files.map(|file| file.expect("a file").metadata().expect("a file"));
        files
            .filter(std::fs::Metadata::is_file)
            .map(|file| file.len())
            .sum()
    };
    world.index.complete().await;
    let words = bytes(&world.folder.join("index/words"));
    let all = bytes(&world.folder) + bytes(&world.folder.join("index")) + words;
    assert!(words > 0);
    assert_eq!(
        world.index.bytes_on_disk(),
        all,
        "its size is that of all its files"
    );
    for damage in ["gone", "cut", "other form"] {
        world.stop.cancel();
        let World {
            directory,
            folder,
            registry,
            following,
            ..
        } = world;
        following.await.expect("the index stops");
        let index = folder.join("index");
        match damage {
            "gone" => std::fs::remove_dir_all(&index).expect("removed"),
            "cut" => {
                for entry in std::fs::read_dir(index.join("words")).expect("a folder") {
                    let path = entry.expect("an entry").path();
                    replace(&path, b"?");
                }
            }
            _ => std::fs::write(index.join("FORM"), "0").expect("written"),
        }
        world = World::over(directory, folder, registry);
        assert_eq!(world.slugs("deploy").await, ["one"], "{damage}");
    }
}
