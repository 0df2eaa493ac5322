//! What belongs to a caller, and how much a caller may have.

use contract::v1;
use contract::v1::access_client::AccessClient;
use contract::v1::learning_client::LearningClient;
use contract::v1::lookup_client::LookupClient;
use gateway::{Context, Gateway};
use serde_json::{Value, json};
use tonic_types::StatusExt as _;

use super::{CONFIG, local, reason, role_token, token, transport};
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

/// The path `create-your-first-skill` or whichever comes first, and an exercise of it.
async fn first_exercise(server: &Server, token: &str, learner: &str) -> (String, String) {
    let mut learning = LearningClient::new(transport(server, token).await);
    let paths = learning.get_paths(v1::GetPathsRequest::default()).await;
    let path_id = paths.expect("paths").into_inner().paths.remove(0).id;
    let next = v1::NextExerciseRequest {
        path_id: path_id.clone(),
        learner: learner.to_owned(),
    };
    let next = learning.next_exercise(next).await.expect("an exercise");
    let exercise = next.into_inner().exercise.expect("an exercise");
    (path_id, exercise.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_that_writes_reaches_the_progress_of_another_caller_by_its_name() {
    let server = Server::with(&[], "access:\n  sign_in: tokens\n  anonymous: [agent]\n");
    let ada = token(&server, &["ada", "--role", "agent"]);
    let (path, exercise) = first_exercise(&server, &ada, "").await;
    let progress = async |token: &str, learner: &str| {
        let mut learning = LearningClient::new(transport(&server, token).await);
        let request = v1::GetProgressRequest {
            learner: learner.to_owned(),
            include_history: true,
            ..Default::default()
        };
        learning
            .get_progress(request)
            .await
            .map(tonic::Response::into_inner)
    };
    let before = progress(&ada, "").await.expect("progress");
    let reviewer = token(&server, &["rev", "--role", "reviewer"]);
    let eve = token(&server, &["eve", "--role", "agent"]);
    // Whatever the contract has that takes a learner, also what it may have later.
    let pool =
        prost_reflect::DescriptorPool::decode(contract::FILE_DESCRIPTOR_SET).expect("a pool");
    let service = pool
        .get_service_by_name("repertoire.v1.Learning")
        .expect("a service");
    let mut called = 0;
    for caller in [reviewer.as_str(), &eve, ""] {
        let contract = contract::load().expect("the contract");
        let gateway = Gateway::new(contract, transport(&server, caller).await);
        for rpc in service.methods().filter(|rpc| !rpc.is_server_streaming()) {
            let input = rpc.input();
            if input.get_field_by_name("learner").is_none() {
                continue;
            }
            let mut methods = gateway.contract().methods().iter();
            let method = methods.find(|it| it.service == "Learning" && it.name == rpc.name());
            let method = method.expect("a method");
            let mut request = serde_json::Map::new();
            for (field, value) in [
                ("learner", json!("token:ada")),
                ("path_id", json!(path)),
                ("exercise_id", json!(exercise)),
                ("solution", json!("nothing")),
                ("confirm", json!(true)),
                ("practice", json!(true)),
            ] {
                if input.get_field_by_name(field).is_some() {
                    request.insert(field.to_owned(), value);
                }
            }
            let ask = gateway.read(method, request).expect("a request");
            let answer = gateway.call(method, ask, Context::default()).await;
            if caller.is_empty() {
                let refusal = answer.err().map(|refusal| refusal.code);
                assert_eq!(
                    refusal.as_deref(),
                    Some("INVALID_PARAMETER"),
                    "{}",
                    rpc.name()
                );
            }
            called += 1;
        }
    }
    assert!(called >= 3 * 8, "{called}");
    assert_eq!(progress(&ada, "").await.expect("progress"), before);
    let read = progress(&reviewer, "token:ada")
        .await
        .expect("for who grades");
    assert_eq!(read.recent_activity, before.recent_activity);

    let reset = async |token: &str, learner: &str| {
        let mut learning = LearningClient::new(transport(&server, token).await);
        let request = v1::ResetProgressRequest {
            path_id: path.clone(),
            confirm: true,
            learner: learner.to_owned(),
        };
        let reset = learning.reset_progress(request).await.expect("an answer");
        reset.into_inner().exercises_reset
    };
    let operator = token(
        &server,
        &["ops", "--action", "operate", "--action", "learn"],
    );
    assert_eq!(reset(&operator, "token:ada").await, 1);
    first_exercise(&server, &ada, "").await;
    assert_eq!(reset(&ada, "").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_hands_in_endless_loops_for_learners_that_it_makes_up_delays_no_other() {
    let server = Server::with(&[], CONFIG);
    let ada = token(&server, &["ada", "--role", "agent"]);
    let eve = token(&server, &["eve", "--role", "agent"]);
    let submit = |learner: &str, solution: &str| v1::SubmitSolutionRequest {
        exercise_id: "test-first-unit-test".to_owned(),
        learner: learner.to_owned(),
        solution: solution.to_owned(),
        practice: true,
        ..Default::default()
    };
    let by_eve = LearningClient::new(transport(&server, &eve).await);
    // So many that they would keep all processors for longer than a solution waits.
    let loops: Vec<_> = (0..32)
        .map(|number| {
            let (mut by_eve, endless) =
                (by_eve.clone(), submit(&number.to_string(), "for (;;) {}"));
            tokio::spawn(async move { by_eve.submit_solution(endless).await })
        })
        .collect();
    let mut by_ada = LearningClient::new(transport(&server, &ada).await);
    for number in 0..4 {
        let wrong = submit("", &format!("// nothing {number}"));
        let graded = by_ada
            .submit_solution(wrong)
            .await
            .expect("graded")
            .into_inner();
        assert_eq!(graded.verdict(), v1::Verdict::Fail, "{number}");
    }
    for one in loops {
        one.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_by_who_signed_in_and_never_of_its_own_solution() {
    let server = Server::with(&[], CONFIG);
    let ada = token(&server, &["ada", "--role", "agent"]);
    let rev = token(&server, &["rev", "--role", "reviewer"]);
    let manual = "review-a-skill";
    let mut outcomes = Vec::new();
    for token in [&ada, &rev] {
        let mut learning = LearningClient::new(transport(&server, token).await);
        let sent = v1::SubmitSolutionRequest {
            exercise_id: manual.to_owned(),
            // A name of its own makes it nobody else's.
            learner: "token:ada".to_owned(),
            solution: "---\nname: refunds\ndescription: Pays back.\n---\nAsk.\n".to_owned(),
            practice: true,
            ..Default::default()
        };
        let sent = learning
            .submit_solution(sent)
            .await
            .expect("handed in")
            .into_inner();
        assert_eq!(sent.verdict(), v1::Verdict::Pending);
        let review = v1::ReviewSubmissionRequest {
            submission_id: sent.submission_id,
            reviewer: "The Headmaster".to_owned(),
            passed: true,
            ..Default::default()
        };
        let mut reviewing = LearningClient::new(transport(&server, &rev).await);
        outcomes.push(outcome(reviewing.review_submission(review).await));
    }
    assert_eq!(outcomes, ["done", "INVALID_PARAMETER"]);
    let mut learning = LearningClient::new(transport(&server, &ada).await);
    let history = v1::GetProgressRequest {
        include_history: true,
        ..Default::default()
    };
    let history = learning
        .get_progress(history)
        .await
        .expect("progress")
        .into_inner();
    let details = history.recent_activity.iter().map(|it| it.details.as_str());
    let reviewed: Vec<_> = details.filter(|it| it.contains("reviewed")).collect();
    assert_eq!(reviewed.len(), 1, "{reviewed:?}");
    assert!(
        reviewed[0].starts_with("token:rev reviewed"),
        "{reviewed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_after_a_revoked_token_has_nothing_of_it_and_a_rotated_one_has_all() {
    let server = Server::with(&[], CONFIG);
    let bob = token(&server, &["bob", "--role", "agent"]);
    local(
        &server,
        &[
            "namespace",
            "set",
            "github/bobs",
            "--add-owner",
            "token:bob",
            "--visibility",
            "private",
        ],
    );
    let load = v1::LoadSkillRequest {
        skill_id: "jira".to_owned(),
        ..Default::default()
    };
    let mut lookup = LookupClient::new(transport(&server, &bob).await);
    let session_id = lookup
        .load_skill(load)
        .await
        .expect("loaded")
        .into_inner()
        .session_id;
    first_exercise(&server, &bob, "").await;
    // What is his: a session, progress, a namespace.
    let his = async |token: &str| {
        let mut lookup = LookupClient::new(transport(&server, token).await);
        let list = v1::ListLoadedSkillsRequest {
            session_id: session_id.clone(),
        };
        let mut learning = LearningClient::new(transport(&server, token).await);
        let progress = v1::GetProgressRequest {
            include_history: true,
            ..Default::default()
        };
        let progress = learning.get_progress(progress).await;
        let mut access = AccessClient::new(transport(&server, token).await);
        let namespaces = access
            .list_namespaces(v1::ListNamespacesRequest::default())
            .await;
        json!([
            outcome(lookup.list_loaded_skills(list).await),
            progress
                .map(|it| it.into_inner().recent_activity.len())
                .map_err(|it| reason(&it)),
            namespaces
                .map(|it| it.into_inner().namespaces.len())
                .map_err(|it| reason(&it)),
        ])
    };
    let all = his(&bob).await;
    assert_eq!(all, json!(["done", {"Ok": 1}, {"Ok": 1}]));
    let rotated = local(&server, &["token", "rotate", "bob", "--format", "plain"]);
    assert!(rotated.status.success(), "{rotated:?}");
    let rotated = String::from_utf8(rotated.stdout)
        .expect("text")
        .trim()
        .to_owned();
    assert_eq!(his(&rotated).await, all);
    let refused = json!({"Err": "TOKEN_REFUSED"});
    assert_eq!(his(&bob).await, json!(["TOKEN_REFUSED", refused, refused]));

    assert!(local(&server, &["token", "revoke", "bob"]).status.success());
    let again = local(&server, &["token", "create", "bob", "--role", "agent"]);
    let problem: Value = serde_json::from_slice(&again.stdout)
        .or_else(|_| serde_json::from_slice(&again.stderr))
        .unwrap_or_default();
    assert!(
        !again.status.success() && problem.to_string().contains("TOKEN_NAME_USED"),
        "{again:?}"
    );
    let other = token(&server, &["bob-2", "--role", "agent"]);
    assert_eq!(
        his(&other).await,
        json!(["SESSION_NOT_FOUND", {"Ok": 0}, {"Ok": 0}])
    );
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
