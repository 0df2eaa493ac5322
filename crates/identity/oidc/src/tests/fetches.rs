//! Keys that come, change, and do not come.

use std::time::Duration;

use serde_json::json;
use tokio::time::{advance, pause, resume};

use super::double::METADATA;
use super::{ADMIN, Double, RULES, Reply, Signer, claims, config, issuer, issuers, outcome, said};
use crate::issuer::{KEY_REFRESH_INTERVAL, MAX_AGE, MIN_PAUSE};
use crate::keys::Keys;

const UNAVAILABLE: &str =
    "The keys of the issuer `test` cannot be fetched at present, so its tokens cannot be checked";
const UNKNOWN: &str =
    "The token names a key that its issuer does not have, or an algorithm that the key is not for";

/// Time goes by at once; what is on its way is there.
async fn after(time: Duration) {
    pause();
    advance(time).await;
    resume();
}

#[tokio::test]
async fn a_key_that_is_new_is_fetched_when_a_token_names_it_and_not_every_time() {
    let (old, new) = (Signer::p256("old"), Signer::ed("new"));
    let double = issuer(&[&old]).await;
    let issuers = issuers(&[config(&double.url, RULES)]);
    let (before, after_it) = (
        old.sign(&claims(&double.url)),
        new.sign(&claims(&double.url)),
    );
    assert_eq!(said(&issuers, &before).await, ADMIN);
    double.publish(&[&new]);
    // Whoever makes up keys has none fetched for each of them.
    let made_up = issuers.jwt(&after_it).expect("a JWT");
    assert!(issuers.waiting(&made_up).is_none());
    assert_eq!(said(&issuers, &after_it).await, UNKNOWN);
    assert_eq!(double.asked(), [METADATA, "/keys"]);
    let caller = outcome(&issuers, &before).await.expect("a caller");
    after(MIN_PAUSE).await;
    assert_eq!(said(&issuers, &after_it).await, ADMIN);
    assert_eq!(double.asked(), [METADATA, "/keys", METADATA, "/keys"]);
    // What the issuer no longer has is worth nothing, though it was remembered.
    assert_eq!(said(&issuers, &before).await, UNKNOWN);
    caller.ended.cancelled().await;
}

#[tokio::test]
async fn keys_of_an_issuer_that_does_not_answer_stay_good_for_a_day() {
    let key = Signer::p256("a");
    let double = issuer(&[&key]).await;
    let issuers = issuers(&[config(&double.url, RULES)]);
    let token = key.sign(&claims(&double.url));
    assert_eq!(said(&issuers, &token).await, ADMIN);
    double.answer(METADATA, Reply::Silent);
    after(KEY_REFRESH_INTERVAL).await;
    let unknown = Signer::p256("other").sign(&claims(&double.url));
    assert_eq!(said(&issuers, &unknown).await, UNKNOWN);
    assert_eq!(said(&issuers, &token).await, ADMIN);
    after(MAX_AGE.saturating_sub(KEY_REFRESH_INTERVAL + Duration::from_secs(60))).await;
    assert_eq!(said(&issuers, &token).await, ADMIN);
    after(Duration::from_secs(60)).await;
    assert_eq!(said(&issuers, &token).await, UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_an_issuer_that_hangs_for_three_seconds_at_most() {
    let key = Signer::p256("a");
    let double = Double::start().await;
    double.answer(METADATA, Reply::Silent);
    let issuers = issuers(&[config(&double.url, RULES)]);
    let begun = tokio::time::Instant::now();
    let token = key.sign(&claims(&double.url));
    assert_eq!(said(&issuers, &token).await, UNAVAILABLE);
    assert_eq!(begun.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn an_issuer_that_lies_has_no_keys() {
    let key = Signer::p256("a");
    let other = issuer(&[&key]).await;
    let jwks = json!({"keys": [key.jwk()]}).to_string();
    let metadata = |issuer: &str, keys: &str| {
        Reply::Text(json!({"issuer": issuer, "jwks_uri": keys}).to_string())
    };
    let many = json!({"keys": vec![json!({}); 129]}).to_string();
    for (path, reply) in [
        (
            METADATA,
            metadata("https://other.example.com", &format!("{}/keys", other.url)),
        ),
        (METADATA, Reply::Text("<html>".to_owned())),
        (METADATA, Reply::Status(500)),
        (
            METADATA,
            Reply::Redirect(format!("{}{METADATA}", other.url)),
        ),
        (METADATA, Reply::Endless),
        ("/keys", Reply::Redirect(format!("{}/keys", other.url))),
        ("/keys", Reply::Endless),
        ("/keys", Reply::Text("[]".to_owned())),
        ("/keys", Reply::Text(many)),
        ("/keys", Reply::Text(jwks[1..].to_owned())),
    ] {
        let double = issuer(&[&key]).await;
        double.answer(path, reply);
        let issuers = issuers(&[config(&double.url, RULES)]);
        let token = key.sign(&claims(&double.url));
        assert_eq!(said(&issuers, &token).await, UNAVAILABLE);
        // Of 1 GiB no more is read than keys may have, and what the sockets hold.
        assert!(double.sent() < 32 << 20, "{}", double.sent());
    }
    assert_eq!(other.asked(), Vec::<String>::new());
    // Keys that are on another machine, or not kept from whoever is on the way.
    for place in [
        "http://192.0.2.1/keys",
        "file:///etc/passwd",
        "https://127.0.0.2/keys",
        "",
    ] {
        let double = Double::start().await;
        double.answer(METADATA, metadata(&double.url, place));
        let issuers = issuers(&[config(&double.url, RULES)]);
        let token = key.sign(&claims(&double.url));
        assert_eq!(said(&issuers, &token).await, UNAVAILABLE, "{place}");
    }
}

#[tokio::test]
async fn an_issuer_inside_the_company_is_called_where_the_operator_says_so() {
    let key = Signer::p256("a");
    let double = issuer(&[&key]).await;
    let mut config = config(&double.url, RULES);
    config.allow_networks = Default::default();
    let issuers = issuers(&[config]);
    let token = key.sign(&claims(&double.url));
    assert_eq!(said(&issuers, &token).await, UNAVAILABLE);
    assert_eq!(double.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn keys_that_are_not_for_signatures_or_not_safe_are_passed_over() {
    let (good, weak) = (Signer::p256("good"), Signer::rsa("weak"));
    let double = Double::start().await;
    let change = |key: &Signer, name: &str, value: serde_json::Value| {
        let mut jwk = key.jwk();
        jwk[name] = value;
        jwk
    };
    let keys = [
        change(&good, "use", json!("enc")),
        change(&good, "key_ops", json!(["sign"])),
        change(&good, "alg", json!("ES384")),
        change(&good, "x", json!("AAAA")),
        // 1,024 bits.
        change(&weak, "n", json!("_".repeat(171))),
        json!({"kty": "oct", "k": "c2VjcmV0", "kid": "good"}),
        json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "good"}),
        json!({"kty": "quantum", "kid": "good"}),
        json!(7),
    ];
    for jwk in keys {
        double.answer("/keys", Reply::Text(json!({"keys": [jwk]}).to_string()));
        let issuers = issuers(&[config(&double.url, RULES)]);
        for key in [&good, &weak] {
            let token = key.sign(&claims(&double.url));
            assert_eq!(said(&issuers, &token).await, UNKNOWN, "{jwk}");
        }
        // One that is not known does not spoil the rest.
        let keys = json!({"keys": [jwk, good.jwk()]}).to_string();
        double.answer("/keys", Reply::Text(keys));
        let issuers = super::issuers(&[config(&double.url, RULES)]);
        let token = good.sign(&claims(&double.url));
        assert_eq!(said(&issuers, &token).await, ADMIN, "{jwk}");
    }
}

#[test]
fn keys_that_are_tried_for_no_token_are_told() {
    let warning = |jwks: &[serde_json::Value]| {
        let set = json!({"keys": jwks}).to_string();
        let keys = Keys::none().replaced(set.as_bytes()).expect("keys");
        keys.warning()
    };
    let unnamed = |key: Signer| {
        let mut jwk = key.jwk();
        jwk.as_object_mut().expect("a key").remove("kid");
        jwk
    };
    let eds: Vec<_> = (0..5).map(|_| unnamed(Signer::ed("a"))).collect();
    let points: Vec<_> = (0..4).map(|_| unnamed(Signer::p256("a"))).collect();
    let named: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .map(|kid| Signer::ed(kid).jwk())
        .into();
    let same: Vec<_> = (0..5).map(|_| Signer::ed("a").jwk()).collect();
    for fine in [&named[..], &eds[..4], &[&eds[..4], &points[..]].concat()] {
        assert_eq!(warning(fine), None);
    }
    let told = Some(
        "5 keys of the issuer may have signed the same token, of which the first 4 are tried: \
         it should name each key by a `kid` of its own"
            .to_owned(),
    );
    for many in [&eds[..], &same[..], &[&named[..4], &eds[..1]].concat()] {
        assert_eq!(warning(many), told);
    }
    assert_eq!(warning(&[]), None);
}
