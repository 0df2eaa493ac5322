//! Why a token is not accepted.

use jiff::Timestamp;

use model::{Code, Failure};

/// Why a token is not accepted. A refusal before its signature is verified says nothing that
/// the token does not say itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is longer than the limit.
    #[error("The token has more than {0} characters")]
    TooLong(usize),
    /// It is no JWT, or its header cannot be read.
    #[error(
        "What the call shows is no JWT that can be read, or is signed in a way that is not accepted"
    )]
    Form,
    /// Its header has extensions that this server does not know.
    #[error("The token has `crit` in its header, which this server does not know")]
    Critical,
    /// It is of another type.
    #[error("The token is neither an access token nor an ID token")]
    Type,
    /// It is bound to a key of its holder, which a bearer does not present.
    #[error("The token is bound to a key (`cnf`), so it is not accepted from a bearer")]
    Bound,
    /// Its issuer is not in the config file.
    #[error("The token is from an issuer that this server does not accept tokens of")]
    Issuer,
    /// No key of its issuer can have signed it.
    #[error(
        "The token names a key that its issuer does not have, or an algorithm that the key is not for"
    )]
    Key,
    /// It was not signed by the key that it names.
    #[error("The signature of the token is wrong")]
    Signature,
    /// A claim is missing, or cannot be read.
    #[error("The claim `{0}` of the token is missing, or is wrong")]
    Claim(&'static str),
    /// It is for another audience.
    #[error("The token is for another audience (`aud`)")]
    Audience,
    /// It has expired.
    #[error("The token expired at {0}")]
    Expired(Timestamp),
    /// It is not valid yet.
    #[error("The token is not valid before {0}")]
    NotYet(Timestamp),
    /// The claim that names callers names none.
    #[error("The claim `{0}` of the token is missing, or cannot name a caller")]
    Principal(String),
    /// The keys of its issuer are not known.
    #[error(
        "The keys of the issuer `{0}` cannot be fetched at present, so its tokens cannot be checked"
    )]
    Unavailable(String),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let failure = |code| Self::new(code, message);
        match refused {
            Refused::Unavailable(_) => failure(Code::IssuerUnavailable)
                .suggest("Try again in a few seconds")
                .suggest("The operator finds the cause in the server's log"),
            Refused::Expired(_) => failure(Code::TokenRefused)
                .suggest("Get a new token from the issuer: sign in again"),
            Refused::NotYet(_) => failure(Code::TokenRefused)
                .suggest("Set the clocks of the issuer and of the server: they differ by more than a minute"),
            Refused::Audience => failure(Code::TokenRefused)
                .suggest("Ask the issuer for a token for this server: its audience is what `access.issuers` of the server says, or the server's address"),
            _ => failure(Code::TokenRefused)
                .suggest("Send a token of an issuer in `access.issuers` of the server's config file (docs/access.md)"),
        }
    }
}
