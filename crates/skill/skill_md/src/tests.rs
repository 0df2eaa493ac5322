//! What texts come to. Each case compares the whole list of problems.

mod bundles;
mod fields;
mod fuzz;
mod hidden;
mod hostile;
mod links;
mod properties;
mod salvage;
mod yaml;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{ReadOptions, Reading, read};
use model::{FilePath, Skill};

/// Front matter that is nothing but right.
const GOOD: &str = "name: demo\ndescription: Shows how.\n";

fn files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> BTreeMap<FilePath, Bytes> {
    files
        .into_iter()
        .map(|(path, content)| {
            (
                path.parse().expect("a path"),
                Bytes::copy_from_slice(content),
            )
        })
        .collect()
}

/// Reads a `SKILL.md` in a folder `demo`.
fn read_text(text: &str) -> Reading {
    let options = ReadOptions {
        strict: false,
        folder: Some("demo"),
        ..ReadOptions::default()
    };
    read(&files([("SKILL.md", text.as_bytes())]), &options)
}

/// A `SKILL.md` with this front matter and a line of instructions.
fn with_front(front: &str) -> String {
    format!("---\n{front}---\nDo it.\n")
}

/// Problems as `severity line rule`.
fn listed(reading: &Reading) -> Vec<String> {
    let word = |p: &model::Problem| format!("{:?}", p.severity).to_lowercase();
    reading
        .problems
        .iter()
        .map(|p| format!("{} {} {}", word(p), p.line, p.rule))
        .collect()
}

/// The problems of a front matter.
fn found(front: &str) -> Vec<String> {
    listed(&read_text(&with_front(front)))
}

/// The skill of a front matter that follows name and description.
fn skill_with(front: &str) -> Skill {
    let reading = read_text(&with_front(&format!("{GOOD}{front}")));
    reading
        .skill
        .unwrap_or_else(|| panic!("refused: {:?}", reading.problems))
}

/// The problems of a front matter that follows name and description, whose
/// first line is line 4.
fn found_after_good(front: &str) -> Vec<String> {
    found(&format!("{GOOD}{front}"))
}

fn message(reading: &Reading) -> &str {
    reading
        .problems
        .first()
        .map_or("", |problem| &problem.message)
}

const NOTHING: [&str; 0] = [];
