//! Answers callers: the technologies of a codebase, the skills that it could use, and those that
//! belong in the prompt for a task. Off the async threads, within a caller's time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Error, Recommendations, Wish, recommend};
use codebase::{Analysis, InlineFile, Inventory, ScanOptions};
use executor::{Kind, Stop};
use lookup::{EXPLORATION_PERCENT, Lookup, Prompt, PromptTask};
use model::Clock;
use registry::Registry;
use search::{SearchIndex, SearchQuery};

/// Skills that are searched for to fit a task.
const MAX_CANDIDATES: usize = 400;

/// Recommends skills of a registry by their index. Cheap to clone.
#[derive(Clone)]
pub struct Advisor {
    registry: Registry,
    index: SearchIndex,
    /// Codebases below these directories of this machine may be read.
    roots: Arc<[PathBuf]>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Advisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Advisor").field(&self.roots).finish()
    }
}

/// The source of a codebase: a directory of this machine, or files that were sent.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The directory, unless there are files.
    pub path: String,
    /// The files that were sent.
    pub files: Vec<InlineFile>,
    /// The folder in which a caller on this machine was started: it may have this one read where
    /// the operator names no other.
    pub folder: Option<PathBuf>,
}

/// A codebase that was analyzed.
#[derive(Debug, Clone)]
pub struct Analyzed {
    /// Its directory; empty where it was sent.
    pub path: String,
    /// The time of the analysis.
    pub scanned_at: Timestamp,
    /// The analysis.
    pub analysis: Analysis,
    /// Names of skills in its own skill folders.
    pub installed: Vec<String>,
}

impl Advisor {
    /// Skills of a registry and its index, for codebases below these directories.
    #[must_use]
    pub fn new(
        registry: Registry,
        index: SearchIndex,
        roots: Vec<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            registry,
            index,
            roots: roots.into(),
            clock,
        }
    }

    /// The same with the skills of another registry and index: those of a caller who has some
    /// of their own in front.
    #[must_use]
    pub fn with_skills(&self, registry: Registry, index: SearchIndex) -> Self {
        Self {
            registry,
            index,
            ..self.clone()
        }
    }

    /// Analyzes a codebase, for `time` at most.
    ///
    /// # Errors
    /// It may not be read, or is two.
    pub async fn analyze(
        &self,
        source: Source,
        options: ScanOptions,
        time: Duration,
    ) -> Result<Analyzed, Error> {
        let Source {
            path,
            files,
            folder,
        } = source;
        if !path.is_empty() && !files.is_empty() {
            return Err(Error::TwoCodebases);
        }
        let deadline = Instant::now() + time;
        let roots = match folder {
            Some(folder) if self.roots.is_empty() => Arc::from([folder]),
            _ => Arc::clone(&self.roots),
        };
        let scanned_at = self.clock.now();
        let work = move |stop: &Stop| {
            // Before the caller's deadline, so that what was found still reaches it.
            let stop = || stop.is_set() || Instant::now() >= deadline;
            let (path, inventory) = if files.is_empty() {
                let root = codebase::below(&roots, Path::new(&path))?;
                let inventory = codebase::walk(&root, &options, &stop)?;
                (root.display().to_string(), inventory)
            } else {
                (String::new(), Inventory::inline(files, &options)?)
            };
            Ok(Analyzed {
                path,
                scanned_at,
                installed: inventory.skills(),
                analysis: codebase::analyze(&inventory, &options),
            })
        };
        let executor = self.registry.executor();
        executor.run_fallible(Kind::Analyze, work).await
    }

    /// Recommends skills for a codebase, which is analyzed for `time` at most.
    ///
    /// # Errors
    /// The codebase may not be read, or the index or the registry cannot.
    pub async fn recommend(
        &self,
        source: Source,
        mut wish: Wish,
        time: Duration,
    ) -> Result<Recommendations, Error> {
        let seen = self.analyze(source, ScanOptions::default(), time).await?;
        wish.installed.extend(seen.installed);
        let this = self.clone();
        let work =
            move |stop: &Stop| recommend(&this.registry, &this.index, &seen.analysis, &wish, stop);
        let executor = self.registry.executor();
        Ok(executor.run_fallible(Kind::Analyze, work).await?)
    }

    /// Renders the section of a prompt that names skills, in `max_tokens` at most; 0 is 2,000:
    /// those that fit a task, and a share in percent for unused ones; without a task, in the
    /// order of their locations.
    ///
    /// # Errors
    /// The index or counts of use cannot be read.
    pub async fn prompt(
        &self,
        task: String,
        exploration_percent: Option<u32>,
        max_tokens: u32,
    ) -> Result<Prompt, Error> {
        let (executor, lookup) = (self.registry.executor(), Lookup::new(self.registry.clone()));
        if task.trim().is_empty() {
            let render = move |_: &Stop| lookup.prompt(max_tokens);
            return Ok(executor.run(Kind::Read, render).await?);
        }
        let query = SearchQuery {
            text: task,
            limit: MAX_CANDIDATES,
            ..SearchQuery::default()
        };
        let hits = self.index.find(query).await?.hits.into_iter();
        let task = PromptTask {
            fitting: hits.map(|hit| hit.head).collect(),
            exploration_percent: exploration_percent.unwrap_or(EXPLORATION_PERCENT),
        };
        let render = move |_: &Stop| lookup.prompt_for(&task, max_tokens);
        Ok(executor.run_fallible(Kind::Read, render).await?)
    }
}
