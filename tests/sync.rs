//! Sources and syncs with the real program: repositories, folders, another server.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use repertoire::contract::v1;
use repertoire::contract::v1::watch_sync_response::State;
use serde_json::{Value, json};
use support::Server;
use support::web::ask;
use tempfile::TempDir;

/// Whoever runs on this machine may be a source here.
const LOOPBACK: &str = "sync:\n  allow_networks: [127.0.0.0/8]\n";

/// A folder with a repository and a data directory.
struct Desk {
    folder: TempDir,
}

fn ended(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Desk {
    /// With so many skills in a repository.
    fn new(skills: usize) -> Self {
        let desk = Self {
            folder: TempDir::new().expect("a folder"),
        };
        std::fs::create_dir(desk.repository()).expect("a folder");
        desk.git(&["init", "-q", "-b", "main"]);
        for at in 0..skills {
            desk.write(at, 1);
        }
        desk.push();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn repository(&self) -> PathBuf {
        self.path("skills.git")
    }

    fn git(&self, args: &[&str]) {
        let git = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-C"])
            .arg(self.repository())
            .args(args)
            .output()
            .expect("git, which this test needs");
        ended(&git);
    }

    fn push(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "more"]);
    }

    /// Writes the skill of a number, in words of another one.
    fn write(&self, skill: usize, words: usize) {
        let folder = self.repository().join(format!("skills/s{skill}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let text =
            format!("---\nname: s{skill}\ndescription: Does {skill}.\n---\nWords {words}.\n");
        std::fs::write(folder.join("SKILL.md"), text).expect("a file");
        std::fs::write(folder.join("notes.md"), format!("Words {words}.\n")).expect("a file");
    }

    fn run(&self, data: &str, args: &[&str]) -> Output {
        let data = self.path(data).display().to_string();
        support::command(&[args, &["--data", &data]].concat())
    }

    fn json(&self, data: &str, args: &[&str]) -> Value {
        serde_json::from_str(&ended(&self.run(data, args))).expect("JSON")
    }

    /// Adds the repository as a source that is synced only when somebody asks.
    fn add(&self, data: &str) {
        let at = format!("file://{}", self.repository().display());
        let args = ["source", "add", "acme", "git", &at, "--interval", "0"];
        self.json(data, &args);
    }
}

/// Added, updated, removed of the one source of a sync.
fn counts(sync: &Value) -> [u64; 3] {
    let result = &sync["sources_synced"][0];
    ["skills_added", "skills_updated", "skills_removed"]
        .map(|name| result[name].as_u64().unwrap_or_else(|| panic!("{sync}")))
}

#[test]
fn of_a_repository_that_changed_by_one_percent_one_percent_is_read_again() {
    let desk = Desk::new(200);
    desk.add("data");
    let first = desk.json("data", &["sync"]);
    assert_eq!(counts(&first), [200, 0, 0]);
    desk.write(7, 2);
    std::fs::remove_dir_all(desk.repository().join("skills/s8")).expect("removed");
    desk.push();
    let second = desk.json("data", &["sync"]);
    assert_eq!(counts(&second), [0, 1, 1]);
    let third = desk.json("data", &["sync"]);
    assert_eq!(third["sources_synced"][0]["status"], "skipped");
    let full = desk.json("data", &["sync", "--full"]);
    assert_eq!(
        (counts(&full), &full["sync_type"]),
        ([0, 0, 0], &json!("full"))
    );
    let read = desk.run("data", &["read", "local/acme/s7"]);
    assert!(ended(&read).ends_with("Words 2.\n"));
    // History that was rewritten waits for a person.
    desk.write(9, 3);
    desk.git(&["add", "-A"]);
    desk.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let rewritten = desk.json("data", &["sync"]);
    assert_eq!(rewritten["sources_synced"][0]["versions_held"], 1);
    let held = desk.json("data", &["held"]);
    let reason = held["held"][0]["hold"]["reason"]
        .as_str()
        .expect("a reason");
    assert!(reason.contains("rewritten"), "{reason}");
}

#[test]
fn what_is_installed_while_a_sync_runs_is_whole() {
    let desk = Desk::new(30);
    let server = Server::over(desk.folder.path(), &[], LOOPBACK);
    desk.add("data");
    ended(&server.command(&["sync"]));
    let folder = desk.path("installed");
    let into = folder.display().to_string();
    let ids: Vec<String> = (0..30).map(|at| format!("local/acme/s{at}")).collect();
    let install = || {
        let mut command = Command::new(support::BINARY);
        command
            .args([
                "install",
                "--dir",
                &into,
                "--force",
                "--server",
                &server.url,
            ])
            .args(&ids)
            // Where its lock is written.
            .current_dir(desk.folder.path());
        ended(&command.output().expect("the binary"));
    };
    let installed = |skill: usize| {
        let file = |name: &str| {
            let path = folder.join(format!("s{skill}/{name}"));
            let text = std::fs::read_to_string(path).expect("a file");
            text.lines().last().expect("a line").to_owned()
        };
        let (text, notes) = (file("SKILL.md"), file("notes.md"));
        assert_eq!(text, notes, "s{skill}");
        text
    };
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| {
            for words in 2..10 {
                (0..30).for_each(|at| desk.write(at, words));
                desk.push();
                ended(&server.command(&["sync"]));
            }
        });
        while !syncing.is_finished() {
            install();
            (0..30).for_each(|at| drop(installed(at)));
        }
    });
    install();
    let words: Vec<_> = (0..30).map(installed).collect();
    assert_eq!(words, vec!["Words 9."; 30]);
}

#[test]
fn a_sync_that_is_killed_is_completed_by_the_next_and_comes_to_the_same() {
    let desk = Desk::new(300);
    desk.add("data");
    for round in 0..6 {
        for at in 0..40 {
            desk.write((round * 37 + at) % 300, round + 2);
        }
        desk.push();
        let server = Server::over(desk.folder.path(), &[], LOOPBACK);
        let args = ["sync", "--server", &server.url];
        let mut syncing = Command::new(support::BINARY)
            .args(args)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the binary");
        // At another point of it each time.
        let until = Instant::now() + Duration::from_millis(40 * (round as u64 + 1));
        while Instant::now() < until && syncing.try_wait().expect("a process").is_none() {
            std::thread::yield_now();
        }
        drop(server);
        syncing.wait().expect("it ends");
    }
    desk.json("data", &["sync"]);
    std::fs::rename(desk.path("data"), desk.path("killed-data")).expect("moved");
    desk.add("fresh-data");
    desk.json("fresh-data", &["sync", "--full"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let skills = |data: &str| {
        let folder = desk.path(data);
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::rename(desk.path(&format!("{data}-data")), folder.join("data")).expect("moved");
        let server = Server::over(&folder, &[], LOOPBACK);
        runtime.block_on(offered(&server, "local"))
    };
    let (ours, fresh) = (skills("killed"), skills("fresh"));
    assert_eq!(ours.len(), 300);
    assert_eq!(ours, fresh);
    let verified = desk.json("killed/data", &["verify"]);
    assert_eq!(verified["whole"], true);
}

#[test]
fn two_syncs_at_once_are_one_and_whoever_is_second_hears_of_it() {
    let desk = Desk::new(150);
    let server = Server::over(desk.folder.path(), &[], LOOPBACK);
    let at = format!("file://{}", desk.repository().display());
    let add = ["source", "add", "acme", "git", &at, "--interval", "0"];
    ended(&desk.run("data", &add));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut registry = server.registry().await;
        let request = v1::RefreshIndexRequest {
            wait_seconds: Some(0),
            ..Default::default()
        };
        let begun = registry.refresh_index(request.clone()).await;
        let begun = begun.expect("begun").into_inner();
        assert_eq!(begun.status(), v1::SyncStart::Started);
        let refused = registry
            .refresh_index(request)
            .await
            .expect_err("one at a time");
        assert!(refused.message().contains(&begun.sync_id), "{refused}");
        // What is installed meanwhile is whole or not there.
        let watched = v1::WatchSyncRequest {
            sync_id: begun.sync_id.clone(),
            ..Default::default()
        };
        let mut steps = registry
            .watch_sync(watched)
            .await
            .expect("steps")
            .into_inner();
        let mut last = None;
        while let Some(step) = steps.message().await.expect("a step") {
            last = step.state;
        }
        let Some(State::Ended(ended)) = last else {
            panic!("{last:?}");
        };
        assert_eq!((ended.sync_id, ended.skills_updated), (begun.sync_id, 150));
    });
}

#[tokio::test]
async fn whoever_waits_for_a_sync_hears_that_there_is_none_and_follows_the_next() {
    let desk = Desk::new(5);
    let config = format!(
        "sources:\n  acme: {{kind: git, location: 'file://{}', interval_seconds: 0}}\n",
        desk.repository().display()
    );
    let server = Server::over(desk.folder.path(), &[], &config);
    let mut registry = server.registry().await;
    let request = v1::WatchSyncRequest::default();
    let mut steps = registry.watch_sync(request.clone()).await;
    let steps = steps.as_mut().expect("steps").get_mut();
    let first = steps.message().await.expect("a step").expect("a step");
    assert_eq!(first.state, Some(State::Waiting(true)));
    let begun = registry
        .refresh_index(v1::RefreshIndexRequest::default())
        .await
        .expect("synced")
        .into_inner();
    let mut told = Vec::new();
    while let Some(step) = steps.message().await.expect("a step") {
        told.extend(step.state);
    }
    let Some((State::Ended(ended), before)) = told.split_last() else {
        panic!("{told:?}");
    };
    assert_eq!((&ended.sync_id, ended.skills_updated), (&begun.sync_id, 5));
    let is_of_it = |state: &State| matches!(state, State::Current(current) if current.sync_id == begun.sync_id);
    assert!(before.iter().all(is_of_it), "{before:?}");
    // One that nobody begins is not waited for longer than asked.
    let request = v1::WatchSyncRequest {
        max_wait_seconds: 1,
        ..request
    };
    let steps = registry.watch_sync(request).await.expect("steps");
    let mut steps = steps.into_inner();
    let mut count = 0;
    while steps.message().await.expect("a step").is_some() {
        count += 1;
    }
    assert_eq!(count, 1);
}

#[test]
fn a_file_that_is_saved_in_a_watched_folder_is_served_soon_and_never_half() {
    let desk = Desk::new(3);
    let config = format!(
        "sources:\n  team:\n    kind: directory\n    location: {}\n    path: skills\n    namespace: team/shared\n    trust: verified\n",
        desk.repository().display()
    );
    let server = Server::over(desk.folder.path(), &[], &config);
    let read = |want: &str| {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let read = server.command(&["read", "team/shared/s1"]);
            let text = String::from_utf8_lossy(&read.stdout).into_owned();
            assert!(
                text.is_empty() || text.ends_with(".\n"),
                "half a skill: {text}"
            );
            if text.ends_with(want) {
                return;
            }
            assert!(Instant::now() < until, "{text}");
        }
    };
    read("Words 1.\n");
    // In place, and as editors do it: beside it and renamed.
    desk.write(1, 2);
    read("Words 2.\n");
    let file = desk.repository().join("skills/s1/SKILL.md");
    let text = std::fs::read_to_string(&file).expect("a file");
    let beside = file.with_extension("new");
    std::fs::write(&beside, text.replace("Words 2", "Words 3")).expect("a file");
    std::fs::rename(&beside, &file).expect("renamed");
    read("Words 3.\n");
    let shown: Value =
        serde_json::from_slice(&server.command(&["show", "team/shared/s1"]).stdout).expect("JSON");
    assert_eq!(shown["skill"]["trust_tier"], "verified");
}

#[tokio::test]
async fn a_webhook_that_is_signed_has_its_source_synced() {
    let desk = Desk::new(2);
    let secret = desk.path("secret");
    std::fs::write(&secret, "s3cret\n").expect("a file");
    let config = format!(
        "sources:\n  acme:\n    kind: git\n    location: file://{}\n    interval_seconds: 86400\n    webhook_secret: {{file: {}}}\n",
        desk.repository().display(),
        secret.display()
    );
    let server = Server::over(desk.folder.path(), &[], &config);
    let status = async |header: (&str, &str)| {
        let hook = ask(&server.url, "POST", "/hooks/acme").header(header.0, header.1);
        hook.body("{}").send().await.status.as_u16()
    };
    let synced = || {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let read = server.command(&["read", "local/acme/s1"]);
            if String::from_utf8_lossy(&read.stdout).ends_with("Words 2.\n") {
                return;
            }
            assert!(Instant::now() < until);
        }
    };
    desk.write(1, 2);
    desk.push();
    assert_eq!(status(("x-gitlab-token", "wrong")).await, 404);
    assert_eq!(status(("x-hub-signature-256", "sha256=00")).await, 404);
    assert_eq!(status(("x-gitlab-token", "s3cret")).await, 202);
    synced();
    let other = ask(&server.url, "POST", "/hooks/none").header("x-gitlab-token", "s3cret");
    assert_eq!(other.send().await.status.as_u16(), 404);
    assert!(!server.log().contains("s3cret"));
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

async fn write(server: &Server, random: &mut Random) {
    let mut registry = server.local_registry().await;
    let name = format!("s{}", random.below(40));
    let id = format!(
        "team/{}/{name}",
        ["a", "b"][usize::try_from(random.below(2)).expect("small")]
    );
    // What is not there cannot be deleted or withdrawn.
    match random.below(10) {
        0 => {
            let request = v1::DeleteSkillRequest {
                skill_id: id,
                ..Default::default()
            };
            let _known = registry.delete_skill(request).await.is_ok();
        }
        1 => {
            let request = v1::YankVersionRequest {
                skill_id: id,
                version_number: 1 + u32::try_from(random.below(3)).expect("small"),
                ..Default::default()
            };
            let _known = registry.yank_version(request).await.is_ok();
        }
        2 => {
            let request = v1::ActivateVersionRequest {
                skill_id: id,
                version_number: 1 + u32::try_from(random.below(3)).expect("small"),
                ..Default::default()
            };
            let _known = registry.activate_version(request).await.is_ok();
        }
        _ => {
            let words = random.below(1_000);
            let text = String::new();
            let skill = support::skill(&id, &text, &format!("Words {words}."));
            registry.publish_skill(skill).await.expect("published");
        }
    }
}

/// What a server has: ids with the digests of what is active.
async fn offered(server: &Server, source: &str) -> BTreeMap<String, String> {
    let mut lookup = server.lookup().await;
    let mut request = v1::ListSkillsRequest {
        page_size: 500,
        source: source.to_owned(),
        ..Default::default()
    };
    let mut found = BTreeMap::new();
    loop {
        let page = lookup
            .list_skills(request.clone())
            .await
            .expect("a page")
            .into_inner();
        for skill in page.skills {
            let file = v1::ReadFileRequest {
                skill_id: skill.id.clone(),
                path: "SKILL.md".to_owned(),
                ..Default::default()
            };
            let file = lookup.read_file(file).await.expect("a file").into_inner();
            found.insert(skill.id, format!("{:?}", file.content));
        }
        if page.next_page_token.is_empty() {
            return found;
        }
        request.page_token = page.next_page_token;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_follows_another_holds_the_same_skills_byte_for_byte() {
    let writes: u64 = std::env::var("REPERTOIRE_FOLLOW_WRITES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(240);
    let (first, second) = (
        TempDir::new().expect("a folder"),
        TempDir::new().expect("a folder"),
    );
    let mut random = Random(7);
    let mut leader = Some(Server::over(first.path(), &[], ""));
    let following = |url: &str| {
        format!(
            "{LOOPBACK}sources:\n  leader:\n    kind: repertoire\n    location: {url}\n    interval_seconds: 0\n"
        )
    };
    let mut follower = None;
    for round in 0..4 {
        // Both start again, the leader at another address.
        drop(follower.take());
        if round > 0 {
            drop(leader.take());
            leader = Some(Server::over(first.path(), &[], ""));
        }
        let leader = leader.as_ref().expect("a leader");
        let here = follower.insert(Server::over(second.path(), &[], &following(&leader.url)));
        for _ in 0..writes / 4 {
            write(leader, &mut random).await;
            if random.below(40) == 0 {
                // In the middle of it: whatever it comes to, the next one is right.
                let _synced = here.command(&["sync"]);
            }
        }
        let synced = here.command(&["sync"]);
        ended(&synced);
        let (ours, theirs) = (offered(here, "team").await, offered(leader, "team").await);
        assert_eq!(ours, theirs, "round {round}");
    }
}

#[test]
fn a_source_of_the_config_file_is_refused_with_its_place() {
    let folder = TempDir::new().expect("a folder");
    let config = |text: &str| {
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, text).expect("a file");
        let (path, data) = (
            path.display().to_string(),
            folder.path().join("data").display().to_string(),
        );
        let output = support::command(&["source", "--config", &path, "--data", &data]);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (text, words) in [
        ("sources:\n  a:\n    kind: svn\n", ":3"),
        (
            "sources:\n  a:\n    kind: git\n    location: https://me:s3cret@example.com/x\n",
            "sources.a",
        ),
        (
            "sources:\n  a:\n    kind: git\n    location: https://example.com/x\n    credential: s3cret\n",
            "sources.a.credential",
        ),
        (
            "sources:\n  a:\n    kind: git\n    location: https://example.com/x\n    trust: verified\n",
            "namespace",
        ),
        ("sync:\n  allow_networks: [here]\n", "sync.allow_networks"),
        ("sync:\n  max_mib: 0\n", "a whole number from 1 to"),
    ] {
        let error = config(text);
        assert!(
            error.contains(words) && !error.contains("s3cret"),
            "{error}"
        );
        assert!(error.contains("CONFIG_INVALID"), "{error}");
    }
}

/// All files and folders below a folder, but for its repository.
fn tree(folder: &std::path::Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(here).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.ends_with(".git") {
                continue;
            }
            let inside = path.strip_prefix(folder).expect("below it").to_owned();
            let content = std::fs::read(&path).unwrap_or_default();
            found.insert(inside, content);
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

#[test]
fn all_skills_go_out_as_a_tree_and_a_repository_and_come_back_the_same() {
    let desk = Desk::new(5);
    desk.add("data");
    desk.json("data", &["sync"]);
    let at = |name: &str| desk.path(name).display().to_string();
    let remote = at("remote.git");
    ended(
        &Command::new("git")
            .args(["init", "-q", "--bare", &remote])
            .output()
            .expect("git"),
    );
    let export = |folder: &str, args: &[&str]| {
        let folder = at(folder);
        desk.json("data", &[&["export", "--all", &folder], args].concat())
    };
    let first = export("one", &["--git", "--push", &remote]);
    let second = export("two", &["--git"]);
    assert_eq!(
        first["commit"], second["commit"],
        "the same skills make the same commit"
    );
    assert_eq!(
        (&first["skills"], &first["written"]),
        (&json!(5), &json!(5))
    );
    let pushed = Command::new("git")
        .args(["-C", &remote, "rev-parse", "main"])
        .output();
    assert_eq!(
        ended(&pushed.expect("git")).trim(),
        first["commit"].as_str().expect("a commit")
    );
    let text = std::fs::read_to_string(desk.path("one/local/acme/s1/SKILL.md")).expect("a file");
    assert!(text.ends_with("Words 1.\n"), "{text}");
    // Only what changed is written again, and what is gone goes.
    desk.write(1, 2);
    std::fs::remove_dir_all(desk.repository().join("skills/s2")).expect("removed");
    desk.push();
    desk.json("data", &["sync"]);
    let again = export("one", &["--git", "--push", &remote]);
    assert_eq!(
        (&again["written"], &again["removed"]),
        (&json!(1), &json!(1))
    );
    assert!(!desk.path("one/local/acme/s2").exists());
    // One that was ended before it was through is gone on with, and leaves nothing behind.
    let half = desk.path("half");
    std::fs::create_dir_all(half.join(".writing")).expect("a folder");
    std::fs::create_dir_all(half.join("local/acme/s1")).expect("a folder");
    std::fs::write(half.join(".writing/SKILL.md"), "Half").expect("a file");
    let gone = json!({
        "id": "gone/author/skill", "version_number": 1, "semantic_version": "1.0.0",
        "digest": "", "created_at": 0,
    });
    let list = json!({"skills": [gone]}).to_string();
    std::fs::write(half.join("skills.json"), list).expect("a file");
    std::fs::create_dir_all(half.join("gone/author/skill")).expect("a folder");
    let whole = export("half", &[]);
    assert_eq!(
        (&whole["written"], &whole["removed"]),
        (&json!(4), &json!(1))
    );
    assert_eq!(tree(&half), tree(&desk.path("one")));
    // What was pushed is a source like others.
    let from = format!("file://{remote}");
    let add = [
        "source",
        "add",
        "back",
        "git",
        &from,
        "--ref",
        "main",
        "--namespace",
        "local/acme",
        "--interval",
        "0",
    ];
    desk.json("other", &add);
    assert_eq!(counts(&desk.json("other", &["sync"])), [4, 0, 0]);
    let read = desk.run("other", &["read", "local/acme/s1"]);
    assert!(ended(&read).ends_with("Words 2.\n"));
    // A folder with something else in it is left alone.
    let refused = desk.run("data", &["export", "--all", &at("skills.git")]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && stderr.contains("LOCAL_FILE_FAILED"),
        "{stderr}"
    );
}
