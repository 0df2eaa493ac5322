//! A mistake in a value, in the words of its author.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::Mistake;

/// A mistake, first without a position and then at its key.
#[derive(Debug)]
pub(super) struct Error {
    at: Option<(String, usize)>,
    message: String,
}

impl Error {
    pub(super) fn new(message: String) -> Self {
        Self { at: None, message }
    }

    /// Another value is needed than the one that was found.
    pub(super) fn needs(needed: &str, found: &str) -> Self {
        Self::new(if found.is_empty() {
            format!("needs {needed}")
        } else {
            format!("needs {needed}, not {found}")
        })
    }

    /// The same at a key, unless its position is known.
    pub(super) fn at(mut self, key: &str, line: usize) -> Self {
        // The innermost position stays, as the levels around it add theirs on the way out.
        self.at.get_or_insert_with(|| (key.to_owned(), line));
        self
    }

    pub(super) fn mistake(self, line: usize) -> Mistake {
        let (key, line) = self.at.unwrap_or((String::new(), line));
        Mistake {
            line,
            key,
            message: self.message,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, needed: &dyn Expected) -> Self {
        Self::needs(&words(needed), kind(&found))
    }

    // The value is not repeated: it may be a secret that is under the wrong key.
    fn invalid_value(_: Unexpected<'_>, needed: &dyn Expected) -> Self {
        Self::needs(&words(needed), "")
    }

    fn invalid_length(_: usize, needed: &dyn Expected) -> Self {
        Self::needs(&words(needed), "")
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        let name: String = name.chars().take(60).collect();
        Self::new(format!("`{name}` is none of {}", known.join(", ")))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!(
            "there is no such key; here are {}",
            known.join(", ")
        ))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(format!("`{name}` is missing"))
    }
}

fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Str(_) | Unexpected::Char(_) => "a text",
        Unexpected::Unit | Unexpected::Option => "nothing",
        Unexpected::Seq => "a list",
        Unexpected::Map => "keys with values",
        _ => "",
    }
}

/// Translates the expectations of serde's own types, and of those that derive from it.
pub(super) fn words(needed: &dyn Expected) -> String {
    let needed = needed.to_string();
    match needed.as_str() {
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" => "a text".to_owned(),
        "path string" => "a path".to_owned(),
        "a sequence" => "a list, such as `[a, b]`".to_owned(),
        "a map" => "keys with values".to_owned(),
        struct_ if struct_.starts_with("struct ") => "keys with values".to_owned(),
        _ => needed,
    }
}
