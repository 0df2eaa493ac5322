//! Content identity: SHA-256 of raw bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::FilePath;

/// A SHA-256. Written `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes of the digest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hex digits, without the algorithm.
    #[must_use]
    pub fn hex(&self) -> String {
        String::from_utf8_lossy(&self.digits()).into_owned()
    }

    /// The digits as ASCII. Answers are full of digests, so the loop has no branch and can be
    /// vectorized.
    fn digits(&self) -> [u8; 64] {
        let digit = |half: u8| half + if half < 10 { b'0' } else { b'a' - 10 };
        let mut digits = [0; 64];
        let (pairs, _) = digits.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        digits
    }
}

/// The digest of a set of files: SHA-256 over `path NUL hex-digest LF` for each
/// file, in the order of the paths' bytes.
///
/// The order in which the files are given does not matter.
#[must_use]
pub fn bundle_digest<'a>(files: impl IntoIterator<Item = (&'a FilePath, Digest)>) -> Digest {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort();
    let mut hash = Sha256::new();
    for (path, digest) in files {
        hash.update(path.as_str());
        hash.update([0]);
        hash.update(digest.hex());
        // A path holds no line feed, so no two lists of files come to the same bytes.
        hash.update([b'\n']);
    }
    Digest(hash.finalize().into())
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(str::from_utf8(&self.digits()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: write `sha256:` and 64 hex digits")]
pub struct DigestError(String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || DigestError(super::shown(text, 80));
        let hex = text.strip_prefix("sha256:").ok_or_else(wrong)?;
        // Checked before it is parsed, since `from_str_radix` takes a sign: `+f` would be a
        // byte.
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_what_it_writes() {
        let digest = Digest::of(b"skill");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(
            Digest::of(b"").to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn a_bundle_digest_does_not_depend_on_the_order_and_does_on_every_path_and_byte() {
        let a: FilePath = "a.md".parse().expect("a path");
        let b: FilePath = "b.md".parse().expect("a path");
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let digest = bundle_digest([(&a, one), (&b, two)]);
        assert_eq!(bundle_digest([(&b, two), (&a, one)]), digest);
        assert_ne!(bundle_digest([(&a, two), (&b, one)]), digest);
        assert_ne!(bundle_digest([(&a, one)]), digest);
    }
}
