//! Finds names that imitate others: of skills, and of the packages that a skill installs.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use typomania::checks::{Check, Omitted, Repeated, Squat, SwappedCharacters, SwappedWords, Typos};
use typomania::{AuthorSet, Corpus, Package};

use super::text::{look_alike, section};

/// Names that somebody might imitate. Leave out those of the same author.
pub trait KnownNames: Sync {
    /// Tells whether a name is one of them.
    fn is_known(&self, name: &str) -> bool;
}

impl KnownNames for &[&str] {
    fn is_known(&self, name: &str) -> bool {
        self.contains(&name)
    }
}

/// Shorter names have too many neighbors.
const MIN_NAME_CHARS: usize = 5;
/// Longer names are not compared.
const MAX_NAME_CHARS: usize = 64;
/// The most words of a name whose orders are tried.
const MAX_REORDERED_WORDS: usize = 4;
const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz0123456789-_";

/// The lists of `packages.txt`.
#[derive(Debug)]
pub(crate) struct Names {
    lists: [HashSet<&'static str>; 4],
}

/// A list of `packages.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Python,
    Node,
    /// Products that skills are named after.
    Product,
    /// Names near those that are known to be honest.
    Neighbour,
}

/// A name that is imitated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imitation {
    pub(crate) imitated: String,
    /// How, such as `swaps characters in lodash`.
    pub(crate) how: String,
}

/// Knows no authors: the caller leaves out names of the same one.
struct Nobody;

impl AuthorSet for Nobody {
    fn contains(&self, _: &str) -> bool {
        false
    }
}

impl Package for Nobody {
    fn authors(&self) -> &dyn AuthorSet {
        self
    }

    fn description(&self) -> Option<&str> {
        None
    }

    fn shared_authors(&self, _: &dyn AuthorSet) -> bool {
        false
    }
}

/// Adapts names for `typomania`.
struct NameCorpus<'a>(&'a dyn KnownNames);

impl Corpus for NameCorpus<'_> {
    fn contains_name(&self, name: &str) -> typomania::Result<bool> {
        Ok(self.0.is_known(name))
    }

    fn get(&self, name: &str) -> typomania::Result<Option<&dyn Package>> {
        Ok(self.0.is_known(name).then_some(&Nobody as &dyn Package))
    }
}

impl<S: BuildHasher + Sync> KnownNames for HashSet<&'static str, S> {
    fn is_known(&self, name: &str) -> bool {
        self.contains(name)
    }
}

static CHECKS: LazyLock<Checks> = LazyLock::new(|| {
    // Every letter may stand for every other, or for none.
    let replaced = |c: char| {
        let others = ALPHABET
            .chars()
            .filter(move |other| *other != c)
            .map(String::from);
        (c, others.chain([String::new()]).collect())
    };
    Checks {
        of_letters: vec![
            Box::new(Repeated),
            Box::new(SwappedCharacters),
            Box::new(Omitted::new(ALPHABET)),
            Box::new(Typos::new(ALPHABET.chars().map(replaced))),
        ],
        of_words: SwappedWords::new("-_"),
    }
});

struct Checks {
    of_letters: Vec<Box<dyn Check>>,
    of_words: SwappedWords,
}

impl Names {
    /// Reads `packages.txt`: names below `[list]`.
    pub(crate) fn read(text: &'static str, unread: &mut Vec<String>) -> Self {
        let mut lists: [HashSet<&'static str>; 4] = Default::default();
        let mut list = None;
        for word in model::listed(text) {
            if let Some(name) = section(word) {
                list = ["python", "node", "product", "neighbour"]
                    .iter()
                    .position(|known| *known == name);
                if list.is_none() {
                    unread.push(word.to_owned());
                }
            } else if let Some(names) = list.and_then(|list| lists.get_mut(list)) {
                names.insert(word);
            }
        }
        Self { lists }
    }

    fn list(&self, list: List) -> &HashSet<&'static str> {
        let [python, node, product, neighbour] = &self.lists;
        match list {
            List::Python => python,
            List::Node => node,
            List::Product => product,
            List::Neighbour => neighbour,
        }
    }

    /// Returns the name of a list that a name imitates.
    pub(crate) fn imitated(&self, name: &str, list: List) -> Option<Imitation> {
        if self.list(List::Neighbour).contains(name) {
            return None;
        }
        imitated(name, self.list(list))
    }
}

/// Returns the known name that a name imitates.
pub(crate) fn imitated(name: &str, known: &dyn KnownNames) -> Option<Imitation> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    if !(MIN_NAME_CHARS..=MAX_NAME_CHARS).contains(&length) || known.is_known(&name) {
        return None;
    }
    if !name.is_ascii() {
        // Only letters that look alike: the checks below change letters of the Latin alphabet.
        let latin: String = name.chars().map(look_alike).collect();
        return known.is_known(&latin).then(|| Imitation {
            how: format!("is written with letters that look like those of {latin}"),
            imitated: latin,
        });
    }
    let corpus = NameCorpus(known);
    let words = name.split(['-', '_']).count();
    let letters = CHECKS.of_letters.iter().map(|check| &**check);
    // The number of orders grows with the factorial of the words.
    let order = (words <= MAX_REORDERED_WORDS).then_some(&CHECKS.of_words as &dyn Check);
    let mut squats = letters
        .chain(order)
        .flat_map(|check| check.check(&corpus, &name, &Nobody).unwrap_or_default());
    // The imitated name, too: a letter left out of a long enough name may give a short one.
    let near = |squat: &Squat| squat.package().len() >= MIN_NAME_CHARS;
    squats.find(near).map(|squat| Imitation {
        how: squat.to_string(),
        imitated: squat.package().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::*;

    #[test]
    fn names_near_known_ones_are_told_and_others_are_not() {
        let names = Rules::bundled().names;
        let known = |name: &str, list| names.imitated(name, list).map(|found| found.imitated);
        for (name, list, imitated) in [
            ("reqeusts", List::Python, Some("requests")),
            ("requessts", List::Python, Some("requests")),
            ("beautifulsoop4", List::Python, Some("beautifulsoup4")),
            ("requests", List::Python, None),
            ("httpx", List::Python, None),
            ("expresss", List::Node, Some("express")),
            ("loadsh", List::Node, Some("lodash")),
            ("chalk", List::Node, None),
            ("clawhubb", List::Product, Some("clawhub")),
            ("cl\u{430}whub", List::Product, Some("clawhub")),
            ("weather-report", List::Product, None),
        ] {
            assert_eq!(known(name, list).as_deref(), imitated, "{name}");
        }
        let mine: &[&str] = &["write-sql"];
        assert_eq!(
            imitated("wirte-sql", &mine).expect("one").imitated,
            "write-sql"
        );
        assert_eq!(
            imitated("sql-write", &mine).expect("one").imitated,
            "write-sql"
        );
        assert_eq!(imitated("a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p", &mine), None);
    }
}
