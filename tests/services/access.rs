//! Who may do what, with the real server: every call of the contract, over gRPC, REST and
//! MCP, with each kind of token and with none.

mod actions;
mod agents;
mod loopback;
mod marked;
mod owned;
mod reloaded;
mod resources;
mod reviewers;
mod seen;
mod workers;

use std::process::Output;

use contract::v1;
use contract::v1::access_client::AccessClient;
use contract::v1::admin_client::AdminClient;
use contract::v1::registry_client::RegistryClient;
use futures_util::StreamExt as _;
use gateway::Transport;
use http::Request;
use serde_json::{Value, json};
use tonic::Streaming;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use access::Role;

use crate::support::web::{Answer, ask};
use crate::support::{self, Server, reason};

const CONFIG: &str = "access:\n  sign_in: tokens\n  anonymous: [reader]\n";

/// A call over the network that shows a token, or none.
async fn transport(server: &Server, token: &str) -> Transport {
    let token = (!token.is_empty()).then(|| format!("Bearer {token}"));
    let channel = server.channel().await;
    let transport = channel
        .map_request(move |mut request: Request<tonic::body::Body>| {
            if let Some(token) = &token {
                let value = token.parse().expect("a value");
                request.headers_mut().insert("authorization", value);
            }
            request
        })
        .map_err(|error| gateway::TransportError::from(tower::BoxError::from(error)));
    BoxCloneSyncService::new(transport)
}

/// A command on the server's machine, through the socket in the data directory.
fn local(server: &Server, args: &[&str]) -> Output {
    let data = server.data.display().to_string();
    support::command(&[args, &["--data", &data]].concat())
}

/// Makes a token on the server's machine.
fn token(server: &Server, args: &[&str]) -> String {
    let made = local(
        server,
        &[&["token", "create"], args, &["--format", "plain"]].concat(),
    );
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).expect("text");
    text.trim().to_owned()
}

fn role_token(server: &Server, role: Role) -> String {
    token(server, &[role.name(), "--role", role.name()])
}

/// The code of an answer of REST.
fn code(answer: &Answer) -> String {
    let is_problem = answer.header("content-type") == "application/problem+json";
    if !is_problem {
        return String::new();
    }
    let text = answer.json()["code"].as_str().map(str::to_owned);
    text.expect("a code")
}

fn skill(id: &str) -> v1::PublishSkillRequest {
    let name = id.rsplit('/').next().expect("a name");
    v1::PublishSkillRequest {
        skill_id: id.to_owned(),
        files: vec![v1::File {
            path: "SKILL.md".to_owned(),
            content: format!("---\nname: {name}\ndescription: Says hello.\n---\nHello.\n").into(),
        }],
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_some_skills_writes_to_no_others() {
    let server = Server::with(&[], CONFIG);
    let text = token(
        &server,
        &["ci", "--role", "publisher", "--skills", "github/acme/*"],
    );
    let mut registry = RegistryClient::new(transport(&server, &text).await);
    let published = registry.publish_skill(skill("github/acme/hello")).await;
    let published = published.expect("published").into_inner();
    let version = published.version.expect("a version");
    assert_eq!(version.created_by, "token:ci");
    for other in ["github/other/hello", "hello", "", "local/global/hello"] {
        let refused = registry
            .publish_skill(skill(other))
            .await
            .expect_err("refused");
        assert_eq!(reason(&refused), "PERMISSION_DENIED", "{other}");
    }
    // Over a stream each by itself, and nothing of it ends the others.
    let items = ["github/other/a", "github/acme/b", "c"].map(|id| v1::PublishSkillsRequest {
        skill: Some(skill(id)),
    });
    let answers = registry.publish_skills(tokio_stream::iter(items)).await;
    let answers: Streaming<v1::PublishSkillsResponse> = answers.expect("a stream").into_inner();
    let outcomes: Vec<_> = answers
        .map(
            |answer| match answer.expect("an answer").result.expect("a result") {
                v1::publish_skills_response::Result::Published(published) => published.skill_id,
                v1::publish_skills_response::Result::Refused(refusal) => refusal.code,
            },
        )
        .collect()
        .await;
    assert_eq!(
        outcomes,
        ["PERMISSION_DENIED", "github/acme/b", "PERMISSION_DENIED"]
    );
    let delete = |id: &str| v1::DeleteSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    };
    // `hello` leads to the very skill, and may lead elsewhere in a moment.
    for other in ["hello", "builtin/repertoire/jira"] {
        let refused = registry
            .delete_skill(delete(other))
            .await
            .expect_err("refused");
        assert_eq!(reason(&refused), "PERMISSION_DENIED", "{other}");
    }
    registry
        .delete_skill(delete("GitHub/Acme/hello"))
        .await
        .expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_block_a_skill_may_not_take_it_off_the_list() {
    let server = Server::with(&[], CONFIG);
    let text = token(&server, &["watchdog", "--action", "block"]);
    let mut registry = RegistryClient::new(transport(&server, &text).await);
    let update = |action: v1::BlocklistAction| v1::UpdateBlocklistRequest {
        action: action.into(),
        skill_id: "builtin/repertoire/write_sql".to_owned(),
        reason: "It leaks.".to_owned(),
        ..Default::default()
    };
    let refused = registry
        .update_blocklist(update(v1::BlocklistAction::Remove))
        .await;
    assert_eq!(reason(&refused.expect_err("refused")), "PERMISSION_DENIED");
    let reviewer = role_token(&server, Role::Reviewer);
    let mut reviewer = RegistryClient::new(transport(&server, &reviewer).await);
    let not_blocked = reviewer
        .update_blocklist(update(v1::BlocklistAction::Remove))
        .await;
    assert_eq!(
        reason(&not_blocked.expect_err("refused")),
        "SKILL_NOT_BLOCKED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_of_some_skills_blocks_unblocks_and_sees_no_others() {
    use v1::BlocklistAction::{Add, Refresh, Remove};
    let server = Server::with(&[], CONFIG);
    let hide = ["namespace", "set", "github/evil", "--visibility", "private"];
    assert!(local(&server, &hide).status.success());
    let mut operator = server.local_registry().await;
    for id in ["github/acme/hello", "github/evil/malware"] {
        operator.publish_skill(skill(id)).await.expect("published");
    }
    let update = |action: v1::BlocklistAction, skill_id: &str| v1::UpdateBlocklistRequest {
        action: action.into(),
        skill_id: skill_id.to_owned(),
        reason: "It leaks.".to_owned(),
        ..Default::default()
    };
    let add = update(Add, "github/evil/malware");
    operator.update_blocklist(add).await.expect("blocked");

    let bound = ["--skills", "github/acme/*"];
    let reviewer = token(
        &server,
        &[&["rev", "--role", "reviewer"], &bound[..]].concat(),
    );
    let dog = token(
        &server,
        &[&["dog", "--action", "block"], &bound[..]].concat(),
    );
    let mut registry = RegistryClient::new(transport(&server, &reviewer).await);
    for (action, name, skill_id) in [
        (Remove, "remove", "github/evil/malware"),
        (Add, "add", "github/evil/malware"),
        (Add, "add", "github/other/thing"),
        // A short name may lead elsewhere in a moment.
        (Add, "add", "hello"),
        (Refresh, "refresh", ""),
        // Whichever skill it names, it is about every one.
        (Refresh, "refresh", "github/acme/hello"),
    ] {
        let refused = registry.update_blocklist(update(action, skill_id)).await;
        let refused = reason(&refused.expect_err("refused"));
        assert_eq!(refused, "PERMISSION_DENIED", "{name} {skill_id}");
        let body = json!({"action": name, "skill_id": skill_id, "reason": "It leaks."});
        let answer = ask(&server.url, "POST", "/api/v1/blocklist")
            .header("authorization", &format!("Bearer {reviewer}"))
            .json(&body)
            .send()
            .await;
        assert_eq!(
            (answer.status.as_u16(), code(&answer).as_str()),
            (403, "PERMISSION_DENIED"),
            "{name} {skill_id}"
        );
    }
    // What it may not review it does not see, nor who did what to it.
    let listed = registry.list_blocked(v1::ListBlockedRequest::default());
    assert_eq!(
        listed.await.expect("a list").into_inner(),
        v1::ListBlockedResponse::default()
    );
    let get = |path: &str| {
        let ask = ask(&server.url, "GET", path);
        ask.header("authorization", &format!("Bearer {reviewer}"))
            .send()
    };
    for (path, expected) in [
        ("/api/v1/skills/github/evil/malware", "SKILL_NOT_FOUND"),
        ("/api/v1/audit", "PERMISSION_DENIED"),
        (
            "/api/v1/audit?name=github/evil/malware",
            "PERMISSION_DENIED",
        ),
        ("/api/v1/tool-calls", "PERMISSION_DENIED"),
        ("/api/v1/audit?name=github/acme/hello", ""),
    ] {
        assert_eq!(code(&get(path).await), expected, "{path}");
    }
    // Of its own it does both; who may only block one does not take it off.
    let own = "github/acme/hello";
    let mut dog = RegistryClient::new(transport(&server, &dog).await);
    dog.update_blocklist(update(Add, own))
        .await
        .expect("blocked");
    let refused = dog.update_blocklist(update(Remove, own)).await;
    assert_eq!(reason(&refused.expect_err("refused")), "PERMISSION_DENIED");
    registry
        .update_blocklist(update(Remove, own))
        .await
        .expect("unblocked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_ends_its_streams() {
    let server = Server::with(&[], CONFIG);
    let text = role_token(&server, Role::Reader);
    let mut registry = RegistryClient::new(transport(&server, &text).await);
    let watch = registry.watch(v1::WatchRequest::default()).await;
    let mut watch = watch.expect("a watch").into_inner();
    let mut events = ask(&server.url, "GET", "/api/v1/events")
        .header("authorization", &format!("Bearer {text}"))
        .header("accept", "text/event-stream")
        .start()
        .await;
    assert_eq!(events.status, 200);
    assert!(
        local(&server, &["token", "revoke", "reader"])
            .status
            .success()
    );
    let ended = loop {
        match watch.next().await {
            Some(Ok(_)) => {}
            other => break other,
        }
    };
    let ended = ended.expect("an end that says why").expect_err("a refusal");
    assert_eq!(ended.code(), tonic::Code::Unauthenticated);
    assert_eq!(ended.message(), "The token was revoked");
    while events.event().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_outlives_the_server_and_says_who_one_is() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let server = Server::over(folder.path(), &[], CONFIG);
    let text = token(
        &server,
        &[
            "ada",
            "--role",
            "agent",
            "--skills",
            "local/*",
            "--expires",
            "7",
        ],
    );
    // No file of the data directory has it.
    let (text_alone, mut read) = (text.trim_start_matches("rpt_").to_owned(), 0);
    server.terminate();
    for entry in walkdir::WalkDir::new(folder.path()) {
        let entry = entry.expect("an entry");
        if entry.file_type().is_file() {
            let bytes = std::fs::read(entry.path()).expect("a file");
            read += bytes.len();
            let holds = bytes
                .windows(text_alone.len())
                .any(|at| at == text_alone.as_bytes());
            assert!(!holds, "{}", entry.path().display());
        }
    }
    assert!(read > 0);
    let server = Server::over(folder.path(), &[], CONFIG);
    let whoami = |text: &str| {
        let answer = ask(&server.url, "GET", "/api/v1/caller");
        let signed = format!("Bearer {text}");
        async move { answer.header("authorization", &signed).send().await }
    };
    let said = whoami(&text).await.json();
    assert_eq!(
        json!([said["caller"], said["actions"], said["skills"]]),
        json!(["token:ada", ["read", "load", "call", "learn"], ["local/*"]])
    );
    let mut access = AccessClient::new(transport(&server, &text).await);
    let refused = access.list_tokens(v1::ListTokensRequest {}).await;
    assert_eq!(reason(&refused.expect_err("refused")), "PERMISSION_DENIED");
    let listed: Value =
        serde_json::from_slice(&local(&server, &["token", "--json"]).stdout).expect("JSON");
    let listed = &listed["tokens"][0];
    assert_eq!(listed["name"], "ada");
    assert_eq!(listed["created_by"], "local");
    assert!(listed["last_used_at"].is_string(), "{listed}");
    assert!(!listed.to_string().contains(&text_alone));
}

#[test]
fn a_server_for_other_machines_does_not_start_without_sign_in_and_tls() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let refused = |config: &str| {
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).expect("a file");
        let (file, data) = (file.display().to_string(), folder.path().join("data"));
        let data = data.display().to_string();
        let args = [
            "serve",
            "--listen",
            "0.0.0.0:0",
            "--config",
            &file,
            "--data",
            &data,
            "--json",
        ];
        let output = support::command(&args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let error: Value =
            serde_json::from_str(stderr.lines().last().expect("a line")).expect("JSON");
        let text = |name: &str| error["error"][name].as_str().expect("text").to_owned();
        (text("code"), text("message"))
    };
    let (code, message) = refused("");
    assert_eq!(code, "CONFIG_INVALID");
    assert!(
        message.contains("Set `access.sign_in: tokens`"),
        "{message}"
    );
    let (code, message) = refused("access: {sign_in: tokens}\n");
    assert_eq!(code, "CONFIG_INVALID");
    assert!(message.contains("`access.behind_proxy: true`"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_offers_the_service_of_the_machine_to_nobody() {
    let server = Server::with(&[], CONFIG);
    let text = role_token(&server, Role::Administrator);
    let mut admin = AdminClient::new(transport(&server, &text).await);
    let refused = admin.get_status(v1::GetStatusRequest {}).await;
    let code = refused.expect_err("a refusal").code();
    assert_eq!(code, tonic::Code::Unimplemented);
}
