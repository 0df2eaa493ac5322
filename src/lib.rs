//! Repertoire keeps an organisation's agent skills and serves them to any agent.
//!
//! The rooms, from the words of the domain to what a person touches; each may use
//! those above it (ARCHITECTURE.md has the map, `tests/rooms.rs` holds it):
//!
//! 1. [`model`]: the words.
//! 2. [`skill_md`]: text to skill.
//! 3. [`store`]: the data directory.
//! 4. [`registry`]: skills and their versions.
//! 5. [`lookup`]: finding them and handing them out.
//! 6. [`composition`]: what several permit together.
//! 7. [`tools`]: the tools that skills unlock.
//! 8. [`contract`], [`grpc`], [`gateway`], [`mcp`], [`mod@http`]: the wire and the faces.
//! 9. [`admission`]: how much of the server a peer may have at once.
//! 10. [`server`], [`cli`]: what runs.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod admission;
pub mod cli;
pub mod composition;
pub mod contract;
pub mod executor;
pub mod gateway;
pub mod grpc;
pub mod http;
pub mod lookup;
pub mod mcp;
pub mod model;
pub mod registry;
pub mod server;
pub mod skill_md;
pub mod store;
pub mod tools;

#[cfg(test)]
mod tests;
