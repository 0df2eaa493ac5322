//! The keys of an issuer, read from its JWK set (RFC 7517).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most keys of an issuer.
const MAX_KEYS: usize = 128;
/// The most keys that are tried for one token: verifying takes time, and a `kid` should be unique.
const MAX_TRIED: usize = 4;
/// The most characters of the id of a key.
pub(crate) const MAX_KID: usize = 256;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// A key that checks signatures.
pub(crate) struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) decoding: DecodingKey,
    /// Cancelled when the issuer no longer has it.
    pub(crate) withdrawn: CancellationToken,
}

/// Tells whether two keys are the same.
type Identity = (Option<String>, Vec<u8>);

impl Key {
    fn identity(&self) -> Identity {
        let bytes = match self.decoding.kind() {
            DecodingKeyKind::SecretOrDer(bytes) => bytes.clone(),
            DecodingKeyKind::RsaModulusExponent { n, e } => [n.as_slice(), e.as_slice()].concat(),
        };
        (self.kid.clone(), bytes)
    }
}

/// All keys that an issuer has now.
pub(crate) struct Keys {
    all: Vec<Arc<Key>>,
    /// Grows when the keys change.
    pub(crate) version: u64,
    /// When these were last confirmed to be the keys. `None`: never.
    pub(crate) known_at: Option<Instant>,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// Why a text is no JWK set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("its keys are not a JWK set")]
    Form,
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
}

impl Keys {
    pub(crate) fn none() -> Self {
        Self {
            all: Vec::new(),
            version: 0,
            known_at: None,
        }
    }

    /// Ends the streams that were begun with any of them.
    pub(crate) fn withdraw(&self) {
        for key in &self.all {
            key.withdrawn.cancel();
        }
    }

    /// Reads the current JWK set. A key that stays keeps its streams; one that has
    /// gone is withdrawn.
    pub(crate) fn replaced(&self, set: &[u8]) -> Result<Self, KeysError> {
        let set: Set = serde_json::from_slice(set).map_err(|_| KeysError::Form)?;
        if set.keys.len() > MAX_KEYS {
            return Err(KeysError::TooMany);
        }
        let mut before: HashMap<Identity, &Arc<Key>> =
            self.all.iter().map(|key| (key.identity(), key)).collect();
        let mut is_new = false;
        // A key of an unknown kind is for other uses, such as encryption: no reason to refuse the
        // set.
        let read = set.keys.into_iter().filter_map(usable);
        let mut seen = HashSet::new();
        let read = read.filter(|key| seen.insert(key.identity()));
        let keys = read.map(|key| match before.remove(&key.identity()) {
            // A key that may no longer sign by an algorithm is another key: its old tokens end.
            Some(known) if known.algorithms == key.algorithms => Arc::clone(known),
            gone => {
                if let Some(gone) = gone {
                    gone.withdrawn.cancel();
                }
                is_new = true;
                Arc::new(key)
            }
        });
        let keys: Vec<_> = keys.collect();
        for gone in before.values() {
            gone.withdrawn.cancel();
            is_new = true;
        }
        Ok(Self {
            all: keys,
            version: self.version + u64::from(is_new),
            known_at: Some(Instant::now()),
        })
    }

    /// Returns the keys that may have signed a token with this header.
    pub(crate) fn fitting(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &Arc<Key>> {
        self.all_fitting(kid, algorithm).take(MAX_TRIED)
    }

    fn all_fitting(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &Arc<Key>> {
        let named = self.all.iter().filter(move |key| match kid {
            Some(kid) => key.kid.as_deref() == Some(kid),
            None => true,
        });
        named.filter(move |key| key.algorithms.contains(&algorithm))
    }

    /// A warning for the operator: tokens of some keys are refused, because others
    /// are tried first. A token without an id is expected only where a key has none.
    pub(crate) fn warning(&self) -> Option<String> {
        let ids: HashSet<_> = self.all.iter().map(|key| key.kid.as_deref()).collect();
        let of = |kid: Option<&str>| {
            let algorithms = self.all.iter().flat_map(|key| &key.algorithms);
            let fitting = algorithms.map(|it| self.all_fitting(kid, *it).count());
            fitting.max().unwrap_or_default()
        };
        let most = ids.into_iter().map(of).max().unwrap_or_default();
        (most > MAX_TRIED).then(|| {
            format!(
                "{most} keys of the issuer may have signed the same token, of which the first \
                 {MAX_TRIED} are tried: it should name each key by a `kid` of its own"
            )
        })
    }

    /// Tells whether there is a key with this id; without an id: any key.
    pub(crate) fn has(&self, kid: Option<&str>) -> bool {
        let mut keys = self.all.iter();
        keys.any(|key| kid.is_none() || key.kid.as_deref() == kid)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Reads a key for signatures, of a kind and a size that is safe.
fn usable(jwk: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(jwk).ok()?;
    let common = &jwk.common;
    let signs = common
        .public_key_use
        .as_ref()
        .is_none_or(|it| *it == PublicKeyUse::Signature);
    let verifies = common
        .key_operations
        .as_ref()
        .is_none_or(|all| all.contains(&KeyOperations::Verify));
    let kid = common.key_id.clone();
    // RFC 7517, 4.2 and 4.3: without `use` and `key_ops` a key is for anything.
    if !signs || !verifies || kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
        return None;
    }
    let decoding = DecodingKey::from_jwk(&jwk).ok()?;
    let (decoding, family) = match (&jwk.algorithm, decoding.kind()) {
        (AlgorithmParameters::RSA(_), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            let n = without_zeros(n);
            // 2,048 to 8,192 bits, as `ring` takes them. Its largest exponent has 33 bits.
            if !(256..=1024).contains(&n.len()) || e.len() > 8 {
                return None;
            }
            let plain = DecodingKey::from_rsa_raw_components(n, without_zeros(e));
            (plain, RSA)
        }
        (AlgorithmParameters::EllipticCurve(point), DecodingKeyKind::SecretOrDer(bytes)) => {
            // An uncompressed point (SEC 1, 2.3.3): the tag and two coordinates.
            let (length, algorithms): (_, &[_]) = match point.curve {
                EllipticCurve::P256 => (65, &[Algorithm::ES256]),
                EllipticCurve::P384 => (97, &[Algorithm::ES384]),
                _ => return None,
            };
            (bytes.len() == length).then_some((decoding.clone(), algorithms))?
        }
        (AlgorithmParameters::OctetKeyPair(pair), DecodingKeyKind::SecretOrDer(bytes)) => {
            let fits = pair.curve == EllipticCurve::Ed25519 && bytes.len() == 32;
            fits.then_some((decoding.clone(), &[Algorithm::EdDSA][..]))?
        }
        // A shared secret in a public set would let every reader sign.
        _ => return None,
    };
    let algorithms = match common.key_algorithm {
        None => family.to_vec(),
        // A key that names its algorithm is for no other (RFC 8725, 3.1).
        Some(named) => {
            let named = Algorithm::try_from(named).ok()?;
            family.contains(&named).then(|| vec![named])?
        }
    };
    Some(Key {
        kid,
        algorithms,
        decoding,
        withdrawn: CancellationToken::new(),
    })
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    // RFC 7518, 6.3.1.1: some libraries put a zero octet in front, which `ring` refuses.
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}
