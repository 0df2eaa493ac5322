//! Learning over the real binary: the examples of the specification, what is hidden, a
//! server that is killed, the operator's own paths, and the command line.

mod command_line;
mod examples;
mod own_paths;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use contract::v1::learning_client::LearningClient;
use futures_util::StreamExt as _;

use contract::v1;
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::support::Server;
use crate::support::web::ask;

async fn learning(server: &Server) -> LearningClient<Channel> {
    LearningClient::new(server.channel().await)
}

/// A tool of the specification, over MCP: its envelope, without what differs each time.
async fn tool(server: &Server, name: &str, arguments: Value) -> Value {
    let request = ask(&server.url, "POST", "/mcp/learning");
    let call = json!({"name": name, "arguments": arguments});
    let answer = request.mcp("tools/call", call).send().await;
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
