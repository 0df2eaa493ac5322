//! Skills as MCP knows them: the contract's calls as tools, and skills as
//! resources, as prompts and by the Skills extension (SEP-2640).
//!
//! Rules:
//!
//! * No tool is named here but in the sentences that a model reads first: tools,
//!   schemas and descriptions come from the contract, and calls go through the
//!   gateway, in process or to another server.
//! * Both eras are served: sessions that begin with `initialize` (2024-11-05 to
//!   2025-11-25), and requests that carry their version (2026-07-28).
//! * A refusal is a tool result with `isError`, which a model can act on; a fault
//!   is a protocol error. For resources and prompts, which have no such result, a
//!   refusal is a protocol error with its code in `data`.
//! * Changes come from the event log and are announced in both eras; many at once
//!   are announced as one.
//!
//! Not here: what a call does, JSON and schemas (`gateway`), how messages come and go
//! (`mcp_transport`), the port (`server`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod changes;
mod complete;
mod error;
mod gated;
mod handler;
mod prompts;
mod resources;
mod skills;
mod tools;

pub use handler::{Handler, McpServer};
