//! The table of technologies: what shows each of them.
//!
//! It is data, in `technologies.txt`, of lines
//! `id | name | kind | facts | patterns`. Facts are names of [`Fact`] without
//! `has_`. A pattern is `where:what`:
//!
//! * `npm:`, `pypi:`, `cargo:`, `go:`, `maven:`, `composer:`, `gem:`, `nuget:`,
//!   `pub:`, `hex:`, `swift:`, `image:` – a dependency of this ecosystem. `*` at
//!   the end stands for any rest; of several patterns of one technology the longest
//!   counts. A go module is also meant with what follows behind `/`.
//! * `~` in front of the dependency: it is made for the technology, not the
//!   technology itself, so its version says nothing and it is a little less
//!   certain.
//! * `ext:` – the end of file names, without the dot.
//! * `file:` – a file's name, or with `/` the end of its path; `*` is any part of a
//!   name.
//! * `tech:` – another technology that is not used without this one.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::inventory::file_name;
use super::report::{Fact, TechnologyKind};
use super::text::glob;

const TEXT: &str = include_str!("technologies.txt");

/// A word that names a technology which a skill can be for: a language, a framework or
/// a platform. Words of one or two letters mean too many other things.
#[must_use]
pub fn is_technology(word: &str) -> bool {
    let kind = table().get(word).map(|technology| technology.kind);
    word.len() > 2
        && matches!(
            kind,
            Some(TechnologyKind::Language | TechnologyKind::Framework | TechnologyKind::Platform)
        )
}

/// A technology of the table, as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTechnology {
    /// Its id: lower-case words with hyphens, the same for ever.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// What it is.
    pub kind: TechnologyKind,
    /// What a codebase has that uses it.
    pub facts: &'static [Fact],
}

/// All technologies of the table, in its order.
pub fn technologies() -> impl Iterator<Item = KnownTechnology> {
    table()
        .technologies
        .iter()
        .map(|technology| KnownTechnology {
            id: technology.id,
            name: technology.name,
            kind: technology.kind,
            facts: &technology.facts,
        })
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(TEXT));

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Technology {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: TechnologyKind,
    pub(super) facts: Vec<Fact>,
    /// Its files say how things look, or what they say; a language that counts, but
    /// is not one to program in.
    pub(super) markup: bool,
}

/// A technology that something shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) technology: &'static Technology,
    /// What shows it is the technology itself, so versions are its versions.
    pub(super) itself: bool,
}

/// The table, by what shows.
#[derive(Debug, Default)]
pub(super) struct Table {
    technologies: Vec<Technology>,
    dependencies: HashMap<(&'static str, &'static str), Vec<(usize, bool)>>,
    /// Beginnings of names, the longest first.
    beginnings: Vec<(&'static str, &'static str, usize, bool)>,
    extensions: HashMap<&'static str, usize>,
    file_names: HashMap<&'static str, Vec<usize>>,
    file_patterns: Vec<(&'static str, usize)>,
    /// What a technology is not used without.
    needs: BTreeMap<&'static str, Vec<usize>>,
    /// Lines that could not be read: none, which a test looks at.
    pub(super) unread: Vec<&'static str>,
}

/// The table.
pub(super) fn table() -> &'static Table {
    &TABLE
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') && table.add(line).is_none() {
                table.unread.push(line);
            }
        }
        table
            .beginnings
            .sort_by_key(|(_, begin, at, _)| (std::cmp::Reverse(begin.len()), *at));
        table
    }

    fn add(&mut self, line: &'static str) -> Option<()> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [id, name, kind, facts, patterns] = cells.try_into().ok()?;
        let mut kinds = TechnologyKind::ALL.iter();
        let kind = *kinds.find(|known| known.name() == kind)?;
        let fact = |word: &str| {
            let mut facts = Fact::ALL.iter().copied();
            facts.find(|fact| fact.name().strip_prefix("has_") == Some(word))
        };
        let (markup, words): (Vec<&str>, Vec<&str>) =
            facts.split_whitespace().partition(|word| *word == "markup");
        let facts: Option<Vec<Fact>> = words.into_iter().map(fact).collect();
        let at = self.technologies.len();
        self.technologies.push(Technology {
            id,
            name,
            kind,
            facts: facts?,
            markup: !markup.is_empty(),
        });
        for pattern in patterns.split_whitespace() {
            self.add_pattern(pattern, at)?;
        }
        Some(())
    }

    fn add_pattern(&mut self, pattern: &'static str, at: usize) -> Option<()> {
        let (registry, what) = pattern.split_once(':')?;
        match registry {
            "ext" => {
                self.extensions.insert(what, at);
            }
            "file" if what.contains(['*', '/']) => self.file_patterns.push((what, at)),
            "file" => self.file_names.entry(what).or_default().push(at),
            "tech" => self.needs.entry(what).or_default().push(at),
            _ => {
                let (name, itself) = match what.strip_prefix('~') {
                    Some(name) => (name, false),
                    None => (what, true),
                };
                if let Some(begin) = name.strip_suffix('*') {
                    self.beginnings.push((registry, begin, at, itself));
                } else {
                    let known = self.dependencies.entry((registry, name)).or_default();
                    known.push((at, itself));
                }
            }
        }
        Some(())
    }

    /// The technology of an id.
    pub(super) fn get(&'static self, id: &str) -> Option<&'static Technology> {
        self.technologies.iter().find(|found| found.id == id)
    }

    /// All of them, in the order of the table.
    #[cfg(test)]
    pub(super) fn all(&self) -> &[Technology] {
        &self.technologies
    }

    /// Ids that patterns of `tech:` name.
    #[cfg(test)]
    pub(super) fn needing(&self) -> impl Iterator<Item = &'static str> {
        self.needs.keys().copied()
    }

    /// Ecosystems that patterns name.
    #[cfg(test)]
    pub(super) fn places(&self) -> impl Iterator<Item = &'static str> {
        let beginnings = self.beginnings.iter().map(|(registry, ..)| *registry);
        let whole = self.dependencies.keys().map(|(registry, _)| *registry);
        beginnings.chain(whole)
    }

    /// What a dependency shows, the most particular pattern first. Of a technology
    /// with several patterns that fit, this one counts.
    pub(super) fn dependency(&'static self, registry: &'static str, name: &str) -> Vec<Shown> {
        let mut found: Vec<(usize, bool)> = Vec::new();
        let mut exact = |name: &str| {
            found.extend(
                self.dependencies
                    .get(&(registry, name))
                    .into_iter()
                    .flatten(),
            );
        };
        exact(name);
        if registry == "go" {
            let mut parent = name;
            while let Some((shorter, _)) = parent.rsplit_once('/') {
                exact(shorter);
                parent = shorter;
            }
        }
        let fitting = self
            .beginnings
            .iter()
            .filter(|(of, begin, ..)| *of == registry && name.starts_with(begin));
        found.extend(fitting.map(|(_, _, at, itself)| (*at, *itself)));
        let mut shown: Vec<Shown> = Vec::new();
        for (at, itself) in found {
            let known = |technology: &Technology| {
                let mut ids = shown.iter().map(|shown| shown.technology.id);
                ids.any(|id| id == technology.id)
            };
            if let Some(technology) = self.technologies.get(at).filter(|found| !known(found)) {
                shown.push(Shown { technology, itself });
            }
        }
        shown
    }

    /// The language of a file, by the end of its name.
    pub(super) fn language(&'static self, file_name: &str) -> Option<&'static Technology> {
        let (stem, extension) = file_name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        let at = match self.extensions.get(extension) {
            Some(at) => *at,
            None => *self.extensions.get(extension.to_lowercase().as_str())?,
        };
        self.technologies.get(at)
    }

    /// What the path of a file shows.
    pub(super) fn file(&'static self, path: &str) -> Vec<&'static Technology> {
        let exact = self
            .file_names
            .get(file_name(path))
            .into_iter()
            .flatten()
            .copied();
        let pattern = self
            .file_patterns
            .iter()
            .filter(|(pattern, _)| is_at(pattern, path))
            .map(|(_, at)| *at);
        exact
            .chain(pattern)
            .filter_map(|at| self.technologies.get(at))
            .collect()
    }

    /// What a technology is not used without.
    pub(super) fn needs(&'static self, id: &str) -> Vec<&'static Technology> {
        let found = self.needs.get(id).into_iter().flatten();
        found.filter_map(|at| self.technologies.get(*at)).collect()
    }
}

/// The pattern fits the end of a path, name by name.
pub(super) fn is_at(pattern: &str, path: &str) -> bool {
    // Most differ in their last letter, and there are many of both.
    let (last, found) = (pattern.as_bytes().last(), path.as_bytes().last());
    if last != found && last != Some(&b'*') {
        return false;
    }
    let mut names = path.rsplit('/');
    pattern
        .rsplit('/')
        .all(|part| names.next().is_some_and(|name| glob(part, name)))
}
