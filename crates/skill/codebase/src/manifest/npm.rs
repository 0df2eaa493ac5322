//! Manifests of npm, Yarn, pnpm, Bun and Deno.

use serde_json::{Map, Value};

use super::super::report::PackageManager;
use super::super::text::{self, Broken, yaml_lines};
use super::{Manifest, Purpose};

/// Scripts that start an application.
const STARTING: &[&str] = &["start", "serve", "dev", "preview"];

/// `package.json`.
pub(super) fn package(text: &str) -> Result<Manifest, Broken> {
    let value = text::json(text)?;
    let Some(package) = value.as_object() else {
        return Err(Broken::whole("not a JSON object"));
    };
    let word = |key: &str| package.get(key).and_then(Value::as_str);
    let mut manifest = Manifest {
        name: word("name").and_then(text::name),
        version: word("version").and_then(text::name),
        description: word("description").and_then(text::sentence),
        workspace: package.get("workspaces").is_some_and(filled),
        purpose: purpose(package),
        manager: word("packageManager").and_then(manager),
        ..Manifest::default()
    };
    if let Some(node) = package
        .get("engines")
        .and_then(|engines| engines.get("node"))
    {
        let version = node.as_str().map(str::to_owned);
        manifest.platforms.push(("nodejs", version));
    }
    for (key, development) in [
        ("dependencies", false),
        ("peerDependencies", false),
        ("optionalDependencies", true),
        ("devDependencies", true),
    ] {
        for (name, version) in text::members(&value, key) {
            manifest.needs(name, version.as_str(), development);
        }
    }
    Ok(manifest)
}

fn filled(workspaces: &Value) -> bool {
    match workspaces {
        Value::Array(items) => !items.is_empty(),
        Value::Object(keys) => keys.get("packages").is_some_and(filled),
        _ => false,
    }
}

fn manager(text: &str) -> Option<PackageManager> {
    Some(match text.split('@').next()? {
        "npm" => PackageManager::Npm,
        "yarn" => PackageManager::Yarn,
        "pnpm" => PackageManager::Pnpm,
        "bun" => PackageManager::Bun,
        _ => return None,
    })
}

/// A package that is started or installed as a command is an application; one that can be
/// imported and is published is a library.
fn purpose(package: &Map<String, Value>) -> Option<Purpose> {
    let has = |key: &str| package.contains_key(key);
    let private = package.get("private").and_then(Value::as_bool) == Some(true);
    let exported = ["exports", "module", "types", "typings", "files"]
        .into_iter()
        .any(has);
    // First: `exports` of a public package outweigh a `start` script, which many libraries have,
    // too.
    if exported && !private {
        return Some(Purpose::Library);
    }
    let scripts = package.get("scripts").and_then(Value::as_object);
    let started =
        scripts.is_some_and(|scripts| STARTING.iter().any(|name| scripts.contains_key(*name)));
    if started || has("bin") {
        return Some(Purpose::Application);
    }
    (has("main") && !private).then_some(Purpose::Library)
}

/// `pnpm-workspace.yaml`: its packages and its catalogue.
pub(super) fn pnpm_workspace(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::managed_by(PackageManager::Pnpm);
    let mut section = "";
    for line in yaml_lines(text) {
        if line.indent == 0 && !line.item {
            section = line.key;
            manifest.workspace |= section == "packages" && line.value.starts_with('[');
        } else if section == "packages" && line.item {
            manifest.workspace = true;
        } else if section == "catalog" && !line.key.is_empty() {
            let (name, version) = (line.key.to_owned(), line.value.to_owned());
            manifest.offers.insert(name, version);
        }
    }
    Ok(manifest)
}

/// `lerna.json`, `nx.json`, `turbo.json`: their presence shows a workspace.
pub(super) fn workspace(text: &str) -> Result<Manifest, Broken> {
    text::json(text).map(|_| Manifest {
        workspace: true,
        ..Manifest::default()
    })
}

/// `deno.json`.
pub(super) fn deno(text: &str) -> Result<Manifest, Broken> {
    let value = text::json(text)?;
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    let mut manifest = Manifest {
        name: word("name").and_then(text::name),
        version: word("version").and_then(text::name),
        workspace: value.get("workspace").is_some_and(filled),
        purpose: value.get("exports").map(|_| Purpose::Library),
        manager: Some(PackageManager::Deno),
        platforms: vec![("deno", None)],
        ..Manifest::default()
    };
    for (_, target) in text::members(&value, "imports") {
        // `jsr:` and URLs are left out: the table knows packages of npm.
        let npm = target
            .as_str()
            .and_then(|target| target.strip_prefix("npm:"));
        let Some(package) = npm.map(|package| package.trim_start_matches('/')) else {
            continue;
        };
        // `@scope/name@1/part`.
        let (name, version) = text::package_and_range(package).unwrap_or((package, ""));
        let version = version.split('/').next();
        manifest.needs(name, version.filter(|version| !version.is_empty()), false);
    }
    Ok(manifest)
}
