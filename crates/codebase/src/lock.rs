//! Lockfiles: which versions a package manager chose.
//!
//! They are read for names and versions only, mostly line by line in the form their
//! package managers write, and asked for what manifests name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inventory::folder;
use super::manifest::Ecosystem;
use super::report::PackageManager;
use super::text::{self, Broken, quoted, yaml_lines};
use super::version;

/// Versions by `name`, by `name@requirement`, and by `folder:name` where a lockfile
/// tells packages of a workspace apart.
type Versions = BTreeMap<String, Vec<String>>;

type Reader = fn(&str) -> Result<Versions, Broken>;

/// Names of lockfiles. Those without a reader only tell of their package manager.
const LOCKS: &[(&str, Ecosystem, PackageManager, Option<Reader>)] = &[
    (
        "package-lock.json",
        Ecosystem::Npm,
        PackageManager::Npm,
        Some(npm),
    ),
    (
        "npm-shrinkwrap.json",
        Ecosystem::Npm,
        PackageManager::Npm,
        Some(npm),
    ),
    (
        "yarn.lock",
        Ecosystem::Npm,
        PackageManager::Yarn,
        Some(yarn),
    ),
    (
        "pnpm-lock.yaml",
        Ecosystem::Npm,
        PackageManager::Pnpm,
        Some(pnpm),
    ),
    ("bun.lock", Ecosystem::Npm, PackageManager::Bun, Some(bun)),
    ("bun.lockb", Ecosystem::Npm, PackageManager::Bun, None),
    ("deno.lock", Ecosystem::Npm, PackageManager::Deno, None),
    (
        "poetry.lock",
        Ecosystem::Python,
        PackageManager::Poetry,
        Some(python),
    ),
    (
        "uv.lock",
        Ecosystem::Python,
        PackageManager::Uv,
        Some(python),
    ),
    (
        "pdm.lock",
        Ecosystem::Python,
        PackageManager::Pdm,
        Some(python),
    ),
    (
        "Pipfile.lock",
        Ecosystem::Python,
        PackageManager::Pipenv,
        Some(pipfile),
    ),
    (
        "Cargo.lock",
        Ecosystem::Cargo,
        PackageManager::Cargo,
        Some(tables),
    ),
    ("go.sum", Ecosystem::Go, PackageManager::Go, None),
    (
        "composer.lock",
        Ecosystem::Php,
        PackageManager::Composer,
        Some(composer),
    ),
    (
        "Gemfile.lock",
        Ecosystem::Ruby,
        PackageManager::Bundler,
        Some(bundler),
    ),
    (
        "packages.lock.json",
        Ecosystem::Dotnet,
        PackageManager::Nuget,
        Some(nuget),
    ),
    (
        "gradle.lockfile",
        Ecosystem::Jvm,
        PackageManager::Gradle,
        Some(gradle),
    ),
    (
        "pubspec.lock",
        Ecosystem::Dart,
        PackageManager::Pub,
        Some(dart),
    ),
    (
        "mix.lock",
        Ecosystem::Elixir,
        PackageManager::Mix,
        Some(mix),
    ),
    (
        "Package.resolved",
        Ecosystem::Swift,
        PackageManager::Swift,
        Some(swift),
    ),
];

/// A lockfile in its place.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub(super) path: String,
    pub(super) ecosystem: Ecosystem,
    versions: Versions,
}

/// The lockfile at this path is one whose contents are read.
pub(super) fn is_read(path: &str) -> bool {
    find(path).is_some_and(|(.., reader)| reader.is_some())
}

/// Whose lockfile this is.
pub(super) fn manager(path: &str) -> Option<(Ecosystem, PackageManager)> {
    find(path).map(|(_, ecosystem, manager, _)| (*ecosystem, *manager))
}

fn find(path: &str) -> Option<&'static (&'static str, Ecosystem, PackageManager, Option<Reader>)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    LOCKS.iter().find(|(known, ..)| *known == name)
}

/// Reads a lockfile; none where the file is none that is read.
pub(super) fn read(path: &str, text: &str) -> Option<Result<Lock, Broken>> {
    let (_, ecosystem, _, reader) = find(path)?;
    let read = (*reader)?;
    Some(read(text).map(|versions| Lock {
        path: path.to_owned(),
        ecosystem: *ecosystem,
        versions,
    }))
}

impl Lock {
    /// The version of what a manifest in a folder needs.
    pub(super) fn version(
        &self,
        place: &str,
        name: &str,
        requirement: Option<&str>,
    ) -> Option<&str> {
        let below = place.strip_prefix(folder(&self.path)).unwrap_or(place);
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
            let name = match key.split_once(':') {
                // Names of Maven have a colon themselves.
                Some((_, name)) if self.ecosystem != Ecosystem::Jvm => name,
                _ => key.as_str(),
            };
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
    let objects = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    for (key, package) in objects("packages") {
        let version = package.get("version").and_then(Value::as_str);
        // `packages/app/node_modules/react`: what a package below has for itself.
        let Some((place, name)) = key.split_once("node_modules/") else {
            continue;
        };
        if name.contains("node_modules/") {
            continue;
        }
        let place = place.trim_end_matches('/');
        let key = if place.is_empty() {
            name.to_owned()
        } else {
            format!("{place}:{name}")
        };
        insert(&mut versions, key, version.unwrap_or_default());
    }
    if versions.is_empty() {
        for (name, package) in objects("dependencies") {
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
                let at = key
                    .char_indices()
                    .skip(1)
                    .find(|(_, letter)| *letter == '@');
                let Some((name, range)) = at.map(|(at, _)| key.split_at(at)) else {
                    continue;
                };
                let range = range.trim_start_matches('@');
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
            ["importers", place, list, name] if line.key == "version" => Some((place, list, name)),
            ["importers", place, list] => Some((place, list, line.key)),
            [list, name] if line.key == "version" => Some((".", list, name)),
            [list] => Some((".", list, line.key)),
            _ => None,
        };
        if let Some((place, list, name)) = found {
            let version = line.value.split('(').next().unwrap_or_default();
            let version = version.split('_').next().unwrap_or_default();
            if list.to_lowercase().ends_with("dependencies") && !version.is_empty() {
                let place = if place == "." { "" } else { place };
                insert(&mut versions, format!("{place}:{name}"), version);
            }
        }
        if line.value.is_empty() && !line.item {
            above.push((line.indent, line.key));
        }
    }
    Ok(versions)
}

/// `    "react": ["react@18.2.0", …`
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn bun(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    for line in text.lines().filter(|line| line.contains("\": [\"")) {
        if let [key, package, ..] = quoted(line).as_slice()
            && let Some((name, version)) = package.rsplit_once('@')
            && name == *key
        {
            insert(&mut versions, name, version);
        }
    }
    Ok(versions)
}

/// `[[package]]` with `name` and `version`, as Cargo, Poetry, uv and PDM write it.
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

fn pipfile(text: &str) -> Result<Versions, Broken> {
    let value = text::json(text)?;
    let mut versions = Versions::new();
    for section in ["default", "develop"] {
        for (name, package) in value
            .get(section)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let version = package
                .get("version")
                .and_then(Value::as_str)
                .unwrap_or_default();
            insert(
                &mut versions,
                name.to_lowercase(),
                version.trim_start_matches("=="),
            );
        }
    }
    Ok(versions)
}

fn composer(text: &str) -> Result<Versions, Broken> {
    let value = text::json(text)?;
    let mut versions = Versions::new();
    for section in ["packages", "packages-dev"] {
        for package in value
            .get(section)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let word = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
            insert(
                &mut versions,
                word("name").to_lowercase(),
                word("version").trim_start_matches('v'),
            );
        }
    }
    Ok(versions)
}

/// `    rails (7.1.2)`: chosen ones are indented by four.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn bundler(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    for line in text.lines() {
        let package = line
            .strip_prefix("    ")
            .filter(|rest| !rest.starts_with(' '));
        if let Some((name, version)) = package.and_then(|package| package.split_once(" (")) {
            insert(&mut versions, name, version.trim_end_matches(')'));
        }
    }
    Ok(versions)
}

fn nuget(text: &str) -> Result<Versions, Broken> {
    let value = text::json(text)?;
    let mut versions = Versions::new();
    for (_, packages) in value
        .get("dependencies")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        for (name, package) in packages.as_object().into_iter().flatten() {
            let version = package.get("resolved").and_then(Value::as_str);
            insert(
                &mut versions,
                name.to_lowercase(),
                version.unwrap_or_default(),
            );
        }
    }
    Ok(versions)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn gradle(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let coordinates = line.split('=').next().unwrap_or_default();
        if let Some((name, version)) = coordinates.rsplit_once(':') {
            insert(&mut versions, name, version);
        }
    }
    Ok(versions)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn dart(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    let mut name = "";
    for line in yaml_lines(text) {
        match (line.indent, line.key) {
            (2, key) => name = key,
            (4, "version") => insert(&mut versions, name, line.value),
            _ => {}
        }
    }
    Ok(versions)
}

/// `  "phoenix": {:hex, :phoenix, "1.7.10", …`
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
fn mix(text: &str) -> Result<Versions, Broken> {
    let mut versions = Versions::new();
    for line in text.lines().filter(|line| line.contains("{:hex")) {
        if let [name, version, ..] = quoted(line).as_slice() {
            insert(&mut versions, *name, version);
        }
    }
    Ok(versions)
}

fn swift(text: &str) -> Result<Versions, Broken> {
    let value = text::json(text)?;
    let mut versions = Versions::new();
    for pin in value
        .get("pins")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = pin
            .get("identity")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = pin.get("state").and_then(|state| state.get("version"));
        let version = version.and_then(Value::as_str).unwrap_or_default();
        insert(&mut versions, name.to_lowercase(), version);
    }
    Ok(versions)
}
