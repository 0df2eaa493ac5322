//! The `repertoire` binary.

use std::process::ExitCode;

use cli::{Cli, run};
use server::learning;

/// glibc keeps what many threads once needed: after importing thousands of real skills it
/// held three times the memory of jemalloc, whose settings are in `.cargo/config.toml`
/// (docs/performance.md).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Before anything else: the child that runs solutions has no use for the rest.
    learning::child().unwrap_or_else(|| run(Cli::read()))
}
