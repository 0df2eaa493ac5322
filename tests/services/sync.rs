//! Sources and syncs with the real program: repositories, folders, another server.

mod copies;
mod mirrors;
mod triggers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use contract::v1;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, Server};

/// Whoever runs on this machine may be a source here.
const LOOPBACK: &str = "sync:\n  allow_networks: [127.0.0.0/8]\n";

/// A folder with a repository and a data directory.
struct Workspace {
    folder: TempDir,
}

fn ended(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Workspace {
    /// With so many skills in a repository.
    fn new(skills: usize) -> Self {
        let workspace = Self {
            folder: TempDir::new().expect("a folder"),
        };
        std::fs::create_dir(workspace.repository()).expect("a folder");
        workspace.git(&["init", "-q", "-b", "main"]);
        for at in 0..skills {
            workspace.write(at, 1);
        }
        workspace.push();
        workspace
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
    let workspace = Workspace::new(200);
    workspace.add("data");
    let first = workspace.json("data", &["sync"]);
    assert_eq!(counts(&first), [200, 0, 0]);
    workspace.write(7, 2);
    std::fs::remove_dir_all(workspace.repository().join("skills/s8")).expect("removed");
    workspace.push();
    let second = workspace.json("data", &["sync"]);
    assert_eq!(counts(&second), [0, 1, 1]);
    let third = workspace.json("data", &["sync"]);
    assert_eq!(third["sources_synced"][0]["status"], "skipped");
    let full = workspace.json("data", &["sync", "--full"]);
    assert_eq!(
        (counts(&full), &full["sync_type"]),
        ([0, 0, 0], &json!("full"))
    );
    let read = workspace.run("data", &["read", "local/acme/s7"]);
    assert!(ended(&read).ends_with("Words 2.\n"));
    // History that was rewritten waits for a person.
    workspace.write(9, 3);
    workspace.git(&["add", "-A"]);
    workspace.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let rewritten = workspace.json("data", &["sync"]);
    assert_eq!(rewritten["sources_synced"][0]["versions_held"], 1);
    let held = workspace.json("data", &["review"]);
    let reason = held["held"][0]["hold"]["reason"]
        .as_str()
        .expect("a reason");
    assert!(reason.contains("rewritten"), "{reason}");
}

#[test]
fn what_is_installed_while_a_sync_runs_is_whole() {
    let workspace = Workspace::new(30);
    let server = Server::over(workspace.folder.path(), &[], LOOPBACK);
    workspace.add("data");
    ended(&server.command(&["sync"]));
    let folder = workspace.path("installed");
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
            .current_dir(workspace.folder.path());
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
                (0..30).for_each(|at| workspace.write(at, words));
                workspace.push();
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
    let workspace = Workspace::new(300);
    workspace.add("data");
    for round in 0..6 {
        for at in 0..40 {
            workspace.write((round * 37 + at) % 300, round + 2);
        }
        workspace.push();
        let server = Server::over(workspace.folder.path(), &[], LOOPBACK);
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
    workspace.json("data", &["sync"]);
    std::fs::rename(workspace.path("data"), workspace.path("killed-data")).expect("moved");
    workspace.add("fresh-data");
    workspace.json("fresh-data", &["sync", "--full"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let skills = |data: &str| {
        let folder = workspace.path(data);
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::rename(workspace.path(&format!("{data}-data")), folder.join("data"))
            .expect("moved");
        let server = Server::over(&folder, &[], LOOPBACK);
        runtime.block_on(offered(&server, "local"))
    };
    let (ours, fresh) = (skills("killed"), skills("fresh"));
    assert_eq!(ours.len(), 300);
    assert_eq!(ours, fresh);
    let verified = workspace.json("killed/data", &["verify"]);
    assert_eq!(verified["whole"], true);
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
