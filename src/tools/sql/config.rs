//! What the operator decides.

use std::str::FromStr as _;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use super::engine::Engine;
use super::mysql::MySqlEngine;
use super::postgres::PostgresEngine;
use super::sqlite::SqliteEngine;
use crate::model::SkillId;

/// The skill that is always served.
const BUNDLED: (&str, &str, &str) = (SkillId::BUILTIN, "repertoire", "write_sql");

/// A database, and what a call may cost it.
#[derive(Debug, Clone)]
pub struct Config {
    /// `sqlite:PATH`, `postgres://…` or `mysql://…`. None: a sample database.
    pub url: Option<SecretString>,
    /// Only queries are run. The sample is read-only anyway.
    pub read_only: bool,
    /// Rows that a result may have.
    pub max_rows: usize,
    /// Bytes that a result may have.
    pub max_bytes: usize,
    /// How long a statement may take.
    pub timeout: Duration,
    /// Skills that may use it beside the bundled one.
    pub skills: Vec<SkillId>,
}

/// The settings are wrong. Never holds the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No such database is supported.
    #[error("`tools.sql.url` begins with none of `sqlite:`, `postgres://` and `mysql://`")]
    Scheme,
    /// The address cannot be read.
    #[error(
        "`tools.sql.url` cannot be read as an address of {0}; special letters of a password are written as %XX"
    )]
    Address(&'static str),
    /// It names no database.
    #[error(
        "`tools.sql.url` names no database: put its name behind the host, as in `mysql://host/name`"
    )]
    Database,
    /// Nothing would ever be answered.
    #[error("`tools.sql.{0}` must be greater than 0")]
    Zero(&'static str),
}

impl Config {
    pub(super) fn skills(self) -> Vec<SkillId> {
        let (source, author, slug) = BUNDLED;
        let mut skills: Vec<SkillId> = SkillId::new(source, author, slug).into_iter().collect();
        for skill in self.skills {
            if skills.iter().all(|known| known.key() != skill.key()) {
                skills.push(skill);
            }
        }
        skills
    }

    pub(super) fn engine(&self) -> Result<Engine, ConfigError> {
        for (name, zero) in [
            ("max_rows", self.max_rows == 0),
            ("max_kib", self.max_bytes == 0),
            ("timeout_seconds", self.timeout.is_zero()),
        ] {
            if zero {
                return Err(ConfigError::Zero(name));
            }
        }
        let Some(url) = &self.url else {
            return Ok(Engine::Sqlite(SqliteEngine::sample()));
        };
        let url = url.expose_secret();
        let scheme = url.split(':').next().unwrap_or_default();
        match scheme {
            "sqlite" => {
                let options = SqliteConnectOptions::from_str(url)
                    .map_err(|_| ConfigError::Address("SQLite"))?;
                Ok(Engine::Sqlite(SqliteEngine::file(options, self.read_only)))
            }
            "postgres" | "postgresql" => {
                let options = PgConnectOptions::from_str(url)
                    .map_err(|_| ConfigError::Address("PostgreSQL"))?;
                Ok(Engine::Postgres(PostgresEngine::new(options)))
            }
            "mysql" | "mariadb" => {
                // The driver knows one of the two names.
                let rest = url.get(scheme.len()..).unwrap_or_default();
                let options = MySqlConnectOptions::from_str(&format!("mysql{rest}"))
                    .map_err(|_| ConfigError::Address("MySQL"))?;
                if options.get_database().is_none() {
                    return Err(ConfigError::Database);
                }
                Ok(Engine::MySql(MySqlEngine::new(options)))
            }
            _ => Err(ConfigError::Scheme),
        }
    }
}
