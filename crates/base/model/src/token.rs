//! Opaque tokens: the position from which a caller continues.
//!
//! A token is bound to a purpose and a query: one of another query or purpose, or
//! one that was changed, is refused. It holds no secret and
//! grants nothing, so the check is a plain hash; it outlives restarts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

const CHECK_BYTES: usize = 8;
/// The first byte of a token: a letter in base64, so that a command line does not take the
/// token for a flag.
const PREFIX_BYTE: u8 = 1;

fn check(purpose: &str, binding: &str, position: &str) -> [u8; CHECK_BYTES] {
    let mut hash = Sha256::new();
    for part in [purpose, binding, position] {
        // With lengths, or the parts `ab`, `c` and `a`, `bc` would have the same check.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut check = [0; CHECK_BYTES];
    for (byte, hash) in check.iter_mut().zip(hash.finalize()) {
        *byte = hash;
    }
    check
}

/// Makes a token for a position in the answer to a query.
#[must_use]
pub fn seal_token(purpose: &str, binding: &str, position: &str) -> String {
    let check = check(purpose, binding, position);
    let bytes = [&[PREFIX_BYTE], &check[..], position.as_bytes()].concat();
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of a token; none where it is not of this purpose and query.
#[must_use]
pub fn open_token(purpose: &str, binding: &str, token: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (found, position) = bytes
        .strip_prefix(&[PREFIX_BYTE])?
        .split_at_checked(CHECK_BYTES)?;
    let position = std::str::from_utf8(position).ok()?;
    (found == check(purpose, binding, position)).then(|| position.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_opens_for_its_own_query_only(
            binding in ".{0,20}", other in ".{0,20}", position in ".{0,40}", at: prop::sample::Index, flip in 1_u8..128,
        ) {
            let token = seal_token("page", &binding, &position);
            // A command line would take it for a flag.
            prop_assert!(token.starts_with(|first: char| first.is_ascii_alphanumeric()));
            let opened = open_token("page", &binding, &token);
            prop_assert_eq!(opened.as_deref(), Some(position.as_str()));
            prop_assert_eq!(open_token("resume", &binding, &token), None);
            if other != binding {
                prop_assert_eq!(open_token("page", &other, &token), None);
            }
            let mut bytes = token.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let forged = String::from_utf8_lossy(&bytes).into_owned();
            prop_assert_eq!(open_token("page", &binding, &forged), None);
        }

        #[test]
        fn any_text_is_a_token_or_none(text in ".{0,80}") {
            prop_assert_eq!(open_token("page", "", &text), None);
        }
    }
}
