//! A repository of 10,000 skills kept in step, and a file that somebody saves.
//!
//! Bars: the first sync, one with nothing changed, one with a hundredth changed, the server's
//! memory at its peak, and how soon a saved SKILL.md of a watched folder is read.

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use contract::v1;
use support::process::Server;
use support::{Bar, against, figure, mib, quick};
use tonic::transport::Channel;

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("git");
    assert!(done.status.success(), "{done:?}");
}

/// Writes a skill of some 5 KiB in two files.
fn write(folder: &Path, skill: usize, words: usize) {
    let folder = folder.join(format!("skills/s{skill}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let line = format!("Step {words} of {skill}: look at what is there, and write it down.\n");
    let front =
        format!("---\nname: s{skill}\ndescription: Does the {skill}th thing that teams do.\n---\n");
    std::fs::write(folder.join("SKILL.md"), front + &line.repeat(60)).expect("a file");
    std::fs::write(folder.join("notes.md"), format!("Notes {skill}.\n")).expect("a file");
}

async fn connect(server: &Server) -> v1::registry_client::RegistryClient<Channel> {
    let endpoint = Channel::from_shared(format!("http://{}", server.address)).expect("an address");
    v1::registry_client::RegistryClient::new(endpoint.connect().await.expect("a connection"))
}

/// Syncs a source; the seconds it took, and how many skills changed.
async fn sync(server: &Server, source: &str) -> (f64, u32) {
    let mut registry = connect(server).await;
    let request = v1::RefreshIndexRequest {
        sources: vec![source.to_owned()],
        wait_seconds: Some(0),
        ..Default::default()
    };
    let begin = Instant::now();
    let started = registry
        .refresh_index(request)
        .await
        .expect("begun")
        .into_inner();
    let watched = v1::WatchSyncRequest {
        sync_id: started.sync_id,
        ..Default::default()
    };
    let mut steps = registry
        .watch_sync(watched)
        .await
        .expect("steps")
        .into_inner();
    let mut ended = None;
    while let Some(step) = steps.message().await.expect("a step") {
        if let Some(v1::watch_sync_response::State::Ended(end)) = step.state {
            ended = Some(end);
        }
    }
    let ended = ended.expect("it ends");
    assert_eq!(ended.status(), v1::SyncEnding::Success, "{ended:?}");
    (begin.elapsed().as_secs_f64(), ended.skills_updated)
}

/// Milliseconds from a save to when it is read.
async fn save(server: &Server, folder: &Path, words: usize) -> f64 {
    let endpoint = Channel::from_shared(format!("http://{}", server.address)).expect("an address");
    let channel = endpoint.connect().await.expect("a connection");
    let mut lookup = v1::lookup_client::LookupClient::new(channel);
    let begin = Instant::now();
    write(folder, 0, words);
    let wanted = format!("Step {words} of");
    loop {
        let request = v1::ReadFileRequest {
            skill_id: "local/watched/s0".to_owned(),
            path: "SKILL.md".to_owned(),
            ..Default::default()
        };
        let read = lookup.read_file(request).await;
        let text =
            read.map(|file| String::from_utf8_lossy(&file.into_inner().content).into_owned());
        if text.is_ok_and(|text| text.contains(&wanted)) {
            return begin.elapsed().as_secs_f64() * 1_000.0;
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn main() {
    let skills = if quick() { 500 } else { 10_000 };
    let place = tempfile::tempdir().expect("a folder");
    let repository = place.path().join("skills.git");
    let watched = place.path().join("watched");
    std::fs::create_dir(&repository).expect("a folder");
    git(&repository, &["init", "-q", "-b", "main"]);
    (0..skills).for_each(|at| write(&repository, at, 1));
    (0..20).for_each(|at| write(&watched, at, 1));
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-qm", "one"]);
    let config = place.path().join("config.yaml");
    let text = format!(
        "sources:\n  git: {{kind: git, location: 'file://{}', interval_seconds: 0}}\n  watched: {{kind: directory, location: {}}}\n",
        repository.display(),
        watched.display()
    );
    std::fs::write(&config, text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_repertoire"));
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
        "--config",
    ]);
    command
        .arg(&config)
        .arg("--data")
        .arg(place.path().join("data"));
    let server = Server::spawn(command);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (seconds, changed) = sync(&server, "git").await;
        assert_eq!(changed as usize, skills);
        against(
            "first sync of the repository",
            seconds,
            "s",
            Bar::AtMost(60.0),
        );
        let mut seconds: Vec<f64> = Vec::new();
        for _ in 0..5 {
            seconds.push(sync(&server, "git").await.0);
        }
        against(
            "sync with nothing changed",
            support::median(&seconds),
            "s",
            Bar::AtMost(1.0),
        );
        (0..skills / 100).for_each(|at| write(&repository, at * 97 % skills, 2));
        git(&repository, &["commit", "-qam", "two"]);
        let (seconds, changed) = sync(&server, "git").await;
        figure("sync with a hundredth changed", seconds, "s");
        assert_eq!(changed as usize, skills / 100);
        against(
            "memory at its peak",
            mib(server.memory("VmHWM")),
            "MiB",
            Bar::AtMost(300.0),
        );
        let mut saves = Vec::new();
        for words in 2..12 {
            saves.push(save(&server, &watched, words).await);
        }
        figure(
            "a file saved in a watched folder of the server, until it is read",
            support::median(&saves),
            "ms",
        );
    });
}
