//! The generated contract: messages, services, descriptors, and their rules.
//!
//! Everything here comes from `proto/repertoire/v1`. A request is checked
//! against its `buf.validate` rules ([`Checked`]) once, where it is decoded, so no
//! handler sees one that breaks them. A failure becomes a status in one place ([`status()`]).
//!
//! Not here: what the calls do (`grpc`), messages as JSON (the crate `gateway`, which reads
//! the descriptors and knows no message).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod access;
mod check;
mod codec;
pub mod handlers;
mod resources;
#[cfg(test)]
#[path = "../../../../build/resources.rs"]
mod resources_of_build;
mod status;

use std::sync::{LazyLock, OnceLock};

use prost::Message as _;

pub use access::{
    CodecHooks, access_of, action_from_wire, action_on_wire, actions, is_recorded, with_codec_hooks,
};
pub use check::{Checked, Violation};
pub use codec::CheckedCodec;
pub use gateway::{FOR_MODEL, INDEX_VERSION, SESSION_REMEMBERED, values as json};
pub use resources::NamedResource;
pub use status::{DOMAIN, invalid, outcome, refusal, status};

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
    /// Its name with its package, as in the path of a call.
    pub name: String,
    /// Its rpcs.
    pub methods: Vec<prost_types::MethodDescriptorProto>,
}

/// Returns the services of a `google.protobuf.FileDescriptorSet`, for everything that lists
/// services or rpcs.
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

/// The contract that this binary was built with, for the faces that are rendered from it.
///
/// # Errors
/// The descriptor set is not whole, which a test rules out.
pub fn load() -> Result<gateway::Contract, gateway::Error> {
    // Read once: several parts of a start need it. `OnceLock` cannot be filled by what may fail,
    // so two threads may both read it, and the first one wins.
    static LOADED: OnceLock<gateway::Contract> = OnceLock::new();
    if let Some(contract) = LOADED.get() {
        return Ok(contract.clone());
    }
    let contract = gateway::Contract::read_set(FILE_DESCRIPTOR_SET)?;
    Ok(LOADED.get_or_init(|| contract).clone())
}

/// The services of the contract that this binary was built with.
#[must_use]
pub fn own_services() -> &'static [Service] {
    static SERVICES: LazyLock<Vec<Service>> = LazyLock::new(|| services(FILE_DESCRIPTOR_SET));
    &SERVICES
}
