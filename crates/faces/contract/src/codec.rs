//! The codec that refuses a request which breaks its rules, or which its caller may not make.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

use super::Checked;
use super::access::{CodecHooks, codec_hooks};
use super::status::{invalid, status};
use model::{Code, Failure};

/// Bytes of the buffer that each request gets before any of it is there; it grows with
/// what comes. Most requests are smaller, and the allocator always has a block of this size:
/// tonic's own 8 KiB took 8 % of the server's time while agents began sessions, which fragment
/// the memory.
const REQUEST_BYTES: usize = 512;

/// Protobuf, with requests checked as soon as they are decoded.
#[derive(Debug)]
pub struct CheckedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for CheckedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for CheckedCodec<T, U>
where
    T: Message + Checked + Send + 'static,
    U: Message + Default + Checked + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = NotedEncoder<T>;
    type Decoder = CheckedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        NotedEncoder {
            inner: ProstEncoder::default(),
            noted: codec_hooks().noted,
        }
    }

    fn decoder(&mut self) -> Self::Decoder {
        CheckedDecoder {
            inner: ProstDecoder::default(),
            hooks: U::REQUEST.then(codec_hooks).unwrap_or_default(),
        }
    }
}

/// Decodes a message and, where it is a request, checks it.
pub struct CheckedDecoder<U> {
    inner: ProstDecoder<U>,
    hooks: CodecHooks,
}

/// Encodes a message and, where it answers one of a stream that is recorded, notes it.
pub struct NotedEncoder<T> {
    inner: ProstEncoder<T>,
    noted: Option<audit::Noted>,
}

impl<T: Message + Checked> Encoder for NotedEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        if let Some(noted) = &self.noted
            && let Some(code) = message.item()
        {
            noted.item(code);
        }
        self.inner.encode(message, buf)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.inner.buffer_settings()
    }
}

impl<U: Message + Default + Checked> Decoder for CheckedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let decoded = self.inner.decode(buf);
        // An answer that cannot be read is the fault of the server that sent it: tonic's own status
        // stays.
        let decoded = if U::REQUEST {
            decoded.map_err(|error| status(unreadable(error.message())))
        } else {
            decoded
        };
        let Some(message) = decoded? else {
            return Ok(None);
        };
        if U::REQUEST {
            let mut violations = Vec::new();
            message.check(&mut violations);
            if !violations.is_empty() {
                return Err(status(invalid(violations)));
            }
            // Recorded before the authorizer decides: the trail also says to which skill a call was
            // refused.
            let mut names = Vec::new();
            if let Some(noted) = &self.hooks.noted
                && message.names(&mut names)
            {
                noted.names(names.iter().map(AsRef::as_ref));
            }
            if let Some(authorizer) = &self.hooks.authorizer {
                message.authorize(&**authorizer).map_err(status)?;
            }
        }
        Ok(Some(message))
    }

    fn buffer_settings(&self) -> BufferSettings {
        if U::REQUEST {
            // The second number, the threshold for flushing, concerns encoders only.
            BufferSettings::new(REQUEST_BYTES, REQUEST_BYTES)
        } else {
            BufferSettings::default()
        }
    }
}

/// Builds the failure for a message that is not the one that the rpc takes.
fn unreadable(why: &str) -> Failure {
    Failure::new(
        Code::InvalidParameter,
        format!("The request cannot be read: {why}"),
    )
    .suggest("Send the message that the rpc takes; reflection and the proto files describe it")
}
