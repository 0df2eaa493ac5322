//! What belongs to a caller, and how much a caller may have.

use contract::v1;
use contract::v1::learning_client::LearningClient;
use contract::v1::lookup_client::LookupClient;
use serde_json::{Value, json};
use tonic_types::StatusExt as _;

use super::{CONFIG, reason, role_token, token, transport};
use crate::support::Server;
use crate::support::web::{Answer, ask};
use access::Role;

/// The code of a refusal, whose call succeeded otherwise.
fn outcome<T>(answer: Result<T, tonic::Status>) -> String {
    answer.map_or_else(|status| reason(&status), |_| "done".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_its_loaded_skills_are_there_for_their_token_alone() {
    let server = Server::with(&[], CONFIG);
    let ada = role_token(&server, Role::Agent);
    let bob = token(&server, &["bob", "--role", "administrator"]);
    let mut by_ada = LookupClient::new(transport(&server, &ada).await);
    let load = v1::LoadSkillRequest {
        skill_id: "jira".to_owned(),
        ..Default::default()
    };
    let loaded = by_ada.load_skill(load).await.expect("loaded").into_inner();
    let list = v1::ListLoadedSkillsRequest {
        session_id: loaded.session_id.clone(),
    };
    let mut outcomes = Vec::new();
    for token in [ada.as_str(), &bob, ""] {
        let mut lookup = LookupClient::new(transport(&server, token).await);
        outcomes.push(outcome(lookup.list_loaded_skills(list.clone()).await));
    }
    assert_eq!(outcomes, ["done", "SESSION_NOT_FOUND", "SESSION_NOT_FOUND"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_mcp_is_there_for_its_token_alone() {
    let server = Server::with(&[], CONFIG);
    let ada = role_token(&server, Role::Agent);
    let bob = token(&server, &["bob", "--role", "agent"]);
    let send = async |verb: &str, token: &str, session: &str, message: &Value| -> Answer {
        let mut ask = ask(&server.url, verb, "/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if !token.is_empty() {
            ask = ask.header("authorization", &format!("Bearer {token}"));
        }
        if !session.is_empty() {
            ask = ask.header("mcp-session-id", session);
        }
        ask.json(message).send().await
    };
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "test", "version": "1"}},
    });
    let begun = send("POST", &ada, "", &initialize).await;
    let session = begun.header("mcp-session-id").to_owned();
    assert!(!session.is_empty(), "{}", begun.text());
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let unknown = send("POST", &ada, "no-such-session", &ping).await;
    for other in [bob.as_str(), ""] {
        let answer = send("POST", other, &session, &ping).await;
        assert_eq!(
            (answer.status, answer.text()),
            (unknown.status, unknown.text()),
            "as one that there is none of"
        );
        let ended = send("DELETE", other, &session, &Value::Null).await;
        assert_eq!(
            (ended.status, ended.text()),
            (unknown.status, unknown.text())
        );
    }
    assert_eq!(send("POST", &ada, &session, &ping).await.status, 200);
    let mut ends = Vec::new();
    for _ in 0..2 {
        let ended = send("DELETE", &ada, &session, &Value::Null).await;
        ends.push(ended.status.as_u16());
    }
    assert_eq!(ends, [202, 404], "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_in_has_learners_of_its_own_and_a_reviewer_sees_them() {
    let server = Server::with(&[], CONFIG);
    let ada = token(&server, &["ada", "--role", "agent"]);
    let eve = token(&server, &["eve", "--role", "agent"]);
    let reviewer = role_token(&server, Role::Reviewer);
    let paths = async |token: &str| {
        let mut learning = LearningClient::new(transport(&server, token).await);
        let all = learning.get_paths(v1::GetPathsRequest::default()).await;
        all.expect("paths").into_inner().paths
    };
    let path = paths(&ada).await.remove(0).id;
    let begin = async |token: &str, learner: &str| {
        let mut learning = LearningClient::new(transport(&server, token).await);
        let request = v1::NextExerciseRequest {
            path_id: path.clone(),
            learner: learner.to_owned(),
        };
        learning.next_exercise(request).await.expect("an exercise");
    };
    let has_history = async |token: &str, learner: &str| {
        let mut learning = LearningClient::new(transport(&server, token).await);
        let request = v1::GetProgressRequest {
            learner: learner.to_owned(),
            include_history: true,
            ..Default::default()
        };
        let progress = learning.get_progress(request).await.expect("progress");
        !progress.into_inner().recent_activity.is_empty()
    };
    begin(&ada, "").await;
    begin(&ada, "child").await;
    for (token, learner, expected) in [
        (&ada, "", true),
        (&ada, "token:ada", true),
        (&ada, "child", true),
        (&eve, "token:ada", false),
        (&eve, "token:ada/child", false),
        (&eve, "child", false),
        (&reviewer, "token:ada", true),
        (&reviewer, "token:ada/child", true),
        (&reviewer, "child", false),
    ] {
        assert_eq!(has_history(token, learner).await, expected, "{learner}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_beyond_its_quota_is_refused_on_every_face_and_others_are_not() {
    let config = format!(
        "{CONFIG}limits:\n  wait_seconds: 0\n  quotas:\n    calls_per_minute: 3\n    callers:\n      token:ci: {{calls_per_minute: 100}}\n"
    );
    let server = Server::with(&[], &config);
    let ada = token(&server, &["ada", "--role", "reader"]);
    let ci = token(&server, &["ci", "--role", "reader"]);
    let list = async |token: &str| {
        let mut lookup = LookupClient::new(transport(&server, token).await);
        lookup.list_skills(v1::ListSkillsRequest::default()).await
    };
    let outcomes = async |token: &str| {
        let mut outcomes = Vec::new();
        for _ in 0..5 {
            outcomes.push(outcome(list(token).await));
        }
        outcomes
    };
    let refused = "QUOTA_EXCEEDED";
    assert_eq!(
        outcomes(&ada).await,
        ["done", "done", "done", refused, refused]
    );
    assert_eq!(outcomes(&ci).await, ["done"; 5]);
    assert_eq!(
        outcomes("").await,
        ["done", "done", "done", refused, refused]
    );
    let status = list(&ada).await.expect_err("refused");
    let details = status.get_details_error_info().expect("details").metadata;
    assert_eq!(
        (
            status.code(),
            status.message(),
            &details["limit"],
            &details["quota"]
        ),
        (
            tonic::Code::ResourceExhausted,
            "token:ada may make 3 calls a minute",
            &"3".to_owned(),
            &"calls_per_minute".to_owned()
        )
    );
    let wait = status.get_details_retry_info().expect("a time").retry_delay;
    assert!(wait.expect("a time").as_secs() <= 20, "{wait:?}");
    let rest =
        ask(&server.url, "GET", "/api/v1/skills").header("authorization", &format!("Bearer {ada}"));
    let rest = rest.send().await;
    assert_eq!(rest.refusal(), (429, refused.to_owned()));
    assert!(rest.header("retry-after").parse::<u32>().expect("seconds") <= 20);
    let call = json!({"name": "list_skills", "arguments": {}});
    let mcp = ask(&server.url, "POST", "/mcp")
        .header("authorization", &format!("Bearer {ada}"))
        .mcp("tools/call", call);
    let text = mcp.send().await.text();
    assert!(text.contains(refused), "{text}");
    // Over the socket in the data directory there is no quota.
    for _ in 0..5 {
        assert!(super::local(&server, &["list"]).status.success());
    }
}
