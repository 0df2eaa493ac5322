//! Verifies signatures with `ring`, for `jsonwebtoken`, which has no cryptography of its own.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature as by_ring;

/// Only verifies: it signs nothing, and makes no keys.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(unsupported()),
    verifier_factory: |algorithm, key| verifier(*algorithm, key),
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest: |_, _| Err(unsupported()),
    },
};

/// Has `ring` verify signatures, for the whole process.
pub(crate) fn provide() {
    // An error: an earlier call has installed it. Each server of a test makes one.
    PROVIDER.install_default().ok();
}

fn unsupported() -> Error {
    ErrorKind::UnsupportedAlgorithm.into()
}

enum KeyMaterial {
    Rsa {
        by: &'static by_ring::RsaParameters,
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Point {
        by: &'static dyn by_ring::VerificationAlgorithm,
        key: Vec<u8>,
    },
}

struct ByRing {
    algorithm: Algorithm,
    how: KeyMaterial,
}

fn verifier(algorithm: Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    // Algorithm confusion: an attacker who signs with HMAC and an RSA public key as the secret.
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let rsa: Option<&'static by_ring::RsaParameters> = match algorithm {
        Algorithm::RS256 => Some(&by_ring::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&by_ring::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&by_ring::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&by_ring::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&by_ring::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&by_ring::RSA_PSS_2048_8192_SHA512),
        _ => None,
    };
    let point: Option<&'static dyn by_ring::VerificationAlgorithm> = match algorithm {
        Algorithm::ES256 => Some(&by_ring::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&by_ring::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Some(&by_ring::ED25519),
        _ => None,
    };
    let how = match (rsa, point, key.kind()) {
        (Some(by), _, DecodingKeyKind::RsaModulusExponent { n, e }) => KeyMaterial::Rsa {
            by,
            n: n.clone(),
            e: e.clone(),
        },
        (_, Some(by), DecodingKeyKind::SecretOrDer(key)) => KeyMaterial::Point {
            by,
            key: key.clone(),
        },
        _ => return Err(unsupported()),
    };
    Ok(Box::new(ByRing { algorithm, how }))
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match &self.how {
            KeyMaterial::Rsa { by, n, e } => {
                by_ring::RsaPublicKeyComponents { n, e }.verify(by, message, signature)
            }
            KeyMaterial::Point { by, key } => {
                by_ring::UnparsedPublicKey::new(*by, key).verify(message, signature)
            }
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
