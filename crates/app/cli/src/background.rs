//! The server that a window starts: `repertoire background`, a command that people never type.

use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;

use super::args::Global;
use super::connect::{settings, start_failed};
use super::output::{self, Exit, Failed};
use super::serve::StopSignals;
use model::Code;
use server::{
    self, Background, Config, LOG, LogFile, Settings, StartError, Started, Telemetry, connect_local,
};
use store::{Holder, OpenError, holder};

/// How long it waits until a command, or a server that leaves, releases the directory.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) async fn background(global: &Global, config: Config) -> Exit {
    // Whatever ends the window's session must not end this. It fails where this process leads a
    // group already, and so has a session of its own.
    let _had_one = store::begin_session();
    store::keep_files_private();
    let mut settings = settings(global, &config);
    // `start` below waits for the lock, as it also watches the socket and the window meanwhile.
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
    // Before anything is opened, as in `serve`.
    let mut stop = StopSignals::new()?;
    let started = tokio::select! {
        started = start(&settings, &telemetry) => started,
        () = stop.recv() => return Ok(ExitCode::SUCCESS),
    };
    let mut server = match started {
        Ok(Some(server)) => server,
        Ok(None) => {
            let _is_heard = report(&Started::Serving);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Ok(refused(start_failed(&error))),
    };
    // The window ended meanwhile: nobody is about to connect.
    if !report(&Started::Serving) {
        server.leave_when_unused();
    }
    let data = settings.data.display();
    tracing::info!(%data, process = std::process::id(), version = env!("CARGO_PKG_VERSION"), "serving");
    let is_left = tokio::select! {
        () = server.left() => true,
        () = stop.recv() => false,
    };
    if !is_left {
        server.stop().await;
    }
    tracing::info!(unused = is_left, "left");
    let stopped = tokio::task::spawn_blocking(move || telemetry.stop()).await;
    stopped.map_err(Failed::fault)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the server. None: another one has the directory and serves it; or the window has left,
/// or found that other one by itself. To take the directory then would keep it from commands for
/// as long as a server waits for its first connection.
async fn start(
    settings: &Settings,
    telemetry: &Telemetry,
) -> Result<Option<Background>, StartError> {
    let until = Instant::now() + OPEN_TIMEOUT;
    loop {
        // A start makes a key, handlers and pools before it tries the lock: too much work for
        // every 10 ms.
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

/// Reports to the window whether the server started. False: the window is gone.
fn report(started: &Started) -> bool {
    let line = serde_json::to_string(started);
    line.is_ok_and(|line| output::report(&line).is_ok())
}

fn refused(failed: Failed) -> ExitCode {
    let _is_heard = report(&Started::Failed(failed.into()));
    ExitCode::FAILURE
}
