//! A path from its files.
//!
//! Every rule has a name and says in which file and on which line it is broken. Sizes are
//! looked at first. What is refused is an error; what may be meant is a warning.

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
const MAX_ID: usize = 64;

/// Why a text is no id.
fn check_id(id: &str) -> Result<(), String> {
    let chars = id.chars().count();
    if !(3..=MAX_ID).contains(&chars) {
        let has = counted(chars, "character");
        return Err(format!("it has {has}, not 3 to {MAX_ID}"));
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

/// A pattern that costs no more than the text it is looked for in.
fn pattern(text: &str) -> Result<Regex, String> {
    let chars = text.chars().count();
    if chars > limits::MAX_PATTERN_CHARS {
        return Err(format!(
            "it has {chars} characters; at most {} are taken",
            limits::MAX_PATTERN_CHARS
        ));
    }
    RegexBuilder::new(text)
        .size_limit(limits::PATTERN_BYTES)
        .dfa_size_limit(limits::PATTERN_BYTES)
        .nest_limit(50)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it takes too much memory".to_owned(),
            // The last line of the message says what is wrong; those before show where.
            error => {
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        })
}
