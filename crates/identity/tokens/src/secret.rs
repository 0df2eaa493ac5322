//! The text of a token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use model::Digest;

/// What the text of each token begins with, so that scanners for secrets know it.
pub const PREFIX: &str = "rpt_";
/// Random bytes of a token.
const BYTES: usize = 32;

/// The text of a token: `rpt_` and 43 characters of base64. Shown by [`Secret::reveal`] alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; BYTES]);

impl Secret {
    /// A new one, of random bytes.
    #[must_use]
    pub const fn new(random: [u8; BYTES]) -> Self {
        Self(random)
    }

    /// Reads a text; none where it is not the text of a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(PREFIX)?;
        // Whatever else is sent is decoded no further than this.
        if text.len() != 43 {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// The text, for the one who asked for the token.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }

    /// What is kept of it.
    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
