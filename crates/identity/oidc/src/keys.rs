//! The keys of an issuer, read from its JWK set (RFC 7517).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Keys that an issuer may have.
const MAX_KEYS: usize = 128;
/// Keys that are tried for one token: more never have one id.
const MAX_TRIED: usize = 4;
/// Characters of the id of a key.
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

/// What makes a key the same key.
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
    /// Another number for other keys.
    pub(crate) version: u64,
    /// When it was last known that these are the keys. None: they never were.
    pub(crate) known_at: Option<Instant>,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// No JWK set.
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

    /// What was begun with any of them ends.
    pub(crate) fn withdraw(&self) {
        for key in &self.all {
            key.withdrawn.cancel();
        }
    }

    /// Reads what an issuer has now. A key that stays is the one that it was; one that has
    /// gone is withdrawn.
    pub(crate) fn replaced(&self, set: &[u8]) -> Result<Self, KeysError> {
        let set: Set = serde_json::from_slice(set).map_err(|_| KeysError::Form)?;
        if set.keys.len() > MAX_KEYS {
            return Err(KeysError::TooMany);
        }
        let mut before: HashMap<Identity, &Arc<Key>> =
            self.all.iter().map(|key| (key.identity(), key)).collect();
        let mut is_new = false;
        // A key of a kind that is not known is for somebody else.
        let read = set.keys.into_iter().filter_map(usable);
        let mut seen = HashSet::new();
        let read = read.filter(|key| seen.insert(key.identity()));
        let keys = read.map(|key| match before.remove(&key.identity()) {
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

    /// The keys that may have signed what has this header.
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

    /// What an operator should know of them: tokens of some keys are refused, because others
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

    /// There is a key of this id; without one: a key at all.
    pub(crate) fn has(&self, kid: Option<&str>) -> bool {
        let mut keys = self.all.iter();
        keys.any(|key| kid.is_none() || key.kid.as_deref() == kid)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// A key for signatures, of a kind and a size that is safe.
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
    if !signs || !verifies || kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
        return None;
    }
    let decoding = DecodingKey::from_jwk(&jwk).ok()?;
    let (decoding, family) = match (&jwk.algorithm, decoding.kind()) {
        (AlgorithmParameters::RSA(_), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            let n = without_zeros(n);
            // 2,048 to 8,192 bits.
            if !(256..=1024).contains(&n.len()) || e.len() > 8 {
                return None;
            }
            let plain = DecodingKey::from_rsa_raw_components(n, without_zeros(e));
            (plain, RSA)
        }
        (AlgorithmParameters::EllipticCurve(point), DecodingKeyKind::SecretOrDer(bytes)) => {
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
        // A shared secret is no key that a server may have.
        _ => return None,
    };
    let named = common.key_algorithm.map(algorithm);
    let algorithms = match named {
        None => family.to_vec(),
        Some(named) => {
            let one = family.iter().find(|it| Some(**it) == named)?;
            vec![*one]
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
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

/// The signature that a key says it is for; none: something else.
fn algorithm(named: KeyAlgorithm) -> Option<Algorithm> {
    Some(match named {
        KeyAlgorithm::RS256 => Algorithm::RS256,
        KeyAlgorithm::RS384 => Algorithm::RS384,
        KeyAlgorithm::RS512 => Algorithm::RS512,
        KeyAlgorithm::PS256 => Algorithm::PS256,
        KeyAlgorithm::PS384 => Algorithm::PS384,
        KeyAlgorithm::PS512 => Algorithm::PS512,
        KeyAlgorithm::ES256 => Algorithm::ES256,
        KeyAlgorithm::ES384 => Algorithm::ES384,
        KeyAlgorithm::EdDSA => Algorithm::EdDSA,
        _ => return None,
    })
}
