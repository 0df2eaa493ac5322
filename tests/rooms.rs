//! The map of ARCHITECTURE.md, held by a test: which room may open which door.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("executor", &["model"]),
    ("admission", &["model"]),
    ("skill_md", &["model"]),
    ("store", &["model"]),
    (
        "registry",
        &["model", "executor", "admission", "skill_md", "store"],
    ),
    ("lookup", &["model", "executor", "skill_md", "registry"]),
    ("composition", &["model", "executor", "registry", "lookup"]),
    (
        "tools",
        &[
            "model",
            "executor",
            "skill_md",
            "store",
            "registry",
            "lookup",
            "composition",
        ],
    ),
    ("contract", &[]),
    ("gateway", &["model", "admission", "contract"]),
    ("mcp", &["model", "admission", "contract", "gateway"]),
    ("http", &["model", "admission", "contract", "gateway"]),
    (
        "grpc",
        &[
            "model",
            "executor",
            "skill_md",
            "registry",
            "lookup",
            "composition",
            "tools",
            "admission",
            "contract",
        ],
    ),
    (
        "server",
        &[
            "model",
            "executor",
            "skill_md",
            "store",
            "registry",
            "lookup",
            "composition",
            "tools",
            "admission",
            "contract",
            "gateway",
            "grpc",
            "mcp",
            "http",
        ],
    ),
    (
        "cli",
        &[
            "model", "executor", "skill_md", "store", "registry", "lookup", "contract", "gateway",
            "grpc", "mcp", "server",
        ],
    ),
];

/// Crates that only some rooms may name.
const CRATES: &[(&str, &[&str])] = &[
    ("sled", &["store"]),
    ("rustix", &["store"]),
    ("zstd", &["store"]),
    ("serde_yaml", &["skill_md", "server"]),
    ("saphyr_parser", &["skill_md"]),
    ("pubgrub", &["composition"]),
    ("tantivy", &["lookup"]),
    ("pulp", &["lookup"]),
    ("strsim", &["lookup"]),
    ("safetensors", &["lookup"]),
    ("tokenizers", &["lookup"]),
    ("sqlx", &["tools"]),
    ("rusqlite", &["tools"]),
    ("sqlparser", &["tools"]),
    ("reqwest", &["tools"]),
    ("jsonschema", &["tools"]),
    (
        "tonic",
        &["contract", "grpc", "gateway", "http", "server", "cli"],
    ),
    ("prost_types", &["grpc", "gateway", "http", "server", "cli"]),
    ("prost_reflect", &["gateway"]),
    ("axum", &["http", "server"]),
    ("rmcp", &["mcp"]),
    ("hyper_util", &["server"]),
    ("opentelemetry", &["server"]),
    ("prometheus_client", &["server"]),
    ("clap", &["server", "cli"]),
];

/// Longer files are split, tests aside.
const MAX_LINES: usize = 500;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// The first segments of the paths that begin with `prefix` in a file, comments
/// aside.
fn named(text: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        for (at, _) in line.match_indices(prefix) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            let rest = &line[at + prefix.len()..];
            let name: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            names.insert(name);
        }
    }
    names
}

fn room_of(path: &Path, source: &Path) -> String {
    let inside = path.strip_prefix(source).expect("a file below src");
    let first = inside.components().next().expect("a room");
    first.as_os_str().to_string_lossy().into_owned()
}

#[test]
fn rooms_use_only_the_rooms_above_them_and_the_crates_that_are_theirs() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rooms: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    let mut wrong = Vec::new();
    // A room's tests may build the world they need.
    let tests = |path: &Path| {
        path.components()
            .any(|part| part.as_os_str().to_string_lossy().starts_with("tests"))
    };
    for path in files(&source).into_iter().filter(|path| !tests(path)) {
        let room = room_of(&path, &source);
        let Some(may) = rooms.get(room.as_str()) else {
            assert!(
                matches!(room.as_str(), "lib.rs" | "main.rs"),
                "a room without a place on the map: {room}"
            );
            continue;
        };
        let text = fs::read_to_string(&path).expect("a file");
        let name = path
            .strip_prefix(&source)
            .expect("a file below src")
            .display();
        for used in named(&text, "crate::") {
            if used != room && rooms.contains_key(used.as_str()) && !may.contains(&used.as_str()) {
                wrong.push(format!("{name} opens the door to {used}"));
            }
        }
        for (krate, allowed) in CRATES {
            let uses = !named(&text, &format!("{krate}::")).is_empty();
            if uses && !allowed.contains(&room.as_str()) {
                wrong.push(format!("{name} names the crate {krate}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_room_has_a_front_page_and_every_file_can_be_held() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in files(&source) {
        let name = path
            .strip_prefix(&source)
            .expect("a file below src")
            .display()
            .to_string();
        let text = fs::read_to_string(&path).expect("a file");
        let is_test = name.contains("tests");
        if !is_test && !text.starts_with("//!") {
            wrong.push(format!("{name} does not say what it is"));
        }
        if !is_test && text.lines().count() > MAX_LINES {
            wrong.push(format!("{name} has {} lines", text.lines().count()));
        }
        if name.matches('/').count() == 1 && name.ends_with("/mod.rs") && !text.contains("Not here")
        {
            wrong.push(format!("{name} does not say what is not there"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
