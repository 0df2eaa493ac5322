//! The server that a window starts: `repertoire background`, which is no command for people.

use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::args::Global;
use super::connect::{settings, start_failed};
use super::output::{self, Exit, Failed};
use model::Code;
use server::{
    self, Background, Config, LOG, LogFile, Settings, StartError, Started, Telemetry, connect_local,
};
use store::{Holder, OpenError, holder};

/// How long it waits for a command, or for a server that leaves, to be done with the directory.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) async fn background(global: &Global, config: Config) -> Exit {
    // What closes the window must not close this. A process that leads a group has a session
    // that somebody gave it.
    let _had_one = store::begin_session();
    store::keep_files_private();
    let mut settings = settings(global, &config);
    // While another process has the directory, its socket and the window are looked at as well.
    settings.store.lock_timeout = Duration::ZERO;
    let otlp = config.otlp(None);
    if let Err(error) = server::require(&settings, otlp.as_ref()) {
        return Ok(refused(start_failed(&error)));
    }
    let filter = config.log.as_deref().unwrap_or(LOG);
    let (format, log) = (
        config.log_format.unwrap_or_default(),
        LogFile::of(&settings.data),
    );
    let telemetry = Telemetry::start_in(log, filter, format, otlp.as_ref());
    let telemetry = match telemetry {
        Ok(telemetry) => telemetry,
        Err(error) => return Ok(refused(Failed::new(Code::ConfigInvalid, error))),
    };
    // Before anything is opened, so that no signal is missed.
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let started = tokio::select! {
        started = start(&settings, &telemetry) => started,
        _ = interrupt.recv() => return Ok(ExitCode::SUCCESS),
        _ = terminate.recv() => return Ok(ExitCode::SUCCESS),
    };
    let mut server = match started {
        Ok(Some(server)) => server,
        Ok(None) => {
            let _heard = tell(&Started::Serving);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Ok(refused(start_failed(&error))),
    };
    if !tell(&Started::Serving) {
        server.leave_when_unused();
    }
    let data = settings.data.display();
    tracing::info!(%data, process = std::process::id(), version = env!("CARGO_PKG_VERSION"), "serving");
    let is_left = tokio::select! {
        () = server.left() => true,
        _ = interrupt.recv() => false,
        _ = terminate.recv() => false,
    };
    if !is_left {
        server.stop().await;
    }
    tracing::info!(unused = is_left, "left");
    let stopped = tokio::task::spawn_blocking(move || telemetry.stop()).await;
    stopped.map_err(Failed::fault)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the server. None: another one has the directory, and is there for everybody; or the
/// window has left, or found that other one by itself. Who takes the directory then would keep
/// it from commands for as long as a server waits for its first connection.
async fn start(
    settings: &Settings,
    telemetry: &Telemetry,
) -> Result<Option<Background>, StartError> {
    let until = Instant::now() + OPEN_TIMEOUT;
    loop {
        // All that a server is made of is made only where it may get the directory.
        let is_held = matches!(holder(&settings.data), Ok(Holder::Process(_)));
        let is_late = Instant::now() >= until;
        if !is_held || is_late {
            match Background::start(settings.clone(), telemetry).await {
                Err(StartError::Open(OpenError::InUse { .. })) if !is_late => {}
                started => return started.map(Some),
            }
        }
        if connect_local(&settings.data).await.is_some() || !output::is_read() {
            return Ok(None);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Tells the window what became of the server. False: the window is gone.
fn tell(started: &Started) -> bool {
    let line = serde_json::to_string(started);
    line.is_ok_and(|line| output::report(&line).is_ok())
}

fn refused(failed: Failed) -> ExitCode {
    let _heard = tell(&Started::Failed(failed.into()));
    ExitCode::FAILURE
}
