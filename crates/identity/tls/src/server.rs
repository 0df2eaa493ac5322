//! The current configuration, and its renewal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{CERTIFICATE, Mistake, TlsConfig, TlsFiles};
use crate::files::Contents;
use crate::loaded::Loaded;
use config_file::is_open_to_others;
use model::{Clock as _, Digest, SystemClock};

/// The interval between polls of the files.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// TLS of a server. Cheap to clone.
#[derive(Clone)]
pub struct Tls(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    files: TlsFiles,
    loaded: ArcSwap<Loaded>,
    /// Counts the changes of the authorities of clients.
    authorities: watch::Sender<u64>,
    seen: Mutex<ReloadState>,
    failed_handshakes: AtomicU64,
}

/// The result of the last polls.
#[derive(Default)]
struct ReloadState {
    /// The last result that is not loaded: the digest of the files, or why they cannot be read.
    pending: Option<Result<Digest, Mistake>>,
    /// Loading it was tried.
    is_judged: bool,
    /// Why the last try failed.
    failing: Option<Mistake>,
}

/// The outcome of a poll of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// They are what is loaded.
    Same,
    /// They have changed, which the next poll has to confirm.
    Unsettled,
    /// They were loaded.
    Replaced,
    /// They cannot be used; the loaded ones stay.
    Kept(Mistake),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("files", &self.0.files)
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        self.loaded.load_full()
    }

    pub(crate) fn authorities(&self) -> watch::Receiver<u64> {
        self.authorities.subscribe()
    }

    pub(crate) fn count_failed(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, ReloadState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads new contents, unless they are worse than the loaded ones.
    fn replace(&self, contents: &Contents) -> Result<(), Mistake> {
        let (new, old, now) = (
            Loaded::new(contents, &self.files)?,
            self.loaded(),
            SystemClock.now(),
        );
        // A certificate that has ended is loaded at the start, with a warning. It must not replace
        // one that clients still accept.
        if new.not_after <= now && old.not_after > now {
            return Err(ended(&new, &self.files));
        }
        let are_others = new.client_ca_digest != old.client_ca_digest;
        self.loaded.store(Arc::new(new));
        // After the configuration: clients are verified by the one that is stored when they are
        // woken.
        if are_others {
            self.authorities.send_modify(|changes| *changes += 1);
        }
        Ok(())
    }
}

fn ended(loaded: &Loaded, files: &TlsFiles) -> Mistake {
    let (shown, at) = (files.certificate.display(), loaded.not_after);
    Mistake::new(
        CERTIFICATE,
        format!("the certificate in `{shown}` ended at {at}"),
    )
}

impl Tls {
    /// Loads the files of the settings. Blocks.
    ///
    /// # Errors
    /// A setting is missing, or a file cannot be used. A certificate that has ended can: it is
    /// one of the [`Tls::warnings`].
    pub fn load(config: &TlsConfig) -> Result<Self, Mistake> {
        let files = config.files()?;
        let contents = Contents::read(&files)?;
        let loaded = Loaded::new(&contents, &files)?;
        Ok(Self(Arc::new(Inner {
            files,
            loaded: ArcSwap::from_pointee(loaded),
            authorities: watch::Sender::new(0),
            seen: Mutex::default(),
            failed_handshakes: AtomicU64::new(0),
        })))
    }

    /// The same off the async threads; none where the settings have no TLS.
    ///
    /// # Errors
    /// As [`Tls::load`].
    pub async fn start(config: &TlsConfig) -> Result<Option<Self>, Mistake> {
        if !config.is_on() {
            return Ok(None);
        }
        let config = config.clone();
        let loading = tokio::task::spawn_blocking(move || Self::load(&config));
        let stopped = |error: tokio::task::JoinError| Mistake::new("tls", error.to_string());
        loading.await.map_err(stopped)?.map(Some)
    }

    /// Warnings about files that can be used. Blocks.
    #[must_use]
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let loaded = self.0.loaded();
        let mut warnings = Vec::new();
        if loaded.not_after <= now {
            warnings.push(ended(&loaded, &self.0.files).to_string());
        }
        let key: &PathBuf = &self.0.files.key;
        if is_open_to_others(key) {
            warnings.push(format!(
                "tls.key: everybody on this machine may read or write `{}`; `chmod 0640` or stricter keeps the key",
                key.display()
            ));
        }
        warnings
    }

    /// When the server's certificate ends.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.0.loaded().not_after
    }

    /// The number of failed handshakes.
    #[must_use]
    pub fn failed_handshakes(&self) -> u64 {
        self.0.failed_handshakes.load(Ordering::Relaxed)
    }

    /// Gauges for metrics: name, description, value.
    #[must_use]
    pub fn gauges(&self) -> [(&'static str, &'static str, i64); 2] {
        let failing = self.0.seen().failing.is_some();
        [
            (
                "repertoire_tls_certificate_expiry_timestamp_seconds",
                "When the certificate of the server ends, in seconds since 1970",
                self.not_after().as_second(),
            ),
            (
                "repertoire_tls_reload_failing",
                "1 while there are new files of TLS that cannot be used",
                failing.into(),
            ),
        ]
    }

    /// Polls the files, and loads them where they have changed. Blocks.
    pub fn reload(&self) -> ReloadOutcome {
        let read = Contents::read(&self.0.files);
        let found = match &read {
            Ok(contents) => Ok(contents.digest),
            Err(mistake) => Err(mistake.clone()),
        };
        let mut seen = self.0.seen();
        // Also the way back from a bad change: the operator restored the old files.
        if found == Ok(self.0.loaded().digest) {
            if seen.failing.is_some() {
                tracing::info!("the TLS files are the ones in use again");
            }
            *seen = ReloadState::default();
            return ReloadOutcome::Same;
        }
        // A certificate and its key are two files: right after the first was replaced they make no
        // pair.
        if seen.pending.as_ref() != Some(&found) {
            (seen.pending, seen.is_judged) = (Some(found), false);
            return ReloadOutcome::Unsettled;
        }
        if let (true, Some(known)) = (seen.is_judged, &seen.failing) {
            // It is in the log already, and trying the same files again would change nothing.
            return ReloadOutcome::Kept(known.clone());
        }
        seen.is_judged = true;
        match read.and_then(|contents| self.0.replace(&contents)) {
            Ok(()) => {
                *seen = ReloadState::default();
                tracing::info!(not_after = %self.not_after(), "the TLS files were reloaded");
                ReloadOutcome::Replaced
            }
            Err(mistake) => {
                tracing::error!("{mistake}; TLS continues with the files loaded before");
                seen.failing = Some(mistake.clone());
                ReloadOutcome::Kept(mistake)
            }
        }
    }

    /// Logs the warnings, then polls the files until it is
    /// stopped.
    pub async fn follow(self, stop: CancellationToken) {
        let tls = self.clone();
        let warnings = tokio::task::spawn_blocking(move || tls.warnings(SystemClock.now()));
        match warnings.await {
            Ok(warnings) => warnings.iter().for_each(|it| tracing::warn!("{it}")),
            Err(error) => {
                tracing::error!(%error, "the files of TLS could not be checked for warnings");
            }
        }
        loop {
            let paused = stop.run_until_cancelled(tokio::time::sleep(RELOAD_INTERVAL));
            if paused.await.is_none() {
                return;
            }
            let tls = self.clone();
            let reload = tokio::task::spawn_blocking(move || tls.reload());
            match stop.run_until_cancelled(reload).await {
                None => return,
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::error!(%error, "the files of TLS were not polled"),
            }
        }
    }
}
