//! Settings of the tools that skills unlock.

use std::sync::Arc;

use jiff::SignedDuration;
use serde::Deserialize;

use super::StartError;
use super::bundled::bundled_skills;
use super::secret::SecretRef;
use crate::tools::{Handler, Options};

/// Bounds of tools, and what they reach.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Hours after its last use that a session ends.
    pub session_hours: u32,
    /// Sessions at most; the one unused for longest makes room for another.
    pub sessions: usize,
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
            sessions: 100_000,
            calls_per_session: 16,
            result_kib: 1024,
            keep_calls: 100_000,
            sql: SqlConfig::default(),
            jira: JiraConfig::default(),
            workers: Vec::new(),
        }
    }
}

impl ToolsConfig {
    /// Bounds of sessions and tools.
    pub(super) fn options(&self) -> Options {
        Options {
            session_idle: SignedDuration::from_hours(self.session_hours.into()),
            sessions: self.sessions,
            calls_per_session: self.calls_per_session,
            result_bytes: self.result_kib.saturating_mul(1024),
            keep_calls: self.keep_calls,
            skills: bundled_skills()
                .into_iter()
                .filter_map(|bundle| bundle.id)
                .collect(),
        }
    }

    /// What makes tools run.
    pub(super) fn handlers(&self) -> Result<Vec<Arc<dyn Handler>>, StartError> {
        Ok(Vec::new())
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
