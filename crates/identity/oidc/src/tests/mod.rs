//! Tokens that real keys have signed, of issuers on this machine.

#![cfg(feature = "issuers")]

mod double;
mod fetches;
mod rules;
mod settings;
mod signer;
mod tokens;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::{IssuerConfig, PublicUrl};
use crate::{Issuers, Refused};
use access::Caller;
use double::{Double, Reply};
use signer::Signer;

const NOW: i64 = 1_800_000_000;
const AUDIENCE: &str = "https://skills.example.com";

fn now() -> Timestamp {
    Timestamp::from_second(NOW).expect("a time")
}

/// An issuer with these keys.
async fn issuer(keys: &[&Signer]) -> Double {
    let double = Double::start().await;
    double.publish(keys);
    double
}

/// The settings of an issuer, with more lines.
fn config(url: &str, more: &str) -> IssuerConfig {
    let text = format!(
        "issuer: {url}\nname: test\nallow_networks: [127.0.0.1]\naudiences: [{AUDIENCE}]\n{more}"
    );
    serde_yaml::from_str(&text).expect("settings")
}

const RULES: &str = "rules: [{claims: {groups: admins}, role: administrator}, \
    {claims: {groups: [readers, guests]}, role: reader}]\n";

/// Issuers whose keys are kept up to date until the test ends.
fn issuers(configs: &[IssuerConfig]) -> Issuers {
    let url = PublicUrl::try_from(AUDIENCE.to_owned()).expect("an address");
    let issuers = Issuers::new(configs, Some(&url)).expect("issuers");
    let kept = issuers.clone();
    tokio::spawn(async move { kept.keep(CancellationToken::new()).await });
    issuers
}

/// Claims that are right.
fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "aud": AUDIENCE, "sub": "ada", "groups": ["staff", "admins"],
        "iat": NOW - 10, "exp": NOW + 300,
    })
}

/// The claims with some of them changed; null: without it.
fn with(issuer: &str, changes: Value) -> Value {
    let mut all = claims(issuer);
    let object = all.as_object_mut().expect("claims");
    let Value::Object(changes) = changes else {
        panic!("changes are an object")
    };
    for (name, value) in changes {
        match value {
            Value::Null => object.remove(&name),
            value => object.insert(name, value),
        };
    }
    all
}

/// What becomes of a token, after the wait that it needs.
async fn outcome(issuers: &Issuers, token: &str) -> Result<Arc<Caller>, Refused> {
    let jwt = issuers.jwt(token).ok_or(Refused::Form)?;
    if let Some(waiting) = issuers.waiting(&jwt) {
        waiting.await;
    }
    issuers.recognize(&jwt, now())
}

/// The same, as a text that a test compares.
async fn said(issuers: &Issuers, token: &str) -> String {
    match outcome(issuers, token).await {
        Ok(caller) => {
            let actions: Vec<_> = caller
                .rights
                .actions
                .iter()
                .map(access::Action::name)
                .collect();
            format!("{}: {}", caller.principal, actions.join(" "))
        }
        Err(refused) => refused.to_string(),
    }
}

const ADMIN: &str = "oidc:test/ada: read load call learn grade publish activate delete \
    block sync review audit serve operate administer";

impl Double {
    /// Answers with these keys from now on.
    fn publish(&self, keys: &[&Signer]) {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        self.answer("/keys", Reply::Text(json!({"keys": keys}).to_string()));
    }
}
