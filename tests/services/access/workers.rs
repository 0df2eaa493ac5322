//! Workers that sign in like other callers.

use std::time::Duration;

use contract::v1;
use contract::v1::attach_request::Message as Says;
use contract::v1::tool_host_client::ToolHostClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use super::{CONFIG, local, reason, token, transport};
use crate::support::Server;
use crate::support::issuer::Issuer;
use serde_json::json;

type Attached = (
    mpsc::UnboundedSender<v1::AttachRequest>,
    Streaming<v1::AttachResponse>,
);

/// A worker that shows a token and serves a skill.
async fn attach(server: &Server, token: &str, skill: &str) -> Result<Attached, String> {
    let (says, messages) = mpsc::unbounded_channel();
    let hello = Says::Hello(v1::Hello {
        name: "w".to_owned(),
        skills: vec![v1::ServedSkill {
            skill_id: skill.to_owned(),
            methods: vec!["work".to_owned()],
        }],
        concurrency: 1,
    });
    let hello = v1::AttachRequest {
        message: Some(hello),
    };
    says.send(hello).expect("an open stream");
    let mut host = ToolHostClient::new(transport(server, token).await);
    let attached = host.attach(UnboundedReceiverStream::new(messages)).await;
    let mut told = attached.map_err(|status| reason(&status))?.into_inner();
    let welcome = told.message().await.map_err(|status| reason(&status))?;
    welcome
        .map(|_| (says, told))
        .ok_or_else(|| "an end".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_serve_lets_a_worker_in_for_its_skills_until_it_is_revoked() {
    let server = Server::with(&[], CONFIG);
    let works = token(
        &server,
        &["works", "--action", "serve", "--skills", "acme/ops/*"],
    );
    let agent = token(&server, &["agent", "--role", "agent"]);
    let mut outcomes = Vec::new();
    for (token, skill) in [
        (works.as_str(), "acme/other/report"),
        (&works, "builtin/repertoire/jira"),
        (&agent, "acme/ops/report"),
        ("", "acme/ops/report"),
        ("rpt_none", "acme/ops/report"),
    ] {
        outcomes.push(attach(&server, token, skill).await.expect_err("refused"));
    }
    let refused = "WORKER_REFUSED";
    assert_eq!(
        outcomes,
        [
            refused,
            refused,
            "PERMISSION_DENIED",
            "SIGN_IN_REQUIRED",
            refused
        ]
    );

    let (_says, mut told) = attach(&server, &works, "acme/ops/report")
        .await
        .expect("let in");
    let revoked = local(&server, &["token", "revoke", "works"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let end = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match told.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return "an end".to_owned(),
                Err(status) => return reason(&status),
            }
        }
    });
    assert_eq!(end.await.expect("an end"), "TOKEN_REFUSED");
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_the_token_of_an_issuer() {
    let issuer = Issuer::start().await;
    let rules = "{claims: {role: worker}, actions: [serve], skills: [acme/ops/*]}";
    let config = format!("access:\n{}", issuer.config("", rules));
    let server = Server::with(&[], &config);
    let works = issuer.token(&json!({"role": "worker"}));
    attach(&server, &works, "acme/ops/report")
        .await
        .expect("let in");
    let other = attach(&server, &works, "acme/other/report").await;
    assert_eq!(other.err().as_deref(), Some("WORKER_REFUSED"));
}
