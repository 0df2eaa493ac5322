//! The operator's settings.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;

use super::dialect::Dialect;
use super::engine::Engine;
use super::functions::{FunctionName, Functions};
use super::mysql::MySqlServer;
use super::postgres::PostgresServer;
use super::session::ServerEngine;
use super::sqlite::{Source, SqliteEngine};
use model::SkillId;

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
    /// Skills that may use it in addition to the bundled one.
    pub skills: Vec<SkillId>,
    /// Functions that statements may call in addition to the listed ones.
    pub functions: Vec<FunctionName>,
    /// A role that may do more than read and write tables is used all the same.
    pub allow_powerful_role: bool,
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

    /// Only queries are run. The sample is never written.
    pub(super) fn reads_only(&self) -> bool {
        self.read_only || self.url.is_none()
    }

    /// The database, and the functions that its statements may call.
    pub(super) fn engine(&self) -> Result<(Engine, Arc<Functions>), ConfigError> {
        for (name, zero) in [
            ("max_rows", self.max_rows == 0),
            ("max_kib", self.max_bytes == 0),
            ("timeout_seconds", self.timeout.is_zero()),
        ] {
            if zero {
                return Err(ConfigError::Zero(name));
            }
        }
        let functions = |dialect| {
            let own = self.functions.clone();
            Arc::new(Functions::new(dialect, self.reads_only(), own))
        };
        let sqlite = |source| {
            let functions = functions(Dialect::Sqlite);
            let engine = SqliteEngine::new(source, self.reads_only(), Arc::clone(&functions));
            (Engine::Sqlite(engine), functions)
        };
        let Some(url) = &self.url else {
            return Ok(sqlite(Source::Sample));
        };
        let url = url.expose_secret();
        let scheme = url.split(':').next().unwrap_or_default();
        match scheme {
            "sqlite" => {
                let source = file(url.get(scheme.len() + 1..).unwrap_or_default());
                Ok(sqlite(source.ok_or(ConfigError::Address("SQLite"))?))
            }
            "postgres" | "postgresql" => {
                let options = PgConnectOptions::from_str(url)
                    .map_err(|_| ConfigError::Address("PostgreSQL"))?;
                let engine =
                    ServerEngine::new(PostgresServer::new(options, self.allow_powerful_role));
                Ok((Engine::Postgres(engine), functions(Dialect::Postgres)))
            }
            "mysql" | "mariadb" => {
                // The driver knows one of the two names.
                let rest = url.get(scheme.len()..).unwrap_or_default();
                let options = MySqlConnectOptions::from_str(&format!("mysql{rest}"))
                    .map_err(|_| ConfigError::Address("MySQL"))?;
                if options.get_database().is_none() {
                    return Err(ConfigError::Database);
                }
                let engine = ServerEngine::new(MySqlServer::new(options, self.allow_powerful_role));
                Ok((Engine::MySql(engine), functions(Dialect::MySql)))
            }
            _ => Err(ConfigError::Scheme),
        }
    }
}

/// A file of `SQLite`: its path, with `%XX` for special letters, and `?immutable=true`
/// where nobody writes it. Whether it is opened for writing is decided by
/// `read_only`; `mode` is accepted and ignored.
fn file(address: &str) -> Option<Source> {
    let address = address.strip_prefix("//").unwrap_or(address);
    let (path, options) = address.split_once('?').unwrap_or((address, ""));
    let path = percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .ok()?;
    if path.is_empty() || path == ":memory:" {
        return None;
    }
    let mut immutable = false;
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=')? {
            ("mode", "ro" | "rw" | "rwc") => {}
            ("immutable", "true" | "1") => immutable = true,
            ("immutable", "false" | "0") => immutable = false,
            _ => return None,
        }
    }
    Some(Source::File {
        path: path.into_owned().into(),
        immutable,
    })
}
