//! Labelled skills: attacks in several spellings, and their benign twins.
//!
//! `cases/*.txt` has them: `=== VERDICT | what it is | name | allowed tools`, then each file
//! below `--- PATH`. `{TAGS:…}` stands for a text in Unicode Tags.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use repertoire_trust::{Input, Report, Scanner, Verdict, rules};

pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) verdict: String,
    name: String,
    tools: Vec<String>,
    files: Vec<(String, String)>,
}

fn tagged(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{TAGS:") else {
        return text.to_owned();
    };
    let (said, after) = rest.split_once('}').expect("a brace");
    let tags = said
        .bytes()
        .map(|byte| char::from_u32(0xE0000 + u32::from(byte)).expect("a tag"));
    format!("{before}{}{after}", tags.collect::<String>())
}

/// The cases of a folder of these tests.
pub(crate) fn cases(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a file");
        let file = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        for case in text.split("=== ").skip(1) {
            let (head, files) = case.split_once('\n').expect("a head");
            let mut parts = head.split('|').map(str::trim);
            let mut next = || parts.next().unwrap_or_default().to_owned();
            let (verdict, title, name, tools) = (next(), next(), next(), next());
            let files = files.split("--- ").skip(1).fold(
                Vec::new(),
                |mut files: Vec<(String, String)>, part| {
                    match part.split_once('\n') {
                        Some((path, content)) if !path.contains(' ') => {
                            files.push((path.to_owned(), tagged(content)));
                        }
                        _ => {
                            let last = &mut files.last_mut().expect("a file").1;
                            last.push_str("--- ");
                            last.push_str(part);
                        }
                    }
                    files
                },
            );
            cases.push(Case {
                title: format!("{file}: {title}"),
                verdict,
                name: if name.is_empty() {
                    "helper".to_owned()
                } else {
                    name
                },
                tools: tools
                    .split(',')
                    .map(|tool| tool.trim().to_owned())
                    .filter(|tool| !tool.is_empty())
                    .collect(),
                files,
            });
        }
    }
    cases
}

pub(crate) fn scan(case: &Case) -> Report {
    let files: Vec<(&str, &[u8])> = case
        .files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_bytes()))
        .collect();
    let known: &[&str] = &["write-sql"];
    Scanner::bundled().scan(&Input {
        files: &files,
        name: &case.name,
        allowed_tools: &case.tools,
        known_names: &known,
    })
}

#[test]
fn every_labelled_skill_gets_its_verdict() {
    let cases = cases("cases");
    let mut wrong = Vec::new();
    for case in &cases {
        let report = scan(case);
        if report.verdict.name() != case.verdict {
            let found = report.findings.iter();
            let found: Vec<String> = found
                .map(|found| {
                    format!(
                        "{} {}/{} line {}",
                        found.rule,
                        found.severity.name(),
                        found.confidence.name(),
                        found.line
                    )
                })
                .collect();
            wrong.push(format!(
                "{}: {} instead of {} {found:?}",
                case.title,
                report.verdict.name(),
                case.verdict
            ));
        }
    }
    assert!(cases.len() >= 150, "{} cases", cases.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Rules that cases in text cannot show: `scans/bytes.rs` does.
const OF_BYTES: &[&str] = &[
    "opaque-file",
    "disguised-file",
    "file-too-large",
    "not-fully-scanned",
    "reordered-text",
    "secret",
];

#[test]
fn every_rule_finds_something_in_a_labelled_skill() {
    let cases = cases("cases");
    let found: BTreeSet<String> = cases
        .iter()
        .filter(|case| case.verdict != Verdict::Passed.name())
        .flat_map(|case| scan(case).findings)
        .map(|found| found.rule.into_owned())
        .collect();
    let silent: Vec<&str> = rules()
        .map(|rule| rule.id.as_str())
        .filter(|id| !found.contains(*id) && !OF_BYTES.contains(id))
        .collect();
    assert_eq!(silent, Vec::<&str>::new());
}
