//! From a command to the services: over the network, or in process.

use std::time::Duration;

use http::Request;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::args::Global;
use super::output::{self, Failed, open_code, registry_code};
use crate::contract::v1::composition_client::CompositionClient;
use crate::contract::v1::lookup_client::LookupClient;
use crate::contract::v1::registry_client::RegistryClient;
use crate::gateway::{MAX_MESSAGE_BYTES, Transport, TransportError};
use crate::server::{Config, Domain, Settings, StartError, connect_local};
use model::Code;
use store::OpenError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The services, wherever they are.
pub(super) struct Client {
    /// What the calls go through.
    pub(super) transport: Transport,
    domain: Option<Domain>,
}

impl Client {
    pub(super) fn registry(&self) -> RegistryClient<Transport> {
        RegistryClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn lookup(&self) -> LookupClient<Transport> {
        LookupClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn composition(&self) -> CompositionClient<Transport> {
        CompositionClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Keeps the search index in step, where the services are in process: a server
    /// sees to that itself.
    pub(super) async fn follow(&self) {
        if let Some(domain) = &self.domain {
            domain.follow().await;
        }
    }

    /// The same, and waits until all skills can be found.
    pub(super) async fn index(&self) {
        if let Some(domain) = &self.domain {
            index(domain).await;
        }
    }

    /// Writes what waits, where the services are in process.
    pub(super) async fn close(self) {
        if let Some(domain) = self.domain {
            domain.close().await;
        }
    }
}

/// Brings the search index of services in process up to date, and says how far it is.
pub(super) async fn index(domain: &Domain) {
    domain.follow().await;
    let index = domain.search();
    let skills = domain.registry().catalog().live() as u64;
    let bar = output::bar(skills, "skills indexed");
    let mut every = tokio::time::interval(Duration::from_millis(100));
    let complete = index.complete();
    tokio::pin!(complete);
    loop {
        tokio::select! {
            () = &mut complete => break,
            _ = every.tick() => {
                let progress = index.progress();
                bar.set_position(progress.indexed.saturating_sub(progress.without_vector) as u64);
            }
        }
    }
    bar.finish_and_clear();
}

async fn remote(url: &str) -> Result<Client, Failed> {
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| {
        Failed::new(
            Code::InvalidParameter,
            format!("'{url}' is not the address of a server: {error}"),
        )
        .hint("write it as http://HOST:PORT")
    })?;
    let channel = endpoint.connect_timeout(CONNECT_TIMEOUT).connect().await;
    let channel = channel.map_err(|error| {
        let cause = std::error::Error::source(&error)
            .map(ToString::to_string)
            .unwrap_or_default();
        Failed::new(
            Code::ServerUnreachable,
            format!("no server answers at {url} ({cause})"),
        )
        .hint("start one with `repertoire serve`, or name another with --server")
    })?;
    Ok(over(channel))
}

fn over(channel: Channel) -> Client {
    let transport = channel
        .map_request(|request: Request<Body>| request)
        .map_err(|error| TransportError::from(BoxError::from(error)));
    Client {
        transport: BoxCloneSyncService::new(transport),
        domain: None,
    }
}

/// The settings of a command: the config file under the flags.
pub(super) fn settings(global: &Global, config: &Config) -> Settings {
    let mut settings = Settings::new(config);
    if let Some(data) = &global.data {
        settings.data.clone_from(data);
    }
    settings
}

/// An error of starting, with what to do next.
pub(super) fn start_failed(error: &StartError) -> Failed {
    let code = match error {
        StartError::Open(error) => open_code(error),
        StartError::Registry(error) => registry_code(error),
        StartError::Listen { .. } => Code::AddressUnusable,
        StartError::Tools(_) | StartError::Embedder(_) => Code::ConfigInvalid,
        StartError::Reflection(_) | StartError::Contract(_) | StartError::Route(_) => {
            Code::InternalError
        }
    };
    let failed = Failed::new(code, error.to_string());
    match error {
        StartError::Listen { .. } => {
            failed.hint("name another address with --listen; port 0 takes a free one")
        }
        StartError::Open(OpenError::NotOurs { .. }) => {
            failed.hint("name another directory with --data; an empty or new one will do")
        }
        _ => failed,
    }
}

/// The services: of the server that is named, else of the one that has the data
/// directory open, else in process over the directory.
pub(super) async fn connect(global: &Global, config: &Config) -> Result<Client, Failed> {
    if let Some(url) = &global.server {
        return remote(url).await;
    }
    let settings = settings(global, config);
    if let Some(channel) = connect_local(&settings.data).await {
        return Ok(over(channel));
    }
    let mut settings = settings;
    if settings.analysis.roots.is_empty() {
        // Whoever starts this in a folder lets it read there.
        settings.analysis.roots.extend(std::env::current_dir().ok());
    }
    let domain = Domain::open(&settings)
        .await
        .map_err(|error| start_failed(&error))?;
    Ok(Client {
        transport: domain.transport(&settings.limits),
        domain: Some(domain),
    })
}
