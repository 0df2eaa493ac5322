//! Settings of issuers that change while the server runs.

use super::{ADMIN, RULES, Signer, claims, config, issuer, issuers, outcome, said};
use crate::ConfigError;

const READERS: &str = "rules: [{claims: {groups: admins}, role: reader}]\n";

#[tokio::test]
async fn other_rules_hold_at_once_and_end_what_was_begun_by_the_old_ones() {
    let key = Signer::ed("a");
    let double = issuer(&[&key]).await;
    let issuers = issuers(&[config(&double.url, RULES)]);
    let token = key.sign(&claims(&double.url));
    assert_eq!(said(&issuers, &token).await, ADMIN);
    let caller = outcome(&issuers, &token).await.expect("a caller");
    issuers
        .set(&[config(&double.url, READERS)])
        .expect("issuers");
    caller.ended.cancelled().await;
    assert_eq!(said(&issuers, &token).await, "oidc:test/ada: read load");
}

#[tokio::test]
async fn an_issuer_whose_settings_stay_is_the_one_that_it_was() {
    let key = Signer::ed("a");
    let (stays, goes) = (issuer(&[&key]).await, issuer(&[&key]).await);
    let named = |url: &str, name: &str| {
        let mut config = config(url, RULES);
        config.name.0 = name.to_owned();
        config
    };
    let both = [named(&stays.url, "stays"), named(&goes.url, "goes")];
    let issuers = issuers(&both);
    let (of_one, of_other) = (key.sign(&claims(&stays.url)), key.sign(&claims(&goes.url)));
    let one = outcome(&issuers, &of_one).await.expect("a caller");
    let other = outcome(&issuers, &of_other).await.expect("a caller");
    let asked = stays.asked();
    issuers.set(&both[..1]).expect("issuers");
    other.ended.cancelled().await;
    assert_eq!(
        said(&issuers, &of_other).await,
        "The token is from an issuer that this server does not accept tokens of"
    );
    let again = outcome(&issuers, &of_one).await.expect("a caller");
    assert_eq!(again.principal, one.principal);
    assert!(!one.ended.is_cancelled(), "what it began goes on");
    assert_eq!(stays.asked(), asked, "its keys are known");
}

#[tokio::test]
async fn issuers_that_cannot_be_used_together_change_nothing() {
    let key = Signer::ed("a");
    let double = issuer(&[&key]).await;
    let issuers = issuers(&[config(&double.url, RULES)]);
    let token = key.sign(&claims(&double.url));
    let caller = outcome(&issuers, &token).await.expect("a caller");
    let twice = [config(&double.url, READERS), config(&double.url, READERS)];
    let error = issuers.set(&twice).expect_err("the same one twice");
    assert!(!matches!(error, ConfigError::NotBuilt), "{error}");
    assert_eq!(said(&issuers, &token).await, ADMIN);
    assert!(!caller.ended.is_cancelled());
}
