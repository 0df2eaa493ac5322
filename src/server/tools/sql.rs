//! Settings of the database of `write_sql`.

use std::time::Duration;

use serde::Deserialize;

use super::super::secret::SecretRef;
use super::{ToolsError, ids};

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
    /// Skills that may use it beside the bundled one, by their ids.
    pub skills: Vec<String>,
    /// Functions that statements may call beside the listed ones.
    pub functions: Vec<sql::FunctionName>,
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

impl SqlConfig {
    /// What is run with, its secret looked up.
    ///
    /// # Errors
    /// The address cannot be had, or an id is none.
    pub fn resolve(&self) -> Result<sql::Config, ToolsError> {
        let url = self.url.as_ref().map(SecretRef::resolve).transpose();
        Ok(sql::Config {
            url: url.map_err(|error| ToolsError::new("tools.sql.url", error))?,
            read_only: self.read_only,
            max_rows: self.max_rows,
            max_bytes: self.max_kib.saturating_mul(1024),
            timeout: Duration::from_secs(self.timeout_seconds),
            skills: ids("tools.sql.skills", &self.skills)?,
            functions: self.functions.clone(),
            allow_powerful_role: self.allow_powerful_role,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_database_are_resolved_or_refused_by_their_keys() {
        let resolve = |yaml: &str| {
            let config: SqlConfig = serde_yaml::from_str(yaml).expect("settings");
            config.resolve().map_err(|error| error.to_string())
        };
        let settings = resolve("{url: 'sqlite:a.db', skills: [a/b/c]}").expect("settings");
        assert!(settings.url.is_some() && settings.read_only);
        assert_eq!((settings.max_rows, settings.max_bytes), (1000, 256 * 1024));
        assert_eq!(settings.timeout, Duration::from_secs(15));
        assert_eq!(settings.skills.len(), 1);
        assert_eq!(
            resolve("{url: {env: NO_SUCH_VARIABLE_HERE}}").expect_err("no secret"),
            "tools.sql.url: the variable NO_SUCH_VARIABLE_HERE of the environment is not set"
        );
        let error = resolve("{skills: [write_sql]}").expect_err("no id");
        assert!(
            error.starts_with("tools.sql.skills: `write_sql` is not"),
            "{error}"
        );
    }
}
