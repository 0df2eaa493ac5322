//! The generated contract: messages, services, descriptors, and their rules.
//!
//! Everything here comes from `proto/repertoire/v1`. A request is checked
//! against its `buf.validate` rules ([`Checked`]) once, where it is decoded, so no
//! handler sees one that breaks them.
//!
//! Not here: what the calls do (`grpc`), how failures are spelled (`grpc`).

mod check;

pub use check::{Checked, Violation};

/// Messages and services of `repertoire.v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated; the proto files hold the documentation"
)]
pub mod v1 {
    tonic::include_proto!("repertoire.v1");
}

/// The compiled descriptors of the contract, with the comments of the proto
/// files.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contract.bin"));
