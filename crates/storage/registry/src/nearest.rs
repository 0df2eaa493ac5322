//! The names nearest to one that leads nowhere.

use strsim::normalized_damerau_levenshtein;

use super::{Catalog, Error, Head, NameError};
use model::{SkillId, beginning, inert_line};

/// Maximum number of names that are compared: those with the same first character come first.
// Compared one by one when a name fails: an index of spellings would cost memory with every
// skill, for the rare miss.
const MAX_COMPARED_NAMES: usize = 20_000;
/// Maximum number of names in an answer.
const MAX_NAMES: usize = 3;
/// The lowest similarity of two near names, from 0 to 1.
const MIN_ALIKE: f64 = 0.6;
/// The similarity of a name and a word that contains it, or that it contains.
const CONTAINED_SCORE: f64 = 0.75;
/// The length of the shortest word that is searched inside names.
const MIN_INSIDE: usize = 3;
/// Maximum number of bytes of a name that is compared.
const MAX_NAME: usize = 64;
/// Maximum number of characters of a description in an answer.
const MAX_ABOUT: usize = 80;

/// A name that may have been meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// The shortest name that leads to the skill.
    pub name: String,
    /// The beginning of its description.
    pub about: String,
}

impl std::fmt::Display for Near {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, about } = self;
        if about.is_empty() {
            write!(f, "`{name}`")
        } else {
            write!(f, "`{name}` ({about})")
        }
    }
}

/// Returns other spellings of a short name, in the order in which they are tried: without the
/// characters around it, and with other characters between its words.
#[must_use]
pub fn spellings(name: &str) -> Vec<String> {
    let around = |c: char| c.is_whitespace() || "/`'\"@$".contains(c);
    let bare = name.trim_matches(around);
    let joined = |with: &str| {
        let words = bare.split(|c: char| c.is_whitespace() || c == '-' || c == '_');
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(with)
    };
    let mut spellings = vec![bare.to_owned(), joined("-"), joined("_"), joined(" ")];
    spellings.dedup();
    spellings.retain(|other| !other.is_empty() && other != name);
    spellings
}

/// Returns the similarity of a name and the one asked for.
fn alike(asked: &str, name: &str) -> f64 {
    let is_inside = |part: &str, whole: &str| part.len() >= MIN_INSIDE && whole.contains(part);
    let contained = if is_inside(asked, name) || is_inside(name, asked) {
        CONTAINED_SCORE
    } else {
        0.0
    };
    // Of lengths that differ by half no spelling is alike.
    let (short, long) = (asked.len().min(name.len()), asked.len().max(name.len()));
    if long > short * 2 {
        return contained;
    }
    contained.max(normalized_damerau_levenshtein(asked, name))
}

/// Returns those that are similar enough, the nearest first; equally near ones by name.
fn ranked<'a, T>(scored: impl Iterator<Item = (f64, &'a str, T)>) -> Vec<(f64, &'a str, T)> {
    let mut found: Vec<_> = scored.filter(|(alike, ..)| *alike >= MIN_ALIKE).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found
}

/// Returns the names nearest to one that is none of them, the nearest first.
#[must_use]
pub fn nearest_names<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let asked = folded(asked.trim());
    if asked.is_empty() || asked.len() > MAX_NAME {
        return Vec::new();
    }
    let names = names.filter(|name| name.len() <= MAX_NAME);
    let mut found = ranked(names.map(|name| (alike(&asked, &folded(name)), name, ())));
    found.dedup_by(|a, b| a.1 == b.1);
    let nearest = found.into_iter().take(MAX_NAMES);
    nearest.map(|(_, name, ())| name).collect()
}

fn folded(name: &str) -> String {
    name.to_lowercase().replace(['_', ' '], "-")
}

impl Catalog {
    /// Returns the error for a name or id without a skill.
    #[must_use]
    pub fn not_found(&self, asked: &str) -> Error {
        let name = self.spelled(asked);
        let holder = name.as_deref().and_then(|name| self.holder(name));
        if let (Some(name), Some(holder)) = (&name, holder.filter(|head| head.deleted))
            && self.named(name).next().is_some()
        {
            return NameError::OfDeleted {
                name: asked.to_owned(),
                holder: holder.id.clone(),
            }
            .into();
        }
        Error::SkillNotFound {
            reference: asked.to_owned(),
            near: self.nearest(asked),
            refused: self.refused(asked).map(str::to_owned),
        }
    }

    /// Returns the ids of some skills of a short name, its holder first.
    #[must_use]
    pub fn some_named(&self, name: &str) -> Vec<SkillId> {
        let name = self.spelled(name).unwrap_or_default();
        let ids = self.named(&name).map(|head| head.id.clone());
        ids.take(MAX_NAMES).collect()
    }

    /// Returns the skills whose short names are nearest to a name, the nearest first. Compares
    /// 20,000 names at most.
    #[must_use]
    pub fn nearest(&self, asked: &str) -> Vec<Near> {
        // Of an id the last segment is what it shares with others.
        let asked = asked
            .trim_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let asked = folded(asked);
        if asked.is_empty() || asked.len() > MAX_NAME {
            return Vec::new();
        }
        let first: String = asked.chars().take(1).collect();
        let same = self.names_with_prefix(&first);
        let others = self.names_with_prefix("");
        let others = others.filter(|(name, _)| !name.starts_with(&first));
        let scored = same
            .chain(others)
            .take(MAX_COMPARED_NAMES)
            .filter(|(name, _)| name.len() <= MAX_NAME)
            .map(|(name, head)| (alike(&asked, &folded(name)), name, head));
        let mut nearest: Vec<Near> = Vec::new();
        for (.., head) in ranked(scored) {
            let name = inert_line(self.short_name(head));
            if nearest.len() < MAX_NAMES && nearest.iter().all(|near| near.name != name) {
                nearest.push(Near {
                    name,
                    about: about(head),
                });
            }
        }
        nearest
    }
}

fn about(head: &Head) -> String {
    let summary = head.summary.as_ref();
    summary.map_or_else(String::new, |summary| {
        beginning(&summary.description, MAX_ABOUT)
    })
}

/// Returns the paths nearest to one that a version lacks, the nearest first.
pub(super) fn nearest_paths<'a>(asked: &str, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = last(asked);
    let found = ranked(paths.map(|path| {
        let whole = normalized_damerau_levenshtein(&asked.to_lowercase(), &path.to_lowercase());
        (whole.max(alike(&name, &last(path))), path, ())
    }));
    let nearest = found.into_iter().take(MAX_NAMES);
    nearest.map(|(_, path, ())| path.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_spelled_in_other_ways_that_mean_the_same() {
        assert_eq!(spellings("/xlsx"), ["xlsx"]);
        assert_eq!(spellings("Code Review"), ["Code-Review", "Code_Review"]);
        assert_eq!(spellings("write-sql"), ["write_sql", "write sql"]);
        assert_eq!(spellings(" `pdf` "), ["pdf"]);
        assert!(spellings("xlsx").is_empty());
        assert!(spellings("/").is_empty());
    }

    #[test]
    fn a_name_that_is_not_there_is_near_to_those_that_are() {
        let tools = ["sql_query", "sql_explain_query", "jira_search", "sql_query"];
        let near = |asked: &str| nearest_names(asked, tools.into_iter());
        assert_eq!(near("sql_querry"), ["sql_query"]);
        assert_eq!(near("SQL-Query"), ["sql_query"]);
        assert_eq!(near("jira_serach"), ["jira_search"]);
        assert!(near("send_mail").is_empty());
        assert!(near("").is_empty());
    }

    #[test]
    fn a_path_that_is_not_there_is_near_to_those_that_are() {
        let paths = [
            "SKILL.md",
            "examples.md",
            "references/api.md",
            "scripts/run.py",
        ];
        let near = |asked: &str| nearest_paths(asked, paths.into_iter());
        assert_eq!(near("example.md"), ["examples.md"]);
        assert_eq!(near("api.md"), ["references/api.md"]);
        assert_eq!(near("skill.md"), ["SKILL.md"]);
        assert!(near("zzz.bin").is_empty());
    }
}
