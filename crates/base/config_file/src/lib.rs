//! Reads settings in YAML with the line of each key, so that all mistakes are reported at once,
//! with their lines, and in the words of the author of the file.
//!
//! Rules:
//!
//! * A wrong value is left out and the rest is read again, until nothing is wrong. So the
//!   types that read the settings find all mistakes, and nobody writes their form down a
//!   second time.
//! * No message names a type of the program, and none repeats a value that is of another type
//!   than it should be: it may be a secret under the wrong key.
//! * A type that is a secret is read as a newtype called [`SECRET`], and is never shown.
//! * A list or a mapping of which only the key is left is empty: the rest was commented out.
//!
//! Not here: which settings there are, files, the environment.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod de;
mod error;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use de::{Context, De};
use tree::{Node, Value};

/// The name under which a type that is a secret is read.
pub const SECRET: &str = "Secret";

/// The value that is shown of a secret.
const HIDDEN: &str = "(secret)";

/// The range of a whole number, by its key.
pub type Bounds = fn(&str) -> RangeInclusive<u64>;

/// A mistake in a file of settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The key, such as `tools.workers[0].token`; empty: the file as a whole.
    pub key: String,
    /// The mistake, and its correction.
    pub message: String,
}

/// A setting as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its key.
    pub key: String,
    /// Its value, unless it is a secret.
    pub value: String,
    /// The line.
    pub line: usize,
}

/// The result of reading.
#[derive(Debug)]
pub struct Read<T> {
    /// The settings.
    pub value: T,
    secrets: BTreeSet<String>,
}

/// A file of settings.
#[derive(Debug)]
pub struct Document {
    root: Node,
    repeated: Vec<Mistake>,
}

impl Document {
    /// Reads YAML.
    ///
    /// # Errors
    /// It is none, or not one document.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let (root, repeated) = tree::parse(text)?;
        Ok(Self { root, repeated })
    }

    /// The settings in it.
    ///
    /// # Errors
    /// All that is wrong with them, by line.
    pub fn read<T: DeserializeOwned>(&self, bounds: Bounds) -> Result<Read<T>, Vec<Mistake>> {
        let mut mistakes: BTreeSet<Mistake> = self.repeated.iter().cloned().collect();
        let mut removed = BTreeSet::new();
        loop {
            let context = Context::new(bounds, &removed);
            let wrong = match T::deserialize(De::new(&self.root, String::new(), &context)) {
                Ok(value) if mistakes.is_empty() => {
                    let secrets = context.secrets();
                    return Ok(Read { value, secrets });
                }
                Ok(_) => break,
                Err(error) => error.mistake(self.root.line),
            };
            let is_new = removed.insert(wrong.key.clone());
            let is_root = wrong.key.is_empty();
            // A key that is missing now may have been there, and wrong.
            let of = format!("{}.", wrong.key);
            if !removed.iter().any(|key| key.starts_with(&of)) {
                mistakes.insert(wrong);
            }
            // A key that is wrong though it was taken out would be found again for ever.
            if is_root || !is_new {
                break;
            }
        }
        Err(mistakes.into_iter().collect())
    }

    /// The settings without one of them. None: it is needed.
    #[must_use]
    pub fn read_without<T: DeserializeOwned>(&self, key: &str, bounds: Bounds) -> Option<T> {
        let removed = BTreeSet::from([key.to_owned()]);
        let context = Context::new(bounds, &removed);
        T::deserialize(De::new(&self.root, String::new(), &context)).ok()
    }

    /// Its settings, in their order.
    #[must_use]
    pub fn settings<T>(&self, read: &Read<T>) -> Vec<Setting> {
        let mut found = Vec::new();
        leaves(&self.root, String::new(), &read.secrets, &mut found);
        found
    }
}

/// Formats the mistakes of a file, a line for each with its position.
#[must_use]
pub fn report(path: &Path, mistakes: &[Mistake]) -> String {
    let line = |it: &Mistake| {
        let (path, separator) = (path.display(), if it.key.is_empty() { "" } else { ": " });
        format!("{path}:{}: {}{separator}{}", it.line, it.key, it.message)
    };
    mistakes.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The positions of settings in their file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingLocations {
    file: PathBuf,
    lines: BTreeMap<String, usize>,
    /// Keys of secrets that are in the file itself.
    secrets: Vec<String>,
}

/// Returns whether everybody on the machine may read or write a file.
#[must_use]
pub fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    // Not the group: Debian's `ssl-cert`, for one, gives services their keys by a group.
    std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o006 != 0)
}

impl SettingLocations {
    /// Those of a document.
    #[must_use]
    pub fn new<T>(file: &Path, document: &Document, read: &Read<T>) -> Self {
        let mut found = BTreeMap::new();
        lines(&document.root, String::new(), &mut found);
        let settings = document.settings(read).into_iter();
        let secrets = settings.filter(|it| it.value == HIDDEN).map(|it| it.key);
        Self {
            file: file.to_owned(),
            lines: found,
            secrets: secrets.collect(),
        }
    }

    /// Returns a warning where the file holds secrets that everybody on the machine may read.
    /// Blocks.
    #[must_use]
    pub fn exposed_secrets(&self) -> Option<String> {
        let is_exposed = !self.secrets.is_empty() && is_open_to_others(&self.file);
        is_exposed.then(|| {
            format!(
                "everybody on this machine may read or write `{}`, which holds secrets ({}): `chmod 0640` or stricter keeps them, or name where each is with `{{env: NAME}}` or `{{file: PATH}}`",
                self.file.display(),
                self.secrets.join(", ")
            )
        })
    }

    /// The position of a setting, or of its parent, as a prefix of a message; empty where the
    /// file does not have it.
    #[must_use]
    pub fn at(&self, key: &str) -> String {
        let line = self
            .line(key)
            .map(|line| format!("{}:{line}: ", self.file.display()));
        line.unwrap_or_default()
    }

    /// The line of a setting, or of its parent.
    #[must_use]
    pub fn line(&self, mut key: &str) -> Option<usize> {
        loop {
            if let Some(line) = self.lines.get(key) {
                return Some(*line);
            }
            key = key.get(..key.rfind(['.', '['])?)?;
        }
    }

    /// Forgets a setting that comes from elsewhere.
    pub fn forget(&mut self, key: &str) {
        self.lines.remove(key);
    }
}

/// The key of an entry of a mapping.
fn inside(key: &str, name: &str) -> String {
    if key.is_empty() {
        name.to_owned()
    } else {
        format!("{key}.{name}")
    }
}

fn lines(node: &Node, key: String, found: &mut BTreeMap<String, usize>) {
    match &node.value {
        Value::Scalar { .. } => {}
        Value::List(items) => {
            for (at, item) in items.iter().enumerate() {
                lines(item, format!("{key}[{at}]"), found);
            }
        }
        Value::Map(entries) => {
            for (name, value) in entries {
                lines(value, inside(&key, name), found);
            }
        }
    }
    found.insert(key, node.line);
}

fn leaves(node: &Node, key: String, secrets: &BTreeSet<String>, found: &mut Vec<Setting>) {
    let is_secret = secrets.contains(&key);
    let is_scalar = |item: &Node| matches!(item.value, Value::Scalar { .. });
    match &node.value {
        Value::Map(entries) if !is_secret => {
            for (name, value) in entries {
                leaves(value, inside(&key, name), secrets, found);
            }
        }
        Value::List(items) if !items.iter().all(is_scalar) => {
            for (at, item) in items.iter().enumerate() {
                leaves(item, format!("{key}[{at}]"), secrets, found);
            }
        }
        _ => found.push(Setting {
            value: if is_secret && is_scalar(node) {
                HIDDEN.to_owned()
            } else {
                shown(node)
            },
            key,
            line: node.line,
        }),
    }
}

/// An address without the user and the password in it; any other text as it is.
#[must_use]
pub fn without_user(text: &str) -> String {
    let parts = text.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at_checked(end)?;
        let (_, host) = host.rsplit_once('@')?;
        Some(format!("{scheme}://(secret)@{host}{path}"))
    });
    parts.unwrap_or_else(|| text.to_owned())
}

/// A value as a line, without the user and the password of an address.
fn shown(node: &Node) -> String {
    match &node.value {
        Value::Scalar { text, .. } => without_user(text),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries: Vec<_> = entries
                .map(|(name, value)| format!("{name}: {}", shown(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}
