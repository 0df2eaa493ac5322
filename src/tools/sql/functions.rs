//! Functions that do more than compute a value.
//!
//! A database stops most of them by itself where the transaction only reads. These
//! wait, hold locks, read files of the server, reach other servers, or execute a
//! text as SQL. Looked for in every place where a name stands before a bracket.
//! User-defined functions cannot be known here: rights of the database's user are
//! what stops those.

use super::dialect::Dialect;

/// Of `PostgreSQL`, by the beginnings of their names.
const POSTGRES_BEGINNINGS: &[&str] = &[
    "aws_",
    "connectby",
    "crosstab",
    "cursor_to_xml",
    "database_to_xml",
    "dblink",
    "http",
    "lo_",
    "pg_advisory_",
    "pg_background_",
    "pg_backup_",
    "pg_copy_",
    "pg_create_",
    "pg_drop_",
    "pg_export_snapshot",
    "pg_file_",
    "pg_import_",
    "pg_log_",
    "pg_logfile_",
    "pg_logical_",
    "pg_ls_",
    "pg_promote",
    "pg_read_",
    "pg_reload_conf",
    "pg_replication_",
    "pg_rotate_",
    "pg_sleep",
    "pg_start_",
    "pg_stat_clear_",
    "pg_stat_file",
    "pg_stat_reset",
    "pg_stat_statements_reset",
    "pg_stop_",
    "pg_switch_",
    "pg_sync_",
    "pg_try_advisory_",
    "pg_wal_replay_",
    "query_to_xml",
    "schema_to_xml",
    "table_to_xml",
];

/// Of `PostgreSQL`, by their names.
const POSTGRES: &[&str] = &[
    "loread",
    "lowrite",
    "pg_cancel_backend",
    "pg_current_xact_id",
    "pg_notify",
    "pg_prewarm",
    "pg_terminate_backend",
    "set_config",
    "ts_rewrite",
    "ts_stat",
    "txid_current",
    "xpath_table",
];

/// Of `MySQL` and `MariaDB`, by the beginnings of their names.
const MYSQL_BEGINNINGS: &[&str] = &[
    "asynchronous_connection_",
    "audit_log_",
    "group_replication_",
    "keyring_",
    "lib_mysqludf",
    "service_",
    "sys_",
    "version_tokens_",
    "wait_",
];

/// Of `MySQL` and `MariaDB`, by their names.
const MYSQL: &[&str] = &[
    "benchmark",
    "get_lock",
    "load_file",
    "master_gtid_wait",
    "master_pos_wait",
    "release_all_locks",
    "release_lock",
    "sleep",
    "source_pos_wait",
];

/// Of `SQLite`.
const SQLITE: &[&str] = &[
    "edit",
    "fts3_tokenizer",
    "fsdir",
    "load_extension",
    "lsdir",
    "readfile",
    "sqlite_log",
    "writefile",
    "zipfile",
];

/// Numbers that are given out once.
const SEQUENCES: &[&str] = &["nextval", "setval"];

/// No statement may call it.
pub(super) fn forbids(dialect: Dialect, name: &str, read_only: bool) -> bool {
    let name = name.to_lowercase();
    let name = name.as_str();
    let begins = |all: &[&str]| all.iter().any(|beginning| name.starts_with(beginning));
    if read_only && SEQUENCES.contains(&name) {
        return true;
    }
    match dialect {
        Dialect::Sqlite => SQLITE.contains(&name),
        Dialect::Postgres => POSTGRES.contains(&name) || begins(POSTGRES_BEGINNINGS),
        // MySQL compares names by a collation, and in some `ſleep` is `sleep`.
        Dialect::MySql => !name.is_ascii() || MYSQL.contains(&name) || begins(MYSQL_BEGINNINGS),
    }
}
