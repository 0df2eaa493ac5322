//! The text of a token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use model::Digest;

/// The prefix of each token's text, by which scanners for secrets recognize it.
pub const PREFIX: &str = "rpt_";
/// The random bytes of a token.
const BYTES: usize = 32;

/// The text of a token: `rpt_` and 43 characters of base64. Shown by [`Secret::reveal`] alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; BYTES]);

impl Secret {
    /// Makes a secret of random bytes.
    #[must_use]
    pub const fn new(random: [u8; BYTES]) -> Self {
        Self(random)
    }

    /// Reads a text; none where it is not the text of a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(PREFIX)?;
        // 32 bytes are 43 characters of base64. Without this check a header of any length would be
        // decoded. Each secret has one text: the engine refuses stray bits in the last character.
        if text.len() != 43 {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Returns the text, for the caller that asked for the token.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }

    /// Returns the digest that is stored.
    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By hand: a derived `Debug` would put the bytes into logs and panics.
        f.write_str("Secret(…)")
    }
}
