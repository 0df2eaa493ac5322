//! `Gemfile` and gemspecs, read for the lines that name a gem.

use super::super::text::{self, Broken, quoted};
use super::{Manifest, Purpose};

/// `Gemfile`. Gems in a group for developing or testing are for developing.
pub(super) fn gemfile(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    let mut version = None;
    // For each open block, whether it is a group for developing.
    let mut blocks: Vec<bool> = Vec::new();
    let mut groups = 0_usize;
    for line in text.lines() {
        let line = code(line);
        if let Some(rest) = call(line, "gem") {
            let words = quoted(rest);
            let (Some(name), next) = (words.first(), words.get(1)) else {
                continue;
            };
            let requirement = next.filter(|text| {
                text.starts_with(|c: char| c.is_ascii_digit() || "~><=!".contains(c))
            });
            let development = groups > 0 || developing(rest);
            manifest.needs(name, requirement.copied(), development);
        } else if let Some(rest) = call(line, "ruby") {
            version = quoted(rest).first().map(|text| (*text).to_owned());
        }
        if line == "end" {
            groups -= usize::from(blocks.pop() == Some(true));
        // Each of these has an `end`. A modifier as in `gem "x" if y` has none, and does not begin
        // its line.
        } else if line.ends_with(" do") || line.starts_with("if ") || line.starts_with("unless ") {
            let group = call(line, "group").is_some_and(developing);
            groups += usize::from(group);
            blocks.push(group);
        }
    }
    manifest.platforms.push(("ruby", version));
    Ok(manifest)
}

fn developing(line: &str) -> bool {
    line.contains(":development") || line.contains(":test")
}

/// A gemspec.
pub(super) fn gemspec(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest {
        purpose: Some(Purpose::Library),
        platforms: vec![("ruby", None)],
        ..Manifest::default()
    };
    for line in text.lines().map(code) {
        // `spec.name = "demo"`, `spec.add_dependency "rack", "~> 3.0"`.
        let Some((_, rest)) = line.split_once('.') else {
            continue;
        };
        let words = quoted(rest);
        let first = words.first().copied();
        let key: &str = rest.split([' ', '=', '(']).next().unwrap_or_default();
        match key {
            "name" => manifest.name = manifest.name.or(first.and_then(text::name)),
            "version" => manifest.version = first.and_then(text::name),
            "summary" => manifest.description = first.and_then(text::sentence),
            "add_dependency" | "add_runtime_dependency" | "add_development_dependency" => {
                let development = key == "add_development_dependency";
                manifest.needs(
                    first.unwrap_or_default(),
                    words.get(1).copied(),
                    development,
                );
            }
            _ => {}
        }
    }
    Ok(manifest)
}

/// Returns a line; an empty one where it is a comment.
fn code(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with('#') { "" } else { line }
}

/// Returns what follows the name of a method that a line calls.
fn call<'a>(line: &'a str, method: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(method)?;
    rest.starts_with([' ', '(']).then_some(rest)
}
