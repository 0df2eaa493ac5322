//! Which tokens are accepted, and what is said of those that are not.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::signer::{encode, message};
use super::{ADMIN, NOW, RULES, Signer, claims, config, issuer, issuers, now, outcome, said, with};
use crate::Issuers;
use crate::verify::{MAX_TOKEN, is_jwt};

#[tokio::test]
async fn a_token_is_accepted_that_a_key_of_its_issuer_has_signed() {
    let keys = [
        Signer::rsa("rsa"),
        Signer::p256("p256"),
        Signer::p384("p384"),
        Signer::ed("ed"),
    ];
    let double = issuer(&keys.each_ref()).await;
    let issuers = issuers(&[config(&double.url, RULES)]);
    for key in &keys {
        let token = key.sign(&claims(&double.url));
        assert_eq!(said(&issuers, &token).await, ADMIN, "{}", key.algorithm());
    }
    // Another algorithm of the same family; an access token; and one whose key has no name.
    let claims = claims(&double.url);
    for header in [
        json!({"alg": "PS512", "kid": "rsa", "typ": "at+jwt"}),
        json!({"alg": "RS256"}),
    ] {
        let token = keys[0].sign_as(&header, &claims);
        assert_eq!(said(&issuers, &token).await, ADMIN, "{header}");
    }
    let token = keys[3].sign(&claims);
    let caller = outcome(&issuers, &token).await.expect("a caller");
    let until = caller.expires_at.expect("an end");
    assert_eq!(until.as_second(), NOW + 300 + 60);
}

#[expect(
    clippy::too_many_lines,
    reason = "a table of what may be wrong with a token"
)]
#[tokio::test]
async fn a_token_that_is_wrong_is_refused_with_the_reason() {
    let (key, other, unknown) = (Signer::rsa("a"), Signer::p256("b"), Signer::p256("c"));
    let double = issuer(&[&key, &other]).await;
    let url = double.url.as_str();
    let issuers = issuers(&[config(url, RULES)]);
    let right = claims(url);
    let form = "What the call shows is no JWT that can be read, or is signed in a way that is not accepted";
    let no_key = "The token names a key that its issuer does not have, or an algorithm that the key is not for";
    let wrong = "The signature of the token is wrong";
    let changed = |change| key.sign(&with(url, change));
    let as_header = |header| key.sign_as(&header, &right);
    let whole = key.sign(&right);
    let (signed, signature) = whole.rsplit_once('.').expect("three parts");
    // The public key, which everybody has, as a secret of HMAC.
    let confused = {
        let message = message(&json!({"alg": "HS256", "kid": "a"}), &right);
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key.public());
        let tag = ring::hmac::sign(&secret, message.as_bytes());
        format!("{message}.{}", encode(tag))
    };
    let unsigned = message(&json!({"alg": "none", "kid": "a"}), &right);
    let (head, _) = signed.split_once('.').expect("two parts");
    let forged = encode(with(url, json!({"sub": "eve"})).to_string());
    let cases = [
        (format!("{unsigned}."), form),
        (confused, form),
        (format!("{signed}."), wrong),
        (
            format!("{signed}.{}", &signature[..signature.len() - 2]),
            wrong,
        ),
        (format!("{head}.{forged}.{signature}"), wrong),
        (
            other.sign_as(&json!({"alg": "RS256", "kid": "a"}), &right),
            wrong,
        ),
        (
            other.sign_as(&json!({"alg": "ES256", "kid": "a"}), &right),
            no_key,
        ),
        (
            key.sign_as(&json!({"alg": "RS256", "kid": "b"}), &right),
            no_key,
        ),
        (unknown.sign(&right), no_key),
        (
            as_header(json!({"alg": "RS256", "kid": "k".repeat(257)})),
            no_key,
        ),
        (
            as_header(json!({"alg": "RS256", "kid": "a", "crit": ["exp"]})),
            "The token has `crit` in its header, which this server does not know",
        ),
        (
            as_header(json!({"alg": "RS256", "kid": "a", "typ": "logout+jwt"})),
            "The token is neither an access token nor an ID token",
        ),
        (
            changed(json!({"iss": "https://login.example.com"})),
            "The token is from an issuer that this server does not accept tokens of",
        ),
        (changed(json!({"iss": null})), form),
        (changed(json!({"iss": [url]})), form),
        (
            changed(json!({"aud": "https://other.example.com"})),
            "The token is for another audience (`aud`)",
        ),
        (
            changed(json!({"aud": "https://skills.example.com.evil.example"})),
            "The token is for another audience (`aud`)",
        ),
        (
            changed(json!({"aud": null})),
            "The token is for another audience (`aud`)",
        ),
        (
            changed(json!({"aud": {}})),
            "The token is for another audience (`aud`)",
        ),
        (
            changed(json!({"exp": NOW - 60})),
            "The token expired at 2027-01-15T07:59:00Z",
        ),
        (
            changed(json!({"exp": null})),
            "The claim `exp` of the token is missing, or is wrong",
        ),
        (
            changed(json!({"exp": "soon"})),
            "The claim `exp` of the token is missing, or is wrong",
        ),
        (
            changed(json!({"exp": 1e300})),
            "The claim `exp` of the token is missing, or is wrong",
        ),
        (
            changed(json!({"nbf": NOW + 61})),
            "The token is not valid before 2027-01-15T08:01:01Z",
        ),
        (
            changed(json!({"iat": NOW + 61})),
            "The token is not valid before 2027-01-15T08:01:01Z",
        ),
        (
            changed(json!({"cnf": {"jkt": "x"}})),
            "The token is bound to a key (`cnf`), so it is not accepted from a bearer",
        ),
        (
            changed(json!({"sub": null})),
            "The claim `sub` of the token is missing, or cannot name a caller",
        ),
        (
            changed(json!({"sub": "a\u{202e}b"})),
            "The claim `sub` of the token is missing, or cannot name a caller",
        ),
        (
            changed(json!({"sub": "x".repeat(257)})),
            "The claim `sub` of the token is missing, or cannot name a caller",
        ),
        (
            changed(json!({"pad": "x".repeat(MAX_TOKEN)})),
            "The token has more than 12288 characters",
        ),
    ];
    for (token, expected) in cases {
        assert_eq!(said(&issuers, &token).await, expected, "{token}");
    }
    // What is a minute off may be the clocks.
    for change in [
        json!({"exp": NOW - 59}),
        json!({"nbf": NOW + 60}),
        json!({"iat": null}),
    ] {
        assert_eq!(said(&issuers, &changed(change)).await, ADMIN);
    }
    for audience in [
        json!(["https://x.example.com", "https://skills.example.com/mcp"]),
        json!("https://skills.example.com/"),
        json!("https://skills.example.com/mcp/agent"),
    ] {
        assert_eq!(
            said(&issuers, &changed(json!({"aud": audience}))).await,
            ADMIN
        );
    }
}

#[tokio::test]
async fn a_remembered_token_is_refused_from_the_moment_at_which_it_expires() {
    let key = Signer::ed("a");
    let double = issuer(&[&key]).await;
    let issuers = issuers(&[config(&double.url, RULES)]);
    let token = key.sign(&claims(&double.url));
    let first = outcome(&issuers, &token).await.expect("a caller");
    let jwt = issuers.jwt(&token).expect("a JWT");
    let again = issuers.recognize(&jwt, now()).expect("a caller");
    assert!(std::sync::Arc::ptr_eq(&first, &again));
    let late = jiff::Timestamp::from_second(NOW + 360).expect("a time");
    let refused = issuers.recognize(&jwt, late).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "The token expired at 2027-01-15T08:05:00Z"
    );
    // A clock that goes back finds it valid again, and one before it was made does not.
    assert!(issuers.recognize(&jwt, now()).is_ok());
}

#[tokio::test]
async fn two_issuers_never_name_the_same_caller_and_do_not_sign_for_each_other() {
    let (one, other) = (Signer::ed("k"), Signer::ed("k"));
    let (first, second) = (issuer(&[&one]).await, issuer(&[&other]).await);
    let mut renamed = config(&second.url, RULES);
    renamed.name = "second".to_owned().try_into().expect("a name");
    let issuers = issuers(&[config(&first.url, RULES), renamed]);
    let principal = async |token: &str| {
        let caller = outcome(&issuers, token).await.expect("a caller");
        caller.principal.to_string()
    };
    assert_eq!(
        principal(&one.sign(&claims(&first.url))).await,
        "oidc:test/ada"
    );
    assert_eq!(
        principal(&other.sign(&claims(&second.url))).await,
        "oidc:second/ada"
    );
    let posed = other.sign(&claims(&first.url));
    assert_eq!(
        said(&issuers, &posed).await,
        "The signature of the token is wrong"
    );
}

/// Issuers whose keys nobody fetches.
static UNFETCHED: LazyLock<Issuers> = LazyLock::new(|| {
    let config = config("https://login.example.com", RULES);
    Issuers::new(&[config], None).expect("issuers")
});

proptest! {
    #[test]
    fn whatever_is_shown_is_looked_at_without_a_panic(
        text in "[a-zA-Z0-9._-]{0,200}|ey.{0,200}|ey[a-zA-Z0-9_-]{0,60}(\\.[a-zA-Z0-9_-]{0,60}){2}"
    ) {
        let none = Issuers::new(&[], None).expect("none");
        prop_assert!(none.jwt(&text).is_none());
        prop_assert_eq!(UNFETCHED.jwt(&text).is_some(), is_jwt(&text));
        if let Some(jwt) = UNFETCHED.jwt(&text) {
            prop_assert!(UNFETCHED.waiting(&jwt).is_none());
            prop_assert!(UNFETCHED.recognize(&jwt, now()).is_err());
            let debug = format!("{jwt:?}");
            prop_assert!(!debug.contains(&text));
        }
        prop_assert_eq!(is_jwt(&format!("rpt_{text}")), false);
    }
}
