//! Files that pin the version of a language or a runtime.

use serde_json::Value;

use super::super::text::{self, Broken};
use super::Manifest;

fn pin(id: &'static str, version: Option<&str>) -> Manifest {
    let version = version.map(|version| version.trim().trim_start_matches('v').to_owned());
    Manifest {
        platforms: vec![(id, version.filter(|version| !version.is_empty()))],
        ..Manifest::default()
    }
}

fn first_line(text: &str) -> Option<&str> {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// `.nvmrc`, `.node-version`.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn node(text: &str) -> Result<Manifest, Broken> {
    Ok(pin("nodejs", first_line(text)))
}

/// `.python-version`.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn python(text: &str) -> Result<Manifest, Broken> {
    Ok(pin("python", first_line(text)))
}

/// `.ruby-version`.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn ruby(text: &str) -> Result<Manifest, Broken> {
    let line = first_line(text);
    Ok(pin(
        "ruby",
        line.map(|line| line.trim_start_matches("ruby-")),
    ))
}

/// `rust-toolchain` and `rust-toolchain.toml`.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn rust(text: &str) -> Result<Manifest, Broken> {
    let toml = text::toml(text).ok();
    let channel = toml
        .as_ref()
        .and_then(|toml| toml.get("toolchain")?.get("channel")?.as_str());
    Ok(pin(
        "rust",
        channel.or_else(|| first_line(text).filter(|line| !line.contains(['[', '=']))),
    ))
}

/// `global.json`.
pub(super) fn dotnet(text: &str) -> Result<Manifest, Broken> {
    let value = text::json(text)?;
    let version = value.get("sdk").and_then(|sdk| sdk.get("version"));
    Ok(pin("dotnet", version.and_then(Value::as_str)))
}

/// `.tool-versions` of asdf and mise.
#[expect(clippy::unnecessary_wraps, reason = "the form of all readers")]
pub(super) fn asdf(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let id = match words.next() {
            Some("nodejs" | "node") => "nodejs",
            Some("python") => "python",
            Some("ruby") => "ruby",
            Some("golang" | "go") => "go",
            Some("rust") => "rust",
            Some("elixir") => "elixir",
            Some("terraform") => "terraform",
            _ => continue,
        };
        let version = words.next().map(str::to_owned);
        manifest.platforms.push((id, version));
    }
    Ok(manifest)
}
