//! Manifests of Python besides `pyproject.toml`: requirements, `Pipfile`, setup
//! files, conda.

use toml::Value;

use super::super::report::PackageManager;
use super::super::text::{self, Broken, quoted, yaml_lines};
use super::{Manifest, Purpose};

/// Splits a requirement (PEP 508) into its normalized name and the version that
/// follows, without extras and marker.
pub(super) fn requirement(text: &str) -> Option<(String, Option<&str>)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_'));
    let (name, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']').map_or("", |(_, rest)| rest),
        None => rest,
    };
    let rest = rest.split([';', '#']).next().unwrap_or_default();
    let version = rest
        .trim()
        .trim_start_matches('(')
        .trim_end_matches(')')
        .trim();
    // `name @ https://…`: an address, which may hold a password.
    let named = !version.is_empty() && !version.starts_with('@');
    Some((normal(name), named.then_some(version)))
}

/// Normalizes a package's name (PEP 503).
pub(super) fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for letter in name.chars() {
        if !matches!(letter, '-' | '_' | '.') {
            normal.extend(letter.to_lowercase());
        } else if !normal.ends_with('-') {
            normal.push('-');
        }
    }
    normal
}

impl Manifest {
    /// Adds a requirement of Python.
    pub(super) fn requires(&mut self, text: &str, development: bool) {
        if let Some((name, version)) = requirement(text) {
            self.needs(&name, version, development);
        }
    }
}

/// `requirements.txt`, or with `development` `requirements-dev.txt`.
pub(super) fn requirements(text: &str, development: bool) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::of("python", None);
    // A backslash continues a line, as in the output of `pip-compile --generate-hashes`.
    let text = text.trim_start_matches('\u{feff}').replace("\\\n", " ");
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if let Some(option) = line.strip_prefix('-') {
            let included = option
                .strip_prefix('r')
                .or(option.strip_prefix("-requirement"));
            if let Some(file) = included.and_then(text::name) {
                let remark = format!("'{file}' is named here and not followed");
                manifest.remarks.push(remark);
            }
        // A bare address names no package.
        } else if !line.contains("://") || line.contains('@') {
            // Options of one requirement (`--hash`) follow it.
            let end = line.find(" --").unwrap_or(line.len());
            manifest.requires(line.get(..end).unwrap_or_default(), development);
        }
    }
    Ok(manifest)
}

/// `Pipfile`.
pub(super) fn pipfile(text: &str) -> Result<Manifest, Broken> {
    let toml = text::toml(text)?;
    let python = toml
        .get("requires")
        .and_then(|requires| requires.get("python_version"));
    let version = python.and_then(Value::as_str).map(str::to_owned);
    let mut manifest = Manifest {
        platforms: vec![("python", version)],
        manager: Some(PackageManager::Pipenv),
        ..Manifest::default()
    };
    for (key, development) in [("packages", false), ("dev-packages", true)] {
        for (name, value) in text::entries(&toml, key) {
            manifest.needs(&normal(name), text::toml_version(value), development);
        }
    }
    Ok(manifest)
}

/// `setup.cfg`. One that only holds settings of tools says nothing.
pub(super) fn setup_cfg(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::of("python", None);
    let (mut section, mut key) = ("", "");
    for line in text.lines() {
        let indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let value = if indented {
            line
        } else if let Some(name) = line.strip_prefix('[') {
            (section, key) = (name.trim_end_matches(']'), "");
            continue;
        } else {
            let (name, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
            key = name.trim();
            value.trim()
        };
        match (section, key) {
            ("metadata", "name") => manifest.name = text::name(value),
            ("metadata", "version")
                if !value.starts_with("attr:") && !value.starts_with("file:") =>
            {
                manifest.version = text::name(value);
            }
            ("metadata", "description") => manifest.description = text::sentence(value),
            ("options", "python_requires") => {
                manifest.platforms = vec![("python", Some(value.to_owned()))];
            }
            ("options", "install_requires") => manifest.requires(value, false),
            ("options.extras_require", _) => manifest.requires(value, true),
            ("options.entry_points", "console_scripts") => {
                manifest.purpose = Some(Purpose::Application);
            }
            _ => {}
        }
    }
    Ok(manifest)
}

/// `setup.py`: arguments that are plain texts, and lists of them.
pub(super) fn setup_py(text: &str) -> Result<Manifest, Broken> {
    let text: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let argument = |key: &str| -> Option<&str> {
        let found = text.match_indices(key).find_map(|(at, _)| {
            let before = text.get(..at)?.chars().next_back();
            // `name` is also the end of `package_name`.
            let whole = before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ','));
            let rest = text.get(at + key.len()..)?.trim_start();
            rest.strip_prefix('=')
                .filter(|rest| whole && !rest.starts_with('='))
        });
        found.map(str::trim_start)
    };
    let plain = |key: &str| -> Option<&str> {
        let rest = argument(key)?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest.get(1..)?.split_once(quote).map(|(inner, _)| inner)
    };
    let mut manifest = Manifest {
        name: plain("name").and_then(text::name),
        version: plain("version").and_then(text::name),
        description: plain("description").and_then(text::sentence),
        platforms: vec![("python", plain("python_requires").map(str::to_owned))],
        ..Manifest::default()
    };
    for (key, development) in [("install_requires", false), ("tests_require", true)] {
        let list = argument(key).and_then(|rest| rest.strip_prefix('['));
        // The list ends at the first bracket outside quotes: `"name[extra]"` has one inside.
        let mut open = None;
        let end = list.and_then(|list| {
            list.char_indices()
                .find_map(|(at, letter)| match (open, letter) {
                    (None, ']') => Some(at),
                    (None, '"' | '\'') => {
                        open = Some(letter);
                        None
                    }
                    (Some(quote), _) if quote == letter => {
                        open = None;
                        None
                    }
                    _ => None,
                })
        });
        let inner = list.zip(end).and_then(|(list, end)| list.get(..end));
        for item in inner.map(quoted).unwrap_or_default() {
            manifest.requires(item, development);
        }
    }
    if argument("entry_points").is_some_and(|rest| rest.contains("console_scripts")) {
        manifest.purpose = Some(Purpose::Application);
    }
    Ok(manifest)
}

/// `environment.yml` of conda.
pub(super) fn conda(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::managed_by(PackageManager::Conda);
    let mut section = "";
    let mut seen = false;
    let mut version = None;
    for line in yaml_lines(text) {
        if line.indent == 0 && !line.item {
            section = line.key;
            seen |= section == "dependencies";
            if section == "name" {
                manifest.name = text::name(line.value);
            }
        } else if section == "dependencies" && line.item && line.key.is_empty() {
            // A channel may stand in front: `pytorch::torch`.
            let package = line.value.rsplit("::").next().unwrap_or_default();
            let (name, found) = requirement(package).unwrap_or_default();
            if name == "python" {
                version = found.map(str::to_owned);
            } else {
                manifest.needs(&name, found, false);
            }
        }
    }
    // `environment.yml` is a common name: without dependencies the file is of another program.
    if !seen {
        return Err(Broken::whole(
            "not an environment of conda: it lists no dependencies",
        ));
    }
    manifest.platforms.push(("python", version));
    Ok(manifest)
}
