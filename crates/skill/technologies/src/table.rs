//! The table, indexed by what shows a technology.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::names::{Fact, TechnologyKind};

const TEXT: &str = include_str!("technologies.txt");

/// All technologies of the table, in its order.
pub fn technologies() -> impl Iterator<Item = &'static Technology> {
    table().technologies.iter()
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(TEXT));

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Technology {
    /// Its id: lower-case words with hyphens, the same for ever.
    pub id: &'static str,
    /// Its common name.
    pub name: &'static str,
    /// Its kind.
    pub kind: TechnologyKind,
    /// Facts of every codebase that uses it.
    pub facts: Vec<Fact>,
    /// Its files hold layout or text: a language that counts, but
    /// is not one to program in.
    pub markup: bool,
}

/// A technology that something in a codebase shows.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// The technology.
    pub technology: &'static Technology,
    /// The dependency is the technology itself, so its version is the technology's.
    pub itself: bool,
}

/// The table, indexed by what shows a technology.
#[derive(Debug, Default)]
pub struct Table {
    technologies: Vec<Technology>,
    ids: HashMap<&'static str, usize>,
    dependencies: HashMap<(&'static str, &'static str), Vec<(usize, bool)>>,
    /// Beginnings of names, the longest first.
    beginnings: Vec<(&'static str, &'static str, usize, bool)>,
    extensions: HashMap<&'static str, usize>,
    file_names: HashMap<&'static str, Vec<usize>>,
    file_patterns: Vec<(&'static str, usize)>,
    /// Technologies that another one is not used without, by the id of that one.
    needs: BTreeMap<&'static str, Vec<usize>>,
    /// Lines that could not be read: a test checks that there are none.
    unread: Vec<&'static str>,
}

/// The table.
#[must_use]
pub fn table() -> &'static Table {
    &TABLE
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let line = line.trim();
            // Not a panic: the table is built with the first analysis, and a typo in its data must
            // not stop a server. A test refuses it.
            if !line.is_empty() && !line.starts_with('#') && table.add(line).is_none() {
                table.unread.push(line);
            }
        }
        table
            .beginnings
            // The longest first: of two patterns for one technology the more specific one decides,
            // and `dependency` takes the first.
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
        self.ids.insert(id, at);
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
            // Whole names are found by hash. Only these are compared one by one.
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

    /// Returns the technology of an id.
    #[must_use]
    pub fn get(&'static self, id: &str) -> Option<&'static Technology> {
        self.technologies.get(*self.ids.get(id)?)
    }

    /// Ids that patterns of `tech:` name, and lines that could not be read.
    #[cfg(test)]
    pub(super) fn faults(&self) -> (Vec<&'static str>, &[&'static str]) {
        let needing = self.needs.keys().copied();
        let unknown = needing.filter(|id| !self.ids.contains_key(id)).collect();
        (unknown, &self.unread)
    }

    /// The ecosystems that patterns name.
    pub fn ecosystems(&self) -> impl Iterator<Item = &'static str> {
        let beginnings = self.beginnings.iter().map(|(registry, ..)| *registry);
        let whole = self.dependencies.keys().map(|(registry, _)| *registry);
        beginnings.chain(whole)
    }

    /// The technologies that a dependency shows, the most specific pattern first. Of a technology
    /// with several patterns that fit, this one counts.
    #[must_use]
    pub fn dependency(&'static self, registry: &'static str, name: &str) -> Vec<Evidence> {
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
            // An import path goes on behind the module: `github.com/x/y/v2` is `github.com/x/y`.
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
        let mut shown: Vec<Evidence> = Vec::new();
        for (at, itself) in found {
            let known = |technology: &Technology| {
                let mut ids = shown.iter().map(|shown| shown.technology.id);
                ids.any(|id| id == technology.id)
            };
            if let Some(technology) = self.technologies.get(at).filter(|found| !known(found)) {
                shown.push(Evidence { technology, itself });
            }
        }
        shown
    }

    /// The language of a file, by the ending of its name.
    #[must_use]
    pub fn language(&'static self, file_name: &str) -> Option<&'static Technology> {
        let (stem, extension) = file_name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        // Most are in lower case already, and cost no copy.
        let at = match self.extensions.get(extension) {
            Some(at) => *at,
            None => *self.extensions.get(extension.to_lowercase().as_str())?,
        };
        self.technologies.get(at)
    }

    /// The technologies that the path of a file shows.
    #[must_use]
    pub fn file(&'static self, path: &str) -> Vec<&'static Technology> {
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

    /// The technologies that a technology is not used without.
    #[must_use]
    pub fn needs(&'static self, id: &str) -> Vec<&'static Technology> {
        let found = self.needs.get(id).into_iter().flatten();
        found.filter_map(|at| self.technologies.get(*at)).collect()
    }
}

/// Tells whether a pattern fits the end of a path, name by name.
#[must_use]
pub fn is_at(pattern: &str, path: &str) -> bool {
    // Cheap, and rules out nearly all: an analysis compares every pattern with every path.
    let (last, found) = (pattern.as_bytes().last(), path.as_bytes().last());
    if last != found && last != Some(&b'*') {
        return false;
    }
    let mut names = path.rsplit('/');
    pattern
        .rsplit('/')
        .all(|part| names.next().is_some_and(|name| glob(part, name)))
}

/// Tells whether a pattern in which `*` stands for any text matches the whole text.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = tail.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        // The first place is as good as any later one, so nothing is tried twice and the time is
        // linear in the text.
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The name of a file, without its folder.
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
