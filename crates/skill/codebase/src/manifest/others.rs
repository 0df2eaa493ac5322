//! Manifests of Dart, Elixir and Swift.

use super::super::text::{self, Broken, quoted, yaml_lines};
use super::{Manifest, Purpose};

/// `pubspec.yaml`.
pub(super) fn pubspec(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    let mut section = "";
    let mut level = 0;
    let mut version = None;
    for line in yaml_lines(text) {
        if line.indent == 0 {
            (section, level) = (line.key, 0);
            match line.key {
                "name" => manifest.name = text::name(line.value),
                "version" => manifest.version = text::name(line.value),
                "description" => manifest.description = text::sentence(line.value),
                "workspace" => manifest.workspace = true,
                _ => {}
            }
            continue;
        }
        // Names are at the first level of their section, whose indentation is up to the author;
        // below are their sources.
        if level == 0 {
            level = line.indent;
        }
        if line.indent != level || line.item {
            continue;
        }
        let requirement = Some(line.value).filter(|value| !value.is_empty());
        match section {
            "dependencies" => manifest.needs(line.key, requirement, false),
            "dev_dependencies" => manifest.needs(line.key, requirement, true),
            "environment" if line.key == "sdk" => version = requirement.map(str::to_owned),
            _ => {}
        }
    }
    if manifest.name.is_none() {
        return Err(Broken::whole("not a pubspec.yaml: it has no name"));
    }
    if manifest
        .dependencies
        .iter()
        .any(|found| found.name == "flutter")
    {
        manifest.purpose = Some(Purpose::Application);
    }
    manifest.platforms.push(("dart", version));
    Ok(manifest)
}

/// `mix.exs`.
pub(super) fn mix(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    let mut version = None;
    for line in text.lines().map(str::trim) {
        let words = quoted(line);
        let first = words.first().copied();
        if line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.trim_start_matches('[').strip_prefix("{:") {
            let name = rest.split(',').next().unwrap_or_default().trim();
            let development = line.contains("only:") && !line.contains(":prod");
            // The first text may also be a path or the address of a repository.
            let requirement = first.filter(|text| text.contains(|c: char| c.is_ascii_digit()));
            manifest.needs(name, requirement, development);
        } else if let Some(name) = line.strip_prefix("app: :") {
            manifest.name = text::name(name.trim_end_matches(','));
        } else if line.starts_with("version:") {
            manifest.version = first.and_then(text::name);
        } else if line.starts_with("description:") {
            manifest.description = first.and_then(text::sentence);
        } else if line.starts_with("elixir:") {
            version = first.map(str::to_owned);
        } else if line.starts_with("apps_path:") {
            manifest.workspace = true;
        } else if line.starts_with("mod: {") {
            manifest.purpose = Some(Purpose::Application);
        }
    }
    manifest.platforms.push(("elixir", version));
    Ok(manifest)
}

/// `Package.swift`.
pub(super) fn swift(text: &str) -> Result<Manifest, Broken> {
    let version = text
        .lines()
        .next()
        .and_then(|line| line.split_once("swift-tools-version:"));
    let version = version.map(|(_, version)| version.trim().to_owned());
    let mut manifest = Manifest::of("swift", version);
    let text = super::gradle::without_comments(text);
    for line in text.lines().map(str::trim) {
        let words = quoted(line);
        if line.starts_with("name:") && manifest.name.is_none() {
            manifest.name = words.first().and_then(|name| text::name(name));
        } else if let Some((_, rest)) = line.split_once(".package(") {
            let words = quoted(rest);
            // `path:` names a package of the same repository.
            let Some(url) = words.iter().find(|word| word.contains("://")) else {
                continue;
            };
            let last = url
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default();
            let name = last.strip_suffix(".git").unwrap_or(last).to_lowercase();
            let version = words
                .iter()
                .rfind(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            manifest.needs(&name, version.copied(), false);
        } else if line.starts_with(".executable") {
            manifest.purpose = Some(Purpose::Application);
        } else if line.starts_with(".library(") && manifest.purpose.is_none() {
            manifest.purpose = Some(Purpose::Library);
        }
    }
    Ok(manifest)
}
