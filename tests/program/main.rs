//! The program as who runs it knows it: its command line, its config, how it is set up, its TLS.

#[path = "../support/mod.rs"]
mod support;

mod author;
mod cli;
mod config;
mod format;
mod install;
mod lying_server;
mod machine;
#[cfg(target_os = "linux")]
mod release;
mod setup;
mod terminal;
mod tls;
mod tls_server;
