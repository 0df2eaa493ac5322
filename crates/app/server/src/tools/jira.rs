//! Settings of the Jira of `jira`.

use serde::Deserialize;

use secret::SecretRef;

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
    /// Skills that may use it in addition to the bundled one, by their ids.
    pub skills: Vec<String>,
}
