//! The rules, read from `categories.txt` and `technologies.txt`.
//!
//! Columns are separated by `|`, phrases by commas. A technology is named by its name
//! and its id in the table of `technologies`, and what `technologies.txt` adds; where that begins
//! with `?`, the name is an ordinary word and counts in company only; with `!` it never
//! counts alone. Words of categories
//! are compared by their stems; those that say a category count more than twice as much as
//! those that hint at it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::phrases::Phrases;
use super::text::{stem, words};

const CATEGORIES: &str = include_str!("categories.txt");
const TECHNOLOGIES: &str = include_str!("technologies.txt");

/// The weights of a word that states a category, and of one that hints at it.
const STATED_WEIGHT: f64 = 1.0;
const HINTED_WEIGHT: f64 = 0.4;

/// How a phrase names a technology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// Anywhere.
    Plain,
    /// In company, as a name is written.
    InCompany,
    /// In the name of a skill.
    InName,
}

/// A phrase that names a technology, or that names none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// The index in [`Rules::technologies`]. None: the phrase hides others in it that would name
    /// one.
    pub(super) technology: Option<usize>,
    pub(super) naming: Naming,
}

/// A technology.
#[derive(Debug)]
pub(super) struct Technology {
    pub(super) known: &'static technologies::Technology,
    /// Categories of a skill that is about it.
    pub(super) categories: Vec<usize>,
}

/// A category.
#[derive(Debug)]
pub(super) struct Category {
    pub(super) id: &'static str,
    /// Other words for it.
    pub(super) aliases: Vec<&'static str>,
}

/// All rules.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) categories: Vec<Category>,
    pub(super) technologies: Vec<Technology>,
    by_id: HashMap<&'static str, usize>,
    pub(super) names: Phrases<Name>,
    /// Stems of words, each with the categories that they stand for.
    pub(super) says: Phrases<Vec<(usize, f64)>>,
    /// The same in languages that set no blanks between words: parts of what is between two.
    pub(super) unspaced: Vec<(&'static str, usize)>,
    /// Lines that could not be read: a test checks that there are none.
    pub(super) unread: Vec<&'static str>,
}

/// The rules.
pub(super) fn rules() -> &'static Rules {
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::read);
    &RULES
}

/// Lines that are not empty and no comment, in their columns.
fn lines(text: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| (line, line.split('|').map(str::trim).collect()))
}

fn list(column: &'static str) -> impl Iterator<Item = &'static str> {
    let texts = column.split(',').map(str::trim);
    texts.filter(|text| !text.is_empty())
}

fn plain(text: &str) -> Vec<String> {
    words(text).into_iter().map(|word| word.text).collect()
}

/// The words of a text as stems.
pub(super) fn stems(text: &str) -> Vec<String> {
    let words = words(text).into_iter();
    words.map(|word| stem(&word.text).to_owned()).collect()
}

/// The category that a fact of the table of technologies stands for.
fn category_of_fact(fact: &str) -> Option<&'static str> {
    Some(match fact {
        "has_frontend" => "frontend",
        "has_backend" => "backend",
        "has_database" => "database",
        "has_tests" => "testing",
        "has_docs" => "documentation",
        "has_ci" => "ci",
        "has_deployment" | "has_docker" => "deployment",
        "has_linting" | "has_formatting" => "code-quality",
        "has_security_scanning" => "security",
        "has_api_description" => "api-design",
        "has_machine_learning" => "machine-learning",
        "has_observability" => "observability",
        "has_agent_instructions" => "agents",
        _ => return None,
    })
}

impl Rules {
    fn read() -> Self {
        let mut rules = Self::default();
        rules.read_categories();
        rules.read_technologies();
        rules
    }

    pub(super) fn category(&self, id: &str) -> Option<usize> {
        self.categories.iter().position(|known| known.id == id)
    }

    /// The index of a technology.
    pub(super) fn technology(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    fn read_categories(&mut self) {
        let mut speaks: HashMap<Vec<String>, Vec<(usize, f64)>> = HashMap::new();
        for (line, columns) in lines(CATEGORIES) {
            let [id, aliases, says, hints, unspaced] = columns[..] else {
                self.unread.push(line);
                continue;
            };
            let at = self.categories.len();
            let (says, hints) = (list(says), list(hints));
            let weighed = says
                .map(|text| (text, STATED_WEIGHT))
                .chain(hints.map(|text| (text, HINTED_WEIGHT)));
            for (text, weight) in weighed {
                let known = speaks.entry(stems(text)).or_default();
                // A word that says it need not hint at it as well.
                if !known.iter().any(|(category, _)| *category == at) {
                    known.push((at, weight));
                }
            }
            self.unspaced.extend(list(unspaced).map(|text| (text, at)));
            self.categories.push(Category {
                id,
                aliases: list(aliases).collect(),
            });
        }
        for (words, categories) in speaks {
            self.says.add(words, categories);
        }
    }

    fn read_technologies(&mut self) {
        let mut more = HashMap::new();
        for (line, columns) in lines(TECHNOLOGIES) {
            let [id, phrases, categories] = columns[..] else {
                self.unread.push(line);
                continue;
            };
            if id == "-" {
                for phrase in list(phrases) {
                    let name = Name {
                        technology: None,
                        naming: Naming::Plain,
                    };
                    self.names.add(plain(phrase), name);
                }
                continue;
            }
            let (id, naming) = match (id.strip_prefix('?'), id.strip_prefix('!')) {
                (Some(id), _) => (id, Some(Naming::InCompany)),
                (_, Some(id)) => (id, None),
                _ => (id, Some(Naming::Plain)),
            };
            if more
                .insert(id, (line, naming, phrases, categories))
                .is_some()
            {
                self.unread.push(line);
            }
        }
        for known in technologies::technologies() {
            let (_, naming, phrases, categories) =
                more.remove(known.id)
                    .unwrap_or(("", Some(Naming::Plain), "", ""));
            let facts = known
                .facts
                .iter()
                .filter_map(|fact| category_of_fact(fact.name()));
            let mut of: Vec<usize> = Vec::new();
            // The categories of this file come before those of the table.
            for id in categories.split_whitespace().chain(facts) {
                of.extend(self.category(id).filter(|at| !of.contains(at)));
            }
            let at = self.technologies.len();
            self.by_id.insert(known.id, at);
            self.technologies.push(Technology {
                known,
                categories: of,
            });
            if let Some(naming) = naming {
                self.name(plain(known.name), at, naming);
                self.name(plain(known.id), at, naming);
            }
            for phrase in list(phrases) {
                match phrase.strip_prefix("slug:") {
                    Some(word) => self.name(plain(word), at, Naming::InName),
                    // An ordinary word stays one, even if it is listed as a phrase.
                    None if naming != Some(Naming::Plain) && plain(phrase) == plain(known.id) => {}
                    None => self.name(plain(phrase), at, Naming::Plain),
                }
            }
        }
        self.unread
            .extend(more.into_values().map(|(line, ..)| line));
    }

    fn name(&mut self, words: Vec<String>, technology: usize, naming: Naming) {
        if self.names.exact(&words).is_none() {
            let technology = Some(technology);
            self.names.add(words, Name { technology, naming });
        }
    }
}
