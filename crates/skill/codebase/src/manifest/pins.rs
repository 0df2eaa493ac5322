//! Files that pin the version of a language or a runtime.

use serde_json::Value;

use super::super::text::{self, Broken};
use super::Manifest;

fn pin(id: &'static str, version: Option<&str>) -> Manifest {
    let version = version.map(|version| version.trim().trim_start_matches('v').to_owned());
    Manifest::of(id, version.filter(|version| !version.is_empty()))
}

fn first_line(text: &str) -> Option<&str> {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// `.nvmrc`, `.node-version`, `.python-version`: one line with a version.
pub(super) fn line(text: &str, id: &'static str) -> Result<Manifest, Broken> {
    Ok(pin(id, first_line(text)))
}

/// `.ruby-version`.
pub(super) fn ruby(text: &str) -> Result<Manifest, Broken> {
    let line = first_line(text).map(|line| line.trim_start_matches("ruby-"));
    Ok(pin("ruby", line))
}

/// `rust-toolchain` and `rust-toolchain.toml`.
pub(super) fn rust(text: &str) -> Result<Manifest, Broken> {
    // Either form under either name: the one without an ending may hold TOML, too.
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
