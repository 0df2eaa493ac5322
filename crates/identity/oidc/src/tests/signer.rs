//! Keys, and what they sign.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA512, RsaKeyPair,
};
use serde_json::{Value, json};

/// Made for this test with `openssl genpkey`, as ring makes none; nothing else has it.
const RSA: &[u8] = include_bytes!("rsa.pk8");

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// A key of an issuer.
pub(in crate::tests) struct Signer {
    kid: &'static str,
    pair: Pair,
}

pub(in crate::tests) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Header and claims, ready to be signed.
pub(in crate::tests) fn message(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    )
}

impl Signer {
    pub(in crate::tests) fn rsa(kid: &'static str) -> Self {
        let pair = RsaKeyPair::from_pkcs8(RSA).expect("a key");
        Self {
            kid,
            pair: Pair::Rsa(Box::new(pair)),
        }
    }

    pub(in crate::tests) fn p256(kid: &'static str) -> Self {
        let (by, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(by, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(by, made.as_ref(), &random).expect("a key");
        Self {
            kid,
            pair: Pair::P256(pair),
        }
    }

    pub(in crate::tests) fn p384(kid: &'static str) -> Self {
        let (by, random) = (&ECDSA_P384_SHA384_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(by, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(by, made.as_ref(), &random).expect("a key");
        Self {
            kid,
            pair: Pair::P384(pair),
        }
    }

    pub(in crate::tests) fn ed(kid: &'static str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).expect("a key");
        Self {
            kid,
            pair: Pair::Ed(pair),
        }
    }

    /// The public half.
    pub(in crate::tests) fn jwk(&self) -> Value {
        let kid = self.kid;
        let point = |curve: &str, bytes: &[u8]| {
            let (x, y) = bytes[1..].split_at(bytes.len() / 2);
            json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y), "kid": kid, "use": "sig"})
        };
        match &self.pair {
            Pair::Rsa(pair) => {
                let PublicKeyComponents { n, e } =
                    PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": encode(n), "e": encode(e), "kid": kid, "use": "sig"})
            }
            Pair::P256(pair) => point("P-256", pair.public_key().as_ref()),
            Pair::P384(pair) => point("P-384", pair.public_key().as_ref()),
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()), "kid": kid})
            }
        }
    }

    /// The bytes of the public half, as somebody would use them for a secret.
    pub(in crate::tests) fn public(&self) -> Vec<u8> {
        self.jwk().to_string().into_bytes()
    }

    pub(in crate::tests) fn algorithm(&self) -> &'static str {
        match &self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
            Pair::Ed(_) => "EdDSA",
        }
    }

    fn signature(&self, message: &str, is_pss: bool) -> Vec<u8> {
        let (random, message) = (SystemRandom::new(), message.as_bytes());
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = if is_pss {
                    pair.sign(&RSA_PSS_SHA512, &random, message, &mut signature)
                } else {
                    pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                };
                signed.expect("signed");
                signature
            }
            Pair::P256(pair) | Pair::P384(pair) => {
                let signed = pair.sign(&random, message).expect("signed");
                signed.as_ref().to_vec()
            }
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token with this header, which is signed whatever it says.
    pub(in crate::tests) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.signature(&message, header["alg"] == "PS512");
        format!("{message}.{}", encode(signature))
    }

    /// A token as its issuer makes it.
    pub(in crate::tests) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "kid": self.kid, "typ": "JWT"});
        self.sign_as(&header, claims)
    }
}
