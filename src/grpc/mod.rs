//! gRPC.
mod codec;
pub use codec::CheckedCodec;
