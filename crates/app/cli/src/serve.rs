//! `repertoire serve`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use origins::AllowedHost;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::args::Global;
use super::connect::{settings, start_failed};
use super::output::{Done, Failed};
use access_log::AccessMode;
use contract::v1::LeaveRequest;
use contract::v1::admin_client::AdminClient;
use model::{Clock as _, Code, SystemClock};
use server::{
    self, Config, ConfigFile, LOG, LogFormat, Otlp, Server, Settings, StartError, Telemetry,
    connect_local, listen_address,
};
use store::OpenError;

/// How long a server that was asked to leave may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address to listen on; port 0 takes a free one. [default: 127.0.0.1:50051]
    #[arg(long, env = "REPERTOIRE_LISTEN", value_name = "ADDR", value_parser = listen_address)]
    pub(super) listen: Option<SocketAddr>,
    /// What to log, such as `info`, `warn` or `repertoire=debug`. [default: info]
    #[arg(long, env = "REPERTOIRE_LOG", value_name = "FILTER")]
    pub(super) log: Option<String>,
    /// Form of the log.
    #[arg(long, env = "REPERTOIRE_LOG_FORMAT", value_name = "FORMAT", value_parser = log_format())]
    pub(super) log_format: Option<LogFormat>,
    /// Which calls have a line in the access log. [default: errors]
    #[arg(long, env = "REPERTOIRE_ACCESS_LOG", value_name = "WHICH", value_parser = AccessMode::ALL.map(|(name, _)| name))]
    pub(super) access_log: Option<String>,
    /// One of this many successful calls has a line, with `--access-log all`. [default: 1]
    #[arg(long, env = "REPERTOIRE_ACCESS_LOG_SAMPLE", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) access_log_sample: Option<u64>,
    /// Folder of a sentence transformer that searches use with the built-in table.
    #[arg(long, env = "REPERTOIRE_EMBEDDER", value_name = "DIR")]
    pub(super) embedder: Option<PathBuf>,
    /// OTLP endpoint (gRPC) of a collector, such as `http://localhost:4317`.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(super) otlp_endpoint: Option<String>,
    /// Name of this server, such as `skills.example.com`, in addition to those of the config file. In
    /// the environment: with commas between them.
    #[arg(long = "allowed-host", env = "REPERTOIRE_ALLOWED_HOSTS", value_name = "NAME", value_delimiter = ',', value_parser = allowed_host)]
    pub(super) allowed_hosts: Vec<AllowedHost>,
}

impl Serve {
    /// Puts the flags and the environment over the config file. Returns the log's filter and
    /// format, and where telemetry goes.
    pub(super) fn apply(
        self,
        settings: &mut Settings,
        config: &Config,
    ) -> (String, LogFormat, Option<Otlp>) {
        if let Some(listen) = self.listen {
            settings.listen = listen;
        }
        let mut modes = AccessMode::ALL.into_iter();
        if let Some((_, mode)) = modes.find(|(name, _)| self.access_log.as_deref() == Some(name)) {
            settings.access_log.log = mode;
        }
        if let Some(sample) = self.access_log_sample {
            settings.access_log.sample = sample;
        }
        if self.embedder.is_some() {
            settings.config.search.embedder = self.embedder;
            // An error in it must not point to a line of the file.
            settings.config.places.forget("search.embedder");
        }
        settings.config.web.allowed_hosts.extend(self.allowed_hosts);
        let filter = self.log.or_else(|| config.log.clone());
        let format = self.log_format.or(config.log_format).unwrap_or_default();
        if self.otlp_endpoint.is_some() {
            settings.config.places.forget("otlp_endpoint");
        }
        let otlp = config.otlp(self.otlp_endpoint);
        (filter.unwrap_or_else(|| LOG.to_owned()), format, otlp)
    }
}

/// The signals that ask a process to stop, SIGINT and SIGTERM, which do not end it from now on.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn allowed_host(text: &str) -> Result<AllowedHost, String> {
    text.to_owned().try_into()
}

/// The forms of a log by their names.
fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    let text = PossibleValue::new(LogFormat::Text.name()).help("A line for a person");
    let json = PossibleValue::new(LogFormat::Json.name()).help("A JSON object a line");
    PossibleValuesParser::new([text, json]).map(|name| {
        if name == LogFormat::Json.name() {
            LogFormat::Json
        } else {
            LogFormat::Text
        }
    })
}

pub(super) async fn serve(global: &Global, options: Serve, config: Config) -> Done {
    let mut settings = settings(global, &config);
    let log = options.log.clone();
    let (filter, format, otlp) = options.apply(&mut settings, &config);
    server::require(&settings, otlp.as_ref()).map_err(|error| start_failed(&error))?;
    let telemetry = Telemetry::start(&filter, format, otlp.as_ref())
        .map_err(|error| Failed::new(Code::ConfigInvalid, error))?;

    store::keep_files_private();
    // Before anything is opened: until then a signal ends the process at once, which is right
    // only where there is nothing to close.
    let (mut stop, mut hangup) = (StopSignals::new()?, signal(SignalKind::hangup())?);
    let file = global.config.as_deref().map(ConfigFile::read);
    let mut file = file
        .transpose()
        .map_err(|error| Failed::new(Code::ConfigInvalid, error.to_string()))?;
    // The first line on stderr, by which a parent process learns the port where it asked for 0.
    let announce = |url: &str| writeln!(std::io::stderr(), "{}", listening(url, format));
    let server = tokio::select! {
        started = start(&settings, &telemetry, &announce) => started.map_err(|error| start_failed(&error))?,
        () = stop.recv() => return Ok(()),
    };
    server.follow().await;
    for root in settings
        .config
        .analysis
        .roots
        .iter()
        .filter(|root| !root.is_dir())
    {
        tracing::warn!(root = %root.display(), "analysis.roots: there is no such folder, and nothing below it can be read");
    }
    if let Some(warning) = config.places.exposed_secrets() {
        tracing::warn!("{warning}");
    }
    tracing::info!(data = %settings.data.display(), version = env!("CARGO_PKG_VERSION"), "serving");
    loop {
        tokio::select! {
            () = stop.recv() => break,
            _ = hangup.recv() => reload(&server, &telemetry, file.as_mut(), log.as_deref()).await,
        }
    }
    tracing::info!("stopping");
    server.stop().await;
    tracing::info!("stopped");
    let stopped = tokio::task::spawn_blocking(move || telemetry.stop()).await;
    stopped.map_err(Failed::fault)
}

/// Makes a server read its config file again, and logs the result.
///
/// `log`: the filter of the flags, which goes before the file's.
async fn reload(
    server: &Server,
    telemetry: &Telemetry,
    file: Option<&mut ConfigFile>,
    log: Option<&str>,
) {
    let Some(file) = file else {
        tracing::warn!("asked to read its config file again, and it has none");
        return;
    };
    let mut read = match tokio::task::block_in_place(|| file.again()) {
        Ok(read) => read,
        Err(error) => {
            tracing::error!(%error, "the config file is invalid; the present settings stay");
            return;
        }
    };
    let refused = server.take(&read.config).await;
    read.refuse(&refused);
    let filter = log.or(read.config.log.as_deref()).unwrap_or(LOG);
    if let Err(error) = telemetry.set_filter(filter) {
        tracing::error!(error, "the log level stays unchanged");
    }
    let (taken, left) = (read.taken.join(", "), read.left.join(", "));
    tracing::info!(taken, "the config file was reloaded");
    if !left.is_empty() {
        tracing::warn!(left, "these settings take effect at the next start");
    }
}

/// Starts the server. One that a window started makes way for it, and its windows follow to
/// this one.
async fn start(
    settings: &Settings,
    telemetry: &Telemetry,
    announce: &(dyn Fn(&str) -> std::io::Result<()> + Sync),
) -> Result<Server, StartError> {
    let (until, mut asked) = (Instant::now() + STOP_TIMEOUT, false);
    loop {
        match Server::start(settings.clone(), telemetry, announce).await {
            Err(StartError::Open(OpenError::InUse { path, process })) => {
                // A server of `serve` refuses to leave: then this one does not start.
                if let Some(channel) = connect_local(&settings.data).await {
                    let left = AdminClient::new(channel).leave(LeaveRequest {}).await;
                    asked |= left.is_ok();
                }
                if !asked || Instant::now() >= until {
                    return Err(StartError::Open(OpenError::InUse { path, process }));
                }
            }
            started => return started,
        }
    }
}

/// The line with the address of the server, in the format of the log.
fn listening(url: &str, format: LogFormat) -> String {
    let message = format!("listening on {url}");
    match format {
        LogFormat::Text => message,
        LogFormat::Json => serde_json::json!({
            "timestamp": SystemClock.now().to_string(),
            "level": "INFO",
            "fields": {"message": message},
            "target": module_path!(),
        })
        .to_string(),
    }
}
