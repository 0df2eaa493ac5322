//! Corrects a `SKILL.md` where there is one way to do it: what other agents refuse or
//! misread, and is clear beyond doubt.
//!
//! The result is read as the same skill, with the same address and the same
//! instructions; else there is no result.

use std::collections::BTreeMap;

use super::findings::Findings;
use super::render::Lines;
use super::revise::{Write, change};
use super::{ReadOptions, Reading, fence, read, repair};
use model::{FilePath, Problem, Skill, invisible, is_standard_name, slugify};

/// The rules of problems that can be corrected.
const FIXABLE: [&str; 9] = [
    "byte-order-mark",
    "front-matter-not-first",
    "front-matter-repaired",
    "front-matter-unclosed",
    "name-missing",
    "name-nonstandard",
    "name-not-text",
    "skill-md-case",
    "zero-width-character",
];

/// A corrected text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The text.
    pub text: String,
    /// The problems that were corrected.
    pub problems: Vec<Problem>,
}

/// Tells whether problems of a rule can usually be corrected; [`fix`] tells which ones it could.
#[must_use]
pub fn is_fixable(rule: &str) -> bool {
    FIXABLE.contains(&rule)
}

/// Corrects the text of a `SKILL.md`. `None`: nothing can be corrected.
#[must_use]
pub fn fix(text: &str, options: &ReadOptions<'_>) -> Option<Fixed> {
    // Strict reading would refuse the very problems that are corrected here.
    let lenient = ReadOptions {
        strict: false,
        ..*options
    };
    let before = reading(text, &lenient);
    let was = before.skill?;
    if !before
        .problems
        .iter()
        .any(|problem| is_fixable(&problem.rule))
    {
        return None;
    }
    let fixed = named(&fenced(text)?, &was, before.slug.as_deref());
    let after = reading(&fixed, &lenient);
    let is = after.skill?;
    // Checked rather than trusted: a correction that changes what a skill says is none.
    let same = after.slug == before.slug
        && content(&is) == content(&was)
        && super::body(&fixed)
            .trim()
            .ends_with(super::body(text).trim());
    let left = |rule: &str| {
        after
            .problems
            .iter()
            .filter(|other| other.rule == rule)
            .count()
    };
    let problems: Vec<Problem> = before
        .problems
        .into_iter()
        .filter(|problem| is_fixable(&problem.rule) && left(&problem.rule) == 0)
        .collect();
    (same && fixed != text && !problems.is_empty()).then_some(Fixed {
        text: fixed,
        problems,
    })
}

fn reading(text: &str, options: &ReadOptions<'_>) -> Reading {
    let files = BTreeMap::from([(FilePath::skill_md(), text.to_owned().into())]);
    read(&files, options)
}

/// Returns all that a skill says, without its name and invisible characters.
fn content(skill: &Skill) -> String {
    let mut front_matter = skill.front_matter.clone();
    front_matter.retain(|key, _| !key.eq_ignore_ascii_case("name"));
    visible(&serde_json::Value::Object(front_matter).to_string())
}

fn visible(text: &str) -> String {
    let hidden: Vec<usize> = invisible(text).map(|(at, _, _)| at).collect();
    let chars = text.char_indices();
    chars
        .filter(|(at, _)| hidden.binary_search(at).is_err())
        .map(|(_, c)| c)
        .collect()
}

/// Returns the text with its front matter first, closed, and in YAML.
fn fenced(text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let found = fence::find(text).ok()?;
    let (_, front) =
        repair::read_repaired(found.front, found.first_line, &mut Findings::default())?;
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let above = text.split_inclusive('\n').take(found.first_line - 2);
    // A comment moves below the front matter; the fence of a code block around it is dropped.
    let is_kept = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("```") && !line.starts_with("~~~")
    };
    let above: String = above.filter(is_kept).collect();
    let front = visible(&front);
    let gap = if front.is_empty() || front.ends_with('\n') {
        ""
    } else {
        end
    };
    Some(format!("---{end}{front}{gap}---{end}{above}{}", found.body))
}

/// Returns the text with a name that all agents take, and that leads to the same address.
fn named(text: &str, skill: &Skill, slug: Option<&str>) -> String {
    let name = skill.name.as_str();
    let wanted = if is_standard_name(name) {
        Some(name.to_owned())
    } else {
        slugify(name).or_else(|| slug.map(str::to_owned))
    };
    let change = || {
        let wanted = wanted.filter(|wanted| is_standard_name(wanted))?;
        let found = fence::find(text).ok()?;
        let write: Write<'_> = Box::new(|out: &mut Lines, indent: &str, key: &str| {
            out.text(indent, key, &wanted);
        });
        let is_written = skill
            .front_matter
            .get("name")
            .is_some_and(|is| *is == wanted);
        if is_written {
            return None;
        }
        let front = change(found.front, "name", &write)?;
        let start = text.len() - found.body.len();
        let at = text.get(..start)?.find(found.front)?;
        let (head, rest) = text.split_at_checked(at)?;
        Some(format!("{head}{front}{}", rest.get(found.front.len()..)?))
    };
    change().unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> Option<(String, Vec<String>)> {
        let options = ReadOptions {
            folder: Some("refunds"),
            ..ReadOptions::default()
        };
        let Fixed { text, problems } = fix(text, &options)?;
        let rules = problems.into_iter().map(|problem| problem.rule);
        Some((text, rules.collect()))
    }

    #[test]
    fn what_is_meant_beyond_doubt_is_written_so() {
        let good = "---\nname: refunds\ndescription: Pays back.\n---\n\nLook.\n";
        for (text, expected, rule) in [
            (
                format!("\u{feff}{good}"),
                good.to_owned(),
                "byte-order-mark",
            ),
            (
                format!("\n\n{good}"),
                good.to_owned(),
                "front-matter-not-first",
            ),
            (
                format!("<!-- Ours -->\n{good}"),
                good.replace("---\n\nLook", "---\n<!-- Ours -->\n\nLook"),
                "front-matter-not-first",
            ),
            (
                good.replace("Pays back.", "Pays: back."),
                good.replace("Pays back.", "\"Pays: back.\""),
                "front-matter-repaired",
            ),
            (
                good.replace("---\n\nLook", "\n# Steps\n\nLook"),
                good.replace("---\n\nLook", "---\n\n# Steps\n\nLook"),
                "front-matter-unclosed",
            ),
            (
                good.replace("name: refunds\n", ""),
                "---\ndescription: Pays back.\nname: refunds\n---\n\nLook.\n".to_owned(),
                "name-missing",
            ),
            (
                good.replace("name: refunds", "name: Re Funds"),
                good.replace("name: refunds", "name: re-funds"),
                "name-nonstandard",
            ),
            (
                good.replace("name: refunds", "name: 12"),
                good.replace("name: refunds", "name: \"12\""),
                "name-not-text",
            ),
            (
                good.replace("Pays", "Pa\u{200b}ys"),
                good.to_owned(),
                "zero-width-character",
            ),
        ] {
            let (text, rules) = fixed(&text).unwrap_or_else(|| panic!("{rule}: {text:?}"));
            assert_eq!((text, rules), (expected, vec![rule.to_owned()]));
        }
        assert_eq!(fixed(good), None);
    }

    #[test]
    fn lines_keep_their_ends_and_several_problems_go_at_once() {
        let text = "\u{feff}---\r\nname: Re Funds\r\ndescription: Pays: back.\r\n---\r\nLook.\r\n";
        let (text, rules) = fixed(text).expect("mended");
        assert_eq!(
            text,
            "---\r\nname: re-funds\r\ndescription: \"Pays: back.\"\r\n---\r\nLook.\r\n"
        );
        assert_eq!(
            rules,
            [
                "byte-order-mark",
                "name-nonstandard",
                "front-matter-repaired"
            ]
        );
    }

    #[test]
    fn what_needs_an_author_is_left_alone() {
        for text in [
            "No front matter.\n",
            "---\nname: refunds\n---\nLook.\n",
            "---\nname: refunds\ndescription: Pays.\nmetadata: 3\n---\nLook.\n",
            "---\nname: other\ndescription: Pays.\n---\nLook.\n",
        ] {
            assert_eq!(fixed(text), None, "{text}");
        }
    }
}
