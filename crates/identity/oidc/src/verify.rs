//! Whether a token is what it says.

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;

use crate::Refused;
use crate::claims::Claims;
use crate::keys::{Key, Keys, MAX_KID};

/// Characters of a token: a header of HTTP may have little more.
pub(crate) const MAX_TOKEN: usize = 12 * 1024;
/// What `typ` may be (RFC 9068 and 7519); a logout token, for one, is none of these.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// What a token says of itself, before anybody has checked it.
pub(crate) struct UnverifiedToken {
    pub(crate) issuer: String,
    pub(crate) kid: Option<String>,
    pub(crate) algorithm: Algorithm,
}

#[derive(Deserialize)]
struct Peek {
    iss: String,
}

/// A text is a JWT, rightly signed or not: other tokens have no dots.
pub(crate) fn is_jwt(text: &str) -> bool {
    text.starts_with("ey") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Reads what a token says of itself.
///
/// # Errors
/// It cannot be read, or not be accepted, whoever signed it.
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
    if crit.is_some() {
        return Err(Refused::Critical);
    }
    if typ.is_some_and(|typ| !TYPES.contains(&typ.to_ascii_lowercase().as_str())) {
        return Err(Refused::Type);
    }
    // A secret that two know is not what an issuer signs with.
    if matches!(alg, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
        return Err(Refused::Form);
    }
    if kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
        return Err(Refused::Key);
    }
    let Peek { iss } = insecure_decode_claims(token).map_err(|_| Refused::Form)?;
    Ok(UnverifiedToken {
        issuer: iss,
        kid,
        algorithm: alg,
    })
}

/// The claims of a token that one of the keys has signed, with that key.
///
/// # Errors
/// None has.
pub(crate) fn verified<'a>(
    token: &str,
    shown: &UnverifiedToken,
    keys: &'a Keys,
) -> Result<(Claims, &'a Key), Refused> {
    let mut refused = Refused::Key;
    for key in keys.fitting(shown.kid.as_deref(), shown.algorithm) {
        let mut validation = Validation::new(shown.algorithm);
        validation.set_issuer(&[&shown.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // By the clock that is handed in, and by what a server's address may be.
        validation.validate_exp = false;
        validation.validate_aud = false;
        match decode::<Claims>(token, &key.decoding, &validation) {
            Ok(decoded) => return Ok((decoded.claims, key)),
            Err(error) => refused = why(error.kind()),
        }
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
