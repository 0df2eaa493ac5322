//! Search for skills by words and by meaning.
//!
//! Rules:
//!
//! * The index is derived: from the catalog, and from the active versions that it
//!   names. It can be deleted at any time, and is made anew where it cannot be
//!   read. Two indexes of the same skills give the same answers, whatever
//!   happened to either.
//! * It follows the log by itself and holds up no writer. A published skill is found within
//!   a second.
//! * Certain matches come first ([`Tier`]): the whole name, then every word in the
//!   name. Below that one score decides: words by part of the skill, plus
//!   meaning, weighted by the share of the query that words leave unanswered. So
//!   meaning finds skills that words cannot, and displaces none that words find.
//! * Filters apply before anything is counted or cut.
//! * A search reads one state of the index from begin to end. Its cost grows with
//!   the postings of its words and the number of vectors, not with the texts.
//! * Equal scores are ordered by a digest of the id (`tie_break`); nothing depends on when
//!   or in which order skills were indexed.
//!
//! | file | contents |
//! |---|---|
//! | `tokens` | words of a text |
//! | `schema`, `document` | the indexed parts of a skill |
//! | `indexer`, `follow`, `snapshot` | writing the index, keeping it in sync, a state of it |
//! | `terms`, `repair`, `vocabulary` | the words of a query, and corrections |
//! | `postings`, `lexical` | scores by words |
//! | `vectors`, `products` | scores by meaning |
//! | `retrieve`, `fuse` | reading and combining both |
//! | `query`, `search`, `top_k`, `tie_break` | the query, a search, the best hits, their ties |
//! | `filter`, `explain`, `analysis` | filters, explanations, the analysis of the query |
//! | `signature`, `similar` | similarity of texts, near-duplicates |
//! | `cache` | vectors that were made, in a file |
//! | `view` | the index as callers see it who do not see all skills |
//! | `local` | an index in memory, of a few skills in front of the others |
//!
//! Not here: embedders (`embed`), lookup by name (`lookup`), sets of skills (`composition`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod analysis;
mod cache;
mod document;
mod error;
mod explain;
mod filter;
mod follow;
mod fuse;
mod indexer;
mod lexical;
mod local;
mod postings;
mod products;
mod query;
mod repair;
mod retrieve;
mod schema;
mod search;
mod signature;
mod similar;
mod snapshot;
mod terms;
#[cfg(test)]
mod tests;
mod tie_break;
mod tokens;
mod top_k;
mod vectors;
mod view;
mod vocabulary;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use analysis::{Analysis, Repair};
pub use error::Error;
pub use explain::{MatchExplanation, Snippet};
pub use filter::Filters;
pub use fuse::Tier;
pub use local::LocalIndex;
use local::{Front, Layer};
pub use query::{SearchQuery, Sort, SortBy};
pub use schema::Part;
pub use search::{Facet, Hit, SearchResults};
pub use similar::{SimilarSkill, SimilarSkills};

use embed::Embedder;
use executor::{Kind, Stop};
use postings::Postings;
use registry::Registry;
use search::SearchScratch;
use snapshot::Snapshot;
use view::SearchView;

/// The longest wait of a search for an index that is being opened.
const INDEX_OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// Buffers of searches that are pooled for the next ones.
const SCRATCH_POOL_CAPACITY: usize = 8;

/// The index over a registry. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SearchIndex {
    inner: Arc<Inner>,
    /// Another index in front of it: see [`SearchIndex::with_local`].
    front: Option<Front>,
    /// The part of it that is seen: see [`SearchIndex::with_view`].
    view: Option<Arc<SearchView>>,
}

/// The progress of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexProgress {
    /// Skills that can be found.
    pub indexed: usize,
    /// Skills of these that have no vector yet.
    pub without_vector: usize,
    /// Events of the log up to here are in it; 0 until it has caught up once.
    pub position: u64,
    /// It has caught up with the skills that there were when the server started.
    pub caught_up: bool,
}

struct Inner {
    registry: Registry,
    folder: PathBuf,
    embedder: Option<Arc<dyn Embedder>>,
    snapshot: ArcSwapOption<Snapshot>,
    progress: watch::Sender<IndexProgress>,
    failed: AtomicBool,
    /// Changes where a search found damaged data.
    damage: watch::Sender<()>,
    scratches: Mutex<Vec<SearchScratch>>,
    postings: Postings,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("folder", &self.folder)
            .field("embedder", &self.embedder)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn new(registry: Registry, folder: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self {
            registry,
            folder,
            embedder,
            snapshot: ArcSwapOption::empty(),
            progress: watch::Sender::default(),
            failed: AtomicBool::new(false),
            damage: watch::Sender::default(),
            scratches: Mutex::default(),
            postings: Postings::default(),
        }
    }

    fn publish(&self, snapshot: Snapshot) {
        let progress = IndexProgress {
            indexed: snapshot.live,
            without_vector: self.embedder.as_ref().map_or(0, |_| snapshot.pending),
            position: snapshot.position,
            caught_up: snapshot.caught_up,
        };
        self.postings.make_capacity(snapshot.live);
        // Before the progress: a caller that waits for it searches at once.
        self.snapshot.store(Some(Arc::new(snapshot)));
        self.progress.send_replace(progress);
    }

    fn with_scratches<T>(&self, work: impl FnOnce(&mut Vec<SearchScratch>) -> T) -> T {
        let lock = self.scratches.lock();
        work(&mut lock.unwrap_or_else(PoisonError::into_inner))
    }

    /// Searches this index alone, or a layer of it. Returns also how much of the query words
    /// answer.
    fn search(
        &self,
        query: &SearchQuery,
        layer: Option<Layer<'_>>,
        view: Option<&SearchView>,
        stop: &Stop,
    ) -> Result<(SearchResults, f32), Error> {
        let Some(whole) = self.snapshot.load_full() else {
            return Ok((SearchResults::nothing(query), 0.0));
        };
        let snapshot = match view {
            Some(view) => view.of(&whole),
            None => Arc::clone(&whole),
        };
        let mut scratch = self.with_scratches(Vec::pop).unwrap_or_default();
        let found = search::run(self, &snapshot, query, &mut scratch, layer, stop);
        if let Err(error @ (Error::Words(_) | Error::Panicked(_))) = found {
            // The buffers may be left half full.
            tracing::warn!(%error, "a search found damaged data");
            self.discard(&whole);
            return Err(Error::Rebuilding);
        }
        self.with_scratches(|scratches| {
            if scratches.len() < SCRATCH_POOL_CAPACITY {
                scratches.push(scratch);
            }
        });
        found
    }

    /// Withdraws a damaged state from searches, and has the index made anew.
    fn discard(&self, damaged: &Arc<Snapshot>) {
        let current = self.snapshot.load_full();
        // Two searches may meet the same damage, and the second must not throw away the new
        // index.
        if current.is_some_and(|current| Arc::ptr_eq(&current, damaged)) {
            self.snapshot.store(None);
            self.progress.send_replace(IndexProgress::default());
            self.damage.send_replace(());
        }
    }
}

/// Scale of stored vectors of this many dimensions: the values of a vector of
/// length 1 are about as large as the root of one through their number, and nearly
/// all below eight times that, also where the first ones carry most.
#[expect(clippy::cast_precision_loss, reason = "some hundreds")]
fn scale(dimensions: usize) -> f32 {
    (dimensions as f32).sqrt() / 8.0
}

/// The words of a text as the index reads them: in lower case and without marks.
#[must_use]
pub fn folded_words(text: &str) -> Vec<String> {
    tokens::list(text)
        .into_iter()
        .map(|word| word.text)
        .collect()
}

/// The same as stems: `searched` is `search`.
#[must_use]
pub fn stems(text: &str) -> Vec<String> {
    let mut stemmer = tokens::Stemmer::default();
    let words = folded_words(text).into_iter();
    words.map(|word| stemmer.stem(&word).to_owned()).collect()
}

impl SearchIndex {
    /// An index in a folder of its own, which may be deleted when nobody uses it.
    /// Without an embedder it knows words only. It is empty until
    /// [`SearchIndex::follow`] runs.
    #[must_use]
    pub fn new(registry: Registry, folder: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self {
            inner: Arc::new(Inner::new(registry, folder, embedder)),
            front: None,
            view: None,
        }
    }

    /// Brings the index up to date and keeps it there, until it is stopped.
    /// One at a time.
    pub async fn follow(&self, stop: CancellationToken) {
        follow::follow(Arc::clone(&self.inner), stop).await;
    }

    /// Removes the index of words, so that it is made anew; vectors stay, since each is
    /// identified by its text and has a checksum. Before it is followed. Blocks.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        match std::fs::remove_dir_all(self.inner.folder.join(follow::INDEX)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Bytes of all files in its folder. Files that are removed meanwhile do not count.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        let mut folders = vec![self.inner.folder.clone()];
        let mut bytes = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => folders.push(entry.path()),
                    Ok(found) if found.is_file() => bytes += found.len(),
                    _ => {}
                }
            }
        }
        bytes
    }

    /// The progress of the index.
    #[must_use]
    pub fn progress(&self) -> IndexProgress {
        *self.inner.progress.borrow()
    }

    /// Returns once all that was committed before the call can be found. Never,
    /// where nothing follows.
    pub async fn caught_up(&self) {
        let end = self.inner.registry.log().borrow().end;
        self.until(|progress| progress.caught_up && progress.position >= end)
            .await;
    }

    /// Returns once all can be found that there was when it began to follow; where that
    /// takes longer than two seconds, before.
    pub async fn ready(&self) {
        if !self.progress().caught_up {
            let ready = self.until(|progress| progress.caught_up);
            let _too_slow = tokio::time::timeout(INDEX_OPEN_TIMEOUT, ready).await;
        }
    }

    /// Returns once every skill has its vector as well.
    pub async fn complete(&self) {
        self.caught_up().await;
        self.until(|progress| progress.without_vector == 0).await;
    }

    /// The registry that shows the same skills.
    fn registry(&self) -> &Registry {
        match (&self.front, &self.view) {
            (Some(front), _) => &front.registry,
            (None, Some(view)) => &view.registry,
            (None, None) => &self.inner.registry,
        }
    }

    async fn until(&self, enough: impl Fn(&IndexProgress) -> bool) {
        let mut progress = self.inner.progress.subscribe();
        // The sender lives as long as `self`.
        let _closed = progress.wait_for(enough).await;
    }

    /// Finds skills. Blocks for as long as the words and vectors take to read:
    /// milliseconds.
    ///
    /// A search that meets damage has the index made anew.
    ///
    /// # Errors
    /// The index is damaged, or the search is to stop.
    pub fn search(&self, query: &SearchQuery, stop: &Stop) -> Result<SearchResults, Error> {
        let asked;
        let query = if query.filters.categories.is_empty() && query.filters.technologies.is_empty()
        {
            query
        } else {
            let filters = query.filters.meant(&self.registry().catalog())?;
            asked = SearchQuery {
                filters,
                ..query.clone()
            };
            &asked
        };
        match &self.front {
            Some(front) => front.search(&self.inner, query, stop),
            None => Ok(self
                .inner
                .search(query, None, self.view.as_deref(), stop)?
                .0),
        }
    }

    /// Does the same off the async threads, once the index is [`SearchIndex::ready`].
    ///
    /// # Errors
    /// The index is damaged, or the search is refused or to stop.
    pub async fn find(&self, query: SearchQuery) -> Result<SearchResults, Error> {
        self.ready().await;
        let index = self.clone();
        let search = move |stop: &Stop| index.search(&query, stop);
        let executor = self.inner.registry.executor();
        executor.run_fallible(Kind::Search, search).await
    }
}
