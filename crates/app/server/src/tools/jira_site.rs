//! The tools of `jira` by their settings.

use std::sync::Arc;

use super::{JiraConfig, SettingError, ids};
use ::jira::{Config, Connection, Jira, Site};
use handler::Handler;

impl JiraConfig {
    /// Returns the handler that runs the tools.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub(super) fn handler(&self) -> Result<Arc<dyn Handler>, SettingError> {
        let jira = Jira::new(self.resolve()?);
        let jira = jira.map_err(|error| SettingError::new("tools.jira", error))?;
        Ok(Arc::new(jira))
    }

    /// Returns the settings of the handler. Secrets are read here, once.
    ///
    /// # Errors
    /// A setting that is wrong, missing or cannot be read, by its key.
    fn resolve(&self) -> Result<Config, SettingError> {
        let skills = ids("tools.jira.skills", &self.skills)?;
        let missing = |key: &str, other: &str| {
            let message = format!("it is missing, and tools.jira.{other} is set");
            Err(SettingError::new(format!("tools.jira.{key}"), message))
        };
        let connection = match (&self.url, &self.token) {
            (Some(url), Some(token)) => {
                let site = url.parse::<Site>();
                let site = site.map_err(|error| SettingError::new("tools.jira.url", error))?;
                let token = token.resolve();
                let token = token.map_err(|error| SettingError::new("tools.jira.token", error))?;
                Some(Connection::new(site, self.account()?, token))
            }
            (Some(_), None) => return missing("token", "url"),
            (None, Some(_)) => return missing("url", "token"),
            (None, None) if self.user.is_some() => return missing("url", "user"),
            (None, None) => None,
        };
        Ok(Config { connection, skills })
    }

    /// Returns the name of the account.
    fn account(&self) -> Result<Option<String>, SettingError> {
        match self.user.as_deref().map(str::trim) {
            None => Ok(None),
            // Basic authentication sends `user:token`: a colon would end the name early.
            Some(user) if user.is_empty() || user.contains(':') => Err(SettingError::new(
                "tools.jira.user",
                "it is not the email address of an account; leave it out for Data Center",
            )),
            Some(user) => Ok(Some(user.to_owned())),
        }
    }
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
