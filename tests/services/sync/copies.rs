//! Skills that another server, a tree or a repository holds the same.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::{LOOPBACK, Random, Workspace, counts, ended, offered, write};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_follows_another_holds_the_same_skills_byte_for_byte() {
    let writes: u64 = std::env::var("REPERTOIRE_FOLLOW_WRITES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(testing::at_night(80, 240));
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
    let workspace = Workspace::new(5);
    workspace.add("data");
    workspace.json("data", &["sync"]);
    let at = |name: &str| workspace.path(name).display().to_string();
    let remote = at("remote.git");
    ended(
        &Command::new("git")
            .args(["init", "-q", "--bare", &remote])
            .output()
            .expect("git"),
    );
    let export = |folder: &str, args: &[&str]| {
        let folder = at(folder);
        workspace.json("data", &[&["export", "--all", &folder], args].concat())
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
    let text =
        std::fs::read_to_string(workspace.path("one/local/acme/s1/SKILL.md")).expect("a file");
    assert!(text.ends_with("Words 1.\n"), "{text}");
    // Only what changed is written again, and what is gone goes.
    workspace.write(1, 2);
    std::fs::remove_dir_all(workspace.repository().join("skills/s2")).expect("removed");
    workspace.push();
    workspace.json("data", &["sync"]);
    let again = export("one", &["--git", "--push", &remote]);
    assert_eq!(
        (&again["written"], &again["removed"]),
        (&json!(1), &json!(1))
    );
    assert!(!workspace.path("one/local/acme/s2").exists());
    // One that was ended before it was through is gone on with, and leaves nothing behind.
    let half = workspace.path("half");
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
    assert_eq!(tree(&half), tree(&workspace.path("one")));
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
    workspace.json("other", &add);
    assert_eq!(counts(&workspace.json("other", &["sync"])), [4, 0, 0]);
    let read = workspace.run("other", &["read", "local/acme/s1"]);
    assert!(ended(&read).ends_with("Words 2.\n"));
    // A folder with something else in it is left alone.
    let refused = workspace.run("data", &["export", "--all", &at("skills.git")]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && stderr.contains("LOCAL_FILE_FAILED"),
        "{stderr}"
    );
}
