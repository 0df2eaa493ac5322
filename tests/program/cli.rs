//! The command line as a person and a program use it.

mod composing;
mod folders;

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, Server};

/// A folder of its own with a data directory and skills to publish.
struct Workspace {
    directory: TempDir,
}

impl Workspace {
    fn new() -> Self {
        Self {
            directory: TempDir::new().expect("a folder"),
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn skill(&self, folder: &str, text: &str) -> String {
        let folder = self.directory.path().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("SKILL.md"), text).expect("a file");
        folder.display().to_string()
    }

    /// Runs a command on the data directory.
    fn run(&self, args: &[&str]) -> Output {
        support::command(&[args, &["--data", &self.path("data")]].concat())
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {stderr}"))
    }

    fn refusal(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_str(stderr.lines().last().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{stderr}"))
    }
}

const REFUNDS: &str =
    "---\nname: refunds\ndescription: Handles refunds.\nversion: 1.0.0\n---\nOne.\n";

#[test]
fn a_skill_goes_through_its_whole_life_without_a_server() {
    let workspace = Workspace::new();
    let folder = workspace.skill("refunds", REFUNDS);
    let published = workspace.json(&[
        "publish",
        &folder,
        "--location",
        "user",
        "--summary",
        "first",
    ]);
    assert_eq!(published["skill_id"], "local/user/refunds");
    assert_eq!(published["outcome"], "created");
    workspace.skill(
        "refunds",
        &REFUNDS.replace("1.0.0", "1.1.0").replace("One", "Two"),
    );
    let published = workspace.json(&["publish", &folder, "--location", "user"]);
    assert_eq!(
        (
            &published["outcome"],
            &published["version"]["version_number"]
        ),
        (&json!("updated"), &json!(2))
    );

    let diff = workspace.json(&["diff", "refunds"]);
    assert_eq!(diff["fields"][0]["field"], "version");
    assert!(
        diff["files"][0]["unified_diff"]
            .as_str()
            .expect("lines")
            .contains("-One.\n+Two.\n")
    );
    let active = workspace.json(&["activate", "local/user/refunds", "1"]);
    assert_eq!(
        (&active["previous_version"], &active["version"]["active"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(
        workspace.run(&["read", "refunds"]).stdout,
        REFUNDS.as_bytes()
    );
    assert!(
        workspace
            .run(&["read", "refunds", "--at", "1.1.0"])
            .stdout
            .ends_with(b"Two.\n")
    );
    let yanked = workspace.json(&["yank", "local/user/refunds", "1", "--reason", "wrong"]);
    assert_eq!(yanked["active_version"], 2);
    assert_eq!(
        workspace.json(&["unyank", "local/user/refunds", "1"])["active_version"],
        2
    );
    let metrics = workspace.json(&["metrics", "refunds"]);
    assert_eq!(metrics["total_reads"], 2);

    let file = workspace.path("refunds.zip");
    let export = workspace.json(&["export", "refunds", "--archive", "zip", "--output", &file]);
    assert_eq!(export["archive"]["file_name"], "refunds-1.1.0.zip");
    assert!(Path::new(&file).is_file());

    let refused = workspace.refusal(&["delete", "local/user/refunds"]);
    assert!(
        refused["error"]["recovery_suggestions"][0]
            .as_str()
            .expect("a hint")
            .contains("--yes")
    );
    assert_eq!(
        workspace.json(&["delete", "local/user/refunds", "--yes"])["versions_deleted"],
        2
    );
    let gone = workspace.refusal(&["show", "refunds"]);
    assert_eq!(gone["error"]["code"], "SKILL_NOT_FOUND");
}

#[test]
fn commands_find_the_server_that_has_the_directory_open() {
    let server = Server::start();
    let workspace = Workspace::new();
    let folder = workspace.skill("refunds", REFUNDS);
    let data = server.data.display().to_string();
    let output = support::command(&["publish", &folder, "--data", &data]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listed = server.command(&["list", "--location", "global", "--source", "local"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed["skills"][0]["id"], "local/global/refunds");
    let verify = support::command(&["verify", "--data", &data]);
    assert_eq!(verify.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&verify.stderr).into_owned();
    assert!(
        stderr.contains(&format!("in use by process {}", server.pid())),
        "{stderr}"
    );
}

#[test]
fn a_status_names_the_server_that_has_the_directory_open() {
    let server = Server::start();
    let data = server.data.display().to_string();
    let status = support::command(&["status", "--data", &data]);
    let found: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status.status.code(), Some(0));
    assert_eq!(
        json!([
            found["running"],
            found["url"],
            found["process_id"],
            found["data_directory"]
        ]),
        json!([true, server.url, server.pid(), data])
    );
    server.terminate();
    let status = support::command(&["status", "--data", &data]);
    let found: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status.status.code(), Some(1));
    assert_eq!(found, json!({"running": false, "data_directory": data}));
}

#[test]
fn a_socket_that_a_killed_server_left_leads_nowhere() {
    let workspace = Workspace::new();
    workspace.json(&["list"]);
    let left = workspace.directory.path().join("data/socket");
    drop(std::os::unix::net::UnixListener::bind(&left).expect("a socket"));
    let source = workspace.skill("refunds", REFUNDS);
    workspace.json(&["publish", &source]);
    assert!(left.exists(), "only a server replaces it");
}

#[test]
fn compacting_keeps_every_skill_and_drops_what_nothing_uses() {
    let workspace = Workspace::new();
    let kept = workspace.skill("refunds", REFUNDS);
    let gone = workspace.skill(
        "gone",
        &format!(
            "---\nname: gone\ndescription: Goes.\n---\n{}\n",
            "word ".repeat(1000)
        ),
    );
    workspace.json(&["publish", &kept]);
    workspace.json(&["publish", &gone]);
    workspace.json(&["delete", "local/global/gone", "--yes"]);
    let contents = |verified: &Value| verified["contents"].as_u64().expect("a count");
    let before = workspace.json(&["verify"]);
    workspace.json(&["compact"]);
    let after = workspace.json(&["verify"]);
    assert_eq!(contents(&before) - contents(&after), 1);
    assert_eq!(
        (&after["skills"], &after["damage"]),
        (&before["skills"], &json!([]))
    );
    assert_eq!(
        workspace.run(&["read", "refunds"]).stdout,
        REFUNDS.as_bytes()
    );
    let left: Vec<_> = std::fs::read_dir(workspace.directory.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().starts_with("data."))
        .collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new());
}

#[test]
fn a_skill_says_who_requires_it_and_so_does_taking_it_away() {
    let workspace = Workspace::new();
    workspace.json(&["publish", &workspace.skill("refunds", REFUNDS)]);
    let rules = "compatibility_rules: [{type: requires, skill: refunds@^1}]";
    let other = REFUNDS.replace("name: refunds", &format!("name: disputes\n{rules}"));
    workspace.json(&["publish", &workspace.skill("disputes", &other)]);
    let said = |args: &[&str]| {
        let output = workspace.run(&[args, &["--format", "plain"]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let shown = said(&["show", "refunds"]);
    let required = shown.lines().find(|line| line.starts_with("required by"));
    assert!(
        required.is_some_and(|line| line.ends_with(" local/global/disputes")),
        "{shown}"
    );
    assert!(!said(&["show", "disputes"]).contains("required by"));
    let listed = said(&["list", "--requires", "refunds"]);
    assert!(listed.contains("\nlocal/global/disputes  "), "{listed}");
    assert!(listed.ends_with("\n1 skill\n"), "{listed}");
    let told = "it is required by local/global/disputes";
    let blocked = said(&[
        "block",
        "add",
        "local/global/refunds",
        "--reason",
        "It lies.",
    ]);
    assert!(blocked.lines().any(|line| line == told), "{blocked}");
    said(&["block", "remove", "local/global/refunds"]);
    let yanked = said(&["yank", "local/global/refunds", "1"]);
    assert!(yanked.lines().any(|line| line == told), "{yanked}");
    let deleted = said(&["delete", "local/global/refunds", "--yes"]);
    assert!(deleted.lines().any(|line| line == told), "{deleted}");
}

#[test]
fn copies_of_a_skill_are_listed_also_where_it_is_blocked() {
    let workspace = Workspace::new();
    let folder = workspace.skill("refunds", REFUNDS);
    let copy = workspace.skill(
        "paybacks",
        &REFUNDS.replace("name: refunds", "name: paybacks"),
    );
    for (folder, location) in [(&folder, "user"), (&folder, "project"), (&copy, "user")] {
        workspace.json(&["publish", folder, "--location", location]);
    }
    let block = [
        "block",
        "add",
        "local/project/refunds",
        "--reason",
        "It lies.",
    ];
    let blocked = workspace.run(&[block.as_slice(), &["--format", "plain"]].concat());
    assert_eq!(
        String::from_utf8(blocked.stdout).expect("UTF-8"),
        "blocked local/project/refunds; 1 skill is blocked\n\
         copies are not blocked: local/user/refunds, local/user/paybacks\n"
    );
    let rows = workspace.run(&["similar", "local/project/refunds", "--format", "tsv"]);
    let rows = String::from_utf8(rows.stdout).expect("UTF-8");
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split('\t').collect()).collect();
    assert_eq!(
        rows,
        [
            [
                "local/user/refunds",
                "1.00",
                "name, files",
                "Handles refunds."
            ],
            ["local/user/paybacks", "1.00", "", "Handles refunds."],
        ]
    );
    let none = workspace.run(&["similar", "write_sql", "--format", "plain"]);
    let said = String::from_utf8(none.stderr).expect("UTF-8");
    assert!(
        said.contains("No other skill is similar to builtin/repertoire/write_sql."),
        "{said}"
    );
    let refusal = workspace.refusal(&["similar", "refunds", "--min", "0.1", "--json"]);
    assert_eq!(refusal["error"]["code"], "INVALID_PARAMETER");
}

#[test]
fn a_search_index_is_made_anew_when_asked() {
    let workspace = Workspace::new();
    let nowhere = workspace.run(&["reindex"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(
        !Path::new(&workspace.path("data")).exists(),
        "nothing is made"
    );
    let folder = workspace.skill("refunds", REFUNDS);
    workspace.json(&["publish", &folder]);
    let found = |workspace: &Workspace| {
        workspace.json(&["search", "refunds"])["results"][0]["name"].clone()
    };
    assert_eq!(found(&workspace), "refunds");
    let left = workspace.path("data/search/index/words/left-behind");
    std::fs::write(&left, "x").expect("written");
    let done = workspace.json(&["reindex"]);
    // What comes with the server is there as well.
    let skills = workspace.json(&["list"])["skills"].as_array().map(Vec::len);
    assert_eq!(done["skills"].as_u64(), skills.map(|count| count as u64));
    assert!(!Path::new(&left).exists(), "all of it was removed");
    assert_eq!(found(&workspace), "refunds");
}

#[test]
fn a_watch_ends_after_so_many_seconds_or_events() {
    let workspace = Workspace::new();
    let folder = workspace.skill("refunds", REFUNDS);
    // The server that a watch starts leaves with it.
    let config = workspace.path("config.yaml");
    std::fs::write(&config, "limits:\n  linger_seconds: 0\n").expect("a file");
    // The data directory is made, and what comes with the server published.
    workspace.json(&["list"]);
    let nothing = workspace.json(&["watch", "--max-seconds", "1", "--config", &config]);
    let token = nothing["resume_token"].as_str().expect("a token");
    workspace.json(&["publish", &folder]);
    workspace.json(&["yank", "local/global/refunds", "1"]);
    let output = workspace.run(&[
        "watch",
        "--resume",
        token,
        "--max-events",
        "1",
        "--config",
        &config,
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{token}: {stderr}");
    let seen: Vec<Value> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let kinds: Vec<_> = seen.iter().map(|line| &line["event"]["type"]).collect();
    assert_eq!(kinds, [&Value::Null, &json!("published")]);
    for wrong in ["0", "1001"] {
        let output = workspace.run(&["watch", "--max-events", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2_and_a_missing_server_says_how_to_start_one() {
    assert_eq!(support::command(&["publish"]).status.code(), Some(2));
    let output = support::command(&["list", "--server", "http://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("repertoire serve"), "{stderr}");
}

#[test]
fn what_fails_before_a_skill_is_looked_for_has_a_code_too() {
    let workspace = Workspace::new();
    let server = support::Server::start();
    let taken = server.url.trim_start_matches("http://").to_owned();
    let none = workspace.path("none");
    let wrong = workspace.path("wrong.yaml");
    std::fs::write(&wrong, "listen: nowhere").expect("written");
    let empty = workspace.path("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let in_use = server.data.display().to_string();
    let copy = workspace.path("copy");
    for (arguments, code) in [
        (
            &["list", "--server", "http://127.0.0.1:1"][..],
            "SERVER_UNREACHABLE",
        ),
        (&["list", "--server", "http://a b"], "INVALID_PARAMETER"),
        (&["status", "--server", &server.url], "INVALID_PARAMETER"),
        (&["compact", "--server", &server.url], "INVALID_PARAMETER"),
        (
            &["backup", &copy, "--server", &server.url],
            "INVALID_PARAMETER",
        ),
        (&["list", "--config", &wrong], "CONFIG_INVALID"),
        (&["verify", "--data", &in_use], "DATA_IN_USE"),
        (&["verify", "--data", &none], "DATA_UNUSABLE"),
        (&["list", "--data", &wrong], "DATA_UNUSABLE"),
        (&["serve", "--listen", &taken], "ADDRESS_UNUSABLE"),
        (&["import", &empty], "INVALID_PARAMETER"),
        (&["compose", "--lock", &none], "LOCAL_FILE_FAILED"),
        (&["restore", &wrong, "--data", &none], "LOCAL_FILE_FAILED"),
        (&["delete", "local/global/refunds"], "NOT_CONFIRMED"),
    ] {
        let own = ["--data", &workspace.path("data")];
        let own = if arguments.contains(&"--data") {
            &[][..]
        } else {
            &own
        };
        let output = support::command(&[arguments, own].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        // As JSON for a program, and as text in the log of a server.
        let said = [format!("\"code\":\"{code}\""), format!("[{code}]")];
        let is_said = said.iter().any(|said| stderr.contains(said));
        assert!(is_said, "{arguments:?}, {code}: {stderr}");
    }
}

#[test]
fn a_publish_that_conflicts_is_refused_with_what_to_do() {
    let workspace = Workspace::new();
    let folder = workspace.skill("refunds", REFUNDS);
    workspace.json(&["publish", &folder]);
    workspace.skill("refunds", &REFUNDS.replace("One", "Other"));
    let refused = workspace.refusal(&["publish", &folder]);
    assert_eq!(refused["error"]["code"], "VERSION_CONFLICT");
    assert!(
        refused["error"]["recovery_suggestions"][0]
            .as_str()
            .expect("a hint")
            .contains("Raise `version`")
    );
}
