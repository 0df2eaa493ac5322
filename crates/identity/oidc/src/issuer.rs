//! An issuer: its keys, and when to fetch them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use egress::Client;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ConfigError;
use crate::config::IssuerConfig;
use crate::fetch::{self, FetchError};
use crate::keys::Keys;

/// The interval of fetches while no token names an unknown key.
pub(crate) const KEY_REFRESH_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// The delay after a failed fetch.
pub(crate) const KEY_RETRY_DELAY: Duration = Duration::from_secs(30);
/// The shortest delay between fetches where tokens name unknown keys.
pub(crate) const MIN_PAUSE: Duration = Duration::from_secs(10);
/// How long keys stay valid while they cannot be fetched again.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a call waits for keys.
pub(crate) const KEY_WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The state of the fetches.
#[derive(Debug, Clone, Copy)]
struct Fetches {
    done: u64,
    running: bool,
    /// When the next one may begin.
    next: Instant,
}

/// An issuer with its keys.
pub(crate) struct Issuer {
    pub(crate) config: IssuerConfig,
    client: Client,
    keys: ArcSwap<Keys>,
    wanted: Notify,
    fetches: watch::Sender<Fetches>,
    /// The server accepts none of its tokens any more.
    gone: CancellationToken,
}

impl Issuer {
    pub(crate) fn new(config: IssuerConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            client: fetch::client(&config)?,
            config,
            keys: ArcSwap::from_pointee(Keys::none()),
            wanted: Notify::new(),
            fetches: watch::Sender::new(Fetches {
                done: 0,
                // So the first callers wait for it, instead of being refused.
                // The first begins with the server.
                running: true,
                next: Instant::now(),
            }),
            gone: CancellationToken::new(),
        })
    }

    /// Returns its keys; none where they are not known, or too old.
    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        let keys = self.keys.load_full();
        let is_good = keys.known_at.is_some_and(|at| at.elapsed() < MAX_AGE);
        is_good.then_some(keys)
    }

    /// Returns a wait for a fetch that may bring a key. `None`: the key is known, or another fetch
    /// so soon would bring nothing new.
    pub(crate) fn wait_for(
        self: &Arc<Self>,
        kid: Option<&str>,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        if self.keys().is_some_and(|keys| keys.has(kid)) {
            return None;
        }
        let Fetches {
            done,
            running,
            next,
        } = *self.fetches.borrow();
        if !running {
            // Anybody can send tokens with ids of keys that do not exist. They cost the issuer a
            // fetch each ten seconds, and their callers no wait.
            if Instant::now() < next {
                return None;
            }
            // Keeps a permit if the keeper does not wait yet, so the request is not lost.
            self.wanted.notify_one();
        }
        let mut fetches = self.fetches.subscribe();
        Some(async move {
            let brought = fetches.wait_for(|now| now.done > done);
            // With or without an answer in time, the call is then judged by the keys that are
            // known.
            let _judged = tokio::time::timeout(KEY_WAIT_TIMEOUT, brought).await;
        })
    }

    /// Stops accepting its tokens: streams that were begun with them end.
    pub(crate) fn withdraw(&self) {
        self.gone.cancel();
        self.keys.load().withdraw();
    }

    /// Keeps the keys up to date until it is stopped, or the issuer is gone.
    pub(crate) async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let kept = self.keep_until(stop);
        // A fetch may have stored new keys after `withdraw` went through the old ones.
        if self.gone.run_until_cancelled(kept).await.is_none() {
            self.keys.load().withdraw();
        }
    }

    async fn keep_until(&self, stop: CancellationToken) {
        let mut failing = false;
        loop {
            self.fetches.send_modify(|now| now.running = true);
            let Some(fetched) = stop.run_until_cancelled(self.fetch()).await else {
                return;
            };
            self.fetches.send_modify(|now| {
                now.running = false;
                now.done += 1;
                now.next = Instant::now() + MIN_PAUSE;
            });
            self.log(&fetched, failing);
            failing = fetched.is_err();
            let pause = if failing {
                KEY_RETRY_DELAY
            } else {
                KEY_REFRESH_INTERVAL
            };
            let next = self.fetches.borrow().next;
            let waited = async {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.wanted.notified() => tokio::time::sleep_until(next).await,
                }
            };
            if stop.run_until_cancelled(waited).await.is_none() {
                return;
            }
        }
    }

    async fn fetch(&self) -> Result<usize, FetchError> {
        let set = fetch::keys(&self.client, &self.config.issuer).await?;
        let keys = self.keys.load().replaced(&set)?;
        let count = keys.len();
        if let Some(warning) = keys.warning() {
            let issuer = self.config.name.0.as_str();
            tracing::warn!(issuer, "{warning}");
        }
        self.keys.store(Arc::new(keys));
        Ok(count)
    }

    /// Logs each change once, so that an issuer that is down does not fill the log.
    fn log(&self, fetched: &Result<usize, FetchError>, failing: bool) {
        let issuer = self.config.name.0.as_str();
        match fetched {
            Ok(0) => tracing::warn!(issuer, "the issuer has no usable key"),
            Ok(keys) if failing => {
                tracing::info!(issuer, keys, "the keys of the issuer were fetched again");
            }
            Ok(keys) => tracing::debug!(issuer, keys, "the keys of the issuer were fetched"),
            Err(error) if failing => {
                tracing::debug!(issuer, %error, "the keys of the issuer cannot be fetched");
            }
            Err(error) => {
                tracing::warn!(issuer, %error, "the keys of the issuer cannot be fetched");
            }
        }
    }
}
