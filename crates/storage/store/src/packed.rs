//! A value of a record that is packed, for large ones whose parts are alike.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The fastest that zstd has: a higher level saves little more.
const COMPRESSION_LEVEL: i32 = 1;
/// Bytes of a value at most, when it is unpacked. A full page of sessions has some
/// dozens of kibibytes, and one with the largest session a hundred more.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A packed value: zstd of JSON, as base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Packed(String);

/// Packs values one after the other, in the same memory.
pub struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> std::io::Result<Self> {
        zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map(Self)
    }

    /// Takes some tens of microseconds for some dozens of kibibytes.
    ///
    /// # Errors
    /// It is no JSON, it is too large to be unpacked again, or there is no memory for it.
    pub fn pack<T: Serialize>(&mut self, value: &T) -> std::io::Result<Packed> {
        let text = serde_json::to_vec(value)?;
        if text.len() > MAX_BYTES {
            let size = text.len();
            return Err(std::io::Error::other(format!(
                "{size} bytes are more than the {MAX_BYTES} that a packed value may have"
            )));
        }
        Ok(Packed(STANDARD.encode(self.0.compress(&text)?)))
    }
}

impl Packed {
    /// Unpacks the value.
    ///
    /// # Errors
    /// It is damaged.
    pub fn unpack<T: DeserializeOwned>(&self) -> std::io::Result<T> {
        let packed = STANDARD.decode(&self.0).map_err(std::io::Error::other)?;
        // The bound holds against a damaged record that would unpack to much more.
        let text = zstd::bulk::decompress(&packed, MAX_BYTES)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_packed_and_unpacked_and_none_is_larger_than_the_largest() {
        let mut packer = Packer::new().expect("a packer");
        let largest = "a".repeat(MAX_BYTES - 2);
        for value in ["", "a page", &"alike, alike. ".repeat(10_000), &largest] {
            let small = packer.pack(&value).expect("packed");
            assert_eq!(small.unpack::<String>().expect("unpacked"), value);
            assert!(small.0.len() < 100 + value.len() / 20, "{}", small.0.len());
        }
        let refusal = packer.pack(&(largest + "a")).expect_err("it is too large");
        assert_eq!(
            refusal.to_string(),
            "4194305 bytes are more than the 4194304 that a packed value may have"
        );
    }

    #[test]
    fn more_than_the_largest_is_not_unpacked() {
        let text = format!("\"{}\"", "a".repeat(MAX_BYTES));
        let bomb = zstd::bulk::compress(text.as_bytes(), COMPRESSION_LEVEL).expect("packed");
        let bomb = Packed(STANDARD.encode(bomb));
        bomb.unpack::<String>().expect_err("it is too large");
    }

    #[test]
    fn what_is_no_packed_value_is_refused() {
        for damaged in ["", "no base64!", "AAAA"] {
            let packed = Packed(damaged.to_owned());
            packed.unpack::<String>().expect_err(damaged);
        }
    }
}
