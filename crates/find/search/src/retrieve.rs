//! What words and meaning say of each skill: one after the other, or side by side where
//! there is much to read.

use std::panic::resume_unwind;
use std::sync::OnceLock;

use super::lexical::{self, Scratch, TermWeights};
use super::query::SearchQuery;
use super::snapshot::Snapshot;
use super::terms::Terms;
use super::vectors::Query;
use super::{Error, Inner, scale};
use model::caught;

/// Reads of the index of words; its engine panics on files that are damaged.
pub(super) fn reading<T>(read: impl FnOnce() -> tantivy::Result<T>) -> Result<T, Error> {
    Ok(caught(read).map_err(Error::Panicked)??)
}

/// Skills from which on meaning is read beside the words, on a thread of its own. With
/// fewer a thread that has to wait for its turn costs more than it saves. Few in tests,
/// so that they read both ways.
const PARALLEL_THRESHOLD: usize = if cfg!(test) { 4 } else { 200_000 };

/// Reads what words and meaning say of each skill. The thread beside, where there is one,
/// ends with the search, and so is bounded by its permit.
///
/// # Errors
/// The index cannot be read, or the embedder failed.
pub(super) fn lexical_and_semantic(
    inner: &Inner,
    snapshot: &Snapshot,
    query: &SearchQuery,
    terms: &Terms,
    scratch: &mut Scratch,
    vector: &OnceLock<Vec<f32>>,
) -> Result<TermWeights, Error> {
    let near = std::mem::take(&mut scratch.near);
    let meaning = |mut near: Vec<f32>| {
        let read = by_meaning(inner, snapshot, query, vector, &mut near);
        read.map(|()| near)
    };
    let mut words =
        || reading(|| lexical::score(snapshot, &inner.postings, &terms.groups, scratch));
    let (near, weighed) = if snapshot.slots.len() < PARALLEL_THRESHOLD || query.words_only {
        // Meaning first: what words say is read again later, and stays near the
        // processor this way.
        (meaning(near)?, words()?)
    } else {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new();
            let beside = thread.spawn_scoped(scope, move || meaning(near));
            let weighed = words();
            let near = match beside {
                Ok(beside) => beside.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system has no thread to give: one after the other, then.
                Err(_) => meaning(Vec::new()),
            };
            Ok::<_, Error>((near?, weighed?))
        })?
    };
    scratch.near = near;
    Ok(weighed)
}

/// How near each skill is to the query in meaning.
fn by_meaning(
    inner: &Inner,
    snapshot: &Snapshot,
    query: &SearchQuery,
    vector: &OnceLock<Vec<f32>>,
    near: &mut Vec<f32>,
) -> Result<(), Error> {
    near.clear();
    let Some(embedder) = inner.embedder.as_ref().filter(|_| !query.words_only) else {
        return Ok(());
    };
    // Another index may have had it made.
    let vector = if let Some(vector) = vector.get() {
        vector
    } else {
        let made = embedder.embed(&[&query.text])?;
        vector.get_or_init(|| made.into_iter().next().unwrap_or_default())
    };
    if !vector.is_empty() {
        let query = Query::new(vector, scale(vector.len()));
        snapshot.vectors.scan(&query, near);
    }
    Ok(())
}
