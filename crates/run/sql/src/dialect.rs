//! The languages of databases.

use sqlparser::ast::Ident;
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
    /// Its name, as level 2 tells it.
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

    /// What the database makes of a name: what is compared with its catalog.
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
            Self::Sqlite | Self::Postgres => '"',
            Self::MySql => '`',
        };
        let mut text = String::with_capacity(name.len() + 2);
        text.push(quote);
        for letter in name.chars() {
            text.push(letter);
            if letter == quote {
                text.push(quote);
            }
        }
        text.push(quote);
        text
    }
}
