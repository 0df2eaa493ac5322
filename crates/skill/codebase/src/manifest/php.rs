//! `composer.json`.

use serde_json::Value;

use super::super::text::{self, Broken};
use super::{Manifest, Purpose};

/// `composer.json`.
pub(super) fn read(text: &str) -> Result<Manifest, Broken> {
    let value = text::json(text)?;
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    let mut manifest = Manifest {
        name: word("name").and_then(text::name),
        version: word("version").and_then(text::name),
        description: word("description").and_then(text::sentence),
        purpose: match word("type") {
            Some("project") => Some(Purpose::Application),
            Some("library" | "symfony-bundle" | "composer-plugin" | "wordpress-plugin") => {
                Some(Purpose::Library)
            }
            _ => None,
        },
        ..Manifest::default()
    };
    let mut version = None;
    for (key, development) in [("require", false), ("require-dev", true)] {
        for (name, found) in text::members(&value, key) {
            if name == "php" {
                version = found.as_str().map(str::to_owned);
            } else if name.contains('/') {
                manifest.needs(&name.to_lowercase(), found.as_str(), development);
            }
        }
    }
    manifest.platforms.push(("php", version));
    Ok(manifest)
}
