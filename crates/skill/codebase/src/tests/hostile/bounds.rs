//! How much of a codebase is looked at, and what is said of the rest.

use std::cell::Cell;
use std::fs;

use super::super::{folder, notes, seen, sent, stack, write};
use super::{GOOD, GOOD_STACK};
use crate::{ConfidenceLevel, Error, InlineFile, Inventory, Limits, ScanOptions, analyze, walk};

#[test]
fn binary_and_long_files_are_not_read() {
    let folder = folder(&[GOOD, ("Cargo.lock", &" ".repeat(4 * 1024 * 1024 + 1))]);
    fs::write(folder.path().join("package.json"), [0xff, 0xfe, 0x00]).expect("a file");
    write(folder.path(), "pom.xml", &" ".repeat(1024 * 1024 + 1));
    let analysis = seen(folder.path(), &ScanOptions::default());
    assert_eq!(
        notes(&analysis),
        [
            "Cargo.lock: not read: 4194305 bytes, of which 4194304 are the most",
            "package.json: not read: this is not UTF-8 text",
            "pom.xml: not read: 1048577 bytes, of which 1048576 are the most",
        ]
    );
    assert_eq!(stack(&analysis), [GOOD_STACK, "maven - 0.9 config_file"]);
}

#[test]
fn all_manifests_together_have_a_limit_and_those_next_to_the_root_come_first() {
    let manifest = |name: &str| format!("module {name}\ngo 1.22\n");
    let (a, b, c) = (manifest("a"), manifest("b"), manifest("c"));
    let folder = folder(&[("x/go.mod", &b), ("go.mod", &a), ("x/y/go.mod", &c)]);
    let limits = Limits {
        manifests: 2,
        ..Limits::default()
    };
    let analysis = seen(
        folder.path(),
        &ScanOptions {
            limits,
            ..ScanOptions::default()
        },
    );
    assert_eq!(
        notes(&analysis),
        [": not read: there are more manifests than one analysis reads"]
    );
    let limits = Limits {
        total_bytes: a.len(),
        ..Limits::default()
    };
    let analysis = seen(
        folder.path(),
        &ScanOptions {
            limits,
            ..ScanOptions::default()
        },
    );
    assert_eq!(
        notes(&analysis),
        [
            "x/go.mod: not read: 17 bytes, of which 0 are the most",
            "x/y/go.mod: not read: 17 bytes, of which 0 are the most"
        ]
    );
    assert_eq!(analysis.project.name.as_deref(), Some("a"));
}

#[test]
fn of_many_files_the_first_by_name_are_seen_level_by_level() {
    let folder = folder(&[]);
    for at in 0..40 {
        write(folder.path(), &format!("{at:02}.py"), "");
        write(folder.path(), &format!("a/{at:02}.rb"), "");
    }
    let limits = Limits {
        files: 50,
        ..Limits::default()
    };
    let options = ScanOptions {
        limits,
        ..ScanOptions::default()
    };
    let analysis = seen(folder.path(), &options);
    assert_eq!(analysis.stats.total_files, 50);
    assert_eq!(analysis.stats.languages_detected, ["python", "ruby"]);
    assert_eq!(
        notes(&analysis),
        [": stopped: there are more files than one analysis reads"]
    );
    let limits = Limits {
        files: 10,
        directories: 1,
        ..Limits::default()
    };
    let options = ScanOptions {
        limits,
        ..ScanOptions::default()
    };
    let inventory = walk(folder.path(), &options, &|| false).expect("a walk");
    assert_eq!(inventory.paths().last(), Some(&"09.py"));
    assert_eq!(
        analyze(&inventory, &options).confidence_level,
        ConfidenceLevel::Medium
    );
}

#[test]
fn when_the_time_is_over_what_was_seen_is_the_answer() {
    let folder = folder(&[GOOD, ("a/b.py", ""), ("b/c.py", "")]);
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    let options = ScanOptions::default();
    let analysis = analyze(
        &walk(folder.path(), &options, &stop).expect("a walk"),
        &options,
    );
    assert_eq!(
        notes(&analysis),
        [
            ": stopped: the time for looking at folders is over",
            ": stopped: the time for reading manifests is over",
        ]
    );
    assert_eq!(
        (
            analysis.stats.total_files,
            analysis.stats.directories_scanned
        ),
        (2, 2)
    );
}

#[test]
fn small_files_do_not_become_large_ones() {
    let long = "1".repeat(500_000);
    let uses = |count: usize, text: &str| text.repeat(count);
    let needed = "<dependency><groupId>org.flywaydb</groupId><artifactId>a</artifactId><version>${v}</version></dependency>";
    let pom = format!(
        "<project><properties><v>{long}</v></properties><dependencies>{}</dependencies></project>",
        uses(4_000, needed)
    );
    let entry =
        |at: usize| format!("a{at} = {{ module = \"org.flywaydb:a\", version.ref = \"v\" }}\n");
    let entries: String = (0..8_000).map(entry).collect();
    let catalogue = format!("[versions]\nv = \"{long}\"\n[libraries]\n{entries}");
    let gradle = format!("{}{}", "a".repeat(500_000), "{".repeat(500_000));
    let gems = format!(
        "{}{}",
        uses(100_000, "a do\n"),
        uses(40_000, "gem 'rails'\n")
    );
    let requirements = uses(50_000, "djangorestframework\n");
    let keys: Vec<String> = (0..110_000).map(|at| format!("a{at}@1")).collect();
    let locked = format!("{}:\n  version \"1\"\n", keys.join(","));
    let analysis = sent(&[
        ("pom.xml", &pom),
        ("gradle/libs.versions.toml", &catalogue),
        ("build.gradle", &gradle),
        ("Gemfile", &gems),
        ("requirements.txt", &requirements),
        ("yarn.lock", &locked),
    ]);
    assert_eq!(
        notes(&analysis),
        [
            "gradle/libs.versions.toml: not all is read: there are too many dependencies",
            "requirements.txt: not all is read: there are too many dependencies",
            "yarn.lock: not used: there are too many packages",
        ]
    );
    let ids: Vec<&str> = analysis
        .stack
        .iter()
        .map(|item| item.technology_id.as_str())
        .collect();
    assert!(
        ["django-rest-framework", "flyway", "rails"]
            .iter()
            .all(|id| ids.contains(id)),
        "{ids:?}"
    );
}

#[test]
fn notes_are_counted_when_there_are_too_many() {
    let files = (0..150).map(|at| InlineFile {
        path: format!("{at:03}/package.json"),
        content: Some("{".to_owned()),
    });
    let options = ScanOptions::default();
    let inventory = Inventory::inline(files.collect(), &options).expect("an inventory");
    let found = notes(&analyze(&inventory, &options));
    assert_eq!(found.len(), 101);
    assert_eq!(found[0], ": 50 more notes are left out");
}

#[test]
fn too_much_that_is_sent_is_refused() {
    let file = |content: usize| InlineFile {
        path: "a.md".to_owned(),
        content: Some(" ".repeat(content)),
    };
    let limits = Limits {
        files: 2,
        total_bytes: 10,
        ..Limits::default()
    };
    let options = ScanOptions {
        limits,
        ..ScanOptions::default()
    };
    let refusal = |files: Vec<InlineFile>| {
        Inventory::inline(files, &options)
            .map_err(|error: Error| error.to_string())
            .err()
    };
    assert_eq!(
        refusal(vec![file(1), file(1), file(1)]).as_deref(),
        Some("number of the inline files is 3; at most 2 are read in one request")
    );
    assert_eq!(
        refusal(vec![file(20)]).as_deref(),
        Some("size in bytes of the inline files is 24; at most 10 are read in one request")
    );
    assert_eq!(refusal(vec![file(6)]), None);
}
