//! The tools of `write_sql` by their settings.

use std::sync::Arc;
use std::time::Duration;

use super::{SettingError, SqlConfig, ids};
use ::sql::{Config, FunctionName, FunctionNameError, Sql};
use handler::Handler;
use secret::SecretRef;

impl SqlConfig {
    /// Returns the handler that runs the tools.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub(super) fn handler(&self) -> Result<Arc<dyn Handler>, SettingError> {
        let sql = Sql::open(self.resolve()?);
        let sql = sql.map_err(|error| SettingError::new("tools.sql", error))?;
        Ok(Arc::new(sql))
    }

    /// Returns the settings of the handler, with the secret read.
    ///
    /// # Errors
    /// The address cannot be had, an id is none, or the name of a function.
    fn resolve(&self) -> Result<Config, SettingError> {
        let url = self.url.as_ref().map(SecretRef::resolve).transpose();
        let function = |(at, name): (usize, &String)| {
            name.parse().map_err(|error: FunctionNameError| {
                SettingError::new(format!("tools.sql.functions[{at}]"), error)
            })
        };
        let functions = self.functions.iter().enumerate().map(function);
        Ok(Config {
            url: url.map_err(|error| SettingError::new("tools.sql.url", error))?,
            read_only: self.read_only,
            max_rows: self.max_rows,
            max_bytes: self.max_kib.saturating_mul(1024),
            timeout: Duration::from_secs(self.timeout_seconds),
            skills: ids("tools.sql.skills", &self.skills)?,
            functions: functions.collect::<Result<Vec<FunctionName>, _>>()?,
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
