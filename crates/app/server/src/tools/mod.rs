//! Settings of the tools that skills unlock.

#[cfg(feature = "databases")]
mod databases;
mod jira;
#[cfg(feature = "jira")]
mod jira_site;
mod sql;
#[cfg(not(all(feature = "databases", feature = "jira")))]
mod without;
mod workers;

use std::sync::Arc;

use jiff::SignedDuration;
use serde::Deserialize;

pub use jira::JiraConfig;
pub use sql::SqlConfig;
pub use workers::WorkerConfig;

use super::SettingError;
use super::bundled::bundled_skills;
use ::tools::ToolsOptions;
use handler::Handler;

/// The ids of skills in a setting.
#[cfg(any(feature = "databases", feature = "jira"))]
fn ids(key: &str, ids: &[String]) -> Result<Vec<model::SkillId>, SettingError> {
    let id = |text: &String| {
        text.parse().map_err(|_| {
            let message = format!("`{text}` is not the id of a skill, such as local/user/triage");
            SettingError::new(key, message)
        })
    };
    ids.iter().map(id).collect()
}

/// Bounds of tools, and what they reach.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Hours after its last use that a session ends.
    pub session_hours: u32,
    /// Sessions at most; the one unused for longest makes room for another. Shared: see
    /// `limits.share_percent`.
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
    /// Bounds of sessions and tools. One caller has a share of the sessions, in percent.
    pub(super) fn options(&self, share_percent: u8) -> ToolsOptions {
        ToolsOptions {
            session_idle: SignedDuration::from_hours(self.session_hours.into()),
            sessions: self.sessions,
            share_percent,
            calls_per_session: self.calls_per_session,
            result_bytes: self.result_kib.saturating_mul(1024),
            keep_calls: self.keep_calls,
            skills: bundled_skills()
                .into_iter()
                .filter_map(|bundle| bundle.id)
                .collect(),
        }
    }

    /// Returns the handlers that run the bundled tools.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub(super) fn handlers(&self) -> Result<Vec<Arc<dyn Handler>>, SettingError> {
        Ok(vec![self.sql.handler()?, self.jira.handler()?])
    }

    /// Returns the errors of all these settings, where `handlers` ends at the first.
    pub(super) fn mistakes(&self) -> impl Iterator<Item = SettingError> {
        [
            self.sql.handler().err(),
            self.jira.handler().err(),
            self.host().err(),
        ]
        .into_iter()
        .flatten()
    }
}
