//! Grading, what it does to other callers, and progress after much of it.
//!
//! The server is a child process that shares both processors with the callers and with
//! the processes that run solutions, as it would on a small machine.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contract::v1;
use contract::v1::learning_client::LearningClient;
use contract::v1::lookup_client::LookupClient;
use futures_util::future::join_all;
use support::process::Server;
use support::{Bar, against, figure, median, quantile, quick};
use tonic::transport::Channel;
use walkdir::WalkDir;

/// An exercise whose tests run against four implementations.
const JAVASCRIPT: &str = "test-first-unit-test";
/// Learners who hand in at once.
const PARALLEL: usize = 50;
/// Callers of `GetSkill`.
const CALLERS: usize = 4;

#[tokio::main]
async fn main() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let server = Server::repertoire(&folder.path().join("data"));
    let url = format!("http://{}", server.address);
    let channel = Channel::from_shared(url).expect("an address");
    let channel = channel.connect().await.expect("a connection");
    grades(&channel).await;
    beside(&channel).await;
    progress(&channel).await;
    server.terminate();
}

fn submission(exercise: &str, learner: &str, solution: String) -> v1::SubmitSolutionRequest {
    v1::SubmitSolutionRequest {
        exercise_id: exercise.to_owned(),
        learner: learner.to_owned(),
        practice: true,
        solution,
        ..Default::default()
    }
}

/// A right solution that nobody handed in before.
fn right(number: usize) -> String {
    format!("test('number {number}', () => {{ expect(total(3, 4)).toBe(12); }});")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn grade(client: &mut LearningClient<Channel>, request: v1::SubmitSolutionRequest) -> f64 {
    let begin = Instant::now();
    let answer = client.submit_solution(request).await.expect("an answer");
    assert_eq!(answer.into_inner().verdict(), v1::Verdict::Pass);
    millis(begin.elapsed())
}

async fn grades(channel: &Channel) {
    let mut client = LearningClient::new(channel.clone());
    let mut times = Vec::new();
    for number in 0..if quick() { 20 } else { 400 } {
        let request = submission(JAVASCRIPT, "alone", right(number));
        times.push(grade(&mut client, request).await);
    }
    figure("a grade of JavaScript, p50", median(&times), "ms");
    let p95 = quantile(&times, 0.95);
    against("a grade of JavaScript, p95", p95, "ms", Bar::AtMost(250.0));
}

/// Times of `GetSkill` until it is told to stop.
async fn skills(channel: Channel, stop: Arc<AtomicBool>) -> Vec<f64> {
    let callers = (0..CALLERS).map(|_| {
        let (mut client, stop) = (LookupClient::new(channel.clone()), Arc::clone(&stop));
        async move {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let request = v1::GetSkillRequest {
                    skill_id: "xlsx".to_owned(),
                    ..Default::default()
                };
                let begin = Instant::now();
                client.get_skill(request).await.expect("a skill");
                times.push(millis(begin.elapsed()));
            }
            times
        }
    });
    join_all(callers).await.concat()
}

async fn beside(channel: &Channel) {
    let time = Duration::from_secs(if quick() { 1 } else { 5 });
    let (mut alone, mut loaded, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..if quick() { 1 } else { 5 } {
        for busy in [false, true] {
            let stop = Arc::new(AtomicBool::new(false));
            let callers = tokio::spawn(skills(channel.clone(), Arc::clone(&stop)));
            let learners = (0..if busy { PARALLEL } else { 0 }).map(|at| {
                let (mut client, stop) = (LearningClient::new(channel.clone()), Arc::clone(&stop));
                tokio::spawn(async move {
                    let mut count = 0_usize;
                    while !stop.load(Ordering::Relaxed) {
                        let number = (round * PARALLEL + at) * 100_000 + count;
                        let request =
                            submission(JAVASCRIPT, &format!("learner {at}"), right(number));
                        grade(&mut client, request).await;
                        count += 1;
                    }
                    count
                })
            });
            let learners: Vec<_> = learners.collect();
            tokio::time::sleep(time).await;
            stop.store(true, Ordering::Relaxed);
            let times = callers.await.expect("callers");
            let graded: usize = join_all(learners)
                .await
                .into_iter()
                .map(|it| it.expect("a learner"))
                .sum();
            if busy {
                rates.push(graded as f64 / time.as_secs_f64());
                loaded.push(quantile(&times, 0.99));
            } else {
                alone.push(quantile(&times, 0.99));
            }
        }
    }
    figure("grades, 50 learners at once", median(&rates), "/s");
    figure("GetSkill alone, p99", median(&alone), "ms");
    figure("GetSkill beside 50 submissions, p99", median(&loaded), "ms");
    let ratios: Vec<f64> = alone
        .iter()
        .zip(&loaded)
        .map(|(alone, loaded)| loaded / alone)
        .collect();
    against(
        "the second over the first",
        median(&ratios),
        "x",
        Bar::AtMost(2.0),
    );
}

/// A solution of each exercise, in the order of the paths: its id, the path, the files.
fn references() -> Vec<(String, String, BTreeMap<String, String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills/paths");
    let entries = WalkDir::new(&root).sort_by_file_name().into_iter();
    let mut found: BTreeMap<(String, String), BTreeMap<String, String>> = BTreeMap::new();
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let path = entry.path().strip_prefix(&root).expect("below it");
        let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
        let [folder, "exercises", exercise, name, inside @ ..] = parts.as_slice() else {
            continue;
        };
        let is_solution = *name == "solution" || name.starts_with("solution.");
        if !is_solution || !entry.file_type().is_file() {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("text");
        let files = found.entry(((*folder).to_owned(), (*exercise).to_owned()));
        files.or_default().insert(inside.join("/"), text);
    }
    let found = found.into_iter().map(|((folder, exercise), files)| {
        let (_, id) = exercise.split_once('-').expect("a number");
        (id.to_owned(), folder, files)
    });
    found.collect()
}

/// Passing and failing submissions of every exercise, over and over: each path is set back
/// when it was done, so that its completions are in the history again.
async fn busy_learner(client: &mut LearningClient<Channel>, count: usize) -> usize {
    let references = references();
    let mut sent = 0;
    for round in 0.. {
        for (id, path, files) in &references {
            for fails in [true, false] {
                if sent == count {
                    return sent;
                }
                let mut request = submission(id, "busy", String::new());
                let mark = |text: &String| {
                    if fails {
                        format!("nothing, number {round}")
                    } else {
                        text.clone()
                    }
                };
                if let Some(text) = files.get("") {
                    request.solution = mark(text);
                } else {
                    let files = files.iter().map(|(path, text)| v1::SolutionFile {
                        path: path.clone(),
                        text: mark(text),
                    });
                    request.files = files.collect();
                }
                client.submit_solution(request).await.expect("an answer");
                sent += 1;
            }
            let is_last = references.iter().rfind(|(_, other, _)| other == path);
            if is_last.is_some_and(|(last, ..)| last == id) {
                let reset = v1::ResetProgressRequest {
                    path_id: path.clone(),
                    learner: "busy".to_owned(),
                    // The last round stays.
                    confirm: count - sent > 2 * references.len(),
                };
                client.reset_progress(reset).await.expect("a reset");
            }
        }
    }
    sent
}

async fn progress(channel: &Channel) {
    let mut client = LearningClient::new(channel.clone());
    let sent = busy_learner(&mut client, if quick() { 200 } else { 10_000 }).await;
    figure("submissions of the busy learner", sent as f64, "");
    for history_size in [20, 200] {
        let mut times = Vec::new();
        for _ in 0..200 {
            let request = v1::GetProgressRequest {
                learner: "busy".to_owned(),
                include_history: true,
                history_size,
                ..Default::default()
            };
            let begin = Instant::now();
            client.get_progress(request).await.expect("progress");
            times.push(millis(begin.elapsed()));
        }
        let what = format!("GetProgress after these, {history_size} of its history");
        figure(&format!("{what}, p50"), median(&times), "ms");
        let p95 = quantile(&times, 0.95);
        against(&format!("{what}, p95"), p95, "ms", Bar::AtMost(2.0));
    }
}
