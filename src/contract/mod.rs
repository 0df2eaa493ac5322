//! The generated contract: messages, services, descriptors, and their rules.
//!
//! Everything here comes from `proto/repertoire/v1`. A request is checked
//! against its `buf.validate` rules ([`Checked`]) once, where it is decoded, so no
//! handler sees one that breaks them. A failure becomes a status in one place ([`status()`]).
//!
//! Not here: what the calls do (`grpc`).

mod check;
mod codec;
mod status;

pub use check::{Checked, Violation};
pub use codec::CheckedCodec;
pub use status::{DOMAIN, invalid, refusal, status};

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
