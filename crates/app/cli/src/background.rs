//! The server that a window starts: `repertoire background`, which is no command for people.

use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::args::Global;
use super::connect::{settings, start_failed};
use super::output::{self, Failed};
use model::Code;
use server::{
    self, Background, Config, LOG, LogFile, Settings, StartError, Started, Telemetry, connect_local,
};
use store::OpenError;

/// How long it waits for a command, or for a server that leaves, to be done with the directory.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn background(global: &Global, config: Config) -> Result<ExitCode, Failed> {
    // What closes the window must not close this. A process that leads a group has a session
    // that somebody gave it.
    let _had_one = store::begin_session();
    store::keep_files_private();
    let settings = settings(global, &config);
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
            tell(&Started::Serving);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Ok(refused(start_failed(&error))),
    };
    tell(&Started::Serving);
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
    tokio::task::spawn_blocking(move || telemetry.stop())
        .await
        .map_err(Failed::fault)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the server. None: another one has the directory, and is there for everybody.
async fn start(
    settings: &Settings,
    telemetry: &Telemetry,
) -> Result<Option<Background>, StartError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match Background::start(settings.clone(), telemetry).await {
            Err(StartError::Open(OpenError::InUse { .. })) if Instant::now() < until => {}
            started => return started.map(Some),
        }
        if connect_local(&settings.data).await.is_some() {
            return Ok(None);
        }
    }
}

/// Says to the window what became of it. The window may be gone.
fn tell(started: &Started) {
    if let Ok(line) = serde_json::to_string(started) {
        let _unheard = output::report(&line);
    }
}

fn refused(failed: Failed) -> ExitCode {
    tell(&Started::Failed(failed.into()));
    ExitCode::FAILURE
}
