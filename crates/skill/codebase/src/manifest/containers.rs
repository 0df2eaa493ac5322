//! The images of containers.

use super::super::text::{Broken, yaml_lines};
use super::Manifest;

/// A Dockerfile: the images that its stages begin with.
pub(super) fn dockerfile(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let begins = words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("FROM"));
        // `FROM --platform=linux/amd64 image`. A stage by its name is no image of the table, so it
        // shows nothing.
        let image = words.find(|word| !word.starts_with("--"));
        if let Some(image) = image.filter(|_| begins) {
            add(&mut manifest, image);
        }
    }
    Ok(manifest)
}

/// A compose file: the images of its services.
pub(super) fn compose(text: &str) -> Result<Manifest, Broken> {
    let mut manifest = Manifest::default();
    for line in yaml_lines(text).filter(|line| line.key == "image") {
        add(&mut manifest, line.value);
    }
    Ok(manifest)
}

/// Splits `registry/name:tag@digest`. A tag with letters behind its number
/// (`16-alpine`) counts up to them.
fn add(manifest: &mut Manifest, image: &str) {
    let image = image.split('@').next().unwrap_or_default();
    let (name, tag) = match image.rsplit_once(':') {
        // `localhost:5000/app`: a colon before a slash belongs to the port.
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, ""),
    };
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    let name = name.strip_prefix("library/").unwrap_or(name);
    let tag = tag
        .trim_start_matches('v')
        .split('-')
        .next()
        .unwrap_or_default();
    let number = !tag.is_empty() && tag.chars().all(|c| c.is_ascii_digit() || c == '.');
    // A variable: which image it is, only a build knows.
    if !name.contains('$') {
        manifest.needs(name, number.then_some(tag), false);
    }
}
