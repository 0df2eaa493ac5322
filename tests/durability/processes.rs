//! A server and its data directory, as the system treats them: a disk that
//! refuses, a second process, a stop under load, a start that was cut short.

mod full_disk;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use contract::v1;
use model::seal_token;
use tempfile::TempDir;

use crate::harness::client::{Client, read_everything, read_skill};
use crate::harness::model::{Answer, Op, Skill, State, digest, draft};
use crate::harness::{self, Dice, START_LIMIT, Server, repertoire, run};

const LIMIT: Duration = Duration::from_secs(20);
/// How long a server may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A skill as its writer left it.
struct Left {
    skill: Skill,
    /// A write whose answer does not say whether it is there.
    unknown: Option<Op>,
}

impl Left {
    /// What the skill may look like.
    fn states(&self) -> Vec<Option<State>> {
        let mut after = self.skill.clone();
        if let Some(op) = &self.unknown {
            after.apply(op);
        }
        vec![self.skill.state.clone(), after.state]
    }
}

/// Starts a server on the directory and compares all of it; gives what writes
/// were found that nobody acknowledged.
async fn compare(data: &Path, left: &[Left]) -> usize {
    let (server, url) = Server::start(data);
    let client = Client::connect(&url).await.expect("a client");
    let everything = read_everything(&client).await.expect("a whole directory");
    let mut more = 0;
    let mut skills = everything.skills;
    for left in left {
        let id = &left.skill.id;
        let found = skills.remove(id).flatten();
        let states = left.states();
        assert!(
            states.contains(&found),
            "'{id}' is {found:?}, not {:?}",
            left.skill.state
        );
        more += usize::from(found != left.skill.state);
    }
    let others: Vec<_> = skills
        .keys()
        .filter(|id| !id.starts_with("builtin/"))
        .collect();
    assert_eq!(others, Vec::<&String>::new(), "nobody asked for these");
    let written = draft(&mut Dice::new(99), "local/global/afterwards", 1000, None);
    let answer = client
        .write("local/global/afterwards", &Op::Publish(written), "")
        .await;
    assert!(matches!(answer, Ok(Answer::Published { .. })), "{answer:?}");
    stop(server).await;
    more
}

async fn stop(mut server: Server) {
    server.terminate();
    // Not on this thread: the clients have to hear that the server goes.
    let ended = tokio::task::spawn_blocking(move || server.ended(STOP_LIMIT)).await;
    let (status, stderr) = ended.expect("a wait");
    assert!(
        status.is_some_and(|status| status.success()),
        "{status:?} {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[tokio::test]
async fn a_second_process_on_a_directory_in_use_refuses_and_says_which() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let (server, _) = Server::start(&data);
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["verify"],
        &["reindex"],
    ] {
        let ran = run(repertoire(arguments, &data), LIMIT);
        assert_eq!(ran.code(), Some(1), "{arguments:?}: {}", ran.stderr);
        let named = format!(
            "the data directory `{}` is in use by process {}",
            data.display(),
            server.pid()
        );
        assert!(ran.stderr.contains(&named), "{arguments:?}: {}", ran.stderr);
        let next = format!("kill {}", server.pid());
        assert!(ran.stderr.contains(&next), "{arguments:?}: {}", ran.stderr);
    }
    let ran = run(repertoire(&["list"], &data), LIMIT);
    assert_eq!(
        ran.code(),
        Some(0),
        "a command finds the server: {}",
        ran.stderr
    );
    stop(server).await;
    let ran = run(repertoire(&["verify"], &data), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
}

/// Publishes until the server is gone.
async fn publish_on(url: String, name: usize, acknowledged: Arc<AtomicUsize>) -> Left {
    let mut dice = Dice::new(name as u64);
    let client = Client::connect(&url).await.expect("a client");
    let mut left = Left {
        skill: Skill::new(format!("local/global/writer-{name}")),
        unknown: None,
    };
    loop {
        let op = Op::Publish(draft(&mut dice, &left.skill.id, 20_000, None));
        match client.write(&left.skill.id, &op, "").await {
            Ok(Answer::Refused(code)) => {
                assert_eq!(code, "SHUTTING_DOWN");
                return left;
            }
            Ok(answer) => {
                assert_eq!(answer, left.skill.apply(&op));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Err(_gone) => {
                left.unknown = Some(op);
                return left;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_under_load_is_in_time_and_keeps_every_acknowledged_write() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let (mut server, url) = Server::start(&data);
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..8)
        .map(|name| tokio::spawn(publish_on(url.clone(), name, Arc::clone(&acknowledged))))
        .collect();
    while acknowledged.load(Ordering::SeqCst) < 100 {
        assert!(
            server.started.elapsed() < START_LIMIT,
            "the server takes writes"
        );
        tokio::task::yield_now().await;
    }
    server.terminate();
    let (status, stderr) = tokio::task::spawn_blocking(move || server.ended(STOP_LIMIT))
        .await
        .expect("a wait");
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let mut left = Vec::new();
    for writer in writers {
        left.push(writer.await.expect("a writer"));
    }
    let more = compare(&data, &left).await;
    println!(
        "{} acknowledged and there, {more} more",
        acknowledged.load(Ordering::SeqCst)
    );
}

#[tokio::test]
async fn a_directory_whose_making_was_cut_short_is_made_anew() {
    let marks: [&[u8]; 3] = [
        b"",
        b"{\"product\":\"rep",
        b"{\"product\":\"repertoire\",\"format\":1}",
    ];
    for mark in marks {
        for made in 0..4 {
            let folder = TempDir::new().expect("a folder");
            let data = folder.path().join("data");
            fs::create_dir(&data).expect("a folder");
            fs::write(data.join("FORMAT.new"), mark).expect("a file");
            if made > 0 {
                fs::create_dir_all(data.join("store/blobs")).expect("a folder");
            }
            if made > 1 {
                fs::write(data.join("store/conf"), "half").expect("a file");
            }
            if made > 2 {
                fs::write(data.join("store/db"), [0; 100]).expect("a file");
            }
            assert_eq!(compare(&data, &[]).await, 0);
        }
    }
    let folder = TempDir::new().expect("a folder");
    fs::create_dir_all(folder.path().join("store")).expect("a folder");
    fs::write(folder.path().join("store/thesis.txt"), "years of work").expect("a file");
    let ran = run(
        repertoire(&["serve", "--listen", "127.0.0.1:0"], folder.path()),
        LIMIT,
    );
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(
        folder.path().join("store/thesis.txt").exists(),
        "what is not ours stays"
    );
}

#[tokio::test]
async fn a_version_of_before_a_delete_stays_gone() {
    let folder = TempDir::new().expect("a folder");
    let (server, url) = Server::start(&folder.path().join("data"));
    let client = Client::connect(&url).await.expect("a client");
    let mut dice = Dice::new(1);
    let mut skill = Skill::new("local/global/again".to_owned());
    let (first, second) = (
        draft(&mut dice, &skill.id, 500, None),
        draft(&mut dice, &skill.id, 500, None),
    );
    let ops = [
        Op::Publish(first),
        Op::Delete,
        Op::Publish(second),
        Op::Activate(1),
        Op::Yank(2, String::new()),
    ];
    for op in ops {
        let answer = client.write(&skill.id, &op, "").await.expect("an answer");
        assert_eq!(answer, skill.apply(&op), "{op:?}");
    }
    assert_eq!(
        read_everything(&client)
            .await
            .map(|all| all.skills.get(&skill.id).cloned()),
        Ok(Some(skill.state))
    );
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_server_that_writes_is_the_server_at_one_moment() {
    let folder = TempDir::new().expect("a folder");
    let (data, file) = (folder.path().join("data"), folder.path().join("backup"));
    let (server, url) = Server::start(&data);
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let writer = tokio::spawn(publish_on(url, 1, Arc::clone(&acknowledged)));
    while acknowledged.load(Ordering::SeqCst) < 20 {
        tokio::task::yield_now().await;
    }
    let before = acknowledged.load(Ordering::SeqCst);
    let arguments = ["backup", file.to_str().expect("a path")];
    let command = repertoire(&arguments, &data);
    let ran = tokio::task::spawn_blocking(move || run(command, LIMIT));
    let ran = ran.await.expect("a task");
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let after = acknowledged.load(Ordering::SeqCst) + 1;
    let again = run(repertoire(&arguments, &data), LIMIT);
    assert_eq!(again.code(), Some(1), "the file is there already");
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    stop(server).await;
    let left = writer.await.expect("a writer");

    let copy = folder.path().join("copy");
    let ran = run(repertoire(&["restore", arguments[1]], &copy), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let ran = run(repertoire(&["verify"], &copy), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let (server, url) = Server::start(&copy);
    let client = Client::connect(&url).await.expect("a client");
    let found = harness::client::read_skill(&client, &left.skill.id).await;
    let versions = found.expect("a skill").expect("a skill").versions;
    assert!(
        (before..=after).contains(&versions.len()),
        "{}",
        versions.len()
    );
    let known = left.skill.state.expect("a skill").versions;
    assert!(versions.iter().all(|(number, kept)| {
        let same = |of: &harness::model::Kept| of.digest == kept.digest;
        known.get(number).is_none_or(same)
    }));
    stop(server).await;
}

/// All that happens until the server goes.
async fn watch_on(url: String, log: String) -> Vec<v1::Event> {
    let client = Client::connect(&url).await.expect("a client");
    let request = v1::WatchRequest {
        resume_token: seal_token("resume", "", &format!("{log}/0")),
        ..Default::default()
    };
    let watch = client.registry.clone().watch(request).await;
    let mut watch = watch.expect("a watch").into_inner();
    let mut events: Vec<v1::Event> = Vec::new();
    while let Ok(Some(answer)) = watch.message().await {
        events.extend(answer.event);
    }
    events
}

/// Reads a skill, byte by byte, until the server is about to go.
async fn read_on(
    url: String,
    id: String,
    expected: Option<State>,
    stops: Arc<AtomicBool>,
) -> usize {
    let client = Client::connect(&url).await.expect("a client");
    let mut reads = 0;
    loop {
        match read_skill(&client, &id).await {
            Ok(found) => assert_eq!(found, expected, "after {reads} reads"),
            Err(_) if stops.load(Ordering::SeqCst) => return reads,
            Err(error) => panic!("after {reads} reads: {error}"),
        }
        reads += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_compacted_serves_on_and_gives_space_back() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let (server, url) = Server::start(&data);
    let client = Client::connect(&url).await.expect("a client");
    let mut dice = Dice::new(7);
    let mut skills = Vec::new();
    for (name, waste) in [("stays", 1_000), ("goes", 1_500_000)] {
        let mut skill = Skill::new(format!("local/global/{name}"));
        for _ in 0..10 {
            let mut draft = draft(&mut dice, &skill.id, 20_000, None);
            let files = Arc::make_mut(&mut draft.files);
            files.insert("assets/more.npy".to_owned(), dice.bytes(waste).into());
            draft.digest = digest(files);
            let op = Op::Publish(draft);
            let answer = client.write(&skill.id, &op, "").await.expect("an answer");
            assert_eq!(answer, skill.apply(&op));
        }
        skills.push(skill);
    }
    let goes = client.write(&skills[1].id, &Op::Delete, "").await;
    assert_eq!(goes.expect("an answer"), skills[1].apply(&Op::Delete));
    let log = read_everything(&client).await.expect("a log").log;
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let writer = tokio::spawn(publish_on(url.clone(), 1, Arc::clone(&acknowledged)));
    let watcher = tokio::spawn(watch_on(url.clone(), log));
    let (id, state) = (skills[0].id.clone(), skills[0].state.clone());
    let stops = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read_on(url.clone(), id, state, Arc::clone(&stops)));
    let compact = async |json: bool| {
        let mut arguments = vec!["compact"];
        arguments.extend(json.then_some("--json"));
        let command = repertoire(&arguments, &data);
        let ran = tokio::task::spawn_blocking(move || run(command, LIMIT)).await;
        let ran = ran.expect("a task");
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        ran.stdout
    };
    for round in 0..4 {
        let before = acknowledged.load(Ordering::SeqCst);
        let compacted: serde_json::Value =
            serde_json::from_str(&compact(true).await).expect("JSON");
        let bytes = |name: &str| compacted[name].as_u64().expect("a size");
        if round == 0 {
            assert!(
                bytes("bytes_after") < bytes("bytes_before"),
                "{compacted} after a delete"
            );
        }
        // Writes go on after it.
        while acknowledged.load(Ordering::SeqCst) < before + 5 {
            assert!(!writer.is_finished(), "the writer gave up");
            tokio::task::yield_now().await;
        }
    }
    stops.store(true, Ordering::SeqCst);
    stop(server).await;
    let left = writer.await.expect("a writer");
    assert!(reader.await.expect("a reader") > 0);
    let seen = watcher.await.expect("a watcher");

    let ran = run(repertoire(&["verify"], &data), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let (server, url) = Server::start(&data);
    let client = Client::connect(&url).await.expect("a client");
    let everything = read_everything(&client).await.expect("a whole directory");
    assert_eq!(everything.skills.get(&skills[0].id), Some(&skills[0].state));
    assert!(left.states().contains(&everything.skills[&left.skill.id]));
    // Without a gap, a repeat, or another log; what came with the stop may be missing.
    assert!(seen.len() >= 20 + acknowledged.load(Ordering::SeqCst));
    assert_eq!(seen[..], everything.events[..seen.len()]);
    stop(server).await;
    // The command says the same where no server runs.
    assert!(compact(false).await.contains(&data.display().to_string()));
}
