//! `go.mod` and `go.work`.

use super::super::text::{self, Broken};
use super::Manifest;

/// `go.mod`. What is only needed by something else (`// indirect`) is left out.
pub(super) fn module(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    let mut version = None;
    let mut block: Option<&str> = None;
    for line in text.lines() {
        let indirect = line.contains("// indirect");
        let line = line.split("//").next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        match (block, words.next()) {
            (Some(_), Some(")")) => block = None,
            (Some("require"), Some(module)) if !indirect => {
                manifest.needs(&module.to_lowercase(), words.next(), false);
            }
            (Some(_), _) | (_, None) => {}
            (None, Some(word)) => match (word, words.next()) {
                (_, Some("(")) => block = Some(word),
                ("module", Some(path)) => manifest.name = text::name(path.trim_matches('"')),
                ("go", found) => version = found.map(str::to_owned),
                ("require", Some(module)) if !indirect => {
                    manifest.needs(&module.to_lowercase(), words.next(), false);
                }
                _ => {}
            },
        }
    }
    // Every module has a name. Without one it is another file that is called `go.mod`.
    if manifest.name.is_none() {
        return Err(Broken::whole("not a go.mod: no line names the module"));
    }
    manifest.platforms.push(("go", version));
    Ok(manifest)
}

/// `go.work`: several modules.
pub(super) fn workspace(text: &str) -> Result<Manifest, Broken> {
    let mut lines = text.lines().map(str::trim);
    let version = lines.clone().find_map(|line| line.strip_prefix("go "));
    Ok(Manifest {
        workspace: lines.any(|line| line.starts_with("use")),
        platforms: vec![("go", version.map(|version| version.trim().to_owned()))],
        ..Manifest::default()
    })
}
