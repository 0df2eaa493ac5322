//! Reads a path from its files.
//!
//! Every rule has a name, and a problem names the file and the line that breaks it. Sizes
//! are checked first. What is refused is an error; what may be meant is a warning.

mod achievements;
mod cases;
mod exercise;
mod files;
mod keys;
mod path;
mod skills;
#[cfg(test)]
pub(crate) mod tests;
mod validation;

use regex::{Regex, RegexBuilder};

use crate::limits;
use crate::render::counted;

pub use path::read;

/// Characters of an id.
const MAX_ID_CHARS: usize = 64;

/// Why a text is no id.
fn check_id(id: &str) -> Result<(), String> {
    let chars = id.chars().count();
    if !(3..=MAX_ID_CHARS).contains(&chars) {
        let has = counted(chars, "character");
        return Err(format!("it has {has}, not 3 to {MAX_ID_CHARS}"));
    }
    let is_taken = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if let Some(bad) = id.chars().find(|c| !is_taken(*c)) {
        return Err(format!("it has {bad:?}; a to z, 0 to 9 and - are taken"));
    }
    if id.starts_with('-') || id.ends_with('-') {
        return Err("it begins or ends with -".to_owned());
    }
    Ok(())
}

/// Builds a pattern.
fn pattern(text: &str) -> Result<Regex, String> {
    let chars = text.chars().count();
    if chars > limits::MAX_PATTERN_CHARS {
        return Err(format!(
            "it has {chars} characters; at most {} are taken",
            limits::MAX_PATTERN_CHARS
        ));
    }
    // The time of a search is linear in any case. These bound what building one may take: `\w{999}`
    // is short and becomes megabytes, and nested groups take stack.
    RegexBuilder::new(text)
        .size_limit(limits::MAX_PATTERN_BYTES)
        .dfa_size_limit(limits::MAX_PATTERN_BYTES)
        .nest_limit(50)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it takes too much memory".to_owned(),
            // The message of the crate has several lines, of which the last says what is wrong.
            error => {
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        })
}
