//! The parts of a skill, for the index.
//!
//! Only the index stores them: all of it is read again from the active version whenever
//! the index is made anew.

use serde::{Deserialize, Serialize};
use tantivy::TantivyDocument;

use super::schema::{Fields, PART_COUNT, Part};
use super::signature::Signature;
use super::snapshot::Slot;
use super::tokens;
use model::{Digest, FilePath, Version, VersionNumber, VersionSelector};
use registry::{Head, Registry};

/// Bytes of the files next to `SKILL.md` that are read, all together.
const FILES_BYTES: usize = 1024 * 1024;
/// A larger file is data, not text to search.
const FILE_BYTES: u64 = 256 * 1024;
/// Characters of the text that its vector is made of: more than a description has that
/// follows the standard.
const MEANING_CHARS: usize = 1_200;

/// The facts of a document that the index stores besides its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    /// The key of the skill.
    pub(super) key: String,
    /// The version: with the key, this names bytes that never change.
    pub(super) number: VersionNumber,
    /// Digest of the text that its vector is made of.
    pub(super) meaning: Digest,
    /// A file looks like a test.
    pub(super) has_tests: bool,
    /// It holds examples.
    pub(super) has_examples: bool,
}

/// A skill, taken apart.
#[derive(Debug)]
pub(super) struct Document {
    /// The stored facts.
    pub(super) facts: Facts,
    /// The signature of its description and instructions.
    pub(super) signature: Option<Signature>,
    parts: [String; PART_COUNT],
    /// The words for corrections of spelling.
    vocabulary: String,
}

impl Document {
    /// Reads the active version of a skill. Blocks.
    ///
    /// # Errors
    /// The version, or a file of it, is damaged or cannot be read.
    pub(super) fn read(registry: &Registry, head: &Head) -> Result<Self, registry::Error> {
        let version = registry.version(head, &VersionSelector::Active)?;
        let skill = &version.skill;
        let text = instructions(registry, &version)?;
        let body = skill_md::body(&text);
        let name = name(head, &skill.name);
        let tags = lines(
            skill
                .tags
                .iter()
                .chain(&skill.technologies)
                .chain([&skill.category]),
        );
        let vocabulary = [&name, &skill.description, &tags]
            .map(String::as_str)
            .join("\n");
        let mut parts: [String; PART_COUNT] = Default::default();
        for (part, text) in Part::ALL.into_iter().zip(&mut parts) {
            *text = match part {
                Part::Name => name.clone(),
                Part::Triggers => lines(&skill.triggers),
                Part::Tags => tags.clone(),
                Part::Description => skill.description.clone(),
                Part::Headings => headings(body),
                Part::Author => author(head, skill.author.as_deref()),
                Part::Body => body.to_owned(),
                Part::Files => files(registry, &version)?,
            };
        }
        Ok(Self {
            facts: Facts {
                key: head.id.key().as_str().to_owned(),
                number: version.number,
                meaning: Digest::of(meaning(&version).as_bytes()),
                has_tests: version.has_tests(),
                has_examples: version.has_examples(),
            },
            // Without the name: a copy under another name is what is looked for.
            signature: Signature::of(&[&skill.description, body]),
            parts,
            vocabulary,
        })
    }

    /// The document for the index, under an ordinal.
    ///
    /// # Errors
    /// The facts cannot be written as JSON.
    pub(super) fn into_tantivy(
        self,
        fields: &Fields,
        ordinal: u32,
    ) -> Result<TantivyDocument, serde_json::Error> {
        let mut document = TantivyDocument::new();
        document.add_text(fields.key, &self.facts.key);
        document.add_u64(fields.ordinal, u64::from(ordinal));
        document.add_bytes(fields.facts, &serde_json::to_vec(&self.facts)?);
        if let Some(signature) = &self.signature {
            document.add_bytes(fields.signature, signature.as_bytes());
        }
        for (field, text) in fields.parts.iter().zip(&self.parts) {
            document.add_text(*field, text);
        }
        // Indexed a second time, by whole words, which the beginning of a word can be looked up
        // in.
        let [name, ..] = &self.parts;
        document.add_text(fields.names, name);
        document.add_text(fields.vocabulary, &self.vocabulary);
        Ok(document)
    }
}

/// The text that the vector of a skill is made of: its shortest summary.
fn meaning(version: &Version) -> String {
    let skill = &version.skill;
    let name = skill.name.replace(['-', '_'], " ");
    let mut text = format!("{name}. {}", skill.description);
    for trigger in &skill.triggers {
        text.push_str(". ");
        text.push_str(trigger);
    }
    text.chars().take(MEANING_CHARS).collect()
}

/// The same text of a skill of the index. Blocks.
///
/// # Errors
/// The version is damaged or cannot be read.
pub(super) fn meaning_of(registry: &Registry, slot: &Slot) -> Result<String, registry::Error> {
    let selector = VersionSelector::Number(slot.number);
    Ok(meaning(&*registry.version(&slot.head, &selector)?))
}

/// The instructions of a skill of the index. Blocks.
///
/// # Errors
/// The version, or its file, is damaged or cannot be read.
pub(super) fn body(registry: &Registry, slot: &Slot) -> Result<String, registry::Error> {
    let selector = VersionSelector::Number(slot.number);
    let version = registry.version(&slot.head, &selector)?;
    Ok(skill_md::body(&instructions(registry, &version)?).to_owned())
}

/// The signature of a version, as that of a skill of the index. Blocks.
///
/// # Errors
/// Its file is damaged or cannot be read.
pub(super) fn signature_of(
    registry: &Registry,
    version: &Version,
) -> Result<Option<Signature>, registry::Error> {
    let text = instructions(registry, version)?;
    Ok(Signature::of(&[
        &version.skill.description,
        skill_md::body(&text),
    ]))
}

/// The file with the instructions of a version; empty where that has none.
fn instructions(registry: &Registry, version: &Version) -> Result<String, registry::Error> {
    Ok(match version.skill_md() {
        Some(file) => text(registry.content(file)?),
        None => String::new(),
    })
}

/// Its name, and its slug where this is other words.
fn name(head: &Head, name: &str) -> String {
    let slug = head.id.slug();
    if tokens::folded(slug) == tokens::folded(name) {
        name.to_owned()
    } else {
        format!("{name} {slug}")
    }
}

/// Its author, by id and as it states.
fn author(head: &Head, stated: Option<&str>) -> String {
    format!("{} {}", head.id.author(), stated.unwrap_or_default())
}

fn lines<'a>(values: impl IntoIterator<Item = &'a String>) -> String {
    let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
    values.join("\n")
}

/// The headings of a body, those in blocks of code aside.
fn headings(body: &str) -> String {
    let mut found = String::new();
    let mut fenced = false;
    for line in body.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && line.starts_with('#') {
            found.push_str(line.trim_start_matches('#'));
            found.push('\n');
        }
    }
    found
}

/// The text files next to `SKILL.md`, within the limits.
fn files(registry: &Registry, version: &Version) -> Result<String, registry::Error> {
    let mut found = String::new();
    for file in &version.files {
        if file.path == version.skill.entry || file.size > FILE_BYTES || !is_text(&file.path) {
            continue;
        }
        let text = text(registry.content(file)?);
        if found.len() + text.len() > FILES_BYTES {
            break;
        }
        found.push_str(&text);
        found.push('\n');
    }
    Ok(found)
}

fn is_text(path: &FilePath) -> bool {
    let mime = path.mime_type();
    mime.starts_with("text/") || mime.contains("json") || mime.contains("yaml")
}

/// Bytes as text; empty where they are none.
fn text(bytes: bytes::Bytes) -> String {
    String::from_utf8(bytes.into()).unwrap_or_default()
}
