//! The differences between two versions, field by field and file by file.
//!
//! A comparison has a budget. A file beyond it is listed with digests and sizes, and with the
//! reason why its lines are missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Described, Error, Registry, VERSIONS, lines};
use executor::{Kind, Stop};
use model::{FileEntry, SkillId, Version, VersionNumber, VersionSelector};
use store::prefix;

/// A side longer than this is not compared line by line.
const MAX_TEXT: u64 = 256 * 1024;
/// Bytes of line-by-line differences in one answer.
const MAX_DIFFS: usize = 2 * 1024 * 1024;
/// Lines that are compared for one answer.
const ANSWER_LINES: usize = 4 * lines::MAX_LINES;

/// The kind of a change of a field or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only the newer side has it.
    Added,
    /// Only the older side has it.
    Removed,
    /// Both have it, differently.
    Modified,
}

/// A value of one side or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<T> {
    /// The older side.
    pub old: Option<T>,
    /// The newer side.
    pub new: Option<T>,
}

impl<T> Change<T> {
    /// Returns the kind of the change.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Modified,
        }
    }
}

/// A key of the front matter that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// The key.
    pub field: String,
    /// Its values.
    pub change: Change<Value>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    /// Its path.
    pub path: String,
    /// The file on both sides.
    pub change: Change<FileEntry>,
    /// The lines that differ, or the reason why they are missing.
    pub lines: Lines,
}

/// The lines of a file that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lines {
    /// As a unified diff.
    Unified(String),
    /// A side is not text.
    NotText,
    /// A side is longer than 256 KiB, or both have more than 20,000 lines together.
    TooLarge,
    /// The files before it took what one answer compares.
    OverBudget,
}

/// The differences between two versions.
#[derive(Debug, Clone)]
pub struct VersionDiff {
    /// The older side.
    pub from: Described,
    /// The newer side.
    pub to: Described,
    /// Keys of the front matter that differ, by name.
    pub fields: Vec<FieldChange>,
    /// Files that differ, by path.
    pub files: Vec<FileChange>,
}

/// Pairs the values of two sides under the same name, where they differ.
fn changes<K: Ord + Clone, T: PartialEq + Clone>(
    old: impl IntoIterator<Item = (K, T)>,
    new: impl IntoIterator<Item = (K, T)>,
) -> impl Iterator<Item = (K, Change<T>)> {
    let sides = |old, new| Change { old, new };
    let old = old
        .into_iter()
        .map(|(key, old)| (key, sides(Some(old), None)));
    let mut pairs: BTreeMap<K, Change<T>> = old.collect();
    for (key, value) in new {
        pairs.entry(key).or_insert(sides(None, None)).new = Some(value);
    }
    let pairs = pairs.into_iter();
    pairs.filter(|(_, change)| change.old != change.new)
}

/// The rest of the budget for the files of an answer.
struct Budget {
    lines: usize,
    bytes: usize,
}

/// Reads the text of a side; an empty one where there is no such side.
fn text(registry: &Registry, file: Option<&FileEntry>) -> Result<Result<String, Lines>, Error> {
    let Some(file) = file else {
        return Ok(Ok(String::new()));
    };
    // By its recorded size: a file that is too long is not read at all.
    if file.size > MAX_TEXT {
        return Ok(Err(Lines::TooLarge));
    }
    let content = registry.content(file)?;
    let text = String::from_utf8(content.to_vec()).ok();
    Ok(text
        .filter(|text| !text.contains('\0'))
        .ok_or(Lines::NotText))
}

fn compared(
    registry: &Registry,
    path: &str,
    change: &Change<FileEntry>,
    budget: &mut Budget,
) -> Result<Lines, Error> {
    if budget.lines == 0 || budget.bytes == 0 {
        return Ok(Lines::OverBudget);
    }
    let old = text(registry, change.old.as_ref())?;
    let new = text(registry, change.new.as_ref())?;
    let (old, new) = match (old, new) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(why), _) | (_, Err(why)) => return Ok(why),
    };
    let count = lines::count(&old, &new);
    if count > lines::MAX_LINES {
        return Ok(Lines::TooLarge);
    }
    let Some(left) = budget.lines.checked_sub(count) else {
        return Ok(Lines::OverBudget);
    };
    budget.lines = left;
    let unified = lines::unified(path, &old, &new);
    Ok(match budget.bytes.checked_sub(unified.len()) {
        Some(left) => {
            budget.bytes = left;
            Lines::Unified(unified)
        }
        None => Lines::OverBudget,
    })
}

fn files(
    registry: &Registry,
    from: &Version,
    to: &Version,
    stop: &Stop,
) -> Result<Vec<FileChange>, Error> {
    let entry = |file: &FileEntry| (file.path.to_string(), file.clone());
    let mut budget = Budget {
        lines: ANSWER_LINES,
        bytes: MAX_DIFFS,
    };
    let mut found = Vec::new();
    for (path, change) in changes(from.files.iter().map(entry), to.files.iter().map(entry)) {
        stop.check()?;
        let lines = compared(registry, &path, &change, &mut budget)?;
        found.push(FileChange {
            path,
            change,
            lines,
        });
    }
    Ok(found)
}

impl Registry {
    /// Compares two versions; by default the active one with the one before it.
    ///
    /// # Errors
    /// There is no such version; the newer side has none before it.
    pub async fn diff(
        &self,
        id: &SkillId,
        from: Option<VersionSelector>,
        to: &VersionSelector,
    ) -> Result<VersionDiff, Error> {
        let to = self.describe(id, to)?;
        let from = match from {
            Some(version) => self.describe(id, &version)?,
            None => self.before(&to, false)?,
        };
        self.compare(from, to).await
    }

    /// Compares two versions that were found.
    pub(super) async fn compare(
        &self,
        from: Described,
        to: Described,
    ) -> Result<VersionDiff, Error> {
        let (old, new) = (Arc::clone(&from.version), Arc::clone(&to.version));
        let front_matter = |version: &Version| version.skill.front_matter.clone();
        let fields = changes(front_matter(&old), front_matter(&new))
            .map(|(field, change)| FieldChange { field, change })
            .collect();
        let this = self.clone();
        let work = move |stop: &Stop| files(&this, &old, &new, stop);
        let files = self.executor().run_fallible(Kind::Diff, work).await;
        let files = files.map_err(|error| {
            let error = self.gone(&from.head.id, from.version.number, error);
            self.gone(&to.head.id, to.version.number, error)
        })?;
        Ok(VersionDiff {
            from,
            to,
            fields,
            files,
        })
    }

    /// Returns the version before one; that before those that are held, unless `held`.
    pub(super) fn before(&self, to: &Described, held: bool) -> Result<Described, Error> {
        let none = || Error::Parameter {
            field: "from_version",
            message: format!(
                "version {} of '{}' has none before it; name the other side",
                to.version.number, to.head.id
            ),
        };
        if to.head.is_local() {
            return Err(none());
        }
        let key = to.head.id.key();
        let mut number = to.version.number;
        let is_held = |number: &VersionNumber| !held && to.head.is_held(*number);
        while let Some(before) = VersionNumber::new(number.get() - 1).filter(is_held) {
            number = before;
        }
        let below = (key.clone(), number);
        let store = &self.inner.store;
        let found = store.before(&VERSIONS, &prefix(&key), Some(&below), 1)?;
        let version = found.into_iter().next().ok_or_else(none)?;
        self.described(Arc::clone(&to.head), Arc::new(version))
    }
}
