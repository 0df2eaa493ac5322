//! Real Git over real transports, on loopback.

mod fetch;
mod hostile;
mod server;
mod ssh;
mod support;
mod trees;
