//! Tables of the server itself that a statement may read.
//!
//! A role's rights decide which tables it may read. But some of these tables read files
//! of the server, or show sessions, secrets and settings to any role.

use model::listed;
use sqlparser::ast::ObjectName;

use super::dialect::Dialect;
use super::expr::{POSTGRES_VALUES, SESSION};
use super::refusal::Refusal;
use super::walk::CheckResult;

/// Of `pg_catalog`.
const POSTGRES: &str = include_str!("allowed/postgresql-relations.txt");

/// Of `information_schema` of `PostgreSQL`: not these.
const POSTGRES_SECRETS: &[&str] = &[
    "_pg_foreign_data_wrappers",
    "_pg_foreign_servers",
    "_pg_foreign_table_columns",
    "_pg_foreign_tables",
    "_pg_user_mappings",
    "foreign_data_wrapper_options",
    "foreign_server_options",
    "foreign_table_options",
    "user_mapping_options",
    "user_mappings",
];

/// Of `information_schema` of `MySQL` and `MariaDB`.
const MYSQL: &[&str] = &[
    "character_sets",
    "check_constraints",
    "collations",
    "columns",
    "key_column_usage",
    "partitions",
    "referential_constraints",
    "schemata",
    "statistics",
    "table_constraints",
    "tables",
    "views",
];

/// Schemas of `MySQL` and `MariaDB` that are the server's own.
const MYSQL_OWN: &[&str] = &["mysql", "performance_schema", "sys"];

/// Of `SQLite`: its schema and its statistics.
const SQLITE: &[&str] = &[
    "sqlite_master",
    "sqlite_schema",
    "sqlite_sequence",
    "sqlite_stat1",
    "sqlite_stat4",
];

/// Virtual tables of `SQLite` that show the file or the connection.
const SQLITE_HIDDEN: &[&str] = &["bytecode", "dbstat", "fts3tokenize", "tables_used"];

/// Whether a table of `SQLite` may be read; its engine asks about each.
pub(super) fn sqlite(table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    let own = table.starts_with("sqlite_") && !SQLITE.contains(&table.as_str());
    !own && !table.starts_with("pragma_") && !SQLITE_HIDDEN.contains(&table.as_str())
}

/// Refuses a table that may not be read.
pub(super) fn check(dialect: Dialect, name: &ObjectName) -> CheckResult {
    let refused = |name: &str, step: &str| {
        Err(Refusal::denied(
            format!("The server's own table {name} is not allowed."),
            step.to_owned(),
        ))
    };
    let parts = dialect.folded_parts(name).unwrap_or_default();
    let (schema, table) = match parts.as_slice() {
        [table] => ("", table.as_str()),
        // A name before the schema is that of the database, and PostgreSQL cannot reach another
        // one.
        [.., schema, table] => (schema.as_str(), table.as_str()),
        [] => return Err(Refusal::syntax("A table has no name.")),
    };
    let step = "Call sql_list_tables or sql_describe_table for the schema";
    match dialect {
        Dialect::Postgres => {
            let unquoted = name.0.iter().all(|part| {
                part.as_ident()
                    .is_some_and(|ident| ident.quote_style.is_none())
            });
            // These are values also where a table could be: `FROM current_user AS x`.
            let is_value = POSTGRES_VALUES.contains(&table) || SESSION.contains(&table);
            if schema.is_empty() && unquoted && is_value {
                return Err(Refusal::denied(
                    format!("{table} is not a table."),
                    "Write a table of the user's own with this name in double quotes",
                ));
            }
            // PostgreSQL searches `pg_catalog` even if nobody names it.
            let own = schema == "pg_catalog"
                || schema == "pg_toast"
                || (schema.is_empty() && table.starts_with("pg_"));
            if (own && !listed(POSTGRES).any(|known| known == table))
                || (schema == "information_schema" && POSTGRES_SECRETS.contains(&table))
            {
                return refused(&parts.join("."), step);
            }
        }
        Dialect::MySql => {
            if MYSQL_OWN.contains(&schema)
                || (schema == "information_schema" && !MYSQL.contains(&table))
            {
                return refused(&parts.join("."), step);
            }
        }
        Dialect::Sqlite => {
            if !sqlite(table) {
                return refused(table, step);
            }
        }
    }
    Ok(())
}
