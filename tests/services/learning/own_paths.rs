//! Paths of an operator: what is hidden in them, what passes no gate, and what workers grade.

use std::path::Path;

use contract::{self, v1};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::transport::Channel;

use super::{learning, text, tool, walk};
use crate::support::web::{ask, get};
use crate::support::{Server, command, skill};

/// A path of one's own, with a mark in everything that no learner may see.
fn own_path(root: &Path, id: &str, exercise: &str) {
    let folder = root
        .join(id)
        .join("exercises")
        .join(format!("01-{exercise}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = format!(
        "---\nname: My {id}\ndescription: Mine.\ncategory: own\ndifficulty: beginner\nestimated_hours: 1\nskills_covered: []\nobjectives: [add]\n---\nHello.\n"
    );
    std::fs::write(root.join(id).join("PATH.md"), path).expect("a file");
    let text = "---\ntitle: Add\ntype: tutorial\ndifficulty: easy\nestimated_minutes: 5\nteaches: [adding-CONCEPT]\nrequires: []\nskills_practiced: []\nhints: [A nudge., 'CANARY-hint: write a + b']\nvalidation:\n  type: test\n  language: javascript\n  cases:\n    - {input: 'add(1, 2)', expected: '3', description: adds}\n    - {input: 'add(\"CANARY-in\", \"put\") + 1', expected: '\"CANARY-input1\"', description: joins, hidden: true}\n---\nWrite add.\n";
    std::fs::write(folder.join("EXERCISE.md"), text.replace("CONCEPT", id)).expect("a file");
    std::fs::write(folder.join("starter.js"), "// your turn\n").expect("a file");
    std::fs::write(
        folder.join("solution.js"),
        "/* CANARY-solution */ const add = (a, b) => a + b;\n",
    )
    .expect("a file");
}

fn config(folder: &Path) -> String {
    format!("learning:\n  paths: [{}]\n", folder.display())
}

/// Waits until a path is served: those of the operator pass their gate first.
async fn served(server: &Server, id: &str) {
    for _ in 0..600 {
        let found = get(&server.url, &format!("/api/v1/learning/paths/{id}")).await;
        if found.status == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{id} is not served");
}

/// What solutions of the exercise, and the exercise itself, are answered with.
async fn over_grpc(server: &Server, solutions: &[&str]) -> Vec<String> {
    let mut seen = Vec::new();
    let mut grpc = learning(server).await;
    // What never ends takes as long on each face.
    for solution in solutions.iter().filter(|it| !it.contains("for (;;)")) {
        let submit = v1::SubmitSolutionRequest {
            exercise_id: "add".to_owned(),
            solution: format!("{solution}\n"),
            ..Default::default()
        };
        seen.push(format!("{:?}", grpc.submit_solution(submit).await));
    }
    let start = v1::GetExerciseRequest {
        exercise_id: "add".to_owned(),
        ..Default::default()
    };
    seen.push(format!("{:?}", grpc.get_exercise(start).await));
    seen
}

#[tokio::test]
async fn what_is_hidden_is_in_no_answer_log_error_or_backup() {
    let folder = TempDir::new().expect("a folder");
    own_path(folder.path(), "own", "add");
    // All that it could say.
    let server = Server::with(&["--log", "trace"], &config(folder.path()));
    served(&server, "own").await;
    let mut seen = Vec::new();
    let solutions = [
        "",
        "add = 1",
        "const add = () => 3;",
        "const add = (a, b) => { throw new Error(JSON.stringify([a, b])) };",
        "const add = (a, b) => { console.log(a, b); return {a, b} };",
        "const add = (a, b) => a + b + '';",
        "syntax error(",
        "for (;;) {}",
        "const add = (a, b) => Object.getOwnPropertyNames(globalThis).join();",
        "const add = (a, b) => new Error().stack;",
        "const add = (a, b) => add.toString() + arguments.callee;",
        "const add = (a, b) => a + b;",
    ];
    for solution in solutions {
        let submit = json!({"exercise_id": "add", "solution": solution});
        seen.push(
            tool(&server, "submit_solution", submit.clone())
                .await
                .to_string(),
        );
        let rest = ask(&server.url, "POST", "/api/v1/learning/exercises/add:submit");
        seen.push(
            rest.json(&json!({"solution": format!("{solution} ")}))
                .send()
                .await
                .text(),
        );
    }
    seen.extend(over_grpc(&server, &solutions).await);
    let start = ask(&server.url, "POST", "/api/v1/learning/exercises/add:start");
    seen.push(start.json(&json!({})).send().await.text());
    for (name, arguments) in [
        ("get_paths", json!({})),
        ("get_path", json!({"path_id": "own"})),
        ("next_exercise", json!({"path_id": "own"})),
        ("get_progress", json!({"include_history": true})),
        ("reset_progress", json!({"path_id": "own"})),
        ("submit_solution", json!({"exercise_id": "none"})),
    ] {
        seen.push(tool(&server, name, arguments).await.to_string());
    }
    for path in [
        "/api/v1/learning/progress/events?max_wait_seconds=1",
        "/api/v1/learning/submissions",
        "/openapi.json",
        "/metrics",
        "/api/v1/skills",
    ] {
        seen.push(get(&server.url, path).await.text());
    }
    let hint = ask(
        &server.url,
        "POST",
        "/api/v1/learning/exercises/add:revealHint",
    )
    .json(&json!({"learner": "x"}));
    let hint = hint.send().await.text();
    assert!(hint.contains("A nudge."), "{hint}");
    seen.push(hint);
    let backup = folder.path().join("backup");
    let made = command(&[
        "backup",
        &backup.display().to_string(),
        "--data",
        &server.data.display().to_string(),
    ]);
    assert!(made.status.success(), "{}", text(&made));
    let held = unpacked(&backup);
    assert!(
        held.contains("\"exercise\":\"add\""),
        "it has the submissions"
    );
    seen.push(held);
    let log = server.log();
    assert!(log.contains("method=SubmitSolution"), "{log}");
    seen.push(log);
    for file in walk(&server.data) {
        let Ok(bytes) = std::fs::read(&file) else {
            // A socket.
            continue;
        };
        seen.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for text in &seen {
        let at = text
            .find("CANARY")
            .map(|at| text.get(at.saturating_sub(200)..at + 20));
        assert_eq!(at, None);
    }
}

/// What a backup holds: a line that names it, then what zstd packed.
fn unpacked(backup: &Path) -> String {
    let bytes = std::fs::read(backup).expect("a backup");
    let line = bytes.iter().position(|byte| *byte == b'\n');
    let packed = &bytes[line.expect("a line") + 1..];
    let held = zstd::decode_all(packed).expect("what zstd packed");
    String::from_utf8_lossy(&held).into_owned()
}

#[tokio::test]
async fn a_path_that_does_not_pass_its_gate_is_left_out_and_the_others_are_served() {
    let folder = TempDir::new().expect("a folder");
    own_path(folder.path(), "good", "sum");
    own_path(folder.path(), "lazy", "lazy");
    let solution = folder.path().join("lazy/exercises/01-lazy/solution.js");
    std::fs::write(&solution, "const add = () => 0;\n").expect("a file");
    let checked = command(&[
        "learn",
        "check",
        &folder.path().display().to_string(),
        "--json",
    ]);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
    let answer: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!(
        (&answer["valid"], &answer["refused"]),
        (&json!(1), &json!(1)),
        "{answer:#}"
    );
    let rules = answer["paths"][1]["problems"].as_array().expect("problems");
    assert!(
        rules.iter().any(|it| it["rule"] == "solution-fails"),
        "{answer:#}"
    );
    let server = Server::with(&[], &config(folder.path()));
    served(&server, "good").await;
    let lazy = get(&server.url, "/api/v1/learning/paths/lazy").await;
    assert_eq!(
        (lazy.status.as_u16(), &lazy.json()["code"]),
        (404, &json!("PATH_NOT_FOUND"))
    );
}

/// A worker that grades a language of its own: a solution is `double` or anything else.
async fn worker(channel: Channel) {
    use v1::attach_request::Message as Says;
    use v1::attach_response::Message as Told;
    let (says, messages) = tokio::sync::mpsc::unbounded_channel();
    let say = |message| {
        let message = Some(message);
        says.send(v1::AttachRequest { message }).expect("a stream");
    };
    say(Says::Hello(v1::Hello {
        name: "doubler".to_owned(),
        skills: vec![v1::ServedSkill {
            skill_id: "acme/graders/doubling".to_owned(),
            methods: vec!["grade".to_owned()],
        }],
        concurrency: 2,
    }));
    let messages = tokio_stream::wrappers::UnboundedReceiverStream::new(messages);
    let mut request = tonic::Request::new(messages);
    let token = format!("Bearer {TOKEN}").parse().expect("a header");
    request.metadata_mut().insert("authorization", token);
    let mut client = v1::tool_host_client::ToolHostClient::new(channel);
    let mut told = client.attach(request).await.expect("let in").into_inner();
    while let Ok(Some(answer)) = told.message().await {
        match answer.message {
            Some(Told::Invocation(call)) => {
                let arguments = contract::json::from_struct(call.arguments.expect("arguments"));
                let solution = arguments["files"]
                    .as_object()
                    .expect("files")
                    .values()
                    .next();
                let doubles = solution.and_then(Value::as_str).map(str::trim) == Some("double");
                let inputs = arguments["inputs"].as_array().expect("inputs").iter();
                let value = |input: &Value| {
                    let input = input.as_f64().expect("a number");
                    json!({"value": if doubles { 2.0 * input } else { input }})
                };
                let cases: Vec<_> = inputs.map(value).collect();
                let result = v1::ToolResult {
                    content: json!({"cases": cases}).to_string(),
                    structured: None,
                };
                say(Says::Outcome(v1::Outcome {
                    invocation_id: call.invocation_id,
                    outcome: Some(v1::outcome::Outcome::Result(result)),
                }));
            }
            Some(Told::Heartbeat(beat)) => say(Says::Heartbeat(beat)),
            _ => {}
        }
    }
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn a_worker_grades_a_language_that_the_server_does_not_know() {
    let folder = TempDir::new().expect("a folder");
    own_path(folder.path(), "doubling", "twice");
    let exercise = folder.path().join("doubling/exercises/01-twice");
    let text = "---\ntitle: Double\ntype: tutorial\ndifficulty: easy\nestimated_minutes: 5\nteaches: [doubling]\nrequires: []\nskills_practiced: []\nhints: [A nudge., A word.]\nvalidation:\n  type: test\n  language: doubling\n  grader: {skill: acme/graders/doubling, method: grade}\n  cases:\n    - {input: 2, expected: 4, description: doubles two}\n    - {input: 21, expected: 42, description: doubles more, hidden: true}\n---\nSay double.\n";
    for file in ["starter.js", "solution.js"] {
        std::fs::remove_file(exercise.join(file)).expect("a file");
    }
    std::fs::write(exercise.join("EXERCISE.md"), text).expect("a file");
    std::fs::write(exercise.join("starter.txt"), "half\n").expect("a file");
    std::fs::write(exercise.join("solution.txt"), "double\n").expect("a file");
    let workers = format!(
        "tools:\n  workers:\n    - {{name: doubler, token: {TOKEN}, skills: ['acme/graders/*']}}\n"
    );
    let server = Server::with(&[], &format!("{workers}{}", config(folder.path())));
    let grader = skill("acme/graders/doubling", "", "Grades.");
    server
        .registry()
        .await
        .publish_skill(grader)
        .await
        .expect("published");
    // The path waits for its grader, and is served once that is there.
    let working = tokio::spawn(worker(server.channel().await));
    served(&server, "doubling").await;
    let submit = |solution: &str| json!({"exercise_id": "twice", "solution": solution});
    let passed = tool(&server, "submit_solution", submit("double")).await;
    assert_eq!(passed["data"]["verdict"], "pass", "{passed:#}");
    let failed = tool(&server, "submit_solution", submit("triple")).await;
    let results = &failed["data"]["feedback"]["test_results"]["details"];
    assert_eq!(
        (&results[0]["expected"], &results[0]["actual"]),
        (&json!("4"), &json!("2.0"))
    );
    assert!(results[1].get("expected").is_none(), "it is hidden");
    working.abort();
    // Its end is seen by the server when the stream closes, and then nothing grades.
    drop(working.await);
    let mut gone = Value::Null;
    for number in 0..200 {
        gone = tool(
            &server,
            "submit_solution",
            submit(&format!("quarter {number}")),
        )
        .await;
        if gone["error"]["code"] == "GRADING_FAILED" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(gone["data"]["verdict"], "error", "{gone:#}");
}
