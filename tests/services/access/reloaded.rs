//! A config file that is read again: `SIGHUP`.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use contract::v1;
use contract::v1::lookup_client::LookupClient;
use serde_json::{Value, json};

use super::{RegistryClient, local, reason, role_token, transport};
use crate::support::issuer::Issuer;
use crate::support::{Server, skill};
use access::Role;

/// Has a server read another config file in the place of its own, and waits until its log says
/// that it did.
async fn reread(server: &Server, config: &str, says: &str) {
    let before = server.log().len();
    std::fs::write(server.data.with_file_name("config.yaml"), config).expect("a file");
    let hangup = Command::new("kill")
        .args(["-HUP", &server.pid().to_string()])
        .status();
    assert!(hangup.expect("kill").success());
    for _ in 0..400 {
        if server.log()[before..].contains(says) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it does not say `{says}`: {}", server.log());
}

/// What listing skills comes to, without a token.
async fn listed(server: &Server) -> String {
    let mut lookup = LookupClient::new(transport(server, "").await);
    let listed = lookup.list_skills(v1::ListSkillsRequest::default()).await;
    listed.map_or_else(
        |status| reason(&status),
        |listed| {
            let skills = listed.into_inner().skills.into_iter();
            let ours = skills.filter(|skill| skill.id.starts_with("local/"));
            ours.map(|skill| skill.id).collect::<Vec<_>>().join(" ")
        },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_change_is_taken_and_what_cannot_is_told() {
    let server = Server::with(&["--log", "info"], "access: {sign_in: tokens}\n");
    let text = role_token(&server, Role::Publisher);
    let publish = async |id: &str| {
        let mut registry = RegistryClient::new(transport(&server, &text).await);
        let published = registry.publish_skill(skill(id, "", "Body.")).await;
        published.map_or_else(|status| reason(&status), |_| "published".to_owned())
    };
    assert_eq!(publish("local/x/one").await, "published");
    assert_eq!(listed(&server).await, "SIGN_IN_REQUIRED");

    // Who shows nothing.
    let anonymous = "access: {sign_in: tokens, anonymous: [reader]}\n";
    reread(&server, anonymous, "taken=\"access.anonymous\"").await;
    assert_eq!(listed(&server).await, "local/x/one");

    // Who sees what, and how much a namespace holds.
    let bounded =
        "namespaces: {visibility: internal}\nlimits: {quotas: {skills_per_namespace: 1}}\n";
    let taken = "taken=\"limits.quotas.skills_per_namespace, namespaces.visibility\"";
    reread(&server, &format!("{anonymous}{bounded}"), taken).await;
    assert_eq!(listed(&server).await, "");
    assert_eq!(publish("local/x/two").await, "QUOTA_EXCEEDED");

    // What is wrong changes nothing, and says where it is.
    reread(
        &server,
        "namespaces: {visibility: none}\n",
        ":1: namespaces.visibility: `none` is none of",
    )
    .await;
    assert_eq!(listed(&server).await, "");

    // Calls of a caller; and what waits for a restart.
    let calls = "limits: {calls: 99, quotas: {calls_per_minute: 1}}\nlisten: 127.0.0.1:1\n";
    reread(
        &server,
        &format!("{anonymous}{calls}"),
        "left=\"limits.calls, listen\"",
    )
    .await;
    let outcomes = [listed(&server).await, listed(&server).await];
    assert_eq!(outcomes, ["local/x/one", "QUOTA_EXCEEDED"]);

    let trail = local(&server, &["audit-trail", "--json"]);
    let told = String::from_utf8(trail.stdout).expect("text");
    let events = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let reloads = events.filter(|event| event["kind"] == "reload");
    let configs: BTreeSet<_> = reloads
        .map(|event| event["details"]["config"].to_string())
        .collect();
    assert_eq!(configs.len(), 3, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_issuers_hold_from_the_next_call_on_and_end_streams_of_the_old_ones() {
    let issuer = Issuer::start().await;
    let config = |role: &str| {
        let rules = format!("{{claims: {{sub: ada}}, role: {role}}}");
        format!("access:\n{}", issuer.config("", &rules))
    };
    let server = Server::with(&["--log", "info"], &config("publisher"));
    let token = issuer.token(&json!({}));
    let publish = async |id: &str| {
        let mut registry = RegistryClient::new(transport(&server, &token).await);
        let published = registry.publish_skill(skill(id, "", "Body.")).await;
        published.map_or_else(|status| reason(&status), |_| "published".to_owned())
    };
    assert_eq!(publish("local/x/one").await, "published");
    let mut registry = RegistryClient::new(transport(&server, &token).await);
    let watch = registry.watch(v1::WatchRequest::default()).await;
    let mut watch = watch.expect("a stream").into_inner();

    let says = "taken=\"access.issuers[0].rules";
    reread(&server, &config("reader"), says).await;
    let ended = async {
        loop {
            match watch.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return "the end".to_owned(),
                Err(status) => return reason(&status),
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert_eq!(ended.expect("it ends"), "TOKEN_REFUSED");
    assert_eq!(publish("local/x/two").await, "PERMISSION_DENIED");

    reread(
        &server,
        "access: {sign_in: tokens}\n",
        "taken=\"access.issuers",
    )
    .await;
    assert_eq!(publish("local/x/four").await, "TOKEN_REFUSED");
}

#[tokio::test(flavor = "multi_thread")]
async fn issuers_that_need_what_waits_for_a_restart_wait_as_well() {
    let issuer = Issuer::start().await;
    let server = Server::with(&["--log", "info"], "access: {sign_in: tokens}\n");
    // Its tokens are for the address of the server, which this one does not know yet.
    let config = issuer.config("", "{claims: {sub: ada}, role: publisher}");
    let left = "left=\"access.public_url, access.issuers[0].";
    reread(&server, &format!("access:\n{config}"), left).await;
    assert!(!server.log().contains("taken=\"access.issuers"));
    let mut registry = RegistryClient::new(transport(&server, &issuer.token(&json!({}))).await);
    let published = registry
        .publish_skill(skill("local/x/one", "", "Body."))
        .await;
    assert_eq!(reason(&published.expect_err("refused")), "TOKEN_REFUSED");
}
