//! The languages of databases.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect, SQLiteDialect};

/// A language of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dialect {
    /// `SQLite`.
    Sqlite,
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL` and `MariaDB`.
    MySql,
}

impl Dialect {
    /// Its name, as level 2 shows it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgresql",
            Self::MySql => "mysql",
        }
    }

    /// Its grammar.
    pub(super) fn grammar(self) -> &'static dyn Grammar {
        match self {
            Self::Sqlite => &SQLiteDialect {},
            Self::Postgres => &PostgreSqlDialect {},
            Self::MySql => &MySqlDialect {},
        }
    }

    /// A name as the database folds it, and as its catalog has it.
    pub(super) fn folded(self, ident: &Ident) -> String {
        match (self, ident.quote_style) {
            // Only what is not quoted changes, and only letters of ASCII.
            (Self::Postgres, Some(quote)) => {
                let twice = format!("{quote}{quote}");
                ident.value.replace(&twice, quote.encode_utf8(&mut [0; 4]))
            }
            (Self::Postgres, None) => ident.value.to_ascii_lowercase(),
            // Case means nothing in names of functions.
            _ => ident.value.to_lowercase(),
        }
    }

    /// A name as an identifier, whatever is in it.
    pub(super) fn quoted(self, name: &str) -> String {
        let quote = match self {
            Self::Sqlite | Self::Postgres => "\"",
            Self::MySql => "`",
        };
        format!("{quote}{}{quote}", name.replace(quote, &quote.repeat(2)))
    }

    /// The parts of a name as the database compares them. None: one of them is no identifier.
    pub(super) fn folded_parts(self, name: &ObjectName) -> Option<Vec<String>> {
        let parts = name.0.iter().map(|part| part.as_ident());
        parts.map(|ident| Some(self.folded(ident?))).collect()
    }
}
