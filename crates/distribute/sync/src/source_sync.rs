//! A sync of one source: look, plan, publish, withdraw, record the state.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::sync::watch;
use tokio::time::Instant;

use super::record::{Failed, MAX_FAILURES, MAX_RESULT_SKIPS, State};
use super::run::millis;
use super::{Engine, Error, Kind, Phase, Progress, Request, Source, SourceResult, items};
use sources::{Fetch, Item, Listing, Look, RateLimit, Work};
use store::Batch;

/// Bytes of an item's path.
const MAX_PATH: usize = 1_024;
/// How long a failure counts.
pub(crate) const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Why a sync of a source failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The place.
    Place(sources::Error),
    /// This server.
    Here(Error),
}

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Here(error.into())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Place(error @ sources::Error::Address { .. }) => write!(
                f,
                "{error}: permit its network with `sync.allow_networks` in the server's settings"
            ),
            Self::Place(error) => error.fmt(f),
            Self::Here(error) => error.fmt(f),
        }
    }
}

pub(crate) struct SourceSync<'sync> {
    pub(crate) engine: &'sync Engine,
    pub(crate) source: &'sync Source,
    pub(crate) request: &'sync Request,
    pub(crate) progress: &'sync watch::Sender<Progress>,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) work: Work,
}

impl Engine {
    /// Syncs one source, and writes its state. An error is part of the result.
    pub(crate) async fn sync_source(
        &self,
        source: &Source,
        request: &Request,
        progress: &watch::Sender<Progress>,
    ) -> SourceResult {
        let mut result = SourceResult {
            source: source.id.clone(),
            title: source.title().to_owned(),
            ..SourceResult::default()
        };
        let began = Instant::now();
        let mut state = match self.state(&source.id) {
            Ok(state) => state,
            Err(error) => {
                result.error = Some(error.to_string());
                return result;
            }
        };
        let done = self
            .attempt(source, request, progress, &mut state, &mut result)
            .await;
        result.duration_ms = millis(began.elapsed());
        result.skips.truncate(MAX_RESULT_SKIPS);
        let now = self.0.registry.now();
        state.last_check = Some(now);
        state
            .failures
            .retain(|failed| now.duration_since(failed.time) < DAY);
        match done {
            Ok(()) => {
                state.last_success = Some(now);
                state.failed_in_row = 0;
                state.not_before = None;
                if request.kind == Kind::Full {
                    state.full_ms = Some(result.duration_ms);
                }
            }
            // No fault of the place, so no failure is recorded. The state of before stays too:
            // what this sync did not finish is for the next one.
            Err(Fault::Place(sources::Error::Stopped)) => {
                result.error = Some("the server stopped".to_owned());
                return result;
            }
            Err(fault) => {
                let message = model::shown(&fault.to_string(), 500);
                if let Fault::Place(sources::Error::RateLimited { after, limit }) = &fault {
                    // At most a day: a wrong header would else put the source off for years.
                    let after = SignedDuration::try_from(*after).unwrap_or(DAY).min(DAY);
                    // This counts for no row of failures: the place works, and said when to come
                    // again.
                    state.not_before = now.checked_add(after).ok();
                    state.rate_limit = limit.or(state.rate_limit);
                } else {
                    state.failed_in_row = state.failed_in_row.saturating_add(1);
                }
                tracing::warn!(
                    source = source.id,
                    error = message,
                    "a source could not be synced"
                );
                if state.failures.len() >= MAX_FAILURES {
                    state.failures.remove(0);
                }
                state.failures.push(Failed {
                    time: now,
                    message: message.clone(),
                });
                result.error = Some(message);
            }
        }
        let mut batch = Batch::new();
        state.put(&mut batch, &source.id);
        if let Err(error) = self.commit(source, batch).await {
            let error = Error::from(error);
            tracing::warn!(%error, source = source.id, "the state of a source was not written");
            result.error.get_or_insert_with(|| error.to_string());
        }
        result
    }

    async fn attempt(
        &self,
        source: &Source,
        request: &Request,
        progress: &watch::Sender<Progress>,
        state: &mut State,
        result: &mut SourceResult,
    ) -> Result<(), Fault> {
        let fetch = self.open_place(source).map_err(Fault::Place)?;
        let folder = self.0.folder.join(&source.id);
        let made = tokio::fs::create_dir_all(&folder).await;
        made.map_err(|error| {
            let message = format!("cannot make the folder `{}`: {error}", folder.display());
            Fault::Here(Error::Here { message })
        })?;
        let work = Work {
            folder,
            limits: self.0.options.limits.clone(),
            stop: self.0.stop.child_token(),
        };
        let sync = SourceSync {
            engine: self,
            source,
            request,
            progress,
            fetch,
            work,
        };
        sync.run(state, result).await
    }
}

impl SourceSync<'_> {
    pub(crate) fn phase(&self, phase: Phase, total: usize) {
        self.progress.send_modify(|progress| {
            progress.phase = phase;
            (progress.done, progress.total) = (0, total as u64);
        });
    }

    pub(crate) fn step(&self) {
        self.progress.send_modify(|progress| progress.done += 1);
    }

    async fn run(&self, state: &mut State, result: &mut SourceResult) -> Result<(), Fault> {
        let (store, id) = (self.engine.0.store.clone(), self.source.id.clone());
        let known = blocking(move || items::of(&store, &id)).await??;
        let is_full = self.request.kind == Kind::Full;
        let mark = state.mark.clone();
        let asked = mark
            .as_deref()
            .filter(|_| !is_full && !self.request.force_check);
        self.phase(Phase::Fetching, 0);
        let began = Instant::now();
        let look = self.retry(|| self.fetch.look(asked, &self.work)).await;
        state.response_ms = Some(millis(began.elapsed()));
        let mut limit = |found: Option<RateLimit>| state.rate_limit = found.or(state.rate_limit);
        let listing = match look.map_err(Fault::Place)? {
            Look::Unchanged { rate_limit } => {
                limit(rate_limit);
                result.unchanged = true;
                // Planned all the same, from the records: an item that was skipped since its id
                // was taken may have it now, and a skill that somebody deleted comes back.
                let mut listing = Listing {
                    mark: mark.clone().unwrap_or_default(),
                    revision: state.revision.clone(),
                    items: known.values().map(|record| record.item.clone()).collect(),
                    skipped: state
                        .skips
                        .iter()
                        .filter(|skip| !known.contains_key(&skip.path))
                        .map(|skip| (skip.path.clone(), skip.reason.clone()))
                        .collect(),
                    ..Listing::default()
                };
                listing.sort();
                listing
            }
            Look::Listing(listing) => {
                limit(listing.rate_limit);
                listing
            }
        };
        let had_some = known.values().any(|record| record.skill.is_some());
        // It may be a mistake there, such as a folder that was moved or a disk that is not
        // mounted. All skills of a source are withdrawn only where somebody asks for it.
        if listing.items.is_empty() && had_some && !is_full {
            let message = "it has no skills any more, which may be a mistake there; sync everything (`repertoire sync --full`) to withdraw those that are here";
            return Err(Fault::Place(sources::Error::Refused(message.to_owned())));
        }
        let Listing {
            mark,
            revision,
            items,
            skipped,
            break_in_history,
            ..
        } = listing;
        for (path, reason) in &skipped {
            result.skip(path, reason);
        }
        let wanted = items
            .into_iter()
            .filter(|item| self.source.wants(&item.path));
        let items = unique(wanted.collect(), result);
        let at = (revision.as_str(), break_in_history.as_deref());
        let taken = self.apply(items, known, at, state, result).await?;
        // After all of it is applied: a sync that fails before asks for the same changes again.
        state.mark = Some(mark).filter(|mark| !mark.is_empty());
        state.revision = model::shown(&revision, 200);
        state.skills = taken;
        state.skips.clone_from(&result.skips);
        let listed = u32::try_from(result.skips.len()).unwrap_or(u32::MAX);
        state.skips_left_out = result.skipped.saturating_sub(listed);
        result.unchanged &= result.changed() == 0 && result.held == 0;
        Ok(())
    }

    /// Retries a call after transient errors, with pauses that grow.
    pub(crate) async fn retry<'call, T>(
        &self,
        mut call: impl FnMut() -> futures_util::future::BoxFuture<'call, Result<T, sources::Error>>,
    ) -> Result<T, sources::Error> {
        let options = &self.engine.0.options;
        let mut pause = options.pause;
        for attempt in 1.. {
            let called = tokio::time::timeout(self.work.limits.time, call());
            let Some(called) = self.work.stop.run_until_cancelled(called).await else {
                return Err(sources::Error::Stopped);
            };
            let error = match called {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(error)) => error,
                Err(_) => {
                    let seconds = self.work.limits.time.as_secs();
                    sources::Error::Unavailable(format!("it was not done within {seconds} s"))
                }
            };
            if !error.is_transient() || attempt >= options.attempts {
                return Err(error);
            }
            // Half to one and a half times the pause: clients that failed together do not come
            // back together.
            let spread = Duration::from_secs_f64(pause.as_secs_f64() * (0.5 + (options.jitter)()));
            let waited = tokio::time::sleep(spread);
            if self.work.stop.run_until_cancelled(waited).await.is_none() {
                return Err(sources::Error::Stopped);
            }
            pause *= 4;
        }
        Err(sources::Error::Stopped)
    }
}

/// After this error, nothing else of the place can be read.
pub(crate) fn ends(error: &sources::Error) -> bool {
    matches!(
        error,
        sources::Error::Stopped | sources::Error::RateLimited { .. }
    )
}

/// Reads many records off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    does: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(does).await;
    done.map_err(|error| {
        let message = error.to_string();
        Fault::Here(Error::Here { message })
    })
}

/// Items whose paths can be stored, each once.
fn unique(items: Vec<Item>, result: &mut SourceResult) -> Vec<Item> {
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        // Paths are parts of keys, in which a NUL ends a part.
        if item.path.len() > MAX_PATH || item.path.contains('\0') {
            result.skip(
                &item.path,
                &format!("its path has a NUL, or more than {MAX_PATH} bytes"),
            );
        } else if !seen.insert(item.path.clone()) {
            result.skip(&item.path, "the source has two skills at this path");
        } else {
            kept.push(item);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_kept_is_told() {
        let items = ["a", "b\0", &"c".repeat(1_025), "a", "d"].map(|path| Item {
            path: path.to_owned(),
            ..Item::default()
        });
        let mut result = SourceResult::default();
        let kept = unique(items.to_vec(), &mut result);
        let kept: Vec<_> = kept.iter().map(|item| item.path.as_str()).collect();
        let reasons: Vec<_> = result.skips.iter().map(|skip| &skip.reason[..8]).collect();
        assert_eq!(kept, ["a", "d"]);
        assert_eq!(reasons, ["its path", "its path", "the sour"]);
    }
}
