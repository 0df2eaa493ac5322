//! What an operator is told about a config file: by `repertoire config check`, and at a start.

mod exposed;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_repertoire");

/// Runs the program where nothing is set, and returns its exit code and what it said.
fn run(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = Command::new(BINARY)
        .args(args)
        .env_clear()
        .env("HOME", folder)
        .envs(variables.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the binary");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("file"), "text").expect("a file");
    std::fs::write(folder.path().join("blank"), "\n").expect("a file");
    folder
}

fn check(folder: &Path, text: &str) -> (Option<i32>, Value) {
    std::fs::write(folder.join("r.yaml"), text).expect("a file");
    let (code, stdout, stderr) = run(folder, &["config", "check", "r.yaml", "--json"], &[]);
    assert_eq!(stderr, "", "{text}");
    (code, serde_json::from_str(&stdout).expect("JSON"))
}

/// Each mistake with all that is said of it, line by line.
const MISTAKES: &[(&str, &str)] = &[
    (
        "listen: here\n",
        "1 listen: `here` is no address to listen on; write an IP address and a port, such as 127.0.0.1:50051 for this machine alone, or 0.0.0.0:50051 for every network",
    ),
    (
        "listen: 50051\n",
        "1 listen: `50051` is no address to listen on; write an IP address and a port, such as 127.0.0.1:50051 for this machine alone, or 0.0.0.0:50051 for every network",
    ),
    (
        "listen: skills.example.com:8080\n",
        "1 listen: `skills.example.com:8080` is no address to listen on; write an IP address and a port, such as 127.0.0.1:8080 for this machine alone, or 0.0.0.0:8080 for every network",
    ),
    (
        "listen: 127.0.0.1\n",
        "1 listen: `127.0.0.1` is no address to listen on; write an IP address and a port, such as 127.0.0.1:50051 for this machine alone, or 0.0.0.0:50051 for every network",
    ),
    (
        "listen: [127.0.0.1]\n",
        "1 listen: needs a text, not a list",
    ),
    (
        "listen: 127.0.0.1:99999\n",
        "1 listen: `127.0.0.1:99999` is no address to listen on; write an IP address and a port, such as 127.0.0.1:50051 for this machine alone, or 0.0.0.0:50051 for every network",
    ),
    ("data: [a]\n", "1 data: needs a path, not a list"),
    ("data: file\n", "1 data: `file` is no folder"),
    ("data: file/inside\n", "1 data: `file` is no folder"),
    (
        "log: repertoire=loud=x\n",
        "1 log: `repertoire=loud=x` is no log filter; write a level, such as info, or levels by target, such as warn,repertoire=debug",
    ),
    (
        "log_format: xml\n",
        "1 log_format: `xml` is none of text, json",
    ),
    (
        "log_format: [text]\n",
        "1 log_format: needs one of text, json",
    ),
    (
        "otlp_endpoint: localhost:4317\n",
        "1 otlp_endpoint: the OTLP endpoint 'localhost:4317' begins with neither http:// nor https://",
    ),
    (
        "otlp_endpoint: http://localhost:4317\notlp_signals: [traces, spans]\n",
        "2 otlp_signals[1]: `spans` is none of traces, metrics, logs",
    ),
    (
        "otlp_signals: logs\n",
        "1 otlp_signals: needs a list, such as `[a, b]`, not a text",
    ),
    (
        "otlp_interval_seconds: 0\n",
        "1 otlp_interval_seconds: needs a whole number from 1 to 1000000000",
    ),
    (
        "limits:\n  calls: -1\n",
        "2 limits.calls: needs a whole number from 1 to 1000000000",
    ),
    (
        "limits:\n  calls: 0\n",
        "2 limits.calls: needs a whole number from 1 to 1000000000",
    ),
    (
        "limits:\n  calls: many\n",
        "2 limits.calls: needs a whole number from 1 to 1000000000, not a text",
    ),
    (
        "limits:\n  calls: 1.5\n",
        "2 limits.calls: needs a whole number from 1 to 1000000000",
    ),
    (
        "limits:\n  calls: 99999999999\n",
        "2 limits.calls: needs a whole number from 1 to 1000000000",
    ),
    (
        "namespaces:\n  visibility: hidden\n  owner: x\n",
        "2 namespaces.visibility: `hidden` is none of public, internal, private\n3 namespaces.owner: there is no such key; here are visibility, first_publish",
    ),
    (
        "tls:\n  certificate: a\n  cert: a\n  client_certificates: maybe\n",
        "3 tls.cert: there is no such key; here are certificate, key, client_ca, client_certificates\n4 tls.client_certificates: `maybe` is none of none, optional, required",
    ),
    (
        "limits:\n  cals: 7\n",
        "2 limits.cals: there is no such key; here are share_percent, calls, streams, workers, connections, handshakes, sessions, session_minutes, streams_per_connection, request_mib, answer_mib, deadline_seconds, wait_seconds, header_seconds, body_seconds, body_bytes_per_second, read_seconds, idle_seconds, linger_seconds, quotas",
    ),
    (
        "limits:\n  share_percent: 101\n",
        "2 limits.share_percent: needs a whole number from 1 to 100",
    ),
    (
        "limits:\n  calls: [7]\n",
        "2 limits.calls: needs a whole number from 1 to 1000000000, not a list",
    ),
    (
        "limits: 7\n",
        "1 limits: needs keys with values, not a number",
    ),
    (
        "limits:\n  calls: 7\n  streams: 8\n  calls: 9\n",
        "4 limits.calls: line 2 has this key already",
    ),
    (
        "- listen: 127.0.0.1:1\n",
        "1 : needs keys with values, such as `listen: 127.0.0.1:50051`, not a list",
    ),
    (
        "[server]\nlisten = \"127.0.0.1:1\"\n",
        "2 : this is not YAML: settings are lines such as `listen: 127.0.0.1:50051`",
    ),
    (
        "listen = \"127.0.0.1:1\"\n",
        "1 : needs keys with values, such as `listen: 127.0.0.1:50051`, not a text",
    ),
    (
        "a: [\n",
        "2 : this is not YAML: while parsing a node, there is no node content",
    ),
    (
        "limits:\n\tcalls: 7\n",
        "2 : this is not YAML: tabs disallowed within this context (block indentation)",
    ),
    (
        "log: info\n---\nlog: info\n",
        "2 : a second document begins here; settings are one",
    ),
    (
        "data: !env HOME\n",
        "1 data: `!env` means nothing here; leave it out",
    ),
    (
        "store:\n  keep_events: 0\n",
        "2 store.keep_events: needs a whole number from 1 to 1000000000",
    ),
    (
        "web:\n  allowed_hosts:\n    - https://a.example\n",
        "3 web.allowed_hosts[0]: `https://a.example` is no host; write a name such as skills.example.com, or a name and a port",
    ),
    (
        "web:\n  allowed_hosts: a.example\n",
        "2 web.allowed_hosts: needs a list, such as `[a, b]`, not a text",
    ),
    (
        "web:\n  allowed_origins: [a.example]\n",
        "2 web.allowed_origins[0]: `a.example` is no origin; write one such as https://app.example.com, or `*` for any",
    ),
    (
        "tools:\n  sql: {read_only: yes}\n",
        "2 tools.sql.read_only: needs true or false, not a text",
    ),
    (
        "tools:\n  sql: {functions: ['a b']}\n",
        "2 tools.sql.functions[0]: `a b` is not the name of a function, such as `similarity` or `app.net_price`",
    ),
    (
        "tools:\n  sql: {url: {vault: x}}\n",
        "2 tools.sql.url: there is no such key; here are env, file",
    ),
    (
        "tools:\n  sql: {skills: [write_sql]}\n",
        "2 tools.sql.skills: `write_sql` is not the id of a skill, such as local/user/triage",
    ),
    (
        "tools:\n  jira: s3cret\n",
        "2 tools.jira: needs keys with values, not a text",
    ),
    (
        "tools:\n  jira:\n    token: {env: NO_SUCH_VARIABLE_HERE}\n    url: https://a.example\n",
        "3 tools.jira.token: the variable NO_SUCH_VARIABLE_HERE of the environment is not set",
    ),
    (
        "tools:\n  jira:\n    url: https://a.example\n    token: {file: missing}\n",
        "4 tools.jira.token: cannot read `missing`: No such file or directory (os error 2)",
    ),
    (
        "tools:\n  jira:\n    url: https://a.example\n    token: {file: blank}\n",
        "4 tools.jira.token: `blank` is empty",
    ),
    (
        "tools:\n  jira:\n    url: http://a.example\n    token: s3cret\n",
        "3 tools.jira.url: http would expose the token to the network: use https (http is for this machine only)",
    ),
    (
        "tools:\n  jira:\n    url: https://a.example\n",
        "2 tools.jira.token: it is missing, and tools.jira.url is set",
    ),
    (
        "tools:\n  workers:\n    - {name: w, skills: [a/*]}\n",
        "3 tools.workers[0]: `token` is missing",
    ),
    (
        "tools:\n  workers:\n    - name: w\n      token: 7351049618273645\n      skills: [a/*]\n",
        "4 tools.workers[0].token: needs a secret in quotes, `{env: NAME}` or `{file: PATH}`, not a number",
    ),
    (
        "tools:\n  workers: [{name: w, token: s3cret, skills: [a/*]}]\n",
        "2 tools.workers[0].token: a token has at least 16 characters, such as `openssl rand -hex 32` makes",
    ),
    (
        "search:\n  meaning: some\n",
        "2 search.meaning: `some` is none of builtin, none",
    ),
    (
        "search:\n  embedder: nowhere\n",
        "2 search.embedder: nowhere: there is no such folder; name the folder that holds the model's `config.json`",
    ),
    (
        "analysis:\n  roots: [/nope, file]\n",
        "2 analysis.roots[0]: there is no folder `/nope`\n2 analysis.roots[1]: `file` is no folder",
    ),
    (
        "learning:\n  paths: [nowhere]\n",
        "2 learning.paths[0]: `nowhere`: No such file or directory (os error 2)",
    ),
    (
        "trust:\n  hold: never\n",
        "2 trust.hold: `never` is none of failed, untrusted, warning, changes, all",
    ),
    (
        "trust:\n  blocklist_feed: missing.json\n",
        "2 trust.blocklist_feed: cannot read `missing.json`: No such file or directory (os error 2)",
    ),
    (
        "install:\n  method: move\n",
        "2 install.method: `move` is none of copy, symlink",
    ),
    (
        "install:\n  min_trust_tier: high\n",
        "2 install.min_trust_tier: `high` is none of official, verified, community, unverified",
    ),
    (
        "sources:\n  a:\n    kind: ftp\n    location: x\n",
        "3 sources.a.kind: `ftp` is none of directory, git, github, well-known, well_known, clawhub, repertoire",
    ),
    (
        "sources:\n  a: {location: x}\n",
        "2 sources.a: `kind` is missing",
    ),
    (
        "sources:\n  a:\n    kind: directory\n    location: relative\n",
        "4 sources.a.location: 'relative' is no absolute path of a folder",
    ),
    (
        "sources:\n  a:\n    kind: directory\n    location: /nope\n",
        "4 sources.a.location: there is no folder `/nope`",
    ),
    (
        "sources:\n  a:\n    kind: git\n    location: https://me:s3cret@example.com/x\n",
        "4 sources.a.location: it has a secret in it; name where the secret is with `credential` instead",
    ),
    (
        "sources:\n  a:\n    kind: git\n    location: https://example.com/x\n    credential: s3cret\n",
        "5 sources.a.credential: name where the secret is: `{env: NAME}` or `{file: PATH}`",
    ),
    (
        "sources:\n  a:\n    kind: git\n    location: https://example.com/x\n    credential: {env: NO_SUCH_VARIABLE_HERE}\n",
        "5 sources.a.credential: the variable NO_SUCH_VARIABLE_HERE of the environment is not set",
    ),
    (
        "sources:\n  A_B: {kind: git, location: 'https://example.com/x'}\n",
        "2 sources.A_B: 'A_B' is no id of a source: 1 to 64 of `a-z`, `0-9` and `-`, with a letter or digit first",
    ),
    (
        "sources:\n  a: {kind: git, location: 'https://example.com/x', trust: verified}\n",
        "2 sources.a.trust: whose skills are trusted needs a `namespace`: others could publish next to it",
    ),
    (
        "sync:\n  allow_networks: [here]\n",
        "2 sync.allow_networks: `here` is not a network: write `10.0.0.0/8`, or one address such as `127.0.0.1`",
    ),
    (
        "sync:\n  max_mib: 0\n",
        "2 sync.max_mib: needs a whole number from 1 to 1000000000",
    ),
    (
        "listen: here\nlimits:\n  calls: 0\n  x: 1\nlog_format: xml\n",
        "1 listen: `here` is no address to listen on; write an IP address and a port, such as 127.0.0.1:50051 for this machine alone, or 0.0.0.0:50051 for every network\n3 limits.calls: needs a whole number from 1 to 1000000000\n4 limits.x: there is no such key; here are share_percent, calls, streams, workers, connections, handshakes, sessions, session_minutes, streams_per_connection, request_mib, answer_mib, deadline_seconds, wait_seconds, header_seconds, body_seconds, body_bytes_per_second, read_seconds, idle_seconds, linger_seconds, quotas\n5 log_format: `xml` is none of text, json",
    ),
    (
        "tools:\n  jira: {url: 'https://a.example'}\nanalysis:\n  roots: [/nope]\n",
        "2 tools.jira.token: it is missing, and tools.jira.url is set\n4 analysis.roots[0]: there is no folder `/nope`",
    ),
];

#[test]
fn each_mistake_is_told_with_its_line_its_key_and_what_would_be_right() {
    let folder = folder();
    let mut wrong = Vec::new();
    for (text, expected) in MISTAKES {
        let (code, told) = check(folder.path(), text);
        let told = told["mistakes"].as_array().expect("a list").iter();
        let told: Vec<String> = told
            .map(|it| {
                let (line, key) = (&it["line"], it["key"].as_str().expect("a key"));
                format!("{line} {key}: {}", it["message"].as_str().expect("text"))
            })
            .collect();
        let told = told.join("\n");
        if told != *expected || code != Some(1) {
            wrong.push(format!("{text:?}\n  {told:?}\n  {expected:?} {code:?}"));
        }
        for word in [
            "usize",
            "u64",
            "i64",
            "struct ",
            "enum",
            "invalid type",
            "expected",
            " column ",
            "s3cret",
        ] {
            assert!(!told.contains(word), "{word}: {told}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_a_default_is_listed_with_where_it_comes_from() {
    let folder = folder();
    let text = "\
# All of a team's.
log: warn
limits: {calls: 7, streams: 1024}
web: {allowed_hosts: [a.example]}
tools:
  jira:
    url: https://acme.atlassian.net
    token: s3cret
  workers:
    - {name: w, token: {file: token}, skills: [acme/*]}
";
    std::fs::write(folder.path().join("r.yaml"), text).expect("a file");
    std::fs::write(folder.path().join("token"), "0123456789abcdef").expect("a file");
    let args = [
        "config",
        "check",
        "r.yaml",
        "--listen",
        "localhost:0",
        "--allowed-host",
        "b.example:1",
        "--json",
    ];
    let variables = [
        ("REPERTOIRE_LOG", "debug"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:s3cret@h:4317"),
    ];
    let (code, stdout, stderr) = run(folder.path(), &args, &variables);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(!stdout.contains("s3cret"), "{stdout}");
    let told: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        (&told["ok"], &told["file"], &told["mistakes"]),
        (&json!(true), &json!("r.yaml"), &json!([]))
    );
    let listed = told["settings"].as_array().expect("a list").iter();
    let listed: Vec<String> = listed
        .map(|it| {
            let text = |name: &str| it[name].as_str().expect("text").to_owned();
            format!("{} = {} ({})", text("key"), text("value"), text("from"))
        })
        .collect();
    assert_eq!(
        listed,
        [
            "limits.calls = 7 (r.yaml:3)",
            "web.allowed_hosts = [a.example] (r.yaml:4)",
            "tools.jira.url = https://acme.atlassian.net (r.yaml:7)",
            "tools.jira.token = (secret) (r.yaml:8)",
            "tools.workers[0].name = w (r.yaml:10)",
            "tools.workers[0].token = {file: token} (r.yaml:10)",
            "tools.workers[0].skills = [acme/*] (r.yaml:10)",
            "listen = 127.0.0.1:0 (--listen)",
            "log = debug (REPERTOIRE_LOG)",
            "otlp_endpoint = http://(secret)@h:4317 (OTEL_EXPORTER_OTLP_ENDPOINT)",
            "web.allowed_hosts = b.example:1 (--allowed-host)",
        ]
    );
}

#[test]
fn without_a_file_the_environment_is_looked_at_and_a_file_that_is_not_there_is_told() {
    let folder = folder();
    let empty = [("REPERTOIRE_CONFIG", "")];
    let (code, stdout, _) = run(folder.path(), &["config", "check", "--json"], &empty);
    let told: Value = serde_json::from_str(&stdout).expect("JSON");
    let expected =
        json!({"ok": true, "file": null, "settings": [], "mistakes": [], "warnings": []});
    assert_eq!((code, told), (Some(0), expected));

    let variables = [("REPERTOIRE_EMBEDDER", "nowhere")];
    let (code, stdout, _) = run(folder.path(), &["config", "check", "--json"], &variables);
    let told: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        (
            code,
            &told["mistakes"][0]["key"],
            &told["mistakes"][0]["line"]
        ),
        (Some(1), &json!("search.embedder"), &Value::Null)
    );

    let (code, stdout, stderr) = run(folder.path(), &["config", "check", "missing.yaml"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(
        stderr.contains("cannot read the config file `missing.yaml`"),
        "{stderr}"
    );
}

#[test]
fn a_start_says_the_same_with_the_place_of_what_is_wrong() {
    let folder = folder();
    for (text, expected) in [
        (
            "limits:\n  calls: -1\n  clls: 7\n",
            "error: r.yaml:2: limits.calls: needs a whole number from 1 to 1000000000\nr.yaml:3: limits.clls: there is no such key",
        ),
        (
            "data: data\ntools:\n  jira:\n    url: https://a.example\n    token: {file: missing}\n",
            "error: r.yaml:5: tools.jira.token: cannot read `missing`",
        ),
        (
            "data: data\nsync:\n  allow_networks: [here]\n",
            "error: r.yaml:3: sync.allow_networks: ",
        ),
        (
            "data: file\n",
            "error: `file` is not a data directory: it is no folder [DATA_UNUSABLE]",
        ),
    ] {
        std::fs::write(folder.path().join("r.yaml"), text).expect("a file");
        let args = ["serve", "--listen", "localhost:0", "--config", "r.yaml"];
        let (code, _, stderr) = run(folder.path(), &args, &[]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.starts_with(expected), "{stderr}");
    }
}
