//! Tests of the crate, and what they share.

mod activation;
mod budget;
mod conflicts;
mod corpus;
mod registry;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use composition::Member;
use executor::Stop;
use jiff::Timestamp;
use model::{Digest, FileEntry, FilePath, Principal, SkillId, Version, VersionNumber};

use super::*;

/// A version with these files; the first is its SKILL.md.
fn version(files: &[(&str, &str)], folder: &str) -> Option<Version> {
    let content: BTreeMap<FilePath, Bytes> = files
        .iter()
        .filter_map(|(path, text)| Some((path.parse().ok()?, Bytes::from((*text).to_owned()))))
        .collect();
    let options = skill_md::ReadOptions {
        folder: Some(folder),
        ..skill_md::ReadOptions::default()
    };
    let reading = skill_md::read(&content, &options);
    let skill = reading.skill?;
    let semantic = skill.version.as_deref().and_then(|text| text.parse().ok());
    let entry = |(path, content): (&FilePath, &Bytes)| FileEntry {
        path: path.clone(),
        digest: Digest::of(content),
        size: content.len() as u64,
    };
    Some(Version {
        number: VersionNumber::FIRST,
        semantic: semantic.unwrap_or(semver::Version::new(1, 0, 0)),
        digest: Digest::of(files.first()?.1.as_bytes()),
        skill,
        files: content.iter().map(entry).collect(),
        problems: reading.problems,
        created_at: Timestamp::UNIX_EPOCH,
        created_by: Principal::system(),
        change_summary: String::new(),
    })
}

/// A skill of an id with these lines of front matter beside its name and description.
fn subject(id: &str, front_matter: &str) -> Subject {
    described(id, "Does a thing.", front_matter)
}

/// The same with this description.
fn described(id: &str, description: &str, front_matter: &str) -> Subject {
    let id: SkillId = id.parse().expect("an id");
    let slug = id.slug().to_owned();
    let text =
        format!("---\nname: {slug}\ndescription: {description:?}\n{front_matter}\n---\nDo it.\n");
    let version = version(&[("SKILL.md", &text)], &slug);
    Subject::from(Member {
        name: slug.into(),
        id,
        version: Arc::new(version.unwrap_or_else(|| panic!("no skill: {text}"))),
    })
}

fn between(one: &Subject, other: &Subject) -> Vec<Conflict> {
    conflicts(one, other, &Stop::never()).expect("compared")
}
