//! Verifies tokens.

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;

use crate::Refused;
use crate::claims::Claims;
use crate::keys::{Key, Keys, MAX_KID};

/// The most characters of a token: an HTTP header may have little more.
pub(crate) const MAX_TOKEN: usize = 12 * 1024;
/// Accepted values of `typ` (RFC 9068 and 7519); that of a logout token, for one, is none of these.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// The claims of a token about itself, before it is verified.
pub(crate) struct UnverifiedToken {
    pub(crate) issuer: String,
    pub(crate) kid: Option<String>,
    pub(crate) algorithm: Algorithm,
}

#[derive(Deserialize)]
struct Peek {
    iss: String,
}

/// Tells whether a text has the form of a JWT: other tokens have no dots.
pub(crate) fn is_jwt(text: &str) -> bool {
    // `ey` is how base64url writes `{"`, with which every header begins.
    text.starts_with("ey") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Reads a token without verifying it.
///
/// # Errors
/// It cannot be read, or cannot be accepted with any signature.
pub(crate) fn peek(token: &str) -> Result<UnverifiedToken, Refused> {
    if token.len() > MAX_TOKEN {
        return Err(Refused::TooLong(MAX_TOKEN));
    }
    let header = decode_header(token).map_err(|_| Refused::Form)?;
    let Header {
        alg,
        typ,
        crit,
        kid,
        ..
    } = header;
    // RFC 7515, 4.1.11: extensions that the reader must understand, and this one knows none.
    if crit.is_some() {
        return Err(Refused::Critical);
    }
    if typ.is_some_and(|typ| !TYPES.contains(&typ.to_ascii_lowercase().as_str())) {
        return Err(Refused::Type);
    }
    // HMAC: whoever can verify such a token can also sign one.
    if matches!(alg, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
        return Err(Refused::Form);
    }
    if kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
        return Err(Refused::Key);
    }
    // The issuer chooses the keys that verify this very claim afterwards: a false one fails there.
    let Peek { iss } = insecure_decode_claims(token).map_err(|_| Refused::Form)?;
    Ok(UnverifiedToken {
        issuer: iss,
        kid,
        algorithm: alg,
    })
}

/// Verifies a token. Returns its claims and the key that has signed it.
///
/// # Errors
/// None has.
pub(crate) fn verified<'a>(
    token: &str,
    unverified: &UnverifiedToken,
    keys: &'a Keys,
) -> Result<(Claims, &'a Key), Refused> {
    let mut refused = Refused::Key;
    for key in keys.fitting(unverified.kid.as_deref(), unverified.algorithm) {
        let mut validation = Validation::new(unverified.algorithm);
        validation.set_issuer(&[&unverified.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // `claims` checks these: by the clock that is handed in, and by the paths of our address.
        validation.validate_exp = false;
        validation.validate_aud = false;
        match decode::<Claims>(token, &key.decoding, &validation) {
            Ok(decoded) => return Ok((decoded.claims, key)),
            Err(error) => refused = why(error.kind()),
        }
        // Only a wrong signature may be right by another key. Everything else is wrong with the
        // token.
        if refused != Refused::Signature {
            break;
        }
    }
    Err(refused)
}

fn why(kind: &ErrorKind) -> Refused {
    match kind {
        ErrorKind::InvalidSignature => Refused::Signature,
        ErrorKind::InvalidIssuer => Refused::Issuer,
        ErrorKind::MissingRequiredClaim(name) => match name.as_str() {
            "exp" => Refused::Claim("exp"),
            "iss" => Refused::Claim("iss"),
            _ => Refused::Audience,
        },
        _ => Refused::Form,
    }
}
