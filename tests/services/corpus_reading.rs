//! Reads the skills of two corpora. Of ours each problem is written down; some 500
//! public ones are compared, class of problem by class, with two other readers:
//! `PyYAML` with the standard's rules, and the reference validator.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bytes::Bytes;
use model::{FilePath, Severity};
use skill_md::{ReadOptions, Reading, body, read};

use crate::support::corpus;

/// Keys that the reference validator does not know and Repertoire does.
const OURS: &[&str] = &[
    "argument-hint",
    "author",
    "disable-model-invocation",
    "tags",
    "triggers",
    "user-invocable",
    "version",
];

/// What the other readers found in a folder.
struct Expected {
    path: String,
    has_front_matter: bool,
    /// None where there was no front matter to read.
    yaml_error: Option<String>,
    violations: String,
    /// None where the reference validator stopped before it came to keys.
    unknown_keys: Option<BTreeSet<String>>,
    name: String,
    description_chars: Option<usize>,
    body_bytes: Option<usize>,
}

fn expectations(corpus: &Path) -> Vec<Expected> {
    let table = fs::read_to_string(corpus.join("EXPECT.tsv")).expect("EXPECT.tsv");
    table
        .lines()
        .skip(1)
        .map(|line| {
            let column: Vec<&str> = line.split('\t').collect();
            let validator = column[3];
            let stopped =
                validator.starts_with("Invalid YAML") || validator.contains("must start with");
            let unknown = validator
                .split_once("Unexpected fields in frontmatter: ")
                .and_then(|(_, rest)| rest.split_once(". Only"))
                .map(|(keys, _)| keys.split(", ").map(str::to_owned).collect())
                .unwrap_or_default();
            Expected {
                path: column[0].to_owned(),
                has_front_matter: column[4] == "ok",
                yaml_error: (column[5] != "ok" && !column[5].is_empty())
                    .then(|| column[5].to_owned()),
                violations: column[6].to_owned(),
                unknown_keys: (!stopped).then_some(unknown),
                name: column[7].to_owned(),
                description_chars: column[9].parse().ok(),
                body_bytes: column[11].parse().ok(),
            }
        })
        .collect()
}

/// The files of a skill, and what is read from them.
fn read_folder(folder: &Path, name: &str) -> (BTreeMap<FilePath, Bytes>, Reading) {
    let files: BTreeMap<FilePath, Bytes> = corpus::files(folder)
        .into_iter()
        .map(|(path, file)| {
            let bytes = fs::read(file).expect("a file").into();
            (path.parse().expect("a path"), bytes)
        })
        .collect();
    let options = ReadOptions {
        strict: false,
        folder: Some(name),
        ..ReadOptions::default()
    };
    let reading = read(&files, &options);
    (files, reading)
}

#[test]
fn skills_of_ours_are_read_with_the_problems_that_are_written_down() {
    let ours = corpus::ours();
    let mut found = Vec::new();
    for folder in corpus::skill_folders(&ours) {
        let inside = folder.strip_prefix(&ours).expect("below it");
        let inside = inside.to_str().expect("UTF-8");
        let (_, reading) = read_folder(&folder, folder_name(inside));
        let name = reading.skill.map(|skill| skill.name).unwrap_or_default();
        let mut row = vec![inside.to_owned(), name];
        let problems = reading.problems.iter();
        row.extend(problems.map(|p| format!("{:?} {} {}", p.severity, p.line, p.rule)));
        found.push(row);
    }
    assert_eq!(found, corpus::table("reading.tsv"));
}

/// The name of the repository where the skill is all of it.
fn folder_name(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or(path);
    if path.contains('/') {
        last
    } else {
        last.split_once("__").map_or(last, |(_, name)| name)
    }
}

fn has(reading: &Reading, rule: &str) -> bool {
    reading.problems.iter().any(|problem| problem.rule == rule)
}

fn unknown_keys(reading: &Reading) -> BTreeSet<String> {
    let problem = reading
        .problems
        .iter()
        .find(|problem| problem.rule == "unknown-key");
    let message = problem.map_or("", |problem| &problem.message);
    message
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// How often we and they found a problem: both, they alone, we alone, neither.
#[derive(Default, Debug, PartialEq, Eq, Clone, Copy)]
struct Agreement {
    both: usize,
    they: usize,
    we: usize,
    neither: usize,
}

#[derive(Default)]
struct Table {
    classes: BTreeMap<&'static str, Agreement>,
    differences: Vec<String>,
}

impl Table {
    fn compare(&mut self, class: &'static str, path: &str, they: bool, we: bool) {
        let agreement = self.classes.entry(class).or_default();
        match (they, we) {
            (true, true) => agreement.both += 1,
            (true, false) => agreement.they += 1,
            (false, true) => agreement.we += 1,
            (false, false) => agreement.neither += 1,
        }
        if they != we {
            self.differences
                .push(format!("{class}: {path}: they {they}, we {we}"));
        }
    }

    fn compare_one(&mut self, expected: &Expected, reading: &Reading, text: &str) {
        let path = &expected.path;
        self.compare(
            "no front matter",
            path,
            !expected.has_front_matter,
            has(reading, "front-matter-missing"),
        );
        if !expected.has_front_matter {
            return;
        }
        let repaired = has(reading, "front-matter-repaired");
        let unreadable = has(reading, "front-matter-unreadable");
        self.compare(
            "not YAML",
            path,
            expected.yaml_error.is_some(),
            repaired || unreadable,
        );
        if let Some(keys) = &expected.unknown_keys {
            let theirs: BTreeSet<String> = keys
                .iter()
                .filter(|key| !OURS.contains(&key.as_str()))
                .cloned()
                .collect();
            let ours = unknown_keys(reading);
            self.compare("unknown keys", path, !theirs.is_empty(), !ours.is_empty());
            if theirs != ours {
                self.differences.push(format!(
                    "unknown keys: {path}: they {theirs:?}, we {ours:?}"
                ));
            }
        }
        self.compare(
            "another body",
            path,
            false,
            !same_body(text, expected.body_bytes),
        );
        // A repair keeps the author's words: none of these has a quote in it.
        let is_verbatim = reading
            .skill
            .as_ref()
            .is_some_and(|skill| text.contains(&skill.description));
        self.compare(
            "words changed by a repair",
            path,
            false,
            repaired && !is_verbatim,
        );
        // What follows the other readers tell only of what they could read.
        if expected.yaml_error.is_some() {
            return;
        }
        self.compare(
            "name is not the folder's",
            path,
            expected.violations.contains("name != folder"),
            has(reading, "name-folder-mismatch"),
        );
        self.compare(
            "description too long",
            path,
            expected.violations.contains("description >1024"),
            has(reading, "description-too-long"),
        );
        let skill = reading.skill.as_ref();
        let same_name = skill.is_some_and(|skill| skill.name == expected.name);
        self.compare("another name", path, false, !same_name);
        let chars = skill.map(|skill| skill.description.chars().count());
        self.compare(
            "another description",
            path,
            false,
            chars != expected.description_chars,
        );
    }
}

#[test]
#[ignore = "nightly: some 500 public skills"]
fn public_skills_are_read_as_other_readers_read_them() {
    let Some(corpus) = corpus::public() else {
        return;
    };
    let mut table = Table::default();
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut rules: BTreeMap<String, usize> = BTreeMap::new();
    for expected in expectations(&corpus) {
        let folder = corpus.join(&expected.path);
        let (files, reading) = read_folder(&folder, folder_name(&expected.path));
        let text = files.get(&FilePath::skill_md()).expect("SKILL.md");
        table.compare_one(
            &expected,
            &reading,
            std::str::from_utf8(text).expect("UTF-8"),
        );
        let error = reading
            .problems
            .iter()
            .find(|problem| problem.severity == Severity::Error);
        let outcome = match error {
            Some(error) => format!("refused: {}", error.rule),
            None if has(&reading, "front-matter-repaired") => "repaired".to_owned(),
            None => "accepted".to_owned(),
        };
        *outcomes.entry(outcome).or_default() += 1;
        for problem in &reading.problems {
            *rules
                .entry(format!("{:?} {}", problem.severity, problem.rule))
                .or_default() += 1;
        }
    }
    eprintln!("outcomes: {outcomes:#?}\nproblems: {rules:#?}");
    eprintln!(
        "{:26} {:>6} {:>6} {:>6} {:>7}",
        "class", "both", "they", "we", "neither"
    );
    for (class, a) in &table.classes {
        eprintln!(
            "{class:26} {:6} {:6} {:6} {:7}",
            a.both, a.they, a.we, a.neither
        );
    }
    eprintln!("differences: {:#?}", table.differences);
    // Every difference would be explained here. There is none, once two things
    // are set apart: the keys in `OURS`, which the validator calls unexpected and
    // this server reads; and the skills whose YAML the validator refuses to read
    // (broken, or inline JSON), of whose keys it says nothing.
    assert_eq!(table.differences, Vec::<String>::new());
    let agreement = |both, neither| Agreement {
        both,
        neither,
        ..Agreement::default()
    };
    let classes = [
        ("no front matter", agreement(5, 510)),
        ("not YAML", agreement(17, 493)),
        ("unknown keys", agreement(107, 377)),
        ("name is not the folder's", agreement(15, 478)),
        ("description too long", agreement(1, 492)),
        ("another name", agreement(0, 493)),
        ("another description", agreement(0, 493)),
        ("another body", agreement(0, 510)),
        ("words changed by a repair", agreement(0, 510)),
    ];
    assert_eq!(table.classes, BTreeMap::from(classes));
    let count = |what: &str, count: usize| (what.to_owned(), count);
    assert_eq!(
        outcomes,
        BTreeMap::from([
            count("accepted", 493),
            count("repaired", 17),
            count("refused: front-matter-missing", 5),
        ])
    );
    assert_eq!(
        rules,
        BTreeMap::from([
            count("Error front-matter-missing", 5),
            count("Warning allowed-tools-shell", 4),
            count("Warning front-matter-repaired", 17),
            // Files that the corpus leaves out, mostly.
            count("Warning link-dead", 46),
            count("Warning name-folder-mismatch", 15),
            count("Warning description-too-long", 1),
            count("Info unknown-key", 118),
            count("Info version-not-semver", 8),
            count("Info body-long", 22),
        ])
    );
}

/// The table counts the line that sets a body off from the fence, and the body
/// does not have it.
fn same_body(text: &str, expected: Option<usize>) -> bool {
    let length = body(text).len();
    let set_off = [0, 1, 2].map(|line| Some(length + line));
    set_off.contains(&expected)
}
