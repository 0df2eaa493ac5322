//! `pyproject.toml`: the standard's tables, and those of Poetry, uv and PDM.

use toml::{Table, Value};

use super::super::report::PackageManager;
use super::super::text::{self, Broken, toml_version};
use super::python::normal;
use super::{Manifest, Purpose};

/// `pyproject.toml`.
pub(super) fn read(text: &str) -> Result<Manifest, Broken> {
    let whole = text::toml(text)?;
    let empty = Table::new();
    let project = table(&whole, "project").unwrap_or(&empty);
    let tool = table(&whole, "tool").unwrap_or(&empty);
    let poetry = table(tool, "poetry").unwrap_or(&empty);
    let word = |key: &str| {
        let found = project.get(key).or_else(|| poetry.get(key));
        found.and_then(Value::as_str)
    };
    let mut manifest = Manifest {
        name: word("name").and_then(text::name),
        version: word("version").and_then(text::name),
        description: word("description").and_then(text::sentence),
        manager: manager(&whole, tool),
        purpose: purpose(&whole, project, poetry),
        ..Manifest::default()
    };
    let mut version = project.get("requires-python").and_then(Value::as_str);
    list(project.get("dependencies"), &mut manifest, false);
    for (_, extra) in text::entries(project, "optional-dependencies") {
        list(Some(extra), &mut manifest, true);
    }
    for (_, group) in text::entries(&whole, "dependency-groups") {
        list(Some(group), &mut manifest, true);
    }
    for (name, value) in text::entries(poetry, "dependencies") {
        if name == "python" {
            version = version.or(toml_version(value));
        } else {
            manifest.needs(&normal(name), toml_version(value), false);
        }
    }
    let groups = text::entries(poetry, "group")
        .filter_map(|(_, group)| table(group.as_table()?, "dependencies"));
    for group in table(poetry, "dev-dependencies").into_iter().chain(groups) {
        for (name, value) in group {
            manifest.needs(&normal(name), toml_version(value), true);
        }
    }
    if let Some(uv) = table(tool, "uv") {
        list(uv.get("dev-dependencies"), &mut manifest, true);
        let members = table(uv, "workspace").and_then(|workspace| workspace.get("members"));
        manifest.workspace = members
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
    }
    let pdm = table(tool, "pdm").and_then(|pdm| table(pdm, "dev-dependencies"));
    for (_, group) in pdm.into_iter().flatten() {
        list(Some(group), &mut manifest, true);
    }
    // Settings of a tool are there because it is used.
    for name in tool.keys() {
        manifest.needs(&normal(name), None, true);
    }
    manifest
        .platforms
        .push(("python", version.map(str::to_owned)));
    Ok(manifest)
}

fn table<'a>(parent: &'a Table, key: &str) -> Option<&'a Table> {
    parent.get(key).and_then(Value::as_table)
}

/// Reads a list of requirements. Groups that include others name them in a table, which
/// says nothing new.
fn list(value: Option<&Value>, manifest: &mut Manifest, development: bool) {
    for item in value.and_then(Value::as_array).into_iter().flatten() {
        if let Some(text) = item.as_str() {
            manifest.requires(text, development);
        }
    }
}

fn manager(whole: &Table, tool: &Table) -> Option<PackageManager> {
    let backend = table(whole, "build-system").and_then(|build| build.get("build-backend"));
    let backend = backend.and_then(Value::as_str).unwrap_or_default();
    let named = |name: &str| tool.contains_key(name) || backend.starts_with(name);
    if named("uv") {
        Some(PackageManager::Uv)
    // uv first: a project that moves to uv may keep the build backend that it had.
    } else if named("poetry") {
        Some(PackageManager::Poetry)
    } else if named("pdm") {
        Some(PackageManager::Pdm)
    } else {
        None
    }
}

/// A package that installs commands is an application; one that is only built is a library.
fn purpose(whole: &Table, project: &Table, poetry: &Table) -> Option<Purpose> {
    let scripts =
        |table: &Table| table.contains_key("scripts") || table.contains_key("gui-scripts");
    if scripts(project) || scripts(poetry) {
        return Some(Purpose::Application);
    }
    whole
        .contains_key("build-system")
        .then_some(Purpose::Library)
}
