//! A server for the MCP conformance suite: the product's handler behind the
//! product's HTTP settings, with the fixtures that the suite's scenarios ask for.
//!
//!     cargo run --example conformance [PORT]
//!
//! The first line on stderr names the address. The data directory is a temporary
//! one. It stops when its standard input closes, or on SIGTERM.

mod answers;
mod catalog;
mod fixtures;
mod questions;
mod rounds;

use std::error::Error;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;

use gateway::Gateway;
use mcp::McpServer;
use mcp_transport::{Sessions, http_service};
use server::{Config, Domain, Settings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use fixtures::{Fixtures, Shared};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let data = tempfile::tempdir()?;
    let mut settings = Settings::new(&Config::default());
    settings.data = data.path().join("data");
    let domain = Domain::open(&settings).await?;

    let transport = domain.transport(&settings.config.limits);
    let gateway = Gateway::new(contract::load()?, transport.clone());
    let make = McpServer::new(gateway, transport)
        .handlers(None)
        .ok_or("the contract has no tools")?;
    let shared = Shared::new();
    let handler = move || Fixtures::new(make(), &shared);
    let sessions = Arc::new(Sessions::new(std::time::Duration::from_secs(3600)));
    let stop = CancellationToken::new();
    let service = http_service(handler, sessions, stop.clone());
    let routes = axum::Router::new().route_service("/mcp", service);
    let routes = server::guard(settings.config.web, routes);

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    tokio::select! {
        served = async { axum::serve(listener, routes).await } => served?,
        () = told_to_stop() => stop.cancel(),
    }
    domain.close().await;
    Ok(())
}

/// Whoever started this closed the pipe, or sent SIGTERM.
async fn told_to_stop() {
    let (closed, stdin) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin();
        while matches!(stdin.read(&mut [0; 64]), Ok(1..)) {}
        drop(closed);
    });
    let mut terminated = signal(SignalKind::terminate()).expect("a signal handler");
    tokio::select! {
        _ = stdin => {}
        _ = terminated.recv() => {}
    }
}
