//! `repertoire install` and what goes with it.

mod locks;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use contract::v1;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{names, refunds, tree, versioned};
use crate::support::{BINARY, Server, file};

/// Somebody's machine: a home, and projects.
struct Machine {
    folder: TempDir,
    url: String,
}

impl Machine {
    fn new(server: &Server) -> Self {
        let folder = TempDir::new().expect("a folder");
        for name in ["home", "project/.claude", "project/.cursor"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        Self {
            folder,
            url: server.url.clone(),
        }
    }

    fn project(&self) -> std::path::PathBuf {
        self.folder.path().join("project")
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.project().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(args)
            .args(["--server", &self.url])
            .current_dir(self.project())
            .env_clear()
            .env("REPERTOIRE_FORMAT", "json")
            .env("HOME", self.folder.path().join("home"))
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary")
    }

    /// Its exit code, and what it says.
    fn told(&self, args: &[&str]) -> (i32, Value) {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = serde_json::from_slice(&output.stdout);
        let code = output.status.code().expect("a code");
        (code, told.unwrap_or_else(|_| panic!("{args:?}: {stderr}")))
    }

    fn done(&self, args: &[&str]) -> Value {
        let (code, told) = self.told(args);
        assert_eq!(code, 0, "{args:?}: {told:#}");
        told
    }

    /// Code, message and the first thing to do.
    fn refused(&self, args: &[&str]) -> (String, String, String) {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = stderr.lines().last().unwrap_or_default();
        let error: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{stderr}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let error = &error["error"];
        let next = text(&error["recovery_suggestions"][0]);
        (text(&error["code"]), text(&error["message"]), next)
    }

    fn lock(&self) -> String {
        std::fs::read_to_string(self.path("skills.lock")).unwrap_or_default()
    }
}

async fn publish(server: &Server, request: v1::PublishSkillRequest) {
    let mut registry = server.registry().await;
    registry.publish_skill(request).await.expect("published");
}

/// A server with a skill that requires another.
async fn served() -> Server {
    // Serves what the scan warns of: that an install asks about it is a matter of its own.
    let server = Server::with(&[], "trust:\n  hold: failed\n");
    publish(&server, versioned("github/acme/util", "1.0.0", "")).await;
    let requires = "compatibility_rules: [{type: requires, skill: util}]\n";
    publish(&server, refunds("1.2.0", requires)).await;
    server
}

const BOTH: [&str; 3] = [
    "refunds/SKILL.md",
    "refunds/scripts/pay.sh",
    "util/SKILL.md",
];

#[tokio::test(flavor = "multi_thread")]
async fn skills_are_installed_with_what_they_require_and_from_the_lock_the_same_again() {
    let server = served().await;
    let (machine, other) = (Machine::new(&server), Machine::new(&server));
    let told = machine.done(&["install", "refunds"]);
    let skills = told["skills"].as_array().expect("a list").iter();
    let skills: Vec<_> = skills
        .map(|skill| json!([skill["skill_id"], skill["requested"], skill["outcome"]]))
        .collect();
    assert_eq!(
        skills,
        [
            json!(["github/acme/refunds", true, "installed"]),
            json!(["github/acme/util", false, "installed"]),
        ]
    );
    for agent in [".claude", ".cursor"] {
        assert_eq!(names(&machine.path(agent).join("skills")), BOTH);
    }
    let script = machine.path(".claude/skills/refunds/scripts/pay.sh");
    let mode = std::fs::metadata(script)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o111, 0o111);
    let again = machine.done(&["install", "refunds"]);
    assert_eq!(again["skills"][0]["outcome"], "unchanged");
    // On another machine, from the lock.
    let none = other.refused(&["install", "--frozen"]);
    assert_eq!(none.0, "LOCAL_FILE_FAILED");
    std::fs::write(other.path("skills.lock"), machine.lock()).expect("a lock");
    other.done(&["install", "--frozen"]);
    let skills = |machine: &Machine| tree(&machine.path(".claude/skills"));
    assert_eq!(skills(&other), skills(&machine));
    assert_eq!(other.lock(), machine.lock());
    let installed = other.done(&["installed"]);
    let installed = installed["skills"].as_array().expect("a list").iter();
    let health: Vec<_> = installed.map(|s| s["health_status"].clone()).collect();
    assert_eq!(health, ["healthy"; 4]);
    let (code, audited) = other.told(&["audit"]);
    assert_eq!((code, &audited["skills"][0]["findings"]), (0, &json!([])));
    let removed = other.done(&["uninstall", "util"]);
    let dependents = &removed["skills"][0]["dependent_skills_affected"];
    assert_eq!(dependents, &json!(["github/acme/refunds"]));
    assert!(!other.lock().contains("acme/util"), "{}", other.lock());
    other.done(&["uninstall", "github/acme/refunds"]);
    assert_eq!(skills(&other), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_skills_of_their_own_and_links_share_one_copy() {
    let server = served().await;
    let machine = Machine::new(&server);
    let args = ["--scope", "user", "--agent", "claude,codex,opencode"];
    let install = ["install", "util", "--method", "symlink"];
    machine.done(&[&install[..], &args].concat());
    let home = machine.folder.path().join("home");
    let places = [".claude/skills", ".codex/skills", ".config/opencode/skills"];
    for place in places {
        let link = home.join(place).join("util");
        assert!(link.is_symlink(), "{}", link.display());
        assert_eq!(names(&home.join(place)), ["util/SKILL.md"]);
    }
    assert_eq!(machine.lock(), "");
    let lock = home.join(".local/share/repertoire-installed/user/skills.lock");
    assert!(lock.is_file());
    publish(&server, versioned("github/acme/util", "1.1.0", "")).await;
    let updated = machine.done(&["update", "--scope", "user"]);
    assert_eq!(updated["skills"][0]["version"], "1.1.0");
    assert!(home.join(places[1]).join("util").is_symlink());
    machine.done(&["uninstall", "util", "--scope", "user"]);
    for place in places {
        assert_eq!(names(&home.join(place)), Vec::<String>::new());
    }
    let kept = home.join(".local/share/repertoire-installed/contents");
    assert_eq!(names(&kept), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_outdated_is_updated_and_what_nothing_requires_any_more_is_removed() {
    let server = served().await;
    let machine = Machine::new(&server);
    machine.done(&["install", "refunds", "--agent", "claude"]);
    assert_eq!(machine.told(&["outdated"]), (0, json!({"skills": []})));
    publish(&server, refunds("1.3.0", "")).await;
    publish(&server, versioned("github/acme/util", "1.1.0", "")).await;
    let (code, outdated) = machine.told(&["outdated"]);
    let outdated = outdated["skills"].as_array().expect("a list").iter();
    let outdated: Vec<_> = outdated
        .map(|s| json!([s["skill_id"], s["latest_version"]]))
        .collect();
    let expected = [
        json!(["github/acme/refunds", "1.3.0"]),
        json!(["github/acme/util", "1.1.0"]),
    ];
    assert_eq!((code, outdated), (4, expected.to_vec()));
    // What the lock says stays, until somebody updates.
    machine.done(&["install"]);
    let text = || std::fs::read_to_string(machine.path(".claude/skills/refunds/SKILL.md"));
    assert!(text().expect("text").contains("Body of 1.2.0."));
    let unknown = machine.refused(&["update", "nobody"]);
    assert_eq!(unknown.0, "SKILL_NOT_INSTALLED");
    let updated = machine.done(&["update"]);
    assert_eq!(updated["removed"], json!(["github/acme/util"]));
    assert!(text().expect("text").contains("Body of 1.3.0."));
    let left = ["refunds/SKILL.md", "refunds/scripts/pay.sh"];
    assert_eq!(names(&machine.path(".claude/skills")), left);
    assert_eq!(names(&machine.path(".cursor/skills")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_says_what_was_changed_withdrawn_and_blocked_since() {
    let server = served().await;
    let machine = Machine::new(&server);
    machine.done(&["install", "refunds", "--agent", "claude"]);
    let audited = || {
        let (code, told) = machine.told(&["audit"]);
        let skills = told["skills"].as_array().expect("a list").clone();
        let concerns: Vec<_> = skills.iter().map(|s| s["concern"].clone()).collect();
        (code, concerns, skills[0]["findings"].clone())
    };
    let file = machine.path(".claude/skills/refunds/SKILL.md");
    let whole = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, "Mine").expect("written");
    let (code, concerns, findings) = audited();
    assert_eq!((code, concerns), (4, vec![json!("look"), json!("none")]));
    let said = findings[0].as_str().expect("a finding");
    assert!(
        said.ends_with("refunds: changed since it was installed: SKILL.md"),
        "{said}"
    );
    let refused = machine.refused(&["install"]);
    assert_eq!(refused.0, "SKILL_INSTALL_FAILED");
    assert!(refused.2.contains("`force`"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("text"), "Mine");
    machine.done(&["install", "--force"]);
    assert_eq!(std::fs::read_to_string(&file).expect("text"), whole);
    let yank = v1::YankVersionRequest {
        skill_id: "github/acme/refunds".to_owned(),
        version_number: 1,
        reason: "It pays twice".to_owned(),
        ..Default::default()
    };
    publish(&server, refunds("1.3.0", "")).await;
    server
        .registry()
        .await
        .yank_version(yank)
        .await
        .expect("withdrawn");
    let (code, _, findings) = audited();
    assert_eq!((code, findings), (4, json!(["withdrawn: It pays twice"])));
    let block = v1::UpdateBlocklistRequest {
        action: v1::BlocklistAction::Add.into(),
        skill_id: "github/acme/refunds".to_owned(),
        reason: "It steals keys".to_owned(),
        ..Default::default()
    };
    server
        .registry()
        .await
        .update_blocklist(block)
        .await
        .expect("blocked");
    let (code, concerns, findings) = audited();
    assert_eq!((code, concerns), (3, vec![json!("refuse"), json!("none")]));
    assert_eq!(findings, json!(["blocked on the server"]));
    let other = Machine::new(&server);
    std::fs::write(other.path("skills.lock"), machine.lock()).expect("a lock");
    for args in [
        &["install", "--frozen"][..],
        &["install"],
        &["install", "refunds"],
    ] {
        assert_eq!(other.refused(args).0, "SKILL_BLOCKED", "{args:?}");
    }
    assert_eq!(names(&other.path(".claude")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_says_what_the_server_holds_by_now() {
    let server = served().await;
    let mut machine = Machine::new(&server);
    machine.done(&["install", "util", "--agent", "claude"]);
    // One that has the same version, and lets nobody have it yet.
    let holding = Server::with(&[], "trust:\n  hold: all\n");
    publish(&holding, versioned("github/acme/util", "1.0.0", "")).await;
    machine.url.clone_from(&holding.url);
    let (code, told) = machine.told(&["audit"]);
    let skill = &told["skills"][0];
    assert_eq!(
        (code, &skill["concern"], &skill["findings"]),
        (
            3,
            &json!("refuse"),
            &json!(["held for review on the server"])
        )
    );
    let (code, told) = machine.told(&["outdated"]);
    assert_eq!(code, 4, "{told:#}");
    assert!(told.to_string().contains("held for review"), "{told:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_of_others_stay_and_links_of_a_repository_lead_nowhere() {
    let server = served().await;
    let machine = Machine::new(&server);
    let own = machine.path(".claude/skills/util");
    std::fs::create_dir_all(&own).expect("a folder");
    std::fs::write(own.join("SKILL.md"), "mine").expect("written");
    for force in [&[][..], &["--force"]] {
        let args = [&["install", "util", "--agent", "claude"][..], force].concat();
        assert_eq!(machine.refused(&args).0, "SKILL_INSTALL_FAILED");
    }
    assert_eq!(
        tree(&machine.path(".claude/skills"))["util/SKILL.md"],
        "mine"
    );
    let elsewhere = machine.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, machine.path(".gemini")).expect("a link");
    let refused = machine.refused(&["install", "util", "--agent", "gemini"]);
    assert_eq!(refused.0, "INVALID_PARAMETER");
    assert_eq!(names(&elsewhere), Vec::<String>::new());
    // Whoever names the folder means it.
    let dir = elsewhere.display().to_string();
    machine.done(&["install", "util", "--dir", &dir]);
    assert_eq!(names(&elsewhere), ["util/SKILL.md"]);
    assert!(machine.lock().contains(&dir), "{}", machine.lock());
    assert_eq!(
        machine.refused(&["install", "util", "--agent", "nobody"]).0,
        "INVALID_PARAMETER"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_that_do_not_go_together_are_not_installed_beside_each_other() {
    let server = served().await;
    let never = "compatibility_rules: [{type: incompatible, skill: util}]\n";
    publish(&server, versioned("github/acme/rival", "1.0.0", never)).await;
    let machine = Machine::new(&server);
    machine.done(&["install", "util"]);
    let refused = machine.refused(&["install", "rival"]);
    assert_eq!(refused.0, "SKILL_SET_INVALID");
    machine.done(&["install", "rival", "--force"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_that_is_killed_leaves_nothing_or_everything() {
    let server = Server::start();
    let mut large = versioned("github/acme/large", "1.0.0", "");
    for number in 0..200 {
        large.files.push(file(
            &format!("a/{number}.md"),
            format!("{number}\n").repeat(100),
        ));
    }
    let count = large.files.len();
    publish(&server, large).await;
    let (mut nothing, mut everything) = (0, 0);
    for round in 0..8 {
        let machine = Machine::new(&server);
        let mut command = machine.command(&["install", "large", "--agent", "claude"]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary");
        // Further on each time: until so many files are written.
        let skills = machine.path(".claude/skills");
        let begun = skills.join(".repertoire/new/large/a");
        let written = || std::fs::read_dir(&begun).map_or(0, Iterator::count);
        while child.try_wait().expect("a state").is_none() && written() < round * 28 {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        child.wait().expect("an end");
        let there = names(&skills);
        assert!(
            there.is_empty() || there.len() == count,
            "{} files",
            there.len()
        );
        let listed = machine.done(&["installed"]);
        let listed = listed["skills"].as_array().expect("a list").clone();
        assert!(
            listed
                .iter()
                .all(|skill| skill["health_status"] == "healthy"),
            "{listed:?}"
        );
        assert_eq!(listed.len(), usize::from(!names(&skills).is_empty()));
        if there.is_empty() {
            nothing += 1;
        } else {
            everything += 1;
        }
        machine.done(&["install", "large", "--agent", "claude"]);
        assert_eq!(names(&skills).len(), count);
        // Nothing is left of what was killed.
        assert_eq!(names(&skills.join(".repertoire")), ["installed.json"]);
    }
    let _told = writeln!(
        std::io::stderr(),
        "nothing {nothing}, everything {everything}"
    );
    assert!(nothing > 0);
}
