//! Repertoire keeps an organisation's agent skills and serves them to any agent.
//!
//! What the calls do is in the crates below `crates/`, from the words of the domain
//! (`model`) to what an agent may call (`tools`); ARCHITECTURE.md has the map. Here is what
//! the server says and to whom:
//!
//! * [`contract`], [`grpc`]: the wire.
//! * [`mcp`], [`mod@http`]: faces that are rendered from the contract, by `gateway`.
//! * [`server`], [`cli`]: what runs.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod cli;
pub mod contract;
pub mod grpc;
pub mod http;
pub mod mcp;
pub mod server;
