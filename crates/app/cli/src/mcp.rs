//! `repertoire mcp`.

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::connect::Client;
use super::output::{Done, Failed};
use super::serve::StopSignals;
use gateway::Gateway;
use mcp::McpServer;
use mcp_transport::serve_stdio;
use model::Code;

/// The name of no toolset: all tools.
const ALL: &str = "all";

const MCP_EXAMPLES: &str = "\
Examples:
  claude mcp add repertoire -- repertoire mcp
  repertoire mcp --toolset all                             every tool there is
  repertoire mcp --server http://skills.internal:50051     the bridge to a running server

Without --server all windows on a data directory share one server, which the first one
starts, and each sees the skills around it: those of its folder and of the home. A running server also speaks MCP over HTTP, at /mcp and /mcp/TOOLSET.";

#[derive(Debug, Args)]
#[command(after_help = MCP_EXAMPLES)]
pub(super) struct Mcp {
    /// The tools of this set, such as `skills` or `discovery-core`; `all` are all there are.
    #[arg(
        long,
        env = "REPERTOIRE_TOOLSET",
        value_name = "NAME",
        default_value = "agent"
    )]
    pub(super) toolset: String,
    /// Leave out the skills of the folders around the agent: `.claude/skills`, `.agents/skills`
    /// and their like, of the current folder and of the home.
    #[arg(long, env = "REPERTOIRE_NO_LOCAL")]
    pub(super) no_local: bool,
}

pub(super) async fn mcp(client: &Client, options: &Mcp) -> Done {
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
    let (mut signals, signalled) = (StopSignals::new()?, stop.clone());
    tokio::spawn(async move {
        signals.recv().await;
        signalled.cancel();
    });
    serve_stdio(make(), stop).await.map_err(Failed::fault)
}
