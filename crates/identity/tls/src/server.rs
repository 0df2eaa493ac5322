//! The configuration that holds now, and its renewal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{CERTIFICATE, Mistake, TlsConfig, TlsFiles};
use crate::files::{Contents, is_open_to_others};
use crate::loaded::Loaded;
use model::{Clock as _, Digest, SystemClock};

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(2);

/// TLS of a server. Cheap to clone.
#[derive(Clone)]
pub struct Tls(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    places: TlsFiles,
    loaded: ArcSwap<Loaded>,
    /// Counts the changes of the authorities of clients.
    authorities: watch::Sender<u64>,
    seen: Mutex<ReloadState>,
    failed_handshakes: AtomicU64,
}

/// What the last looks have seen.
#[derive(Default)]
struct ReloadState {
    /// What is not loaded yet: the digest of the files, or why they cannot be read.
    pending: Option<Result<Digest, Mistake>>,
    /// It was tried.
    is_judged: bool,
    /// Why what was tried last cannot be used.
    failing: Option<Mistake>,
}

/// What a look at the files has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// They are what is loaded.
    Same,
    /// They are something else, which the next look has to confirm.
    Unsettled,
    /// They were loaded.
    Replaced,
    /// They cannot be used; what was loaded stays.
    Kept(Mistake),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("places", &self.0.places)
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

    /// Loads what a look has read, unless it is worse than what there is.
    fn replace(&self, contents: &Contents) -> Result<(), Mistake> {
        let (new, old, now) = (
            Loaded::new(contents, &self.places)?,
            self.loaded(),
            SystemClock.now(),
        );
        if new.not_after <= now && old.not_after > now {
            return Err(ended(&new, &self.places));
        }
        let are_others = new.client_ca_digest != old.client_ca_digest;
        self.loaded.store(Arc::new(new));
        // After the configuration, which is asked then.
        if are_others {
            self.authorities.send_modify(|changes| *changes += 1);
        }
        Ok(())
    }
}

fn ended(loaded: &Loaded, places: &TlsFiles) -> Mistake {
    let (shown, at) = (places.certificate.display(), loaded.not_after);
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
    /// told ([`Tls::warnings`]).
    pub fn load(config: &TlsConfig) -> Result<Self, Mistake> {
        let places = config.places()?;
        let contents = Contents::read(&places)?;
        let loaded = Loaded::new(&contents, &places)?;
        Ok(Self(Arc::new(Inner {
            places,
            loaded: ArcSwap::from_pointee(loaded),
            authorities: watch::Sender::new(0),
            seen: Mutex::default(),
            failed_handshakes: AtomicU64::new(0),
        })))
    }

    /// The same where the settings have TLS.
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

    /// What an operator should know of files that can be used. Blocks.
    #[must_use]
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let loaded = self.0.loaded();
        let mut warnings = Vec::new();
        if loaded.not_after <= now {
            warnings.push(ended(&loaded, &self.0.places).to_string());
        }
        let key: &PathBuf = &self.0.places.key;
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

    /// Handshakes that came to nothing.
    #[must_use]
    pub fn failed_handshakes(&self) -> u64 {
        self.0.failed_handshakes.load(Ordering::Relaxed)
    }

    /// Figures for metrics: name, what it is, value.
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

    /// Looks at the files, and loads them where they have changed. Blocks.
    pub fn look(&self) -> ReloadOutcome {
        let read = Contents::read(&self.0.places);
        let found = match &read {
            Ok(contents) => Ok(contents.digest),
            Err(mistake) => Err(mistake.clone()),
        };
        let mut seen = self.0.seen();
        if found == Ok(self.0.loaded().digest) {
            if seen.failing.is_some() {
                tracing::info!("the TLS files are the ones in use again");
            }
            *seen = ReloadState::default();
            return ReloadOutcome::Same;
        }
        if seen.pending.as_ref() != Some(&found) {
            (seen.pending, seen.is_judged) = (Some(found), false);
            return ReloadOutcome::Unsettled;
        }
        if let (true, Some(known)) = (seen.is_judged, &seen.failing) {
            // It was told.
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

    /// Tells what an operator should know, then looks at the files now and then, until it is
    /// stopped.
    pub async fn follow(self, stop: CancellationToken) {
        let tls = self.clone();
        let warnings = tokio::task::spawn_blocking(move || tls.warnings(SystemClock.now()));
        match warnings.await {
            Ok(warnings) => warnings.iter().for_each(|it| tracing::warn!("{it}")),
            Err(error) => {
                tracing::error!(%error, "the state of the TLS files is not known");
            }
        }
        loop {
            let paused = stop.run_until_cancelled(tokio::time::sleep(INTERVAL));
            if paused.await.is_none() {
                return;
            }
            let tls = self.clone();
            let look = tokio::task::spawn_blocking(move || tls.look());
            match stop.run_until_cancelled(look).await {
                None => return,
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::error!(%error, "the TLS files were not checked"),
            }
        }
    }
}
