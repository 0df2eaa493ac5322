//! `Cargo.toml`, with what members inherit from their workspace.

use toml::{Table, Value};

use super::super::text::{self, Broken};
use super::{Manifest, Purpose};

/// Tables of dependencies, and whether they are for developing only.
const TABLES: &[(&str, bool)] = &[
    ("dependencies", false),
    ("dev-dependencies", true),
    ("build-dependencies", true),
];

/// `Cargo.toml`.
pub(super) fn read(text: &str) -> Result<Manifest, Broken> {
    let toml = text::toml(text)?;
    let mut manifest = Manifest::default();
    let mut edition = None;
    if let Some(package) = toml.get("package").and_then(Value::as_table) {
        let word = |key: &str| package.get(key).and_then(Value::as_str);
        manifest.name = word("name").and_then(text::name);
        manifest.version = word("version").and_then(text::name);
        manifest.description = word("description").and_then(text::sentence);
        edition = word("rust-version").map(str::to_owned);
        manifest.purpose = purpose(&toml, package);
    }
    manifest.platforms.push(("rust", edition));
    tables(&toml, &mut manifest);
    for (_, target) in text::entries(&toml, "target") {
        if let Some(target) = target.as_table() {
            tables(target, &mut manifest);
        }
    }
    if let Some(workspace) = toml.get("workspace").and_then(Value::as_table) {
        let members = workspace.get("members").and_then(Value::as_array);
        manifest.workspace = members.is_some_and(|members| !members.is_empty());
        for (key, value) in text::entries(workspace, "dependencies") {
            if let Some(version) = text::toml_version(value) {
                let name = renamed(key, value).to_owned();
                manifest.offers.insert(name, version.to_owned());
            }
        }
        let shared = workspace.get("package").and_then(Value::as_table);
        let word = |key: &str| {
            shared
                .and_then(|shared| shared.get(key))
                .and_then(Value::as_str)
        };
        manifest.bequeaths = (
            word("version").and_then(text::name),
            word("description").and_then(text::sentence),
        );
    }
    Ok(manifest)
}

fn tables(toml: &Table, manifest: &mut Manifest) {
    for (table, development) in TABLES {
        for (key, value) in text::entries(toml, table) {
            manifest.needs(renamed(key, value), text::toml_version(value), *development);
        }
    }
}

fn renamed<'a>(key: &'a str, value: &'a Value) -> &'a str {
    value.get("package").and_then(Value::as_str).unwrap_or(key)
}

/// The purpose by the manifest alone; the files next to it tell the rest.
fn purpose(toml: &Table, package: &Table) -> Option<Purpose> {
    if toml.contains_key("bin") || package.contains_key("default-run") {
        return Some(Purpose::Application);
    }
    toml.contains_key("lib").then_some(Purpose::Library)
}
