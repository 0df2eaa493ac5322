//! Gradle: scripts, read for the lines that name plugins and dependencies, and the
//! version catalogue.

use toml::Value;

use super::super::report::PackageManager;
use super::super::text::{self, Broken, quoted};
use super::{MAX_WORD, Manifest, Purpose};

/// Blocks in one another that are looked into.
const MAX_BLOCKS: usize = 32;
/// Plugins that make an application, and those that make a library.
const APPLICATIONS: &[&str] = &[
    "application",
    "war",
    "org.springframework.boot",
    "com.android.application",
];
const LIBRARIES: &[&str] = &["java-library", "com.android.library", "maven-publish"];

/// `build.gradle` and `build.gradle.kts`.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn build(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest {
        manager: Some(PackageManager::Gradle),
        ..Manifest::default()
    };
    // Names of the blocks that are open.
    let mut blocks: Vec<&str> = Vec::new();
    // Blocks that are too deep to tell anything.
    let mut deeper = 0_usize;
    let mut kotlin = false;
    let mut java = None;
    let text = without_comments(text);
    for line in text.lines().map(str::trim) {
        let within = |name: &str| blocks.contains(&name);
        let words = quoted(line);
        if let Some(plugin) = plugin(line, &words, within("plugins")) {
            let version = line
                .split_once("version")
                .and_then(|(_, rest)| quoted(rest).first().copied());
            kotlin |= plugin.contains("kotlin");
            if APPLICATIONS.contains(&plugin.as_str()) {
                manifest.purpose = Some(Purpose::Application);
            } else if LIBRARIES.contains(&plugin.as_str()) && manifest.purpose.is_none() {
                manifest.purpose = Some(Purpose::Library);
            }
            manifest.needs(&format!("plugin:{plugin}"), version, false);
        } else if within("dependencies") || line.starts_with("dependencies") {
            dependency(line, &words, within("buildscript"), &mut manifest);
        } else if blocks.is_empty() && line.starts_with("version") {
            manifest.version = words.first().and_then(|text| text::name(text));
        } else if blocks.is_empty() && line.starts_with("description") {
            manifest.description = words.first().and_then(|text| text::sentence(text));
        } else if let Some((_, rest)) = line.split_once("JavaLanguageVersion.of(") {
            java = rest
                .split(')')
                .next()
                .map(|version| version.trim().to_owned());
        } else if let Some((_, version)) = line.split_once("JavaVersion.VERSION_") {
            java = Some(version.trim().replace('_', "."));
        }
        let first = line.split([' ', '{', '(']).next().unwrap_or_default();
        for letter in line.chars() {
            match letter {
                '{' if blocks.len() < MAX_BLOCKS => blocks.push(first),
                '{' => deeper += 1,
                '}' if deeper > 0 => deeper -= 1,
                '}' => drop(blocks.pop()),
                _ => {}
            }
        }
    }
    if kotlin {
        manifest.platforms.push(("kotlin", None));
    } else {
        manifest.platforms.push(("java", java));
    }
    Ok(manifest)
}

/// The id of the plugin that a line applies.
fn plugin(line: &str, words: &[&str], in_plugins: bool) -> Option<String> {
    let first = *words.first()?;
    if line.starts_with("apply plugin") || (in_plugins && line.starts_with("id")) {
        return Some(first.to_owned());
    }
    // `kotlin("jvm")` is `org.jetbrains.kotlin.jvm`.
    (in_plugins && line.starts_with("kotlin(")).then(|| format!("org.jetbrains.kotlin.{first}"))
}

/// A line of a block of dependencies: `implementation("group:artifact:version")`,
/// with or without brackets, or with `group:` and `name:`.
fn dependency(line: &str, words: &[&str], building: bool, manifest: &mut Manifest) {
    let line = line.split_once('{').map_or(line, |(before, after)| {
        if after.trim().is_empty() {
            before
        } else {
            after.trim()
        }
    });
    let configuration = line
        .split([' ', '('])
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let development = building || configuration.contains("test") || configuration.contains("debug");
    let Some(first) = words.first() else {
        return;
    };
    let mut parts = first.split(':');
    if let (Some(group), Some(artifact)) = (parts.next(), parts.next()) {
        let version = parts
            .next()
            .map(|version| version.split('@').next().unwrap_or_default());
        if !group.is_empty() && !artifact.is_empty() {
            manifest.needs(&format!("{group}:{artifact}"), version, development);
        }
    } else if line.contains("group:") && line.contains("name:") {
        if let [group, artifact, rest @ ..] = words {
            manifest.needs(
                &format!("{group}:{artifact}"),
                rest.first().copied(),
                development,
            );
        }
    } else if line.contains("kotlin(") {
        manifest.needs(
            &format!("org.jetbrains.kotlin:kotlin-{first}"),
            None,
            development,
        );
    }
}

/// `settings.gradle` and `settings.gradle.kts`: the name of the whole and its parts.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn settings(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest {
        manager: Some(PackageManager::Gradle),
        ..Manifest::default()
    };
    let (mut including, mut parts) = (false, 0);
    for line in without_comments(text).lines().map(str::trim) {
        let words = quoted(line);
        if line.starts_with("rootProject.name") {
            manifest.name = words.first().and_then(|text| text::name(text));
        }
        // The list may go on in the next lines.
        including = line.starts_with("include(")
            || line.starts_with("include ")
            || (including && !line.is_empty());
        parts += if including { words.len() } else { 0 };
        including &= line.ends_with([',', '(']);
    }
    manifest.workspace = parts > 1;
    Ok(manifest)
}

/// `libs.versions.toml`: what scripts name by an alias. All of it counts as used.
pub(super) fn catalogue(text: &str) -> Result<Manifest, Broken> {
    let toml = text::toml(text)?;
    let mut manifest = Manifest {
        manager: Some(PackageManager::Gradle),
        ..Manifest::default()
    };
    let table = |key: &str| toml.get(key).and_then(Value::as_table);
    let version = |value: &Value| -> Option<String> {
        let version = value.get("version")?;
        let found = match version.get("ref").and_then(Value::as_str) {
            Some(key) => table("versions")?.get(key)?.as_str()?,
            None => version.as_str()?,
        };
        (found.len() <= MAX_WORD).then(|| found.to_owned())
    };
    for (_, value) in table("libraries").into_iter().flatten() {
        let word = |key: &str| value.get(key).and_then(Value::as_str);
        if let Some(coordinates) = value.as_str() {
            let mut parts = coordinates.splitn(3, ':');
            let name = [parts.next(), parts.next()]
                .map(Option::unwrap_or_default)
                .join(":");
            manifest.needs(&name, parts.next(), false);
        } else if let Some(module) = word("module") {
            manifest.needs(module, version(value).as_deref(), false);
        } else if let (Some(group), Some(name)) = (word("group"), word("name")) {
            manifest.needs(&format!("{group}:{name}"), version(value).as_deref(), false);
        }
    }
    for (_, value) in table("plugins").into_iter().flatten() {
        if let Some(id) = value.get("id").and_then(Value::as_str) {
            manifest.needs(&format!("plugin:{id}"), version(value).as_deref(), false);
        } else if let Some((id, version)) = value.as_str().and_then(|text| text.split_once(':')) {
            manifest.needs(&format!("plugin:{id}"), Some(version), false);
        }
    }
    Ok(manifest)
}

/// A script without its comments; what is in quotes stays.
pub(super) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut quote = None;
    while let Some(letter) = rest.next() {
        match (quote, letter, rest.peek()) {
            (None, '/', Some('/')) => while rest.next_if(|next| *next != '\n').is_some() {},
            (None, '/', Some('*')) => {
                rest.next();
                let mut before = ' ';
                for inner in rest.by_ref() {
                    if inner == '\n' {
                        plain.push('\n');
                    }
                    if (before, inner) == ('*', '/') {
                        break;
                    }
                    before = inner;
                }
            }
            (None, '"' | '\'', _) => {
                quote = Some(letter);
                plain.push(letter);
            }
            // A quote that is not closed ends with its line.
            (Some(open), _, _) if letter == open || letter == '\n' => {
                quote = None;
                plain.push(letter);
            }
            _ => plain.push(letter),
        }
    }
    plain
}
