//! Roles that may do more than an agent's queries need are refused when a connection is
//! opened, unless the operator lets them through: what a statement must not do, its role
//! should not be able to do.

use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;

use super::error;
use handler::ToolError;

/// Asks for the powers of a role of `PostgreSQL` beyond its tables.
const POSTGRES: &str = "\
    WITH me AS (SELECT * FROM pg_catalog.pg_roles WHERE rolname IN (current_user, session_user)) \
    SELECT 'it is a superuser' FROM me WHERE rolsuper \
    UNION ALL SELECT 'it may replicate (REPLICATION)' FROM me WHERE rolreplication AND NOT rolsuper \
    UNION ALL SELECT 'it may make and change roles (CREATEROLE)' FROM me WHERE rolcreaterole AND NOT rolsuper \
    UNION ALL SELECT 'it is a member of ' || r.rolname FROM me JOIN pg_catalog.pg_roles r \
        ON pg_catalog.pg_has_role(me.oid, r.oid, 'MEMBER') WHERE NOT me.rolsuper AND r.rolname IN \
        ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend', \
         'pg_write_all_data', 'pg_maintain', 'pg_create_subscription') \
    UNION ALL SELECT DISTINCT 'it may call ' || p.proname || '()' FROM me JOIN pg_catalog.pg_proc p \
        ON pg_catalog.has_function_privilege(me.oid, p.oid, 'EXECUTE') WHERE NOT me.rolsuper AND p.proname IN \
        ('dblink', 'dblink_connect', 'dblink_connect_u', 'dblink_exec', 'dblink_open', 'dblink_send_query', \
         'lo_import', 'lo_export', 'pg_file_write', 'pg_file_rename', 'pg_file_unlink', 'pg_file_sync', \
         'pg_ls_dir', 'pg_read_binary_file', 'pg_read_file', 'pg_stat_file', 'pg_reload_conf', \
         'pg_rotate_logfile', 'pg_promote', 'pg_switch_wal', 'pg_create_restore_point')";

/// Global rights of `MySQL` and `MariaDB` that go with reading.
const MYSQL: &[&str] = &[
    "CREATE TEMPORARY TABLES",
    "EXECUTE",
    "LOCK TABLES",
    "SELECT",
    "SHOW DATABASES",
    "SHOW VIEW",
    "USAGE",
];

/// Refuses a role of `PostgreSQL` that may do more than read and write tables.
pub(super) async fn postgres(connection: &mut PgConnection) -> Result<(), ToolError> {
    // Both roles of the session count, since it may `SET ROLE` back to the one that it logged in
    // as. A superuser has every power, so that one word is enough.
    let powers: Vec<String> = sqlx::query_scalar(POSTGRES)
        .persistent(false)
        .fetch_all(connection)
        .await
        .map_err(|cause| error::connecting(&cause))?;
    refuse(
        &powers,
        "CREATE ROLE agents LOGIN PASSWORD '…'; GRANT USAGE ON SCHEMA public TO agents; \
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO agents",
    )
}

/// Refuses a user of `MySQL` or `MariaDB` that may do more than read and write tables.
pub(super) async fn mysql(connection: &mut MySqlConnection) -> Result<(), ToolError> {
    let grants: Vec<String> = sqlx::query_scalar("SHOW GRANTS")
        .fetch_all(connection)
        .await
        .map_err(|cause| error::connecting(&cause))?;
    let powers: Vec<String> = grants.iter().flat_map(|grant| powers(grant)).collect();
    refuse(
        &powers,
        "CREATE USER agents IDENTIFIED BY '…'; GRANT SELECT ON shop.* TO agents",
    )
}

/// Rights of one line of `SHOW GRANTS` that go beyond tables of one database.
fn powers(grant: &str) -> Vec<String> {
    let Some((rights, rest)) = grant
        .strip_prefix("GRANT ")
        .and_then(|rest| rest.split_once(" ON "))
    else {
        // A role: what it may do has lines of its own.
        return Vec::new();
    };
    // Writing these tables creates accounts, and reading them reveals password hashes.
    let own = rest.starts_with("`mysql`.") || rest.starts_with("mysql.");
    let mut found: Vec<String> = Vec::new();
    if rest.starts_with("*.*") || own {
        found.extend(
            rights
                .split(", ")
                .filter(|right| own || !MYSQL.contains(right))
                .map(|right| format!("it has {right} on {}", if own { "`mysql`" } else { "*.*" })),
        );
    }
    if rest.contains("WITH GRANT OPTION") {
        found.push("it may grant its rights to others".to_owned());
    }
    found
}

fn refuse(powers: &[String], instead: &str) -> Result<(), ToolError> {
    if powers.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        powers = powers.join("; "),
        "the role of `tools.sql.url` is not used: it may do more than read"
    );
    let shown: Vec<&str> = powers.iter().take(5).map(String::as_str).collect();
    let more = match powers.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Err(ToolError::unavailable(format!(
        "The database role of this server may do more than its tools need: {}{more}.",
        shown.join("; ")
    ))
    .suggest(format!(
        "The operator gives `tools.sql.url` a role of its own: {instead}"
    ))
    .suggest(
        "Or lets this one through, with all that it may do: `tools.sql.allow_powerful_role: true`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_beyond_tables_of_a_database_are_named() {
        for (grant, found) in [
            (
                "GRANT USAGE ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*1'",
                &[][..],
            ),
            ("GRANT SELECT, SHOW VIEW ON `shop`.* TO `a`@`%`", &[]),
            ("GRANT INSERT, DELETE ON `shop`.* TO `a`@`%`", &[]),
            ("GRANT SELECT ON *.* TO `a`@`%`", &[]),
            ("GRANT `readers` TO `a`@`%`", &[]),
            (
                "GRANT SELECT, FILE, PROCESS ON *.* TO `a`@`%`",
                &["it has FILE on *.*", "it has PROCESS on *.*"],
            ),
            (
                "GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION",
                &[
                    "it has ALL PRIVILEGES on *.*",
                    "it may grant its rights to others",
                ],
            ),
            (
                "GRANT SELECT ON `mysql`.* TO `a`@`%`",
                &["it has SELECT on `mysql`"],
            ),
        ] {
            assert_eq!(powers(grant), found, "{grant}");
        }
    }
}
