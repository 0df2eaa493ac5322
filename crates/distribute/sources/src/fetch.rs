//! The interface of all kinds of places.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Error;
use model::{FilePath, Problem};

/// Bounds of one look, and of the reads that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that are fetched.
    pub bytes: u64,
    /// Files that the place may have, in skills and outside of them.
    pub files: usize,
    /// Skills that it may have.
    pub skills: usize,
    /// How long a look may take; reading one skill may take as long again.
    pub time: Duration,
    /// How long the other side may send nothing.
    pub silence: Duration,
    /// Redirects of one request.
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            files: 200_000,
            skills: 50_000,
            time: Duration::from_secs(15 * 60),
            silence: Duration::from_secs(30),
            redirects: 5,
        }
    }
}

/// The context of a look or a read.
#[derive(Clone)]
pub struct Work {
    /// A folder of the place's own, as its cache between looks. It exists.
    pub folder: PathBuf,
    /// Its bounds.
    pub limits: Limits,
    /// Cancelled when nobody wants the result any more.
    pub stop: CancellationToken,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("folder", &self.folder)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The result of a look.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// Nothing changed since the look that gave the mark.
    Unchanged {
        /// The rate limit, where the place reports it.
        rate_limit: Option<RateLimit>,
    },
    /// The skills that there are now.
    Listing(Listing),
}

/// The skills of a place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// The state of this look, for the next one: a commit, `ETag`s, a resume token. Opaque to
    /// callers; 64 KiB at most.
    pub mark: String,
    /// For people: the commit, the number of an index.
    pub revision: String,
    /// Every skill that the place has, the shortest path first, by segments.
    pub items: Vec<Item>,
    /// Skills that could not be read and folders that were not looked into: each path with the
    /// reason.
    pub skipped: Vec<(String, String)>,
    /// Why the place now does not follow from the one of the mark: history that was rewritten,
    /// a tag that moved, another owner. As a clause, such as `the history of main was rewritten`.
    /// A person should review what changed.
    pub break_in_history: Option<String>,
    /// The rate limit, where the place reports it.
    pub rate_limit: Option<RateLimit>,
}

impl Listing {
    /// Sorts the skills: those with the fewest segments first, then by path.
    pub fn sort(&mut self) {
        // Of two skills with one name, the first in this order gets the id.
        let depth = |item: &Item| item.path.matches('/').count();
        self.items
            .sort_by(|a, b| (depth(a), &a.path).cmp(&(depth(b), &b.path)));
    }
}

/// A skill, as a look lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Item {
    /// Its path inside the place, such as `skills/refunds`; unique in a listing. A stranger's
    /// text: it is shown, and never opened.
    pub path: String,
    /// Stands for its bytes: a tree's id, a digest, an `ETag`.
    pub fingerprint: String,
    /// Its author, where the place has skills of several; one segment of an id.
    pub author: Option<String>,
    /// How to read it; opaque to callers.
    pub handle: String,
    /// Facts about its repository.
    pub facts: Option<RepositoryFacts>,
}

/// Facts about a repository, as its host shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepositoryFacts {
    /// Its page.
    pub url: String,
    /// Stars.
    pub stars: u64,
    /// Forks.
    pub forks: u64,
    /// Issues that are open.
    pub open_issues: u64,
    /// SPDX id of its licence; empty: none is known.
    pub license: String,
    /// There are tests, in the skill or next to it.
    pub has_tests: bool,
    /// There are examples.
    pub has_examples: bool,
    /// When something was last pushed.
    pub pushed_at: Option<Timestamp>,
}

/// A rate limit, as a place reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Requests that are left.
    pub remaining: u64,
    /// Requests that there are in all.
    pub limit: u64,
    /// When there are as many again.
    pub resets_at: Timestamp,
}

/// The files of a skill, and the problems with them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Files {
    /// The files, by path.
    pub files: BTreeMap<FilePath, Bytes>,
    /// Files that were left out, and reasons why the rest is no skill.
    pub problems: Vec<Problem>,
    /// Its version, where the place has it outside of the files.
    pub version: Option<String>,
}

/// A place with skills. Dropping a future cancels its work.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Lists the skills. With the mark of an earlier look the result may be
    /// [`Look::Unchanged`]; without one it never is.
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Look, Error>>;

    /// The files of an item of the last look.
    fn read<'a>(&'a self, item: &'a Item, work: &'a Work) -> BoxFuture<'a, Result<Files, Error>>;
}
