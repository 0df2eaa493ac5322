//! Reports what looks like a secret that was put into a skill by mistake.
//!
//! It is reported with its line and never with its text. A skill is not refused
//! for it: names and forms are hints, and the server leaves nothing out of what it
//! is sent.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::findings::Findings;
use super::hidden;
use super::text::line_of;
use model::{Credential, FilePath, Problem, credentials, is_placeholder};

/// The most findings in one file: more of them say nothing new.
const MAX_IN_FILE: usize = 5;
/// The fewest characters of base64 of a private key.
const MIN_KEY: usize = 40;

/// Endings of `.env` files that hold examples.
const TEMPLATES: [&str; 6] = ["example", "sample", "template", "dist", "defaults", "md"];

/// Tells whether programs keep secrets in files of this name.
#[must_use]
pub fn is_secret_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_key = matches!(
        ending,
        "pem" | "p12" | "pfx" | "jks" | "keystore" | "kdbx" | "ppk"
    );
    let is_env = name == ".env" || (name.starts_with(".env.") && !TEMPLATES.contains(&ending));
    is_key
        || is_env
        || matches!(
            name.as_str(),
            "id_rsa"
                | "id_dsa"
                | "id_ecdsa"
                | "id_ed25519"
                | ".envrc"
                | ".netrc"
                | "_netrc"
                | ".pypirc"
                | ".pgpass"
                | ".my.cnf"
                | ".htpasswd"
                | ".git-credentials"
        )
}

/// Reports files and lines that look like secrets.
pub(super) fn check(files: &BTreeMap<FilePath, Bytes>, findings: &mut Findings) {
    for (path, content) in files {
        if is_secret_name(path.as_str()) {
            let message = "Programs keep secrets in files of this name; take it out, and change the secret \
                           if it was published";
            findings.push(Problem::warning("secret-file", path.as_str(), 0, message));
        }
        let Some(text) = hidden::text(content) else {
            continue;
        };
        let real = |found: &Credential| is_real(text, *found);
        for found in credentials(text).filter(real).take(MAX_IN_FILE) {
            let line = line_of(text.as_bytes(), found.at);
            let message = format!(
                "There is {} here; take it out, and change it if it was published",
                found.what
            );
            findings.push(Problem::warning(
                "secret-in-text",
                path.as_str(),
                line,
                message,
            ));
        }
    }
}

fn is_real(text: &str, found: Credential) -> bool {
    let credential = text.get(found.at..found.at + found.len).unwrap_or_default();
    match credential.split_once("PRIVATE KEY-----") {
        // `…` and `...` stand for the keys of examples.
        Some((_, key)) => {
            let runs =
                key.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '='));
            let longest = runs.max_by_key(|run| run.len()).unwrap_or_default();
            longest.len() >= MIN_KEY && !is_placeholder(longest)
        }
        None => !is_placeholder(credential),
    }
}
