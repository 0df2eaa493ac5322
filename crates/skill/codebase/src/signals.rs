//! Facts of a codebase for a recommender, each with the file that shows it.

use std::collections::BTreeMap;

use super::inventory::{Inventory, depth};
use super::report::Signal;
use super::stack::{Evidence, aside};
use technologies::{Fact, file_name, is_at, table};

/// Paths that show a fact without naming a technology. `*` is any part of a name;
/// a pattern that ends in `/` is a folder with code in it.
const PATHS: &[(Fact, &[&str])] = &[
    (
        Fact::Tests,
        &[
            "test/",
            "tests/",
            "__tests__/",
            "spec/",
            "e2e/",
            "*.test.*",
            "*.spec.*",
            "*_test.go",
            "*_test.py",
            "test_*.py",
            "*_test.rs",
            "tests.rs",
            "*_spec.rb",
            "*_test.rb",
            "*Test.java",
            "*Tests.java",
            "*Test.kt",
            "*Test.php",
            "*Tests.cs",
            "*Test.cs",
            "*_test.dart",
            "*_test.exs",
            "*Tests.swift",
        ],
    ),
    (
        Fact::Documentation,
        &[
            "docs/*.md",
            "docs/*.rst",
            "docs/*.adoc",
            "doc/*.md",
            "ARCHITECTURE.md",
        ],
    ),
    (
        Fact::Readme,
        &["README", "README.*", "readme.*", "Readme.*"],
    ),
    (Fact::SecurityScanning, &["SECURITY.md"]),
    (
        Fact::Database,
        &[
            "migrations/*.sql",
            "migrations/*.py",
            "db/schema.rb",
            "db/migrate/*.rb",
        ],
    ),
    (
        Fact::AgentInstructions,
        &[
            ".cursor/rules/*",
            ".claude/agents/*.md",
            ".claude/commands/*.md",
        ],
    ),
    (
        Fact::Licence,
        &[
            "LICENSE",
            "LICENSE.*",
            "LICENSE-*",
            "LICENCE",
            "LICENCE.*",
            "COPYING",
            "COPYING.*",
        ],
    ),
];

/// Endings of texts that people read, and of documents of an office.
const TEXTS: &[&str] = &["md", "mdx", "rst", "adoc", "org", "tex"];
const DOCUMENTS: &[&str] = &[
    "doc", "docx", "odt", "rtf", "xls", "xlsx", "ods", "ppt", "pptx", "odp", "pdf",
];
/// Texts that codebases of every kind have.
const USUAL: &[&str] = &[
    "readme",
    "license",
    "licence",
    "changelog",
    "contributing",
    "code_of_conduct",
    "security",
    "agents",
    "claude",
    "skill",
];

/// Counts texts besides the usual ones, and documents.
pub(super) fn documents(inventory: &Inventory) -> (usize, usize) {
    let (mut texts, mut documents) = (0, 0);
    for path in inventory.files.keys() {
        let name = file_name(path).to_lowercase();
        let Some((stem, ending)) = name.rsplit_once('.') else {
            continue;
        };
        texts += usize::from(TEXTS.contains(&ending) && !USUAL.contains(&stem));
        documents += usize::from(DOCUMENTS.contains(&ending));
    }
    (texts, documents)
}

/// Returns facts with the file that shows each: one of the project rather than one next to
/// it, then the nearest to the root.
pub(super) fn signals(evidence: &[Evidence], inventory: &Inventory) -> Vec<Signal> {
    let mut found: BTreeMap<Fact, &str> = BTreeMap::new();
    let mut show = |fact: Fact, file| {
        let rank = |file: &str| (aside(file), depth(file), file.to_owned());
        let known = found.entry(fact).or_insert(file);
        if rank(file) < rank(known) {
            *known = file;
        }
    };
    for item in evidence {
        for fact in &item.technology.facts {
            show(*fact, item.file.as_str());
        }
    }
    for path in inventory.files.keys() {
        for (fact, patterns) in PATHS {
            if patterns.iter().any(|pattern| fits(pattern, path)) {
                show(*fact, path);
            }
        }
    }
    let signal = |(fact, file): (Fact, &str)| Signal {
        fact,
        file: file.to_owned(),
    };
    found.into_iter().map(signal).collect()
}

fn fits(pattern: &str, path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    match pattern.strip_suffix('/') {
        Some(folder) => {
            let code = || {
                table()
                    .language(name)
                    .is_some_and(|language| !language.markup)
            };
            folders.split('/').any(|found| found == folder) && code()
        }
        None => is_at(pattern, path),
    }
}
