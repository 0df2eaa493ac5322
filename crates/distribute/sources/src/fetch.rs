//! What every kind of place does.

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

/// Bounds of one look, and of what is read after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that are fetched.
    pub bytes: u64,
    /// Files that the place may have, of skills and around them.
    pub files: usize,
    /// Skills that it may have.
    pub skills: usize,
    /// How long a look may take; reading one skill may take as long again.
    pub time: Duration,
    /// How long the other side may be silent.
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

/// What a look is made with.
#[derive(Clone)]
pub struct Work {
    /// A folder of the place's own, for what is worth keeping between looks. It exists.
    pub folder: PathBuf,
    /// Its bounds.
    pub limits: Limits,
    /// Set when nobody wants the result any more.
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

/// What came of a look.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// Nothing changed since the look that gave the mark.
    Unchanged {
        /// What the place said of its limit.
        rate_limit: Option<RateLimit>,
    },
    /// What there is now.
    Listing(Listing),
}

/// What a place has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// Where this look stands, for the next one: a commit, `ETag`s, a resume token. Of no
    /// meaning to others; 64 KiB at most.
    pub mark: String,
    /// For people: the commit, the number of an index.
    pub revision: String,
    /// Every skill that the place has, the shortest path first, by segments.
    pub items: Vec<Item>,
    /// What the place has that is no skill that could be read, each with its path and why.
    pub skipped: Vec<(String, String)>,
    /// Why what there is now does not follow from what the mark stood for: history that was
    /// rewritten, a tag that moved, another owner. As a clause, such as `the history of main
    /// was rewritten`. What changed is to be looked at by a person.
    pub break_in_history: Option<String>,
    /// What the place said of its limit.
    pub rate_limit: Option<RateLimit>,
}

impl Listing {
    /// Puts the skills in the order that they are to have: those with the fewest segments first.
    pub fn sort(&mut self) {
        let place = |item: &Item| item.path.matches('/').count();
        self.items
            .sort_by(|a, b| (place(a), &a.path).cmp(&(place(b), &b.path)));
    }
}

/// A skill of a place, as a look lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Item {
    /// Its path inside the place, such as `skills/refunds`; unique in a listing. The place's
    /// words: it is shown, and never opened.
    pub path: String,
    /// Stands for its bytes: a tree's id, a digest, an `ETag`.
    pub fingerprint: String,
    /// Whose it is, where the place holds skills of several; one segment of an id.
    pub author: Option<String>,
    /// What the kind of place needs to read it.
    pub handle: String,
    /// What the repository that it is in has to show.
    pub facts: Option<RepositoryFacts>,
}

/// What a repository has to show.
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
    /// There are tests beside the skill, or in it.
    pub has_tests: bool,
    /// There are examples.
    pub has_examples: bool,
    /// When something was last pushed.
    pub pushed_at: Option<Timestamp>,
}

/// What a place said of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Requests that are left.
    pub remaining: u64,
    /// Requests that there are in all.
    pub limit: u64,
    /// When there are as many again.
    pub resets_at: Timestamp,
}

/// The files of a skill, and what was odd about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Files {
    /// The files, by path.
    pub files: BTreeMap<FilePath, Bytes>,
    /// What was left out, and why the rest is no skill.
    pub problems: Vec<Problem>,
    /// The version that the place calls it by, where it does so outside of the files.
    pub version: Option<String>,
}

/// A place with skills. Dropping a future gives up what it does.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Says what there is. With the mark of an earlier look it may say that nothing changed;
    /// without one it never does.
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Look, Error>>;

    /// The files of an item of the last look.
    fn read<'a>(&'a self, item: &'a Item, work: &'a Work) -> BoxFuture<'a, Result<Files, Error>>;
}
