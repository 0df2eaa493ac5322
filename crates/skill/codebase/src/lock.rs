//! Lockfiles: which versions a package manager chose.
//!
//! They are read for names and versions only, mostly line by line in the form their
//! package managers write, and asked for what manifests name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inventory::{file_name, folder};
use super::manifest::Ecosystem;
use super::report::PackageManager;
use super::text::{self, Broken, yaml_lines};
use super::version;

/// Versions by `name`, by `name@requirement`, and by `folder:name` where a lockfile
/// tells packages of a workspace apart.
type Versions = BTreeMap<String, Vec<String>>;

type LockReader = fn(&str) -> Result<Versions, Broken>;

/// Names of lockfiles.
const LOCKS: &[(&str, Ecosystem, PackageManager)] = &[
    ("package-lock.json", Ecosystem::Npm, PackageManager::Npm),
    ("npm-shrinkwrap.json", Ecosystem::Npm, PackageManager::Npm),
    ("yarn.lock", Ecosystem::Npm, PackageManager::Yarn),
    ("pnpm-lock.yaml", Ecosystem::Npm, PackageManager::Pnpm),
    ("bun.lock", Ecosystem::Npm, PackageManager::Bun),
    ("bun.lockb", Ecosystem::Npm, PackageManager::Bun),
    ("deno.lock", Ecosystem::Npm, PackageManager::Deno),
    ("poetry.lock", Ecosystem::Python, PackageManager::Poetry),
    ("uv.lock", Ecosystem::Python, PackageManager::Uv),
    ("pdm.lock", Ecosystem::Python, PackageManager::Pdm),
    ("Pipfile.lock", Ecosystem::Python, PackageManager::Pipenv),
    ("Cargo.lock", Ecosystem::Cargo, PackageManager::Cargo),
    ("go.sum", Ecosystem::Go, PackageManager::Go),
    ("composer.lock", Ecosystem::Php, PackageManager::Composer),
    ("Gemfile.lock", Ecosystem::Ruby, PackageManager::Bundler),
    (
        "packages.lock.json",
        Ecosystem::Dotnet,
        PackageManager::Nuget,
    ),
    ("gradle.lockfile", Ecosystem::Jvm, PackageManager::Gradle),
    ("pubspec.lock", Ecosystem::Dart, PackageManager::Pub),
    ("mix.lock", Ecosystem::Elixir, PackageManager::Mix),
    ("Package.resolved", Ecosystem::Swift, PackageManager::Swift),
];

/// Who reads a lockfile. The others only tell of their package managers: for those the
/// manifests' ranges are exact enough, since of a version little more than its first number
/// is made use of.
fn reader(path: &str) -> Option<LockReader> {
    Some(match file_name(path) {
        "package-lock.json" | "npm-shrinkwrap.json" => npm,
        "yarn.lock" => yarn,
        "pnpm-lock.yaml" => pnpm,
        "Cargo.lock" => tables,
        "poetry.lock" | "uv.lock" => python,
        _ => return None,
    })
}

/// A lockfile in its place.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub(super) path: String,
    pub(super) ecosystem: Ecosystem,
    versions: Versions,
}

/// The lockfile at this path is one whose contents are read.
pub(super) fn is_read(path: &str) -> bool {
    reader(path).is_some()
}

/// Whose lockfile this is.
pub(super) fn manager(path: &str) -> Option<(Ecosystem, PackageManager)> {
    let mut locks = LOCKS.iter().filter(|(known, ..)| *known == file_name(path));
    locks
        .next()
        .map(|(_, ecosystem, manager)| (*ecosystem, *manager))
}

/// Reads a lockfile; none where the file is none that is read.
pub(super) fn read(path: &str, text: &str) -> Option<Result<Lock, Broken>> {
    let (ecosystem, _) = manager(path)?;
    let read = reader(path)?;
    Some(read(text).map(|versions| Lock {
        path: path.to_owned(),
        ecosystem,
        versions,
    }))
}

impl Lock {
    /// The version of what a manifest in a folder needs.
    pub(super) fn version(
        &self,
        location: &str,
        name: &str,
        requirement: Option<&str>,
    ) -> Option<&str> {
        let below = location
            .strip_prefix(folder(&self.path))
            .unwrap_or(location);
        let below = below.trim_start_matches('/');
        let range = requirement.unwrap_or_default();
        [
            format!("{below}:{name}"),
            format!("{name}@{range}"),
            name.to_owned(),
        ]
        .iter()
        .find_map(|key| version::among(self.versions.get(key)?, requirement))
    }

    /// How many names it has.
    pub(super) fn len(&self) -> usize {
        self.versions.len()
    }

    /// Packages with the one version that was chosen, if it is one.
    pub(super) fn packages(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.versions.iter().map(|(key, versions)| {
            let name = key.split_once(':').map_or(key.as_str(), |(_, name)| name);
            (name, version::among(versions, None))
        })
    }
}

fn insert(versions: &mut Versions, key: impl Into<String>, version: &str) {
    let known = versions.entry(key.into()).or_default();
    if !version.is_empty() && !known.iter().any(|found| found == version) {
        known.push(version.to_owned());
    }
}

fn npm(text: &str) -> Result<Versions, Broken> {
    let value = text::json(text)?;
    let mut versions = Versions::new();
    for (key, package) in text::members(&value, "packages") {
        let version = package.get("version").and_then(Value::as_str);
        // `packages/app/node_modules/react`: what a package below has for itself.
        let Some((location, name)) = key.split_once("node_modules/") else {
            continue;
        };
        if name.contains("node_modules/") {
            continue;
        }
        let location = location.trim_end_matches('/');
        let key = if location.is_empty() {
            name.to_owned()
        } else {
            format!("{location}:{name}")
        };
        insert(&mut versions, key, version.unwrap_or_default());
    }
    if versions.is_empty() {
        for (name, package) in text::members(&value, "dependencies") {
            let version = package.get("version").and_then(Value::as_str);
            insert(&mut versions, name, version.unwrap_or_default());
        }
    }
    Ok(versions)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn yarn(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    let mut keys: Vec<&str> = Vec::new();
    for line in text.lines() {
        if !line.starts_with([' ', '#']) && line.ends_with(':') {
            let list = line.trim_end_matches(':').split(',');
            keys = list.map(|key| key.trim().trim_matches('"')).collect();
        } else if let Some(version) = line.strip_prefix("  version") {
            let version = version.trim_start_matches(':').trim().trim_matches('"');
            for key in keys.drain(..) {
                let Some((name, range)) = text::package_and_range(key) else {
                    continue;
                };
                let range = range.strip_prefix("npm:").unwrap_or(range);
                insert(&mut versions, format!("{name}@{range}"), version);
                insert(&mut versions, name, version);
            }
        }
    }
    Ok(versions)
}

/// Packages of the workspace are listed with what they need; a lockfile of one
/// package has the same without the list around it.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn pnpm(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    // The keys above a line, with how far they are indented.
    let mut above: Vec<(usize, &str)> = Vec::new();
    for line in yaml_lines(text) {
        while above
            .last()
            .is_some_and(|(indent, _)| *indent >= line.indent)
        {
            above.pop();
        }
        let keys: Vec<&str> = above.iter().map(|(_, key)| *key).collect();
        let found = match *keys.as_slice() {
            ["importers", location, list, name] if line.key == "version" => {
                Some((location, list, name))
            }
            ["importers", location, list] => Some((location, list, line.key)),
            [list, name] if line.key == "version" => Some((".", list, name)),
            [list] => Some((".", list, line.key)),
            _ => None,
        };
        if let Some((location, list, name)) = found {
            let version = line.value.split('(').next().unwrap_or_default();
            let version = version.split('_').next().unwrap_or_default();
            if list.to_lowercase().ends_with("dependencies") && !version.is_empty() {
                let location = if location == "." { "" } else { location };
                insert(&mut versions, format!("{location}:{name}"), version);
            }
        }
        if line.value.is_empty() && !line.item {
            above.push((line.indent, line.key));
        }
    }
    Ok(versions)
}

/// `[[package]]` with `name` and `version`, as Cargo, Poetry and uv write it.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn tables(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    let (mut inside, mut name) = (false, None);
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[[package]]";
            name = None;
        } else if inside && let Some((key, value)) = line.split_once(" = ") {
            let value = value.trim().trim_matches('"');
            match (key, name) {
                ("name", _) => name = Some(value),
                ("version", Some(name)) => insert(&mut versions, name, value),
                _ => {}
            }
        }
    }
    Ok(versions)
}

fn python(text: &str) -> Result<Versions, Broken> {
    let found = tables(text)?;
    let normal = |(name, found): (String, Vec<String>)| {
        (name.to_lowercase().replace(['_', '.'], "-"), found)
    };
    Ok(found.into_iter().map(normal).collect())
}
