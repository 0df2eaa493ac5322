//! Settings of the tools that skills unlock.

use std::time::Duration;

use serde::Deserialize;

use super::secret::{SecretError, SecretRef};
use crate::model::{SkillId, SkillIdError};
use crate::tools::SqlSettings;

/// Bounds of tools, and what they reach.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Hours after its last use that a session ends.
    pub session_hours: u64,
    /// Calls of tools of one session in work at once; more are refused.
    pub calls_per_session: usize,
    /// KiB that the result of a tool may have.
    pub result_kib: usize,
    /// Calls over which the list of calls reaches back.
    pub keep_calls: u64,
    /// The database of `write_sql`.
    pub sql: SqlConfig,
    /// The Jira of `jira`.
    pub jira: JiraConfig,
    /// Workers that may dial in.
    pub workers: Vec<WorkerConfig>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            session_hours: 24,
            calls_per_session: 16,
            result_kib: 1024,
            keep_calls: 100_000,
            sql: SqlConfig::default(),
            jira: JiraConfig::default(),
            workers: Vec::new(),
        }
    }
}

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
        }
    }
}

/// A setting of the tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// A secret cannot be had.
    #[error("`{key}`: {cause}")]
    Secret {
        /// The setting.
        key: &'static str,
        /// Why.
        cause: SecretError,
    },
    /// It is no id of a skill.
    #[error("`{key}`: '{text}': {cause}")]
    Skill {
        /// The setting.
        key: &'static str,
        /// What stands there.
        text: String,
        /// Why.
        cause: SkillIdError,
    },
}

impl SqlConfig {
    /// What is run with, its secret looked up.
    ///
    /// # Errors
    /// The address cannot be had, or an id is none.
    pub fn resolve(&self) -> Result<SqlSettings, ToolsError> {
        let url = self.url.as_ref().map(SecretRef::resolve).transpose();
        let skills = self.skills.iter().map(|text| {
            text.parse::<SkillId>().map_err(|cause| ToolsError::Skill {
                key: "tools.sql.skills",
                text: text.clone(),
                cause,
            })
        });
        Ok(SqlSettings {
            url: url.map_err(|cause| ToolsError::Secret {
                key: "tools.sql.url",
                cause,
            })?,
            read_only: self.read_only,
            max_rows: self.max_rows,
            max_bytes: self.max_kib.saturating_mul(1024),
            timeout: Duration::from_secs(self.timeout_seconds),
            skills: skills.collect::<Result<_, _>>()?,
        })
    }
}

/// A Jira.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JiraConfig {
    /// Its address, such as `https://acme.atlassian.net`. None: none.
    pub url: Option<String>,
    /// Cloud: the account's email address. None: the token is one of Data Center.
    pub user: Option<String>,
    /// API token of Cloud, or personal access token of Data Center.
    pub token: Option<SecretRef>,
    /// Skills that may use it beside the bundled one, by their ids.
    pub skills: Vec<String>,
}

/// A worker, or several of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// What the log calls it.
    pub name: String,
    /// What it shows when it dials in.
    pub token: SecretRef,
    /// Skills that it may serve: ids, or `source/author/*`, or `source/*`.
    pub skills: Vec<String>,
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
            "`tools.sql.url`: the variable NO_SUCH_VARIABLE_HERE of the environment is not set"
        );
        let error = resolve("{skills: [write_sql]}").expect_err("no id");
        assert!(
            error.starts_with("`tools.sql.skills`: 'write_sql': "),
            "{error}"
        );
    }
}
