//! Scores each skill by words and by meaning: one after the other, or in parallel where there is
//! much to read.

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

/// The number of skills from which on meaning is read in parallel to the words, on a thread of its
/// own. With fewer, a thread that has to wait for its turn costs more than it saves. Few in tests,
/// so that they read both ways.
const PARALLEL_THRESHOLD: usize = if cfg!(test) { 4 } else { 200_000 };

/// Scores each skill by words and by meaning. The second thread, where there is one, ends with
/// the search, and so is bounded by its permit.
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
    // Taken out, so that a thread can fill it while this one fills the rest of the scratch.
    let near = std::mem::take(&mut scratch.near);
    let meaning = |mut near: Vec<f32>| {
        let read = by_meaning(inner, snapshot, query, vector, &mut near);
        read.map(|()| near)
    };
    let mut words =
        || reading(|| lexical::score(snapshot, &inner.postings, &terms.groups, scratch));
    let (near, weighed) = if snapshot.slots.len() < PARALLEL_THRESHOLD || query.words_only {
        // Meaning first: the scores of words are read again later, and stay in the cache of the
        // processor this way.
        (meaning(near)?, words()?)
    } else {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new();
            let parallel = thread.spawn_scoped(scope, move || meaning(near));
            let weighed = words();
            let near = match parallel {
                Ok(parallel) => parallel.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system has no thread to give: one after the other, then.
                Err(_) => meaning(Vec::new()),
            };
            Ok::<_, Error>((near?, weighed?))
        })?
    };
    scratch.near = near;
    Ok(weighed)
}

/// Computes the similarity of each skill to the query in meaning.
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
    // The other index may have made it.
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
