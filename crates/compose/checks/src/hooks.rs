//! Hooks by which a host reminds its agent of its skills.
//!
//! No word of an author is part of a command: the command asks at each message what is
//! installed, and prints ids of skills.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::conflict::Subject;
use facets::Phrase;
use model::Skill;

/// The command that reads a message in the form in which hosts give it to hooks, and prints the
/// skills that it calls up.
pub const COMMAND: &str = "repertoire activation --hook";
/// Patterns of an answer.
const MAX_PATTERNS: usize = 100;
/// Skills that are printed for a message.
const MAX_CALLED_SKILLS: usize = 5;

/// Files that call a skill up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTrigger {
    /// The files, as a glob.
    pub pattern: String,
    /// What they are for, in a sentence.
    pub description: String,
}

/// The commands of a host, and the files that call skills up.
#[derive(Debug, Clone, PartialEq)]
pub struct Hooks {
    /// Commands that run before a message goes to the agent.
    pub pre_message: Vec<String>,
    /// Files that call skills up.
    pub files: Vec<FileTrigger>,
    /// The same as a host's settings, in the form of Claude Code.
    pub settings: Map<String, Value>,
}

/// The hooks for some skills. None where nothing calls any of them up.
#[must_use]
pub fn hooks(subjects: &[Subject]) -> Option<Hooks> {
    let files: BTreeSet<FileTrigger> = subjects.iter().flat_map(files).collect();
    let has_triggers = subjects.iter().any(|subject| !subject.triggers.is_empty());
    if files.is_empty() && !has_triggers {
        return None;
    }
    let command = json!({"type": "command", "command": COMMAND, "timeout": 10});
    let events = json!({"UserPromptSubmit": [{"hooks": [command]}]});
    Some(Hooks {
        pre_message: vec![COMMAND.to_owned()],
        files: files.into_iter().take(MAX_PATTERNS).collect(),
        settings: Map::from_iter([("hooks".to_owned(), events)]),
    })
}

/// Keys under which hosts look for the files that a text is about.
const KEYS: [&str; 4] = ["globs", "paths", "file_patterns", "file-patterns"];

fn files(subject: &Subject) -> Vec<FileTrigger> {
    let skill = &subject.member.version.skill;
    let stated = KEYS.iter().filter_map(|key| skill.front_matter.get(*key));
    let stated = stated.flat_map(texts).filter(|text| is_glob(text));
    let endings = endings(skill)
        .into_iter()
        .map(|ending| format!("**/*.{ending}"));
    let name = &subject.member.name;
    let trigger = |pattern: String| FileTrigger {
        description: format!("Load the skill {name} for such files"),
        pattern,
    };
    stated.chain(endings).map(trigger).collect()
}

/// A text with commas, or a list of texts.
fn texts(value: &Value) -> Vec<String> {
    let parts = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect();
    match value {
        Value::String(text) => parts(text),
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

/// A glob of plain characters, which means no more than it shows.
fn is_glob(text: &str) -> bool {
    // It is an author's text that ends in the settings of a host: nothing that a shell, or a
    // reader of settings, takes for more than a path.
    let plain = |c: char| c.is_alphanumeric() || "*?[]{},./_- ".contains(c);
    (1..=200).contains(&text.len()) && text.chars().all(plain)
}

/// Endings of files, such as `.xlsx`, that a description or a trigger names.
fn endings(skill: &Skill) -> BTreeSet<String> {
    let texts = skill.triggers.iter().chain([&skill.description]);
    let words =
        texts.flat_map(|text| text.split(|c: char| c.is_whitespace() || "(),;/'\"`".contains(c)));
    let ending = |word: &str| {
        let word = word.trim_end_matches(['.', ':']).trim_start_matches('*');
        let ending = word.strip_prefix('.')?.to_ascii_lowercase();
        let is_ending = (2..=5).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
        // `.NET` is a platform, and `.env` holds secrets that no skill should be reminded of.
        (is_ending && !matches!(ending.as_str(), "net" | "env")).then_some(ending)
    };
    words.filter_map(ending).collect()
}

/// The skills that a message calls up, each with the longest of its phrases that is in it;
/// the order stays, and of more than five the first. A skill is named by whatever the caller
/// knows it by.
#[must_use]
pub fn called_by<'a>(
    message: &str,
    skills: impl Iterator<Item = (&'a str, &'a [String])>,
) -> Vec<(&'a str, &'a str)> {
    let asked = Phrase::message(message);
    let called = skills.filter_map(|(skill, triggers)| {
        let phrases = triggers
            .iter()
            .filter_map(|text| Some((text, Phrase::stated(text)?)));
        let called = phrases.filter(|(_, phrase)| phrase.is_in(&asked));
        // Of equally long ones the first, where `max_by_key` would take the last.
        let longest = called.reduce(|longest, next| {
            let is_longer = next.1.stems.len() > longest.1.stems.len();
            if is_longer { next } else { longest }
        });
        Some((skill, longest?.0.as_str()))
    });
    called.take(MAX_CALLED_SKILLS).collect()
}
