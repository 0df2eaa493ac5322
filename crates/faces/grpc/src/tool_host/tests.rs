//! Workers over gRPC, in process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use tonic_types::StatusExt as _;

use super::*;
use caller_tokens::CallerTokens;
use contract::handlers::Handlers;
use contract::v1::attach_request::Message as Says;
use contract::v1::attach_response::Message as Told;
use contract::v1::tool_host_client::ToolHostClient;
use contract::v1::tool_host_server::ToolHostServer;
use handler::Handler as _;
use model::{Digest, Principal, SystemClock, ToolConfig, ToolName, VersionNumber, find_tool};
use tools::host::{Admitted, Config};

const TOKEN: &str = "0123456789abcdef";
const SKILL: &str = "acme/ops/report";

fn tool(name: &str) -> ToolName {
    let config = ToolConfig {
        name: name.to_owned(),
        description: String::new(),
        method: String::new(),
        args: Vec::new(),
    };
    let (name, _) = find_tool(&[config], name).expect("a tool");
    name
}

fn host() -> Host {
    let config = Config {
        workers: vec![Admitted {
            name: "reports".to_owned(),
            token: TOKEN.to_owned().into(),
            skills: vec!["acme/*".parse().expect("a pattern")],
        }],
        ..Config::default()
    };
    let tokens = CallerTokens::new("repertoire".to_owned(), Arc::new(SystemClock));
    Host::new(config, tokens.expect("a key"))
}

fn hello(name: &str) -> v1::Hello {
    v1::Hello {
        name: name.to_owned(),
        skills: vec![v1::ServedSkill {
            skill_id: SKILL.to_owned(),
            methods: vec!["make".to_owned()],
        }],
        concurrency: 2,
    }
}

type Mouth = mpsc::UnboundedSender<v1::AttachRequest>;

fn say(mouth: &Mouth, message: Says) {
    // A stream that has ended hears nothing more.
    let _ended = mouth.send(v1::AttachRequest {
        message: Some(message),
    });
}

async fn attach(
    host: &Host,
    authorization: &str,
    first: v1::Hello,
) -> Result<(Mouth, Streaming<v1::AttachResponse>), Status> {
    let server = ToolHostServer::new(Handlers::new(ToolHostService(host.clone())))
        .max_decoding_message_size(host.max_message_bytes());
    let (mouth, messages) = mpsc::unbounded_channel();
    say(&mouth, Says::Hello(first));
    let mut request = Request::new(UnboundedReceiverStream::new(messages));
    if !authorization.is_empty() {
        let value = authorization.parse().expect("a header");
        request.metadata_mut().insert("authorization", value);
    }
    let told = ToolHostClient::new(server).attach(request).await?;
    Ok((mouth, told.into_inner()))
}

async fn attached(host: &Host) -> (Mouth, Streaming<v1::AttachResponse>) {
    let bearer = format!("Bearer {TOKEN}");
    let (mouth, mut told) = attach(host, &bearer, hello("r"))
        .await
        .expect("to be let in");
    assert_eq!(
        next(&mut told).await,
        Ok(Told::Welcome(v1::Welcome {
            worker_id: "reports-1".to_owned(),
            heartbeat: Some(duration(Duration::from_secs(10))),
            concurrency: 2,
            max_result_bytes: 1024 * 1024,
            audience: "reports".to_owned(),
        }))
    );
    (mouth, told)
}

/// What a worker is told next; the code and the message of the end.
async fn next(told: &mut Streaming<v1::AttachResponse>) -> Result<Told, (Code, String)> {
    match told.message().await {
        Ok(Some(answer)) => Ok(answer.message.expect("a message")),
        Ok(None) => Err((Code::Ok, String::new())),
        Err(status) => Err((status.code(), status.message().to_owned())),
    }
}

type Running = tokio::task::JoinHandle<Result<Output, ToolError>>;

fn start(host: &Host, id: &str) -> Running {
    let object = |value: serde_json::Value| match value {
        serde_json::Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let invocation = Invocation {
        id: id.to_owned(),
        skill: SKILL.parse().expect("an id"),
        version: VersionNumber::new(7).expect("a number"),
        digest: Digest::of(b"x"),
        tool: Some(tool("report")),
        method: "make".to_owned(),
        arguments: object(json!({"rows": 5, "of": ["a", {"b": null}]})),
        context: object(json!({"team": "ops"})),
        timeout: Duration::from_secs(20),
        idempotency_key: "key".to_owned(),
        caller: Principal::anonymous(),
        progress: None,
    };
    let host = host.clone();
    tokio::spawn(async move { host.call(invocation).await })
}

fn outcome(id: &str, outcome: Option<v1::outcome::Outcome>) -> Says {
    Says::Outcome(v1::Outcome {
        invocation_id: id.to_owned(),
        outcome,
    })
}

fn result(content: String, structured: Option<prost_types::Struct>) -> v1::outcome::Outcome {
    v1::outcome::Outcome::Result(v1::ToolResult {
        content,
        structured,
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_to_a_worker_and_its_result_comes_back_whole() {
    let host = host();
    let (mouth, mut told) = attached(&host).await;
    let call = start(&host, "one");
    let Ok(Told::Invocation(given)) = next(&mut told).await else {
        panic!("no invocation")
    };
    let (arguments, context) = (given.arguments.clone(), given.context.clone());
    assert_eq!(
        given,
        v1::Invocation {
            invocation_id: "one".to_owned(),
            skill_id: SKILL.to_owned(),
            version_number: 7,
            digest: Digest::of(b"x").to_string(),
            tool: "report".to_owned(),
            method: "make".to_owned(),
            arguments: arguments.clone(),
            context: context.clone(),
            timeout: Some(duration(Duration::from_secs(20))),
            idempotency_key: "key".to_owned(),
            caller: "anonymous".to_owned(),
            caller_token: String::new(),
        }
    );
    let json =
        |object: Option<prost_types::Struct>| json!(json::from_struct(object.expect("an object")));
    assert_eq!(
        json(arguments.clone()),
        json!({"of": ["a", {"b": null}], "rows": 5})
    );
    assert_eq!(json(context), json!({"team": "ops"}));
    say(
        &mouth,
        outcome("one", Some(result("made".to_owned(), arguments))),
    );
    let output = call.await.expect("no panic").expect("a result");
    assert_eq!(
        (output.text.as_str(), json!(output.structured)),
        ("made", json!({"of": ["a", {"b": null}], "rows": 5}))
    );

    let call = start(&host, "two");
    assert!(matches!(next(&mut told).await, Ok(Told::Invocation(_))));
    let error = v1::ToolError {
        kind: v1::ToolErrorKind::Unavailable.into(),
        message: "later".to_owned(),
        suggestions: vec!["wait".to_owned()],
        field: "rows".to_owned(),
        retry_after: Some(prost_types::Duration {
            seconds: i64::MAX,
            nanos: 0,
        }),
    };
    say(
        &mouth,
        outcome("two", Some(v1::outcome::Outcome::Error(error))),
    );
    let mut expected = ToolError::new(ToolErrorKind::Unavailable, "later")
        .suggest("wait")
        .field("rows");
    expected.retry_after = Some(MAX_RETRY);
    assert_eq!(call.await.expect("no panic"), Err(expected));
    say(&mouth, Says::Drain(v1::Drain {}));
    assert_eq!(next(&mut told).await, Err((Code::Ok, String::new())));
}

#[tokio::test(start_paused = true)]
async fn only_a_bearer_with_a_token_and_a_hello_that_keeps_the_rules_is_let_in() {
    let host = host();
    let refusal = async |authorization: &str, first: v1::Hello| {
        let attached = attach(&host, authorization, first).await;
        let status = attached.map(|_| ()).expect_err("a refusal");
        let wrong = status.get_details_bad_request().into_iter();
        let fields = wrong
            .flat_map(|wrong| wrong.field_violations)
            .map(|one| one.field);
        let info = status.get_details_error_info().expect("an ErrorInfo");
        (status.code(), info.reason, fields.collect::<Vec<_>>())
    };
    let refused = (Code::PermissionDenied, "WORKER_REFUSED".to_owned(), vec![]);
    for authorization in [
        "",
        TOKEN,
        "Bearer",
        "Bearer ",
        "Bearer nobody",
        "Basic 0123456789abcdef",
        "Bearer 0123456789abcdef0",
    ] {
        assert_eq!(
            refusal(authorization, hello("r")).await,
            refused,
            "{authorization:?}"
        );
    }
    let bearer = format!("bEARER {TOKEN}");
    let mut empty = hello("");
    empty.skills.clear();
    empty.concurrency = 1025;
    assert_eq!(
        refusal(&bearer, empty).await,
        (
            Code::InvalidArgument,
            "INVALID_PARAMETER".to_owned(),
            ["name", "skills", "concurrency"]
                .map(|field| format!("hello.{field}"))
                .to_vec()
        )
    );
    let mut short = hello("r");
    short.skills[0].skill_id = "report".to_owned();
    assert_eq!(
        refusal(&bearer, short).await,
        (
            Code::InvalidArgument,
            "INVALID_PARAMETER".to_owned(),
            vec!["hello.skills[0].skill_id".to_owned()]
        )
    );
    assert!(attach(&host, &bearer, hello("r")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_breaks_the_rules_fails_its_call_and_says_which() {
    let host = host();
    let (mouth, mut told) = attached(&host).await;
    let silent = v1::outcome::Outcome::Error(v1::ToolError {
        kind: 99,
        ..Default::default()
    });
    let broken =
        "The worker's answer breaks the rules of the contract; the server sent it a notice";
    for (id, said, notice) in [
        ("a", None, "the outcome has neither `result` nor `error`"),
        (
            "b",
            Some(silent),
            "error.kind: must be a value that the enum names; error.message: An error needs a message",
        ),
    ] {
        let call = start(&host, id);
        assert!(matches!(next(&mut told).await, Ok(Told::Invocation(_))));
        say(&mouth, outcome(id, said));
        let error = call.await.expect("no panic").expect_err("a failure");
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ToolErrorKind::Failed, broken)
        );
        assert_eq!(
            next(&mut told).await,
            Ok(Told::Notice(v1::Notice {
                invocation_id: id.to_owned(),
                message: notice.to_owned(),
            }))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_of_100_mib_ends_the_stream_with_its_size_and_fails_the_call() {
    let host = host();
    let (mouth, mut told) = attached(&host).await;
    let call = start(&host, "one");
    assert!(matches!(next(&mut told).await, Ok(Told::Invocation(_))));
    say(
        &mouth,
        outcome("one", Some(result("x".repeat(100 << 20), None))),
    );
    let error = call.await.expect("no panic").expect_err("a failure");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            ToolErrorKind::Unavailable,
            "The worker that ran `make` of acme/ops/report is gone, and did not answer"
        )
    );
    let (code, message) = next(&mut told).await.expect_err("an end");
    assert_eq!(code, Code::InvalidArgument);
    assert!(
        message.starts_with("A message of the worker cannot be read: ")
            && message.contains("10485")
            && message.contains("5242880"),
        "{message}"
    );
}

#[test]
fn a_result_with_an_integer_that_a_double_cannot_hold_fails_its_call_by_name() {
    let object = |id: serde_json::Value| {
        let json = json!({"rows": [{"id": id}]});
        json::to_struct(json.as_object().expect("an object").clone())
    };
    let said = |id: serde_json::Value| {
        super::outcome(v1::Outcome {
            invocation_id: "one".to_owned(),
            outcome: Some(result("x".to_owned(), Some(object(id)))),
        })
    };
    let FromWorker::Malformed { id, why } = said(json!(9_007_199_254_740_993_i64)) else {
        panic!("taken");
    };
    assert_eq!(
        (id.as_str(), why.as_str()),
        (
            "one",
            "result.structured.rows[0].id: Number is too large to be carried exactly; send it as a string"
        )
    );
    assert!(matches!(
        said(json!("9007199254740993")),
        FromWorker::Outcome { .. }
    ));
}
