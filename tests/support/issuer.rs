//! An issuer of OpenID Connect on this machine, whose tokens are right or as wrong as a test
//! wants.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Clock as _, SystemClock};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub const AUDIENCE: &str = "https://skills.example.com";

/// The issuer.
pub struct Issuer {
    pub url: String,
    pair: Ed25519KeyPair,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn now() -> i64 {
    SystemClock.now().as_second()
}

impl Issuer {
    pub async fn start() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
        let key =
            json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()), "kid": "k"});
        let keys = json!({"keys": [key]}).to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, metadata.clone(), keys.clone()));
            }
        });
        Self { url, pair }
    }

    /// The lines of a config file that trust it, with rules.
    pub fn config(&self, more: &str, rules: &str) -> String {
        format!(
            "  sign_in: tokens\n  public_url: {AUDIENCE}\n  issuers:\n  - issuer: {}\n    name: corp\n    \
             allow_networks: [127.0.0.1]\n    {more}\n    rules: [{rules}]\n",
            self.url
        )
    }

    /// A token with claims that are right but for these; null: without it.
    pub fn token(&self, changes: &Value) -> String {
        self.signed(&json!({"alg": "EdDSA", "kid": "k"}), changes)
    }

    /// The same with another header.
    pub fn signed(&self, header: &Value, changes: &Value) -> String {
        let mut claims = json!({
            "iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now(), "exp": now() + 600,
        });
        let all = claims.as_object_mut().expect("claims");
        for (name, value) in changes.as_object().expect("changes") {
            match value {
                Value::Null => all.remove(name),
                value => all.insert(name.clone(), value.clone()),
            };
        }
        let message = format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        );
        let signature = match header["alg"].as_str() {
            Some("none") => String::new(),
            // The public key, which everybody has, as a secret.
            Some("HS256") => {
                let public = self.pair.public_key().as_ref();
                let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public);
                encode(ring::hmac::sign(&secret, message.as_bytes()))
            }
            _ => encode(self.pair.sign(message.as_bytes())),
        };
        format!("{message}.{signature}")
    }
}

async fn answer(mut stream: TcpStream, metadata: String, keys: String) {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) => read.push(byte[0]),
            _ => return,
        }
    }
    let body = if read.starts_with(b"GET /keys ") {
        keys
    } else {
        metadata
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.ok();
}
