//! Gradle: scripts, read line by line for plugins and coordinates in quotes, and the
//! names in the version catalogue. What a script computes or looks up is not seen.

use toml::Value;

use super::super::report::PackageManager;
use super::super::text::{self, Broken, quoted};
use super::{Manifest, Purpose};

/// Plugins that make an application, and those that make a library.
const APPLICATIONS: &[&str] = &[
    "application",
    "war",
    "org.springframework.boot",
    "com.android.application",
];
const LIBRARIES: &[&str] = &["java-library", "com.android.library", "maven-publish"];
/// Parts of configurations for developing: `testImplementation`, `classpath`.
const DEVELOPING: &[&str] = &["test", "debug", "classpath"];

/// `build.gradle` and `build.gradle.kts`.
pub(super) fn build(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::managed_by(PackageManager::Gradle);
    let mut kotlin = false;
    let mut java = None;
    for line in without_comments(text).lines() {
        let words = quoted(line);
        if let Some(plugin) = plugin(line.trim(), &words) {
            let version = words.get(1).copied();
            kotlin |= plugin.contains("kotlin");
            if APPLICATIONS.contains(&plugin.as_str()) {
                manifest.purpose = Some(Purpose::Application);
            } else if LIBRARIES.contains(&plugin.as_str()) && manifest.purpose.is_none() {
                manifest.purpose = Some(Purpose::Library);
            }
            manifest.needs(&format!("plugin:{plugin}"), version, false);
        } else if line.starts_with("version") {
            // At the edge of the line: an indented `version` belongs to a plugin or another block.
            manifest.version = words.first().and_then(|text| text::name(text));
        } else if line.starts_with("description") {
            manifest.description = words.first().and_then(|text| text::sentence(text));
        } else if let Some((_, rest)) = line.split_once("JavaLanguageVersion.of(") {
            java = rest
                .split(')')
                .next()
                .map(|version| version.trim().to_owned());
        } else if let Some((_, version)) = line.split_once("JavaVersion.VERSION_") {
            java = Some(version.trim().replace('_', "."));
        } else {
            dependency(line, &words, &mut manifest);
        }
    }
    let language = if kotlin {
        ("kotlin", None)
    } else {
        ("java", java)
    };
    manifest.platforms.push(language);
    Ok(manifest)
}

/// The id of the plugin that a line applies.
fn plugin(line: &str, words: &[&str]) -> Option<String> {
    let first = *words.first()?;
    let by_id = ["apply plugin", "id(", "id "];
    if by_id.iter().any(|begin| line.starts_with(begin)) {
        return Some(first.to_owned());
    }
    // `kotlin("jvm")` is `org.jetbrains.kotlin.jvm`.
    line.starts_with("kotlin(")
        .then(|| format!("org.jetbrains.kotlin.{first}"))
}

/// A line with a dependency: `implementation("group:artifact:version")`, with or without
/// brackets, or with `group:` and `name:`.
fn dependency(line: &str, words: &[&str], manifest: &mut Manifest) {
    let Some(first) = words.first() else {
        return;
    };
    let before = line.split(['"', '\'']).next().unwrap_or_default();
    let configuration = before.to_lowercase();
    let development = DEVELOPING.iter().any(|part| configuration.contains(part));
    let parts: Vec<&str> = match words {
        _ if first.contains(':') => first.split(':').collect(),
        [group, artifact, rest @ ..] if before.contains("group:") && line.contains("name:") => {
            [group, artifact].into_iter().chain(rest).copied().collect()
        }
        _ if before.contains("kotlin(") => {
            let name = format!("org.jetbrains.kotlin:kotlin-{first}");
            return manifest.needs(&name, None, development);
        }
        _ => return,
    };
    if let [group, artifact, rest @ ..] = parts.as_slice()
        && !group.is_empty()
        && !artifact.is_empty()
    {
        // `1.0@aar`: the type of the artifact.
        let version = rest.first().and_then(|version| version.split('@').next());
        manifest.needs(&format!("{group}:{artifact}"), version, development);
    }
}

/// `settings.gradle` and `settings.gradle.kts`: the name of the whole and its parts.
pub(super) fn settings(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::managed_by(PackageManager::Gradle);
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

/// `libs.versions.toml`: dependencies that scripts name by an alias. All count as used; versions
/// by reference are not resolved.
pub(super) fn catalogue(text: &str) -> Result<Manifest, Broken> {
    let toml = text::toml(text)?;
    let mut manifest = Manifest::managed_by(PackageManager::Gradle);
    for (section, prefix) in [("libraries", ""), ("plugins", "plugin:")] {
        for (_, value) in text::entries(&toml, section) {
            let word = |key: &str| value.get(key).and_then(Value::as_str);
            let whole = value.as_str().or(word("module")).or(word("id"));
            let name = match (whole, word("group"), word("name")) {
                (Some(whole), ..) => whole.to_owned(),
                (None, Some(group), Some(name)) => format!("{group}:{name}"),
                _ => continue,
            };
            // `group:name:version` in one text.
            let (name, version) = match name.rsplit_once(':') {
                Some((name, version)) if value.is_str() => (name, Some(version)),
                _ => (name.as_str(), word("version")),
            };
            manifest.needs(&format!("{prefix}{name}"), version, false);
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
                text::skip_block_comment(&mut rest, &mut plain);
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
