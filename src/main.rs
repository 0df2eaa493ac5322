//! The `repertoire` binary.

use std::process::ExitCode;

use clap::Parser as _;
use repertoire::cli::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse())
}
