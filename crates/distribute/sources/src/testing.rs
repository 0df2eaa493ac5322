//! What tests of places share, here and in `remote_sources`.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "for tests"
)]

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{Fetch, Files, Limits, Listing, Look, Work};

/// A folder, and work in it.
#[must_use]
pub fn work() -> (TempDir, Work) {
    let folder = TempDir::new().expect("a folder");
    let work = Work {
        folder: folder.path().to_owned(),
        limits: Limits::default(),
        stop: CancellationToken::new(),
    };
    (folder, work)
}

/// What a place lists.
pub async fn listing(place: &dyn Fetch, mark: Option<&str>, work: &Work) -> Listing {
    match place.look(mark, work).await.expect("a look") {
        Look::Listing(listing) => listing,
        Look::Unchanged { .. } => panic!("it is unchanged"),
    }
}

/// A place has nothing new since a mark.
pub async fn is_unchanged(place: &dyn Fetch, mark: &str, work: &Work) -> bool {
    let look = place.look(Some(mark), work).await.expect("a look");
    matches!(look, Look::Unchanged { .. })
}

/// The paths of what is listed.
#[must_use]
pub fn paths(listing: &Listing) -> Vec<&str> {
    listing
        .items
        .iter()
        .map(|item| item.path.as_str())
        .collect()
}

/// Files that were read, by path.
#[must_use]
pub fn texts(files: &Files) -> Vec<(&str, String)> {
    let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
    files
        .files
        .iter()
        .map(|(path, content)| (path.as_str(), text(content)))
        .collect()
}
