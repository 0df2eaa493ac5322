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
mod plain;
mod questions;
mod rounds;

use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;

use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use fixtures::Fixtures;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .map_or(0, |port| port.parse().expect("a port"));
    let handler = Fixtures::new(plain::Plain);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*"])
        .enforce_origin_validation();
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::<LocalSessionManager>::default(),
        config,
    );
    let app = axum::Router::new().route_service("/mcp", service);

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    tokio::select! {
        served = async { axum::serve(listener, app).await } => served,
        () = told_to_stop() => Ok(()),
    }
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
