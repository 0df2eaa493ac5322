//! Settings of the tools that skills unlock.

use serde::Deserialize;

use super::secret::{SecretError, SecretRef};
use crate::model::SkillId;
use crate::tools::jira;

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

impl JiraConfig {
    /// What the tools need. Secrets are read here, once.
    ///
    /// # Errors
    /// A setting that is wrong, missing or cannot be read, by its key.
    pub fn resolve(&self) -> Result<jira::Config, JiraConfigError> {
        let skills = self
            .skills
            .iter()
            .map(|id| id.parse().map_err(|_| JiraConfigError::Skill(id.clone())))
            .collect::<Result<Vec<SkillId>, _>>()?;
        let connection = match (&self.url, &self.token) {
            (Some(url), Some(token)) => {
                let site = url.parse().map_err(JiraConfigError::Url)?;
                let token = token.resolve().map_err(JiraConfigError::Token)?;
                Some(jira::Connection::new(site, self.account()?, token))
            }
            (Some(_), None) => return Err(JiraConfigError::Missing("token", "url")),
            (None, Some(_)) => return Err(JiraConfigError::Missing("url", "token")),
            (None, None) if self.user.is_some() => {
                return Err(JiraConfigError::Missing("url", "user"));
            }
            (None, None) => None,
        };
        Ok(jira::Config { connection, skills })
    }

    /// A colon would end the name where it is sent.
    fn account(&self) -> Result<Option<String>, JiraConfigError> {
        match self.user.as_deref().map(str::trim) {
            None => Ok(None),
            Some(user) if user.is_empty() || user.contains(':') => Err(JiraConfigError::User),
            Some(user) => Ok(Some(user.to_owned())),
        }
    }
}

/// A setting of Jira is wrong. Never holds the token.
#[derive(Debug, thiserror::Error)]
pub enum JiraConfigError {
    /// It is no address that may be called.
    #[error("tools.jira.url: {0}")]
    Url(jira::SiteError),
    /// The token cannot be had.
    #[error("tools.jira.token: {0}")]
    Token(SecretError),
    /// It is no email address.
    #[error(
        "tools.jira.user: it is not the email address of an account; leave it out for Data Center"
    )]
    User,
    /// One setting needs another.
    #[error("tools.jira.{0}: it is missing, and tools.jira.{1} is set")]
    Missing(&'static str, &'static str),
    /// It is no id.
    #[error("tools.jira.skills: `{0}` is not the id of a skill, such as local/user/triage")]
    Skill(String),
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

    fn resolve(yaml: &str) -> Result<String, String> {
        let config: JiraConfig = serde_yaml::from_str(yaml).expect("settings");
        let resolved = config.resolve().map_err(|error| error.to_string())?;
        let connection = resolved.connection.map(|to| (to.site.to_string(), to.user));
        Ok(format!("{connection:?} {:?}", resolved.skills.len()))
    }

    #[test]
    fn a_jira_is_none_or_a_url_with_a_token_and_perhaps_a_user() {
        for (yaml, expected) in [
            ("{}", "None 0"),
            ("skills: [local/user/triage]", "None 1"),
            (
                "{url: 'https://acme.atlassian.net', user: me@acme.example, token: s3cret-token}",
                "Some((\"https://acme.atlassian.net\", Some(\"me@acme.example\"))) 0",
            ),
            (
                "{url: 'https://jira.acme.example/jira/', token: s3cret-token}",
                "Some((\"https://jira.acme.example/jira\", None)) 0",
            ),
        ] {
            assert_eq!(resolve(yaml).as_deref(), Ok(expected), "{yaml}");
        }
    }

    #[test]
    fn a_wrong_setting_of_jira_is_told_by_its_key_and_without_the_token() {
        for (yaml, key) in [
            (
                "{url: 'http://acme.example', token: s3cret-token}",
                "tools.jira.url: http would",
            ),
            (
                "{url: 'https://a:s3cret-token@acme.example', token: s3cret-token}",
                "tools.jira.url: it has a user",
            ),
            (
                "{url: 'https://acme.example'}",
                "tools.jira.token: it is missing",
            ),
            ("{token: s3cret-token}", "tools.jira.url: it is missing"),
            ("{user: me@acme.example}", "tools.jira.url: it is missing"),
            (
                "{url: 'https://acme.example', token: {env: NO_SUCH_VARIABLE_HERE}}",
                "tools.jira.token: the variable",
            ),
            (
                "{url: 'https://acme.example', user: ' ', token: s3cret-token}",
                "tools.jira.user: it is not",
            ),
            ("{skills: [triage]}", "tools.jira.skills: `triage` is not"),
        ] {
            let error = resolve(yaml).expect_err(yaml);
            assert!(error.starts_with(key), "{error}");
            assert!(!error.contains("s3cret-token"), "{error}");
        }
    }
}
