//! What cargo does not say of the crates of the workspace: which of them may name an
//! engine, which are pure, and how long they are; and what the files beside them agree in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// Engines and protocols, and the crates that may name each.
const ONLY: &[(&str, &[&str])] = &[
    ("sled", &["store"]),
    (
        "rustix",
        &["store", "sandbox", "root-folder", "local", "connection"],
    ),
    ("zstd", &["store"]),
    ("serde_yaml", &["skill-md", "server"]),
    ("saphyr-parser", &["skill-md", "config-file"]),
    ("pulldown-cmark", &["skill-md"]),
    ("pubgrub", &["composition"]),
    ("tantivy", &["search"]),
    ("notify", &["local", "sync"]),
    ("gix", &["git"]),
    ("hmac", &["sync"]),
    ("strsim", &["access", "registry", "search", "skill-md"]),
    ("pulp", &["search", "embed"]),
    ("safetensors", &["embed"]),
    ("tokenizers", &["embed"]),
    ("sqlx", &["sql"]),
    ("rusqlite", &["sql", "sandbox"]),
    ("rquickjs", &["sandbox"]),
    ("regex", &["courses", "trust"]),
    ("typomania", &["trust"]),
    ("landlock", &["sandbox"]),
    ("seccompiler", &["sandbox"]),
    ("libc", &["sandbox"]),
    ("sqlparser", &["sql"]),
    ("reqwest", &["egress", "jira", "git"]),
    ("tokio-rustls", &["tls"]),
    ("x509-parser", &["tls"]),
    ("ipnet", &["egress"]),
    ("jsonwebtoken", &["oidc"]),
    ("ring", &["oidc", "caller-tokens"]),
    ("jsonschema", &["tools"]),
    (
        "tonic",
        &[
            "gateway",
            "contract",
            "grpc",
            "rest",
            "server",
            "cli",
            "telemetry",
        ],
    ),
    (
        "tonic-types",
        &["gateway", "contract", "grpc", "server", "cli"],
    ),
    ("prost", &["gateway", "contract", "grpc", "mcp", "cli"]),
    (
        "prost-types",
        &["gateway", "contract", "grpc", "rest", "cli"],
    ),
    ("prost-reflect", &["gateway"]),
    ("axum", &["rest", "server"]),
    ("rmcp", &["mcp", "mcp-transport"]),
    ("hyper", &["server", "connection"]),
    ("opentelemetry", &["telemetry"]),
    ("opentelemetry-proto", &["telemetry"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("rs-fsrs", &["learning"]),
    ("chrono", &["learning"]),
];

/// Crates that compute: they wait for nothing and know no runtime.
const PURE: &[&str] = &[
    "model",
    "skill-md",
    "codebase",
    "technologies",
    "facets",
    "trust",
    "embed",
    "root-folder",
    "install",
    "config-file",
    "vitals",
    "access-log",
];

/// Crates that read variables of the environment: settings, secrets, what exporters have by
/// their standard, and what `ssh` needs.
const READ_ENVIRONMENT: &[&str] = &["cli", "git", "secret", "server", "telemetry"];

/// More than this a newcomer does not read of ARCHITECTURE.md.
const MAX_ARCHITECTURE_BYTES: usize = 12_000;

/// Lines of a file, and of a crate, tests aside.
const MAX_FILE: usize = 500;
const MAX_CRATE: usize = 12_000;
/// Lines of any text in git: a difference in a longer one is not read.
const MAX_TEXT_LINES: usize = 2_500;

/// A package of the workspace.
pub(crate) struct Package {
    /// Without `repertoire-`.
    name: String,
    folder: PathBuf,
    /// What it needs outside of tests and benchmarks with its default features, packages of
    /// the workspace by the same names.
    needs: BTreeSet<String>,
    /// And in tests and benchmarks.
    needs_in_tests: BTreeSet<String>,
}

fn short(name: &str) -> String {
    name.strip_prefix("repertoire-").unwrap_or(name).to_owned()
}

fn metadata() -> Value {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(metadata.status.success(), "{metadata:?}");
    serde_json::from_slice(&metadata.stdout).expect("JSON")
}

/// The optional dependencies that the default features of a package bring.
fn by_default(package: &Value) -> BTreeSet<String> {
    let (mut found, mut next) = (BTreeSet::new(), vec!["default"]);
    while let Some(feature) = next.pop() {
        if let Some(dependency) = feature.strip_prefix("dep:") {
            found.insert(dependency.to_owned());
        }
        let brings = package["features"][feature].as_array().into_iter();
        next.extend(brings.flatten().filter_map(Value::as_str));
    }
    found
}

pub(crate) fn packages() -> BTreeMap<String, Package> {
    let package = |value: &Value| {
        let by_default = by_default(value);
        let is_built = |need: &Value| {
            let name = need["rename"].as_str().or(need["name"].as_str());
            need["optional"] == false || by_default.contains(name.expect("a name"))
        };
        let name = short(value["name"].as_str().expect("a name"));
        let manifest = Path::new(value["manifest_path"].as_str().expect("a path"));
        let all = value["dependencies"].as_array().expect("a list");
        let needs = |kind: Value| {
            all.iter()
                .filter(|need| need["kind"] == kind && is_built(need))
                .map(|need| {
                    let renamed = need["rename"].as_str().filter(|_| need["path"].is_null());
                    short(renamed.unwrap_or(need["name"].as_str().expect("a name")))
                })
                .collect()
        };
        let package = Package {
            name: name.clone(),
            folder: manifest.parent().expect("a folder").to_owned(),
            needs: needs(Value::Null),
            needs_in_tests: needs("dev".into()),
        };
        (name, package)
    };
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a list");
    packages.iter().map(package).collect()
}

/// Rust files of a package outside of its tests.
pub(crate) fn files(package: &Package) -> Vec<(PathBuf, String)> {
    walkdir::WalkDir::new(package.folder.join("src"))
        .sort_by_file_name()
        .into_iter()
        .map(|entry| entry.expect("an entry").into_path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .filter(|path| {
            let inside = path.strip_prefix(&package.folder).expect("below it");
            inside
                .iter()
                .all(|part| !part.to_string_lossy().starts_with("tests"))
        })
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a file");
            (path, text)
        })
        .collect()
}

#[test]
fn an_engine_is_named_by_the_crate_that_it_belongs_to() {
    let packages = packages();
    let mut wrong = Vec::new();
    for (engine, owners) in ONLY {
        let users = packages
            .values()
            .filter(|package| package.needs.contains(*engine));
        let users: Vec<&str> = users.map(|package| package.name.as_str()).collect();
        assert!(!users.is_empty(), "nobody needs {engine}");
        for user in users.iter().filter(|user| !owners.contains(user)) {
            wrong.push(format!("{user} names {engine}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_crate_uses_its_own_floor_and_those_below_it() {
    let manifest = text("Cargo.toml");
    let floors: Vec<&str> = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"crates/"))
        .filter_map(|line| line.strip_suffix("/*\","))
        .collect();
    assert_eq!((floors.len(), floors[0]), (11, "base"));
    let architecture = text("ARCHITECTURE.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    // Without `testing`, which tests of every floor use, and the program above all of them.
    let floor = |package: &Package| {
        let path = package.folder.strip_prefix(&root).ok()?;
        let name = path.parent()?.to_str()?;
        floors.iter().position(|floor| *floor == name)
    };
    let packages = packages();
    let mut wrong = Vec::new();
    for package in packages.values() {
        let Some(own) = floor(package) else {
            continue;
        };
        for need in package.needs.iter().chain(&package.needs_in_tests) {
            if packages.get(need).and_then(floor) > Some(own) {
                wrong.push(format!("{} uses {need}", package.name));
            }
        }
        let row = format!("| {} | `{}` |", floors[own], package.name.replace('-', "_"));
        if !architecture.contains(&row) {
            wrong.push(format!("ARCHITECTURE.md has no {row}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn crates_that_compute_know_no_runtime() {
    let packages = packages();
    for name in PURE {
        let mut reached = BTreeSet::new();
        let mut next = vec![(*name).to_owned()];
        while let Some(name) = next.pop() {
            if reached.insert(name.clone()) {
                let package = packages.get(&name);
                next.extend(package.into_iter().flat_map(|p| p.needs.iter().cloned()));
            }
        }
        for runtime in ["tokio", "tokio-util", "futures-util", "hyper", "tonic"] {
            assert!(!reached.contains(runtime), "{name} reaches {runtime}");
        }
    }
}

#[test]
fn the_environment_is_read_by_these_crates_alone() {
    let reads = |package: &&Package| {
        let mut files = files(package).into_iter();
        files.any(|(_, text)| text.contains("env::var"))
    };
    let packages = packages();
    let ours = packages
        .values()
        .filter(|package| package.name != "testing");
    let found: Vec<&str> = ours.filter(reads).map(|package| &*package.name).collect();
    assert_eq!(found, READ_ENVIRONMENT);
}

#[test]
fn the_page_on_architecture_is_short() {
    let bytes = text("ARCHITECTURE.md").len();
    assert!(
        bytes <= MAX_ARCHITECTURE_BYTES,
        "ARCHITECTURE.md has {bytes} bytes"
    );
}

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_readme_the_manifest_and_the_toolchain_name_one_version_of_rust() {
    let between = |text: &str, before: &str, after: &str| {
        let (_, rest) = text.split_once(before).expect(before);
        rest.split(after).next().expect("a version").to_owned()
    };
    let versions = [
        between(&text("README.md"), "The first needs Rust ", " "),
        between(&text("Cargo.toml"), "rust-version = \"", "\""),
        between(&text("rust-toolchain.toml"), "channel = \"", ".0\""),
    ];
    assert_eq!(versions, ["1.95", "1.95", "1.95"]);
}

#[test]
fn every_package_has_the_licence_that_is_here() {
    let licences: BTreeSet<String> = metadata()["packages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|package| package["license"].as_str().unwrap_or("none").to_owned())
        .collect();
    assert_eq!(licences, BTreeSet::from(["Apache-2.0".to_owned()]));
    let words: Vec<String> = text("LICENSE")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        (words[..4].join(" "), words.len()),
        ("Apache License Version 2.0,".to_owned(), 1581)
    );
}

#[test]
fn workflows_run_what_anyone_can_run_and_may_only_read() {
    holds(
        ".github/workflows/ci.yml",
        &[
            "make check",
            "make mutants BASE=${{ github.event.pull_request.base.sha }}",
            "make test",
        ],
    );
    holds(
        ".github/workflows/nightly.yml",
        &["make advisories", "make nightly"],
    );
    let here = text(".ci/run");
    assert!(here.ends_with("\nexec make check test\n"), "{here}");
}

/// A workflow whose jobs end with these commands, and that does nothing else of note.
fn holds(file: &str, commands: &[&str]) {
    let workflow: Value = serde_yaml::from_str(&text(file)).expect("YAML");
    let jobs = workflow["jobs"].as_object().expect("jobs");
    let action = |step: &Value| step["uses"].as_str().map(str::to_owned);
    let pinned = |action: &String| {
        let version = action.rsplit_once("@v").map_or("", |(_, version)| version);
        action.starts_with("actions/") && version.parse::<u32>().is_ok()
    };
    let told = jobs.values().map(|job| {
        let steps = job["steps"].as_array().expect("steps");
        let actions = steps.iter().filter_map(action);
        let loose: Vec<String> = actions.filter(|action| !pinned(action)).collect();
        let runs = steps.last().expect("a step")["run"].as_str();
        (runs, job["permissions"].clone(), job["env"].clone(), loose)
    });
    let as_is = |command| {
        (
            Some(command),
            Value::Null,
            json!({"CI": "true"}),
            Vec::new(),
        )
    };
    let expected: Vec<_> = commands.iter().copied().map(as_is).collect();
    assert_eq!(told.collect::<Vec<_>>(), expected, "{file}");
    assert_eq!(workflow["permissions"], json!({"contents": "read"}));
}

/// Nothing runs what stands in a comment (`doctest = false`), so nothing there says that
/// it is code: a fence names another language.
#[test]
fn no_comment_has_code_that_nobody_runs() {
    let mut wrong = Vec::new();
    for package in packages().values() {
        for (path, text) in files(package) {
            let comments = text.lines().map(str::trim_start).filter_map(|line| {
                let comment = line.strip_prefix("//!").or(line.strip_prefix("///"))?;
                comment.trim().strip_prefix("```")
            });
            for opening in comments.step_by(2) {
                if matches!(opening, "" | "rust" | "should_panic" | "no_run") {
                    wrong.push(format!("{}: ```{opening}", path.display()));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_crate_and_file_can_be_held_and_says_what_it_is() {
    let mut wrong = Vec::new();
    for package in packages().values() {
        let mut total = 0;
        for (path, text) in files(package) {
            let name = path.strip_prefix(&package.folder).expect("below it");
            let name = format!("{}/{}", package.name, name.display());
            // Tests in the file itself are counted with it: it is read with them.
            let lines = text.lines().count();
            total += lines;
            if !text.starts_with("//!") {
                wrong.push(format!("{name} does not say what it is"));
            }
            if lines > MAX_FILE {
                wrong.push(format!("{name} has {lines} lines"));
            }
            let is_front = name.ends_with("/src/lib.rs");
            if is_front && package.name != "testing" && !text.contains("Not here") {
                wrong.push(format!("{name} does not say what is not there"));
            }
        }
        if total > MAX_CRATE {
            wrong.push(format!("{} has {total} lines", package.name));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_file_of_tests_or_benchmarks_can_be_held_as_well() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_ours = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        !name.starts_with('.') && name != "target"
    };
    let mut wrong = Vec::new();
    for folder in ["benches", "crates", "src", "tests"] {
        let entries = walkdir::WalkDir::new(top.join(folder)).sort_by_file_name();
        for entry in entries.into_iter().filter_entry(is_ours) {
            let path = entry.expect("an entry").into_path();
            if path.extension().is_some_and(|ending| ending == "rs") {
                let lines = fs::read_to_string(&path).expect("a file").lines().count();
                if lines > MAX_FILE {
                    wrong.push(format!("{} has {lines} lines", path.display()));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// But for what cargo writes, and what `.gitattributes` says is no text.
#[test]
fn no_text_in_git_is_longer_than_anybody_reads() {
    let texts = [".", ":!Cargo.lock", ":(exclude,attr:binary)"];
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--"])
        .args(texts)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        return testing::skip("git does not know this folder");
    };
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let mut wrong = Vec::new();
    for name in listed.split_terminator('\0') {
        // One that is gone is still in the index until it is committed.
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap_or_default();
        let lines = String::from_utf8_lossy(&bytes).lines().count();
        if lines > MAX_TEXT_LINES {
            wrong.push(format!("{name} has {lines} lines"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
