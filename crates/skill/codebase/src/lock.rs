//! Lockfiles: the versions that a package manager chose.
//!
//! They are read for names and versions only, mostly line by line in the form that their
//! package managers write, and searched for the dependencies of manifests.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all readers have one form, also those that take any text"
)]

use std::collections::BTreeMap;

use serde_json::Value;

use super::inventory::folder;
use super::manifest::Ecosystem;
use super::report::PackageManager;
use super::text::{self, Broken, yaml_lines};
use super::version;
use technologies::file_name;

/// Versions by `name`, by `name@requirement`, and by `folder:name` where a lockfile
/// tells packages of a workspace apart.
type Versions = BTreeMap<String, Vec<String>>;

type LockReader = fn(&str) -> Result<Versions, Broken>;

/// The names of lockfiles.
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

/// Returns the reader of a lockfile. The others only name their package managers: for those the
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

/// A lockfile at its path.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub(super) path: String,
    pub(super) ecosystem: Ecosystem,
    versions: Versions,
}

/// Tells whether the contents of the lockfile at this path are read.
pub(super) fn is_read(path: &str) -> bool {
    reader(path).is_some()
}

/// Returns the package manager of a lockfile.
pub(super) fn manager(path: &str) -> Option<(Ecosystem, PackageManager)> {
    let mut locks = LOCKS.iter().filter(|(known, ..)| *known == file_name(path));
    locks
        .next()
        .map(|(_, ecosystem, manager)| (*ecosystem, *manager))
}

/// Reads a lockfile; none where the file is none of those that are read.
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
    /// Returns the version of a dependency of a manifest in a folder.
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
            // From the most to the least specific: a package of a workspace may have a version of
            // its own.
            format!("{below}:{name}"),
            format!("{name}@{range}"),
            name.to_owned(),
        ]
        .iter()
        .find_map(|key| version::among(self.versions.get(key)?, requirement))
    }

    /// The number of its names.
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
        // The dependency of a dependency, which no manifest of the project names.
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
    // Version 1 of the format, of npm 6 and older, has no `packages`.
    if versions.is_empty() {
        for (name, package) in text::members(&value, "dependencies") {
            let version = package.get("version").and_then(Value::as_str);
            insert(&mut versions, name, version.unwrap_or_default());
        }
    }
    Ok(versions)
}

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
                // Yarn 2 and later write the protocol into each key.
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
fn pnpm(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    // The keys above a line, with their indentation.
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
            // `18.2.0(react@18.2.0)`, or in older versions `18.2.0_react@18.2.0`: the peers that
            // the package was installed with.
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
