//! The server as its callers know it: its services, in this process and behind the real
//! program's ports.
//!
//! One program for all of them, as `program` and `durability` are: each that is linked by
//! itself costs seconds and 130 MB.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod agent;
mod audit;
mod blocklist;
mod checks;
mod composition;
mod corpus_import;
mod corpus_reading;
mod discovery;
mod growth;
mod http;
mod installed;
mod learning;
mod mcp;
mod oidc;
mod otlp;
mod relevance;
mod server;
mod short_names;
mod stalls;
mod sync;
mod trust;
mod work;
