//! The contract on other faces: messages as JSON, as JSON Schema, routes as an
//! `OpenAPI` document, and calls by JSON through the same stack that a gRPC client calls.
//!
//! Rules:
//!
//! * Field names as in the proto files; enums as their short lower-case name;
//!   times as RFC 3339; `Struct` as plain JSON; 64-bit integers as numbers; bytes
//!   as base64; absent optional fields left out, all others always there. Unknown
//!   keys are refused by name.
//! * No message, method or tool is named here: additions to the contract need
//!   no code. The descriptors are handed in ([`Contract::read_set`]); no generated
//!   message is known.
//! * A call goes through a [`Transport`]: in process through the call layer, or to
//!   another server over a channel. A refused call gives a [`Refusal`],
//!   wherever it was refused. Problems that the gateway finds itself are failures of `model`,
//!   with the codes of the one table.
//!
//! Not here: what a face does with the JSON (`mcp`, `rest`), the generated messages, the
//! rules that requests are checked against and failures as statuses (`contract`), what
//! the calls do (`grpc`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod answer;
mod call;
mod codec;
mod comment;
mod components;
mod context;
mod document;
mod json;
mod method;
mod parse;
mod refusal;
mod schema;
mod shape;
mod strict;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod tool;
pub mod values;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use serde_json::Value as Json;

pub use answer::{Block, JsonText, ToolAnswer};
pub use call::{
    Answer, Ask, Gateway, MAX_JSON_BYTES, MAX_MESSAGE_BYTES, OnProgress, Transport, TransportError,
};
pub use context::{Context, FOR_MODEL, INDEX_VERSION, SESSION_REMEMBERED};
pub use json::escape;
pub use method::{Method, Route, RouteBody};
pub use refusal::{Refusal, grpc_code};
pub use strict::strict_json;
pub use template::{Segment, Template, TemplateError, UrlPath, Variable, decode_part};
pub use text::Parts;
pub use tool::{Hints, Tool};

use shape::Shape;

/// The descriptors of a contract, prepared for the faces. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Contract {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: DescriptorPool,
    shapes: Vec<Shape>,
    /// Indexes of the shapes, by full name.
    places: HashMap<String, usize>,
    methods: Vec<Arc<Method>>,
}

/// A contract cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The descriptor set is not whole.
    #[error("the contract's descriptors: {0}")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// The contract has no such message or option.
    #[error("the contract has no `{0}`")]
    Unknown(String),
    /// The bytes are not such a message.
    #[error("the message: {0}")]
    Decode(#[from] prost::DecodeError),
    /// The bytes are not such a message.
    #[error("the message {0}")]
    Malformed(&'static str),
}

impl Contract {
    /// The contract of a `google.protobuf.FileDescriptorSet`, with its comments.
    ///
    /// # Errors
    /// The set is not whole, or lacks the options of `repertoire/v1/options.proto`.
    pub fn read_set(descriptors: &[u8]) -> Result<Self, Error> {
        let pool = DescriptorPool::decode(descriptors)?;
        let comments = comment::Comments::read(&pool);
        let options = shape::FieldOptions::new(&pool)?;
        let messages = pool.all_messages().enumerate();
        let places = messages
            .map(|(at, message)| (message.full_name().to_owned(), at))
            .collect();
        let shapes = pool
            .all_messages()
            .map(|message| options.shape(&message, &comments, &places))
            .collect();
        let methods = method::methods(&pool, &comments)?;
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                shapes,
                places,
                methods: methods.into_iter().map(Arc::new).collect(),
            }),
        })
    }

    /// The rpcs, in the order of the proto files.
    #[must_use]
    pub fn methods(&self) -> &[Arc<Method>] {
        &self.inner.methods
    }

    /// The sets that tools belong to, with how many tools each has.
    #[must_use]
    pub fn toolsets(&self) -> BTreeMap<String, usize> {
        let mut sets = BTreeMap::new();
        let tools = self.methods().iter().flat_map(|method| &method.tools);
        for set in tools.flat_map(|tool| &tool.toolsets) {
            *sets.entry(set.clone()).or_default() += 1;
        }
        sets
    }

    /// The tools of a set; `None` is all there are. Empty where there is no such
    /// set.
    #[must_use]
    pub fn tools(&self, toolset: Option<&str>) -> Vec<Arc<Tool>> {
        tool::toolset(self, toolset)
    }

    /// A message of the contract as JSON; `name` is its name in the package.
    ///
    /// # Errors
    /// The contract has no such message.
    pub fn json(&self, name: &str, message: &impl Message) -> Result<Json, Error> {
        let full = format!("repertoire.v1.{name}");
        self.json_of(self.known(&full)?, &message.encode_to_vec())
    }

    fn shape(&self, message: &MessageDescriptor) -> Option<&Shape> {
        self.known(message.full_name()).ok()
    }

    fn known(&self, full_name: &str) -> Result<&Shape, Error> {
        let at = self.inner.places.get(full_name);
        let shape = at.and_then(|at| self.inner.shapes.get(*at));
        shape.ok_or_else(|| Error::Unknown(full_name.to_owned()))
    }

    /// Returns the JSON names of some fields of a message; of all where none is named.
    fn field_names(&self, message: &MessageDescriptor, named: &[String]) -> Vec<String> {
        let fields = self.shape(message).map(|shape| &*shape.fields);
        fields
            .unwrap_or_default()
            .iter()
            .filter(|field| named.is_empty() || named.iter().any(|n| n == field.descriptor.name()))
            .map(|field| field.json.clone())
            .collect()
    }
}
