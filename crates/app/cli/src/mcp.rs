//! `repertoire mcp`.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::Mcp;
use super::connect::Client;
use super::output::Failed;
use gateway::Gateway;
use mcp::McpServer;
use mcp_transport::serve_stdio;
use model::Code;

/// The name of no toolset: all tools.
const ALL: &str = "all";

pub(super) async fn mcp(client: &mut Client, options: &Mcp) -> Result<ExitCode, Failed> {
    client.follow().await;
    let contract = contract::load().map_err(Failed::fault)?;
    let toolsets = contract.toolsets();
    let toolsets: Vec<_> = std::iter::once(ALL)
        .chain(toolsets.keys().map(String::as_str))
        .collect();
    let transport = client.transport.clone();
    let face = McpServer::new(Gateway::new(contract, transport.clone()), transport);
    let name = options.toolset.as_str();
    let toolset = Some(name).filter(|name| *name != ALL);
    let Some(make) = face.handlers(toolset) else {
        return Err(Failed::new(
            Code::InvalidParameter,
            format!("there is no toolset '{name}'"),
        )
        .hint(format!("the toolsets are {}", toolsets.join(", "))));
    };
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let signals = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        signals.cancel();
    });
    serve_stdio(make(), stop).await.map_err(Failed::fault)?;
    Ok(ExitCode::SUCCESS)
}
