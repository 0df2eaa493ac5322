//! Functions that a statement may call: lists by hand, one for each dialect, and what
//! the operator added.
//!
//! A list of what is allowed, since one of what is forbidden is never complete: a
//! server has thousands of functions, and extensions bring more. `allowed/*.txt` say
//! what was left out and why.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashSet;
use serde::Deserialize;

use super::dialect::Dialect;
use model::{listed, shown};

/// A function that the operator allows in addition to the listed ones: `name` or `schema.name`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FunctionName {
    schema: Option<String>,
    name: String,
}

/// It is not the name of a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a function, such as `similarity` or `app.net_price`")]
pub struct FunctionNameError(String);

impl FromStr for FunctionName {
    type Err = FunctionNameError;

    fn from_str(text: &str) -> Result<Self, FunctionNameError> {
        let plain = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
                && part.len() <= 63
        };
        let lower = text.to_ascii_lowercase();
        let (schema, name) = match lower.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, lower.as_str()),
        };
        if !plain(name) || schema.is_some_and(|schema| !plain(schema)) {
            return Err(FunctionNameError(shown(text, 80)));
        }
        Ok(Self {
            schema: schema.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

impl TryFrom<String> for FunctionName {
    type Error = FunctionNameError;

    fn try_from(text: String) -> Result<Self, FunctionNameError> {
        text.parse()
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The rule that allows a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// The list: a function of the server itself.
    Listed,
    /// The operator.
    ByOperator,
}

/// The functions that statements of one database may call.
#[derive(Debug, Clone)]
pub(super) struct Functions {
    listed: FxHashSet<&'static str>,
    by_operator: Vec<FunctionName>,
}

impl Functions {
    pub(super) fn new(dialect: Dialect, read_only: bool, by_operator: Vec<FunctionName>) -> Self {
        let (reading, writing) = match dialect {
            Dialect::Postgres => (
                include_str!("allowed/postgresql.txt"),
                include_str!("allowed/postgresql-writing.txt"),
            ),
            Dialect::MySql => (
                include_str!("allowed/mysql.txt"),
                include_str!("allowed/mysql-writing.txt"),
            ),
            Dialect::Sqlite => (include_str!("allowed/sqlite.txt"), ""),
        };
        let writing = if read_only { "" } else { writing };
        Self {
            listed: names(reading).chain(names(writing)).collect(),
            by_operator,
        }
    }

    /// Returns the rule that allows a call of a function by these names, which are in lower case.
    pub(super) fn allow(&self, schema: Option<&str>, name: &str) -> Option<Allowed> {
        // A name behind a schema may be anybody's function, so the list is of plain names,
        // which are sent with the schema of the server before them.
        if schema.is_none() && self.listed.contains(name) {
            return Some(Allowed::Listed);
        }
        self.by_operator
            .iter()
            .any(|own| own.name == name && own.schema.as_deref() == schema)
            .then_some(Allowed::ByOperator)
    }

    /// Up to three allowed names that are written much like this one.
    pub(super) fn near(&self, name: &str) -> Vec<&str> {
        let mut all: Vec<&str> = self.listed.iter().copied().collect();
        all.sort_unstable();
        similar::get_close_matches(name, &all, 3, 0.75)
    }
}

/// The names of a list; `@16` says that the names of its line came with version 16.
fn names(list: &'static str) -> impl Iterator<Item = &'static str> {
    listed(list).filter(|word| !word.starts_with('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_plain_names_once_each() {
        for list in [
            include_str!("allowed/postgresql.txt"),
            include_str!("allowed/mysql.txt"),
            include_str!("allowed/sqlite.txt"),
        ] {
            let mut seen = FxHashSet::default();
            for line in list.lines().filter(|line| line.starts_with('@')) {
                let version = line.split_whitespace().next().expect("a version");
                assert!(version[1..].parse::<u32>().is_ok(), "{line}");
            }
            for name in names(list) {
                assert!(
                    name.parse::<FunctionName>().is_ok() || name.starts_with('-'),
                    "{name}"
                );
                assert_eq!(name, name.to_lowercase());
                assert!(seen.insert(name), "{name} stands there twice");
            }
        }
    }

    #[test]
    fn the_operator_adds_names_with_and_without_a_schema() {
        let own = ["Similarity", "app.net_price"].map(|name| name.parse().expect(name));
        let functions = Functions::new(Dialect::Postgres, true, own.to_vec());
        let allow = |schema, name| functions.allow(schema, name);
        assert_eq!(allow(None, "lower"), Some(Allowed::Listed));
        assert_eq!(allow(None, "similarity"), Some(Allowed::ByOperator));
        assert_eq!(allow(Some("app"), "net_price"), Some(Allowed::ByOperator));
        for (schema, name) in [
            (None, "net_price"),
            (Some("app"), "similarity"),
            (Some("public"), "lower"),
            (None, "pg_sleep"),
            (None, "nextval"),
        ] {
            assert_eq!(allow(schema, name), None, "{schema:?}.{name}");
        }
        let writing = Functions::new(Dialect::Postgres, false, Vec::new());
        assert_eq!(writing.allow(None, "nextval"), Some(Allowed::Listed));
        assert_eq!(
            functions.near("regexp_match_all"),
            ["regexp_match", "regexp_matches"]
        );
    }

    #[test]
    fn what_is_no_name_of_a_function_is_refused() {
        for text in [
            "", "a b", "f()", "a.b.c", ".f", "a.", "1f", "f;", "\"f\"", "é",
        ] {
            let error = text.parse::<FunctionName>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("`{text}` is not the name of a function")));
        }
        assert!("f".repeat(64).parse::<FunctionName>().is_err());
    }
}
