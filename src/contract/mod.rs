//! The generated contract: messages, services, descriptors, and their rules.
//!
//! Everything here comes from `proto/repertoire/v1`. A request is checked
//! against its `buf.validate` rules ([`Checked`]) once, where it is decoded, so no
//! handler sees one that breaks them. A failure becomes a status in one place ([`status()`]).
//!
//! Not here: what the calls do (`grpc`).

mod check;
mod codec;
pub mod json;
mod status;

use prost::Message as _;

pub use check::{Checked, Violation};
pub use codec::CheckedCodec;
pub use status::{DOMAIN, invalid, refusal, status};

/// What a call says in its metadata where a model reads the answer: it is not told unasked
/// of skills whose authors leave them to people.
pub const FOR_MODEL: &str = "for-model";

/// What a call says in its metadata where the caller need not be told which session of
/// loaded skills it is in, since its connection remembers.
pub const SESSION_REMEMBERED: &str = "session-remembered";

/// What an answer that was found in the index says in its metadata: the state of the index,
/// `LOG-POSITION`. It changes with every publish, and with a restore of an older backup.
pub const INDEX_VERSION: &str = "index-version";

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

/// A service of a contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Its name with its package, as it stands in the path of a call.
    pub name: String,
    /// Its rpcs.
    pub methods: Vec<prost_types::MethodDescriptorProto>,
}

/// The services of a `google.protobuf.FileDescriptorSet`: whatever lists services or rpcs
/// reads them here.
///
/// # Panics
/// The set cannot be decoded: a server without a service would seem to be well.
#[must_use]
#[expect(clippy::expect_used, reason = "descriptors are what the build wrote")]
pub fn services(descriptors: &[u8]) -> Vec<Service> {
    let set = prost_types::FileDescriptorSet::decode(descriptors).expect("descriptors");
    let files = set.file.into_iter();
    files
        .flat_map(|file| {
            let package = file.package.unwrap_or_default();
            file.service.into_iter().map(move |service| Service {
                name: format!("{package}.{}", service.name()),
                methods: service.method,
            })
        })
        .collect()
}

/// The compiled descriptors of the contract, with the comments of the proto
/// files.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contract.bin"));
