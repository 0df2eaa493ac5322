//! Learning over the real binary: the examples of the specification, what is hidden, a
//! server that is killed, the operator's own paths, and the command line.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use futures_util::StreamExt as _;
use repertoire::contract::v1::learning_client::LearningClient;

use repertoire::contract::{self, v1};
use serde_json::{Value, json};
use support::web::{ask, get};
use support::{Server, command, skill};
use tempfile::TempDir;
use tonic::transport::Channel;

async fn learning(server: &Server) -> LearningClient<Channel> {
    LearningClient::new(server.channel().await)
}

/// A tool of the specification, over MCP: its envelope, without what differs each time.
async fn tool(server: &Server, name: &str, arguments: Value) -> Value {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": name, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let request = ask(&server.url, "POST", "/mcp/learning")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name)
        .json(&body);
    let answer = request.send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut envelope = answer.json()["result"]["structuredContent"].take();
    let metadata = envelope
        .as_object_mut()
        .and_then(|it| it.remove("metadata"));
    assert!(metadata.expect("metadata")["execution_time_ms"].is_number());
    envelope
}

fn paths() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("skills/paths")
}

/// The reference solutions of a path that comes with the server, in order.
fn solutions(path: &str) -> Vec<(String, Value)> {
    let folder = paths().join(path).join("exercises");
    let entries = std::fs::read_dir(&folder).expect("exercises");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    let solved = names.into_iter().map(|name| {
        let exercise = folder.join(&name);
        let id = name.split_once('-').expect("a number").1.to_owned();
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(&exercise).expect("files") {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if stem == Some("solution") && path.is_file() {
                files.insert(String::new(), std::fs::read_to_string(&path).expect("text"));
            } else if stem == Some("solution") {
                for file in walk(&path) {
                    let inside = file
                        .strip_prefix(&path)
                        .expect("inside")
                        .display()
                        .to_string();
                    files.insert(inside, std::fs::read_to_string(&file).expect("text"));
                }
            }
        }
        let solution = if let Some(text) = files.remove("") {
            json!({"exercise_id": id, "solution": text})
        } else {
            let files = files.into_iter();
            let files: Vec<_> = files
                .map(|(path, text)| json!({"path": path, "text": text}))
                .collect();
            json!({"exercise_id": id, "files": files})
        };
        (id, solution)
    });
    solved.collect()
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[tokio::test]
async fn the_examples_of_finding_a_path_come_true() {
    let server = Server::start();
    let found = tool(
        &server,
        "get_paths",
        json!({"category": "testing", "include_progress": true}),
    )
    .await;
    assert_eq!(found["success"], true);
    let path = &found["data"]["paths"][0];
    assert_eq!(
        (
            &path["id"],
            &path["name"],
            &path["difficulty"],
            &path["estimated_hours"],
            &path["exercise_count"]
        ),
        (
            &json!("testing-fundamentals"),
            &json!("Testing Fundamentals"),
            &json!("beginner"),
            &json!(4),
            &json!(12)
        )
    );
    assert_eq!(
        path["description"],
        "Learn unit testing, integration testing, and TDD"
    );
    assert_eq!(
        path["progress"],
        json!({"completed_exercises": 0, "percent_complete": 0})
    );
    assert_eq!(
        path["skills_covered"],
        json!(["jest-skill", "testing-library-skill"])
    );

    let of = json!({"path_id": "testing-fundamentals"});
    let first = tool(&server, "next_exercise", of.clone()).await;
    assert_eq!(first["data"]["exercise"]["id"], "test-first-unit-test");
}

/// Solves the first five exercises of the path of the examples.
async fn solve_five(server: &Server) {
    for (_, solution) in solutions("testing-fundamentals").into_iter().take(5) {
        let passed = tool(server, "submit_solution", solution).await;
        assert_eq!(
            (&passed["success"], &passed["data"]["passed"]),
            (&json!(true), &json!(true)),
            "{passed:#}"
        );
    }
}

#[tokio::test]
async fn the_examples_of_a_path_and_of_the_next_exercise_come_true() {
    let server = Server::start();
    solve_five(&server).await;
    let path = tool(
        &server,
        "get_path",
        json!({"path_id": "testing-fundamentals", "include_exercises": true}),
    )
    .await;
    let path = &path["data"]["path"];
    let objectives = [
        "Write effective unit tests",
        "Understand test-driven development",
        "Use mocking and stubbing",
    ];
    assert_eq!(path["learning_objectives"], json!(objectives));
    assert_eq!(
        path["exercises"][0],
        json!({
            "id": "test-first-unit-test", "title": "Your First Unit Test", "type": "tutorial",
            "estimated_minutes": 15, "status": "completed", "skills_practiced": ["jest-skill"],
        })
    );

    let of = json!({"path_id": "testing-fundamentals"});
    let next = tool(&server, "next_exercise", of.clone()).await;
    let exercise = &next["data"]["exercise"];
    assert_eq!(
        next["data"]["path_progress"],
        json!({"completed": 5, "remaining": 7, "percent_complete": 42})
    );
    let expected = json!({
        "id": "test-async-functions", "path_id": "testing-fundamentals", "title": "Testing Async Functions",
        "type": "practice", "difficulty": "medium", "estimated_minutes": 20,
        "hints": ["Use async/await in your test", "Mock the fetch function"], "validation_type": "test",
        "test_cases": [{
            "input": "fetchUser(1)", "expected": "{ id: 1, name: 'Test User' }",
            "description": "Should return user object",
        }],
        "skills_practiced": ["jest-skill"], "related_docs": ["https://jestjs.io/docs/asynchronous"],
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&exercise[key], value, "{key}");
    }
}

/// Submits the solution of the example.
async fn submit_the_example(server: &Server) -> Value {
    let solution = "test('fetches user successfully', async () => {\n  const user = await fetchUser(1);\n  expect(user).toEqual({ id: 1, name: 'Test User' });\n});";
    let submit = json!({"exercise_id": "test-async-functions", "solution": solution, "request_feedback": true});
    tool(server, "submit_solution", submit).await
}

fn ace() -> Value {
    json!({
        "id": "async-ace", "name": "Async Ace",
        "description": "Complete your first async testing exercise", "icon": "lightning",
    })
}

#[tokio::test]
async fn the_example_of_a_submission_comes_true() {
    let server = Server::start();
    solve_five(&server).await;
    let passed = submit_the_example(&server).await;
    let data = &passed["data"];
    assert_eq!(
        (&passed["success"], &data["passed"]),
        (&json!(true), &json!(true)),
        "{passed:#}"
    );
    let results = &data["feedback"]["test_results"];
    assert_eq!(
        (&results["passed"], &results["failed"]),
        (&json!(3), &json!(0))
    );
    assert!(has(
        &data["feedback"]["suggestions"],
        "Consider adding error handling tests"
    ));
    assert!(has(
        &data["feedback"]["exemplary_aspects"],
        "Proper use of async/await"
    ));
    assert!(has(
        &data["feedback"]["exemplary_aspects"],
        "Clear assertion"
    ));
    assert_eq!(
        data["next_exercise"],
        json!({
            "id": "test-mocking-basics", "title": "Introduction to Mocking", "type": "tutorial",
            "estimated_minutes": 25, "status": "available",
            "skills_practiced": data["next_exercise"]["skills_practiced"],
        })
    );
    let ace = ace();
    assert!(
        data["achievements_earned"]
            .as_array()
            .expect("some")
            .contains(&ace)
    );
}

#[tokio::test]
async fn the_examples_of_progress_and_of_a_reset_come_true() {
    let server = Server::start();
    solve_five(&server).await;
    submit_the_example(&server).await;
    let (ace, of) = (ace(), json!({"path_id": "testing-fundamentals"}));
    let progress = tool(&server, "get_progress", json!({"include_history": true})).await;
    let progress = &progress["data"];
    let paths = progress["paths"].as_array().expect("paths").iter();
    let testing = paths
        .clone()
        .find(|path| path["path_id"] == "testing-fundamentals")
        .expect("the path");
    assert_eq!(
        (
            &testing["completed_exercises"],
            &testing["percent_complete"],
            &testing["status"]
        ),
        (&json!(6), &json!(50), &json!("in_progress"))
    );
    assert_eq!(progress["overall"]["completed_exercises"], 6);
    assert_eq!(progress["streak"]["current_streak"], 1);
    let activity = &progress["recent_activity"][1];
    assert_eq!(activity["type"], "exercise_completed");
    assert_eq!(activity["details"], "Completed 'Testing Async Functions'");
    assert!(
        progress["achievements"]
            .as_array()
            .expect("some")
            .contains(&ace)
    );

    let preview = tool(&server, "reset_progress", of.clone()).await;
    let mut expected = json!({
        "path_id": "testing-fundamentals", "exercises_reset": 6, "achievements_retained": true,
        "previous_completion": 50, "confirmed": false,
    });
    assert_eq!(preview["data"], expected);
    let reset = json!({"path_id": "testing-fundamentals", "confirm": true});
    let reset = tool(&server, "reset_progress", reset).await;
    expected["confirmed"] = json!(true);
    assert_eq!(reset["data"], expected);
    let after = tool(&server, "get_progress", json!({})).await;
    assert_eq!(after["data"]["overall"]["completed_exercises"], 0);
    assert!(
        after["data"]["achievements"]
            .as_array()
            .expect("some")
            .contains(&ace)
    );
}

fn has(list: &Value, text: &str) -> bool {
    list.as_array()
        .is_some_and(|list| list.contains(&json!(text)))
}

#[tokio::test]
async fn every_path_that_comes_with_the_server_is_walked_to_its_end() {
    let server = Server::start();
    let all = tool(&server, "get_paths", json!({})).await;
    let all = all["data"]["paths"].as_array().expect("paths").clone();
    assert!(all.len() >= 5);
    for path in &all {
        let id = path["id"].as_str().expect("an id");
        let mut solutions: BTreeMap<_, _> = solutions(id).into_iter().collect();
        let learner = format!("walker of {id}");
        while !solutions.is_empty() {
            let next = tool(
                &server,
                "next_exercise",
                json!({"path_id": id, "learner": learner}),
            )
            .await;
            assert_eq!(next["success"], true, "{id}: {next:#}");
            let exercise = next["data"]["exercise"]["id"]
                .as_str()
                .expect("an id")
                .to_owned();
            let mut solution = solutions
                .remove(&exercise)
                .unwrap_or_else(|| panic!("{exercise} twice"));
            solution["learner"] = json!(learner);
            let answer = tool(&server, "submit_solution", solution).await;
            if answer["data"]["verdict"] == "pending" {
                let review = v1::ReviewSubmissionRequest {
                    submission_id: answer["data"]["submission_id"]
                        .as_str()
                        .expect("an id")
                        .to_owned(),
                    reviewer: "a reviewer".to_owned(),
                    passed: true,
                    ..Default::default()
                };
                learning(&server)
                    .await
                    .review_submission(review)
                    .await
                    .expect("reviewed");
            } else {
                assert_eq!(answer["data"]["verdict"], "pass", "{exercise}: {answer:#}");
            }
        }
        let over = tool(
            &server,
            "next_exercise",
            json!({"path_id": id, "learner": learner}),
        )
        .await;
        assert_eq!(over["error"]["code"], "NO_EXERCISES_REMAINING", "{id}");
    }
}

#[tokio::test]
async fn a_solution_that_does_not_pass_is_an_answer_with_an_error_on_every_face() {
    let server = Server::start();
    let wrong = json!({"exercise_id": "test-first-unit-test", "solution": "// nothing"});
    let envelope = tool(&server, "submit_solution", wrong.clone()).await;
    assert_eq!(
        (&envelope["success"], &envelope["error"]["code"]),
        (&json!(false), &json!("SOLUTION_INVALID"))
    );
    let data = &envelope["data"];
    assert_eq!(
        (&data["passed"], &data["verdict"]),
        (&json!(false), &json!("fail"))
    );
    assert!(data.get("error").is_none(), "it stands in the envelope");
    let body = json!({"solution": "// nothing"});
    let path = "/api/v1/learning/exercises/test-first-unit-test:submit";
    let rest = ask(&server.url, "POST", path).json(&body).send().await;
    assert_eq!(rest.status, 200);
    let mut rest = rest.json();
    assert_eq!(rest["error"]["code"], "SOLUTION_INVALID");
    rest.as_object_mut().expect("an object").remove("error");
    assert_eq!(&rest, data, "the same submission, the same answer");
    let request = v1::SubmitSolutionRequest {
        exercise_id: "test-first-unit-test".to_owned(),
        solution: "// nothing".to_owned(),
        ..Default::default()
    };
    let grpc = learning(&server)
        .await
        .submit_solution(request)
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!(grpc.verdict(), v1::Verdict::Fail);
    assert_eq!(grpc.error.expect("an error").code, "SOLUTION_INVALID");
    assert_eq!(json!(grpc.submission_id), data["submission_id"]);
}

#[tokio::test]
async fn what_cannot_be_graded_costs_nothing_and_is_not_recorded() {
    let server = Server::start();
    let endless = json!({"exercise_id": "test-first-unit-test", "solution": "for (;;) {}"});
    let envelope = tool(&server, "submit_solution", endless).await;
    assert_eq!(envelope["error"]["code"], "GRADING_FAILED", "{envelope:#}");
    assert_eq!(envelope["data"]["verdict"], "error");
    assert!(envelope["data"].get("submission_id").is_none());
    let progress = tool(&server, "get_progress", json!({"include_history": true})).await;
    assert!(progress["data"].get("recent_activity").is_none());
}

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

/// Hands in until it is graded: a server with as much to grade as it takes on says so.
async fn graded(
    client: &mut LearningClient<Channel>,
    submit: v1::SubmitSolutionRequest,
) -> v1::SubmitSolutionResponse {
    for _ in 0..100 {
        match client.submit_solution(submit.clone()).await {
            Ok(graded) => return graded.into_inner(),
            Err(busy) => assert_eq!(busy.code(), tonic::Code::ResourceExhausted, "{busy}"),
        }
    }
    panic!("the server was busy all the time");
}

/// Each hands in a right solution twice at once, and one in ten something that never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_learners_at_once_are_each_graded_once() {
    const LEARNERS: usize = 300;
    let server = Server::start();
    let client = learning(&server).await;
    let solution =
        paths().join("operating-repertoire/exercises/02-start-and-ask-for-health/solution.sh");
    let solution = std::fs::read_to_string(solution).expect("text");
    let submit = |exercise: &str, learner: usize, solution: &str| v1::SubmitSolutionRequest {
        exercise_id: exercise.to_owned(),
        learner: format!("learner {learner}"),
        solution: solution.to_owned(),
        practice: true,
        ..Default::default()
    };
    let learners = (0..LEARNERS).map(|number| {
        let (mut one, mut two, mut three) = (client.clone(), client.clone(), client.clone());
        let right = || submit("start-and-ask-for-health", number, &solution);
        let (first, second) = (right(), right());
        let endless = submit("test-first-unit-test", LEARNERS + number % 3, "for (;;) {}");
        async move {
            let (first, second) = tokio::join!(graded(&mut one, first), graded(&mut two, second));
            if number % 100 == 0 {
                let ended = graded(&mut three, endless).await;
                assert_eq!(ended.verdict(), v1::Verdict::Error);
            }
            assert!(first.passed && second.passed, "{first:?} {second:?}");
            assert_eq!(first.submission_id, second.submission_id);
            let progress = v1::GetProgressRequest {
                learner: format!("learner {number}"),
                include_history: true,
                ..Default::default()
            };
            let progress = one.get_progress(progress).await.expect("progress");
            progress.into_inner()
        }
    });
    let progress = futures_util::stream::iter(learners).buffer_unordered(50);
    let progress: Vec<_> = progress.collect().await;
    for progress in progress {
        let completed = progress.recent_activity.iter();
        let completed = completed.filter(|it| it.r#type() == v1::ActivityType::ExerciseCompleted);
        assert_eq!(completed.count(), 1, "{progress:#?}");
        assert_eq!(progress.overall.expect("overall").completed_exercises, 1);
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
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

#[tokio::test]
async fn a_server_that_is_killed_while_it_takes_a_solution_has_it_once_or_not_at_all() {
    let directory = TempDir::new().expect("a folder");
    let mut known: Option<String> = None;
    for round in 0..6_u64 {
        let server = Server::over(directory.path(), &[], "");
        let mut client = learning(&server).await;
        let submit = v1::SubmitSolutionRequest {
            exercise_id: "test-first-unit-test".to_owned(),
            solution: solutions("testing-fundamentals")[0].1["solution"]
                .as_str()
                .expect("text")
                .to_owned(),
            ..Default::default()
        };
        if round % 2 == 0 {
            // Killed while some of these are graded or written.
            let sent = (0..4).map(|_| {
                let (mut client, submit) = (client.clone(), submit.clone());
                tokio::spawn(async move { client.submit_solution(submit).await })
            });
            let sent: Vec<_> = sent.collect();
            tokio::time::sleep(std::time::Duration::from_millis(20 * round)).await;
            drop(server);
            for answer in sent {
                let answer = answer.await.expect("a task");
                known = known.or_else(|| Some(answer.ok()?.into_inner().submission_id));
            }
            continue;
        }
        let answer = client
            .submit_solution(submit)
            .await
            .expect("an answer")
            .into_inner();
        assert_eq!(
            known.get_or_insert(answer.submission_id.clone()),
            &answer.submission_id
        );
        let progress = v1::GetProgressRequest {
            include_history: true,
            ..Default::default()
        };
        let progress = client
            .get_progress(progress)
            .await
            .expect("progress")
            .into_inner();
        let completed = progress.recent_activity.iter();
        let completed = completed.filter(|it| it.r#type() == v1::ActivityType::ExerciseCompleted);
        assert_eq!(completed.count(), 1, "{progress:#?}");
        assert_eq!(progress.overall.expect("overall").completed_exercises, 1);
    }
}

#[test]
fn a_learner_starts_an_exercise_hands_it_in_and_sees_how_far_they_are() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let work = directory.path().join("work");
    let run = |args: &[&str]| {
        command(&[&["learn"], args, &["--data", &data, "--learner", "ann"]].concat())
    };
    let started = run(&[
        "start",
        "testing-fundamentals",
        "--dir",
        &work.display().to_string(),
    ]);
    assert!(started.status.success(), "{}", text(&started));
    let folder = work.join("test-first-unit-test");
    let mut files: Vec<_> = walk(&folder);
    files.sort();
    assert_eq!(
        files,
        [folder.join("EXERCISE.md"), folder.join("solution.js")]
    );
    let place = folder.display().to_string();
    let failed = run(&["submit", &place]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
    let solution =
        paths().join("testing-fundamentals/exercises/01-test-first-unit-test/solution.js");
    std::fs::copy(&solution, folder.join("solution.js")).expect("a file");
    let passed = run(&["submit", &place]);
    assert!(passed.status.success(), "{}", text(&passed));
    let again = run(&[
        "start",
        "test-first-unit-test",
        "--dir",
        &work.display().to_string(),
    ]);
    assert!(again.status.success(), "{}", text(&again));
    let read = |path: &Path| std::fs::read(path).expect("a file");
    assert_eq!(
        read(&folder.join("solution.js")),
        read(&solution),
        "one's own work stays"
    );
    let progress = run(&["progress"]);
    let progress: Value = serde_json::from_slice(&progress.stdout).expect("JSON");
    assert_eq!(progress["overall"]["completed_exercises"], 1);
    let hint = run(&["hint", "test-first-unit-test"]);
    assert!(hint.status.success(), "{}", text(&hint));
    let unknown = run(&["start", "no-such"]);
    assert!(
        text(&unknown).contains("EXERCISE_NOT_FOUND"),
        "{}",
        text(&unknown)
    );
}

#[test]
fn what_a_refusal_suggests_can_be_typed() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let run = |args: &[&str]| {
        let made = command(&[&["learn"], args, &["--data", &data]].concat());
        (made.status.success(), text(&made))
    };
    let (_, locked) = run(&["hint", "test-async-functions"]);
    assert!(locked.contains("Add `--practice` to open it"), "{locked}");
    let (revealed, hint) = run(&["hint", "test-async-functions", "--practice"]);
    assert!(revealed && hint.contains("\"number\": 3"), "{hint}");
    let solution = directory.path().join("other.sql");
    std::fs::write(&solution, "SELECT 1;").expect("a file");
    let (_, unknown) = run(&["submit", &solution.display().to_string()]);
    let folder = directory.path().file_name().expect("a name").display();
    let hint = format!(
        "Say which exercise it solves: `--exercise ID`. Without it, it is the name of the folder, here `{folder}`"
    );
    assert!(
        unknown.contains("EXERCISE_NOT_FOUND") && unknown.contains(&hint),
        "{unknown}"
    );
}

#[test]
fn a_learner_sees_what_a_reviewer_looks_at_and_what_they_said() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let run = |args: &[&str]| {
        let made = command(&[&["learn"], args, &["--data", &data]].concat());
        assert!(made.status.success(), "{}", text(&made));
        serde_json::from_slice::<Value>(&made.stdout).expect("JSON")
    };
    let folder = directory.path().display().to_string();
    let start = &["start", "review-a-skill", "--practice", "--dir", &folder];
    let opened = run(start);
    let checklist = opened["checklist"].as_array().expect("a list");
    assert!(checklist.len() > 1, "{opened:#}");
    let written = directory.path().join("review-a-skill");
    let about = std::fs::read_to_string(written.join("EXERCISE.md")).expect("text");
    for item in checklist {
        let item = item.as_str().expect("text");
        assert!(about.contains(&format!("- [ ] {item}")), "{about}");
    }
    let submit = &["submit", &written.display().to_string(), "--practice"];
    let sent = run(submit);
    let id = sent["submission_id"].as_str().expect("an id");
    let comment = "Say what is good, too.";
    run(&[
        "review",
        id,
        "--reviewer",
        "bob",
        "--fail",
        "--comment",
        comment,
    ]);
    let mut said = run(start)["last_review"].take();
    let time = said
        .as_object_mut()
        .and_then(|said| said.remove("create_time"));
    assert!(time.is_some());
    assert_eq!(
        said,
        json!({"reviewer": "bob", "passed": false, "comment": comment})
    );
    let progress = run(&["progress", "--history"]);
    let last = &progress["recent_activity"][0];
    assert_eq!(
        (&last["type"], &last["details"]),
        (
            &json!("submission_reviewed"),
            &json!(format!(
                "bob reviewed 'Review a Skill', which does not pass yet: {comment}"
            ))
        )
    );
}

#[test]
fn doctor_says_which_confinements_hold() {
    let looked = command(&["doctor"]);
    let answer: Value = serde_json::from_slice(&looked.stdout).expect("JSON");
    let checks = answer["checks"].as_array().expect("checks");
    let names: Vec<_> = checks
        .iter()
        .map(|check| check["check"].as_str().expect("text"))
        .collect();
    assert_eq!(
        names,
        [
            "features",
            "sandbox.rlimits",
            "sandbox.landlock",
            "sandbox.seccomp",
            "data.server"
        ]
    );
    assert_eq!(checks[1]["state"], "ok", "{answer:#}");
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
