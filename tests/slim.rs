//! The program without any of its features: what it does all the same, and how it refuses the
//! rest. `make slim` runs it; where a feature is built there is nothing here.

#![cfg(not(any(
    feature = "databases",
    feature = "jemalloc",
    feature = "jira",
    feature = "learning",
    feature = "oidc",
    feature = "otlp",
    feature = "remote-sources",
    feature = "transformer",
)))]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use contract::v1;
use contract::v1::learning_client::LearningClient;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use store::{Store, Table, TableId};
use support::{BINARY, Server, command, skill};
use tempfile::TempDir;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// What every refusal suggests.
fn step(feature: &str) -> String {
    format!(
        "Use a program that was built with `--features {feature}`, or with all features, which is the default"
    )
}

/// All that a refusal says: status, code, message, feature, next steps.
fn refusal(status: &Status) -> (Code, String, String, String, Vec<String>) {
    let details = status.get_error_details();
    let info = details.error_info().expect("a code");
    let links = details.help().expect("a next step").links.iter();
    (
        status.code(),
        info.reason.clone(),
        status.message().to_owned(),
        info.metadata.get("feature").cloned().unwrap_or_default(),
        links.map(|link| link.description.clone()).collect(),
    )
}

fn missing(feature: &str) -> (Code, String, String, String, Vec<String>) {
    (
        Code::FailedPrecondition,
        "FEATURE_NOT_BUILT".to_owned(),
        format!("This build leaves out the feature `{feature}`"),
        feature.to_owned(),
        vec![step(feature)],
    )
}

/// What a command prints as JSON, which may be an error, and its exit code.
fn printed(output: &std::process::Output) -> (Option<i32>, Value) {
    let bytes = if output.stdout.is_empty() {
        &output.stderr
    } else {
        &output.stdout
    };
    let text = String::from_utf8_lossy(bytes);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code(), value)
}

#[tokio::test]
async fn skills_are_published_found_and_loaded_by_grpc_the_command_line_and_mcp() {
    let server = Server::start();
    let published = server
        .registry()
        .await
        .publish_skill(skill("acme/shop/refunds", "", "Refund within a day."))
        .await
        .expect("published")
        .into_inner();
    assert_eq!(published.skill_id, "acme/shop/refunds");

    // The index is a moment behind what is published.
    let mut searches = (0..200).map(|_| printed(&server.command(&["search", "does refunds"])));
    let found = searches.find(|(_, found)| found["results"][0]["id"] == "acme/shop/refunds");
    assert_eq!(found.map(|(code, _)| code), Some(Some(0)));

    let mut bridge = tokio::process::Command::new(BINARY)
        .args(["mcp", "--server", &server.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    let pipes = (bridge.stdout.take(), bridge.stdin.take());
    let pipes = (pipes.0.expect("stdout"), pipes.1.expect("stdin"));
    let client = ().serve(pipes).await.expect("a client");
    let arguments = json!({"skill_id": "refunds"});
    let load = CallToolRequestParams::new("load_skill")
        .with_arguments(arguments.as_object().cloned().expect("an object"));
    let loaded = client.call_tool(load).await.expect("an answer");
    let loaded = serde_json::to_value(&loaded).expect("JSON");
    let text = loaded["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("Refund within a day."), "{text}");
    client.cancel().await.expect("the client ends");
    assert!(bridge.wait().await.expect("an end").success());
}

#[tokio::test]
async fn the_tools_of_bundled_skills_say_that_nothing_runs_them_here() {
    let server = Server::start();
    let mut lookup = server.lookup().await;
    for (skill_id, tool, feature) in [
        ("write_sql", "sql_list_tables", "databases"),
        ("jira", "jira_list_projects", "jira"),
    ] {
        let loaded = lookup
            .load_skill(v1::LoadSkillRequest {
                skill_id: skill_id.to_owned(),
                ..Default::default()
            })
            .await
            .expect("loaded")
            .into_inner();
        let told = format!(
            "This build leaves out the feature `{feature}`: the tools of `{skill_id}` cannot be called here."
        );
        assert!(loaded.content.contains(&told), "{}", loaded.content);

        let listed = lookup
            .list_tools(v1::ListToolsRequest {
                session_id: loaded.session_id.clone(),
                skill_id: skill_id.to_owned(),
            })
            .await
            .expect("a list")
            .into_inner();
        let listed = listed.tools.into_iter().find(|one| one.name == tool);
        let listed = listed.expect("the tool");
        assert_eq!(
            (listed.available, listed.unavailable_reason),
            (
                false,
                format!("This build leaves out the feature `{feature}`")
            )
        );

        let refused = lookup
            .call_tool(v1::CallToolRequest {
                session_id: loaded.session_id,
                name: tool.to_owned(),
                ..Default::default()
            })
            .await
            .expect_err("refused");
        let (code, reason, message, _, steps) = missing(feature);
        let told = refusal(&refused);
        assert_eq!(
            (told.0, told.1, told.2, told.4),
            (code, reason, message, steps)
        );
    }
}

#[tokio::test]
async fn every_call_and_command_of_learning_is_refused() {
    let server = Server::start();
    let mut learning = LearningClient::new(server.channel().await);
    let refused = learning.get_paths(v1::GetPathsRequest::default()).await;
    assert_eq!(refusal(&refused.expect_err("refused")), missing("learning"));
    let watched = learning
        .watch_progress(v1::WatchProgressRequest::default())
        .await;
    assert_eq!(refusal(&watched.expect_err("refused")), missing("learning"));
    for args in [
        &["learn", "list", "--server", &server.url][..],
        &["learn", "check", "."],
    ] {
        let (code, error) = printed(&command(args));
        assert_eq!(
            (code, &error["error"]["code"]),
            (Some(1), &json!("FEATURE_NOT_BUILT")),
            "{args:?}: {error:#}"
        );
    }
}

#[tokio::test]
async fn folders_are_synced_and_other_sources_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let root = folder.path().join("skills/refunds");
    std::fs::create_dir_all(&root).expect("a folder");
    let text = "---\nname: refunds\ndescription: Does refunds.\n---\nDo it.\n";
    std::fs::write(root.join("SKILL.md"), text).expect("a file");
    let server = Server::start();
    let mut registry = server.local_registry().await;
    let mut add = async |id: &str, kind: v1::SourceKind, location: String| {
        let source = v1::Source {
            source_id: id.to_owned(),
            location,
            namespace: "acme/shop".to_owned(),
            kind: kind.into(),
            interval_seconds: Some(0),
            ..Default::default()
        };
        let request = v1::AddSourceRequest {
            source: Some(source),
        };
        registry.add_source(request).await
    };
    let at = folder.path().join("skills").display().to_string();
    let added = add("folder", v1::SourceKind::Directory, at).await;
    added.expect("a source");
    let url = "https://skills.example.com/skills.git".to_owned();
    let refused = add("elsewhere", v1::SourceKind::Git, url).await;
    assert_eq!(
        refusal(&refused.expect_err("refused")),
        missing("remote-sources")
    );
    let synced = registry
        .refresh_index(v1::RefreshIndexRequest {
            sources: vec!["folder".to_owned()],
            ..Default::default()
        })
        .await
        .expect("synced");
    assert_eq!(synced.into_inner().total_skills_updated, 1);
}

/// Runs `serve` where nothing is set but this, and returns its exit code and what it said. A
/// start that is not refused ends, too: at an address that is not of this machine.
fn refused_start(folder: &Path, config: &str, args: &[&str]) -> (Option<i32>, String) {
    std::fs::write(folder.join("r.yaml"), config).expect("a file");
    let output = Command::new(BINARY)
        .args(["serve", "--config", "r.yaml", "--listen", "192.0.2.1:1"])
        .args(args)
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the binary");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

#[test]
fn settings_that_ask_for_a_feature_are_refused_before_anything_is_opened() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    for (config, args, key, place, feature) in [
        (
            "data: data\ntools:\n  sql:\n    url: sqlite:a.db\n",
            &[][..],
            "tools.sql",
            "r.yaml:3: ",
            "databases",
        ),
        (
            "tools:\n  jira: {url: 'https://acme.example', token: secret}\n",
            &[],
            "tools.jira",
            "r.yaml:2: ",
            "jira",
        ),
        (
            "search:\n  embedder: model\n",
            &[],
            "search.embedder",
            "r.yaml:2: ",
            "transformer",
        ),
        (
            "",
            &["--embedder", "model"],
            "search.embedder",
            "",
            "transformer",
        ),
        (
            "access:\n  sign_in: tokens\n  issuers: [{issuer: https://a.example.com, name: a, audiences: [b], rules: [{claims: {sub: c}, role: reader}]}]\n",
            &[],
            "access.issuers",
            "r.yaml:3: ",
            "oidc",
        ),
        (
            "otlp_endpoint: http://localhost:4317\n",
            &[],
            "otlp_endpoint",
            "r.yaml:1: ",
            "otlp",
        ),
        (
            "",
            &["--otlp-endpoint", "http://localhost:4317"],
            "otlp_endpoint",
            "",
            "otlp",
        ),
        (
            "learning:\n  paths: [paths]\n",
            &[],
            "learning",
            "r.yaml:1: ",
            "learning",
        ),
        (
            "sync:\n  allow_networks: [10.0.0.0/8]\n",
            &[],
            "sync.allow_networks",
            "r.yaml:2: ",
            "remote-sources",
        ),
        (
            "sources:\n  acme:\n    kind: git\n    location: https://skills.example.com/a.git\n",
            &[],
            "sources.acme.kind",
            "r.yaml:3: ",
            "remote-sources",
        ),
    ] {
        let why = format!(
            "needs the feature `{feature}`, which this build leaves out; remove the setting, or use a program that was built with `--features {feature}`"
        );
        assert_eq!(
            refused_start(folder, config, args),
            (
                Some(1),
                format!("error: {place}{key} {why} [FEATURE_NOT_BUILT]\n")
            ),
            "{config}"
        );
        let config = folder.join("r.yaml").display().to_string();
        let check = [&["config", "check", &config], args].concat();
        let (code, checked) = printed(&command(&check));
        let mistakes = checked["mistakes"].as_array().expect("mistakes");
        assert_eq!(code, Some(1));
        assert!(
            mistakes
                .iter()
                .any(|it| it["key"] == key && it["message"] == why),
            "{checked:#}"
        );
    }
    assert!(!folder.join("data").exists(), "nothing was opened");
}

#[test]
fn a_config_file_that_spells_out_the_defaults_is_no_request() {
    let text = "tools:\n  sql: {read_only: true, max_rows: 1000}\n  jira: {}\nlearning: {paths: []}\nsync: {allow_networks: []}\nsearch: {meaning: builtin}\n";
    let server = Server::with(&[], text);
    assert_eq!(server.command(&["list"]).status.code(), Some(0));
}

#[test]
fn the_program_says_what_it_leaves_out() {
    let left_out = "databases, jemalloc, jira, learning, oidc, otlp, remote-sources, transformer";
    let version = command(&["--version"]);
    assert_eq!(
        String::from_utf8_lossy(&version.stdout),
        format!(
            "repertoire {}\nfeatures: none\nleft out: {left_out}\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data").display().to_string();
    let (code, looked) = printed(&command(&["doctor", "--data", &data]));
    assert_eq!(
        (code, &looked["checks"][0]),
        (
            Some(0),
            &json!({
                "check": "features",
                "state": "ok",
                "found": format!("none; left out: {left_out}"),
                "next": "",
            })
        )
    );
}

/// The backup is of a program with all features: `repertoire import` of a skill `kept`,
/// `repertoire source add` of a Git repository, and a solved exercise.
#[tokio::test]
async fn what_the_full_build_stored_is_served_and_kept() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data").display().to_string();
    let backup = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/all-features.backup"
    );
    let restored = command(&["restore", backup, "--data", &data]);
    assert!(restored.status.success(), "{restored:?}");

    let server = Server::over(folder.path(), &[], "");
    let (_, shown) = printed(&server.command(&["show", "local/global/kept"]));
    assert_eq!(shown["skill"]["id"], "local/global/kept", "{shown:#}");
    let mut registry = server.local_registry().await;
    let sources = registry
        .list_sources(v1::ListSourcesRequest::default())
        .await
        .expect("a list")
        .into_inner();
    let kinds: Vec<_> = sources
        .sources
        .into_iter()
        .filter_map(|it| it.source)
        .map(|source| (source.kind(), source.source_id))
        .collect();
    assert_eq!(kinds, [(v1::SourceKind::Git, "elsewhere".to_owned())]);
    let refused = registry
        .refresh_index(v1::RefreshIndexRequest {
            sources: vec!["elsewhere".to_owned()],
            ..Default::default()
        })
        .await;
    assert_eq!(
        refusal(&refused.expect_err("refused")),
        missing("remote-sources")
    );
    server.terminate();

    // What it does not know itself is in its own backup, too.
    let again = folder.path().join("again.backup").display().to_string();
    for args in [
        &["verify", "--data", &data][..],
        &["compact", "--data", &data],
        &["backup", &again, "--data", &data],
    ] {
        let done = command(args);
        assert!(done.status.success(), "{done:?}");
    }
    let other = folder.path().join("other").display().to_string();
    let restored = command(&["restore", &again, "--data", &other]);
    assert!(restored.status.success(), "{restored:?}");
    let records = |data: &str| {
        let options = store::Options {
            reserve_bytes: 0,
            ..store::Options::default()
        };
        let store = Store::open(Path::new(data), &options).expect("a store");
        let exercises: Table<(String, String), Value> = Table::new(TableId::LearnerExercises);
        let found = store.scan(&exercises, b"").map(|entry| {
            let (key, record) = entry.expect("a record");
            (key, record.value)
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(records(&data), records(&other));
    assert_eq!(records(&other).len(), 1);
}
