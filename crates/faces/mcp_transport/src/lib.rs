//! The layer between messages of MCP and the library that speaks it: streamable HTTP, and lines
//! over stdin and stdout.
//!
//! Rules:
//!
//! * A message means one thing: JSON with a key twice, parameters of another form and lines
//!   without an end are answered before the library sees them (`strict`).
//! * A session lives as long as its client sends something, and belongs to the caller that began it
//!   (`sessions`).
//! * A long text is written into an answer once, after the library has written the rest
//!   (`deferred`).
//!
//! Not here: tools, resources and prompts, and who may call (the server).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod deferred;
mod http;
mod sessions;
mod stdio;
mod strict;

pub use deferred::{DeferredBody, NoPlace};
pub use http::{HttpService, http_service};
pub use sessions::{SessionRequest, Sessions};
pub use stdio::{StdioError, serve_stdio};
pub use strict::{Checked, MessageKind, check, unknown};
