//! Turns the tree of a front matter into the fields of a skill.

use super::findings::{Findings, listing, shown};
use super::keys::Keys;
use super::name;
use super::shells;
use super::tree::{self, NodeShape, Tree};
use super::values;
use model::{FilePath, MAX_STANDARD_DESCRIPTION_CHARS, Skill, stated_version};

/// The most characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 8_192;
/// The most characters of `compatibility` by the standard.
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// The most characters of a display name, which goes into prompts; the rest is cut off.
const MAX_DISPLAY_NAME_CHARS: usize = 64;
/// Keys of `metadata` that belong to the Model Context Protocol.
const RESERVED_PREFIX: &str = "io.modelcontextprotocol/";

/// The fields of a front matter.
pub(super) struct Fields {
    pub(super) skill: Skill,
    pub(super) slug: Option<String>,
}

/// Reads the fields that need nothing but the front matter.
pub(super) fn read(
    tree: &Tree,
    entry: &FilePath,
    folder: Option<&str>,
    slug: Option<&str>,
    findings: &mut Findings,
) -> Fields {
    let keys = Keys::new(&tree.entries);
    keys.check(findings);
    check_json(tree, findings);
    check_metadata(&keys, findings);
    let (name, slug) = name::read(&keys, folder, slug, findings);
    let (category, other_categories) = categories(&keys, findings);
    let display_name = display_name(&keys, &name, findings);
    let skill = Skill {
        name,
        description: description(&keys, findings),
        entry: entry.clone(),
        version: version(&keys, findings),
        category,
        other_categories,
        author: values::text("author", keys.find_anywhere("author"), findings)
            .filter(|text| !text.is_empty()),
        license: values::text_or_json("license", keys.find("license"), findings)
            .unwrap_or_default(),
        compatibility: compatibility(&keys, findings),
        homepage: text(&keys, "homepage", findings),
        repository: text(&keys, "repository", findings),
        tags: values::words("tags", keys.find_anywhere("tags"), findings),
        triggers: values::words("triggers", keys.find_anywhere("triggers"), findings),
        technologies: values::words("technologies", keys.find_anywhere("technologies"), findings),
        allowed_tools: values::tools("allowed-tools", keys.find("allowed-tools"), true, findings),
        forbidden_tools: values::tools(
            "forbidden-tools",
            keys.find("forbidden-tools"),
            false,
            findings,
        ),
        execution_protocol: sentences(&keys, "execution-protocol", findings),
        preconditions: sentences(&keys, "preconditions", findings),
        postconditions: sentences(&keys, "postconditions", findings),
        output_contract: None,
        compatibility_rules: Vec::new(),
        composability_rules: Vec::new(),
        tool_configs: Vec::new(),
        resource_configs: Vec::new(),
        display_name,
        disable_model_invocation: values::flag(
            "disable-model-invocation",
            keys.find("disable-model-invocation"),
            findings,
        ),
        long_description: values::text("long-description", keys.find("long-description"), findings)
            .unwrap_or_default(),
        excerpt: String::new(),
        chars: 0,
        front_matter: tree::json(&tree.entries),
    };
    shells::check(keys.find("allowed-tools"), findings);
    Fields { skill, slug }
}

/// Returns the display name; an empty one where it is the name with other marks and capitals,
/// which a reader of the name knows as well.
fn display_name(keys: &Keys<'_>, name: &str, findings: &mut Findings) -> String {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let stated = [
        text(keys, "display-name", findings),
        text(keys, "title", findings),
    ];
    let stated = stated.into_iter().find(|text| !text.is_empty());
    stated
        .filter(|stated| letters(stated) != letters(name))
        .map(|stated| stated.chars().take(MAX_DISPLAY_NAME_CHARS).collect())
        .unwrap_or_default()
}

fn text(keys: &Keys<'_>, key: &str, findings: &mut Findings) -> String {
    values::text(key, keys.find_anywhere(key), findings).unwrap_or_default()
}

/// Reads the main category and the others, of `category` and `categories`: each is one text or a
/// list.
fn categories(keys: &Keys<'_>, findings: &mut Findings) -> (String, Vec<String>) {
    let stated = keys.find_anywhere("category");
    let list = stated.filter(|entry| matches!(entry.node.shape, NodeShape::List(_)));
    let mut all = match list {
        Some(list) => values::words("category", Some(list), findings),
        None => values::text("category", stated, findings)
            .into_iter()
            .collect(),
    };
    let more = keys.find_anywhere("categories");
    all.extend(values::words("categories", more, findings));
    let mut found: Vec<String> = Vec::new();
    for category in all {
        let is_known = found
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&category));
        if !category.is_empty() && !is_known {
            found.push(category);
        }
    }
    let mut found = found.into_iter();
    (found.next().unwrap_or_default(), found.collect())
}

fn sentences(keys: &Keys<'_>, key: &str, findings: &mut Findings) -> Vec<String> {
    values::sentences(key, keys.find(key), findings)
}

/// Reports values that JSON, in which the front matter is served, cannot hold.
fn check_json(tree: &Tree, findings: &mut Findings) {
    for number in &tree.numbers {
        findings.warning(
            "number-not-exact",
            number.line,
            format!(
                "`{}` is not a number that every reader can hold; it was stored as text",
                shown(&number.text)
            ),
        );
    }
    if let Some(first) = tree.unusual_keys.first() {
        let list = listing(
            tree.unusual_keys
                .iter()
                .map(|key| format!("`{}`", shown(&key.text))),
        );
        findings.warning(
            "key-not-text",
            first.line,
            format!("Not text to YAML, and taken as text: the keys {list}"),
        );
    }
}

fn check_metadata(keys: &Keys<'_>, findings: &mut Findings) {
    let Some(metadata) = keys.find("metadata") else {
        return;
    };
    let NodeShape::Map(entries) = &metadata.node.shape else {
        let kind = metadata.node.kind();
        findings.warning(
            "metadata-invalid",
            metadata.line,
            format!("`metadata` is {kind}, not a map"),
        );
        return;
    };
    for (key, _) in entries
        .iter()
        .filter(|(key, _)| key.text.starts_with(RESERVED_PREFIX))
    {
        findings.warning(
            "metadata-reserved",
            key.line,
            format!(
                "`{}` begins with `{RESERVED_PREFIX}`, which is reserved",
                shown(&key.text)
            ),
        );
    }
}

fn description(keys: &Keys<'_>, findings: &mut Findings) -> String {
    let Some(entry) = keys.find("description") else {
        findings.error(
            "description-missing",
            1,
            "There is no `description`, by which agents find a skill",
        );
        return String::new();
    };
    let text = match &entry.node.shape {
        NodeShape::Text(text) => text.trim().to_owned(),
        // `description: [a, b]`: brackets that were meant as text.
        NodeShape::List(list) if list.iter().all(|node| node.text().is_some()) => {
            findings.warning(
                "description-not-text",
                entry.line,
                "The description is a list; its elements were joined",
            );
            let parts: Vec<&str> = list
                .iter()
                .filter_map(tree::Node::text)
                .map(str::trim)
                .collect();
            parts.join(" ").trim().to_owned()
        }
        shape => {
            let kind = entry.node.kind();
            let Some(text) = entry.node.text() else {
                let hint = if matches!(shape, NodeShape::Map(_)) {
                    "; put it in quotes"
                } else {
                    ""
                };
                findings.error(
                    "description-invalid",
                    entry.line,
                    format!("The description is {kind}, not text{hint}"),
                );
                return String::new();
            };
            findings.warning(
                "description-not-text",
                entry.line,
                format!("The description is {kind} to YAML; put it in quotes"),
            );
            text.to_owned()
        }
    };
    check_description(&text, entry.line, findings);
    text
}

fn check_description(text: &str, line: usize, findings: &mut Findings) {
    let chars = text.chars().count();
    if chars == 0 {
        findings.error(
            "description-missing",
            line,
            "The description is empty; agents find a skill by it",
        );
    } else if chars > MAX_DESCRIPTION_CHARS {
        findings.error(
            "description-too-long",
            line,
            format!(
                "The description has {chars} characters; at most {MAX_DESCRIPTION_CHARS} are taken"
            ),
        );
    } else if chars > MAX_STANDARD_DESCRIPTION_CHARS {
        findings.warning(
            "description-too-long",
            line,
            format!("The description has {chars} characters; the standard allows {MAX_STANDARD_DESCRIPTION_CHARS}"),
        );
    }
}

/// Returns the version's text as written: `1.10` is not 1.1.
fn version(keys: &Keys<'_>, findings: &mut Findings) -> Option<String> {
    let entry = keys.find_anywhere("version")?;
    let version = values::text("version", Some(entry), findings).filter(|text| !text.is_empty())?;
    if let Err(error) = stated_version(&version) {
        let message = format!("The version `{}` {error}", shown(&version));
        findings.error("version-too-large", entry.line, message);
    } else if semver::Version::parse(&version).is_err() {
        findings.info(
            "version-not-semver",
            entry.line,
            format!("The version `{}` is not of the form 1.2.3", shown(&version)),
        );
    }
    Some(version)
}

fn compatibility(keys: &Keys<'_>, findings: &mut Findings) -> String {
    let entry = keys.find("compatibility");
    let text = values::text_or_json("compatibility", entry, findings).unwrap_or_default();
    let chars = text.chars().count();
    if let Some(entry) = entry.filter(|_| chars > MAX_COMPATIBILITY_CHARS) {
        findings.warning(
            "compatibility-too-long",
            entry.line,
            format!("`compatibility` has {chars} characters; the standard allows {MAX_COMPATIBILITY_CHARS}"),
        );
    }
    text
}
