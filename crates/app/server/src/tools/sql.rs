//! Settings of the database of `write_sql`.

use serde::Deserialize;

use secret::SecretRef;

/// A database.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SqlConfig {
    /// `sqlite:PATH`, `postgres://…` or `mysql://…`. None: a sample database.
    pub url: Option<SecretRef>,
    /// Only queries are run.
    pub read_only: bool,
    /// Rows that a result may have.
    pub max_rows: usize,
    /// KiB that a result may have.
    pub max_kib: usize,
    /// Seconds that a statement may take.
    pub timeout_seconds: u64,
    /// Skills that may use it in addition to the bundled one, by their ids.
    pub skills: Vec<String>,
    /// Functions that statements may call in addition to the built-in list.
    pub functions: Vec<String>,
    /// A role that may do more than read and write tables is used all the same.
    pub allow_powerful_role: bool,
}

impl Default for SqlConfig {
    fn default() -> Self {
        Self {
            url: None,
            read_only: true,
            max_rows: 1000,
            max_kib: 256,
            timeout_seconds: 15,
            skills: Vec::new(),
            functions: Vec::new(),
            allow_powerful_role: false,
        }
    }
}
