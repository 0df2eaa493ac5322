//! `MySQL` and `MariaDB`.
//!
//! Each call is one transaction, which only reads and is rolled back unless it
//! writes. Statements of callers go by the prepared protocol alone, in which the
//! server takes one statement and no more, and one that gives no columns is not
//! run as a query: read-only transactions of this server let `SET GLOBAL` or
//! `INTO OUTFILE` pass, and those give none. The session's mode is fixed, so that
//! strings and names end where the parser of the guard thinks that they do.

use std::time::Duration;

use serde_json::Value;
use sqlx::mysql::{
    MySqlConnectOptions, MySqlConnection, MySqlQueryResult, MySqlRow, MySqlValueRef,
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Decode, Executor as _, MySql, Row as _,
    TypeInfo as _, ValueRef as _,
};
use tokio::time::timeout;

use super::engine::Order;
use super::error;
use super::guard::CheckedStatement;
use super::roles;
use super::rows::{self, Bounds, Rows};
use super::session::{self, Server};
use handler::ToolError;

/// The mode of `MariaDB`: strict, without ANSI quotes, with backslash escapes.
const MARIADB_MODE: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// That of `MySQL`, which in addition refuses to choose a value of a group.
const MYSQL_MODE: &str = "SET SESSION sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// Time that the server may take to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How to reach a `MySQL` or `MariaDB` database.
pub(super) struct MySqlServer {
    options: MySqlConnectOptions,
    /// Users that may do more than read are let through.
    powerful: bool,
}

/// A connection, and which of the two servers it leads to.
pub(super) struct ServerConnection {
    connection: MySqlConnection,
    mariadb: bool,
}

impl AsMut<MySqlConnection> for ServerConnection {
    fn as_mut(&mut self) -> &mut MySqlConnection {
        &mut self.connection
    }
}

impl MySqlServer {
    /// `powerful`: users that may do more than read are let through.
    pub(super) fn new(options: MySqlConnectOptions, powerful: bool) -> Self {
        let options = options
            // The driver would set a mode in which `||` joins texts. `open` sets the mode that the
            // guard expects.
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            // A cached statement would outlive its call. Statements are not logged because they
            // reveal what people look for.
            .statement_cache_capacity(0)
            .disable_statement_logging();
        Self { options, powerful }
    }
}

impl Server for MySqlServer {
    type Driver = MySql;
    type ServerConnection = ServerConnection;

    async fn open(&self) -> Result<ServerConnection, ToolError> {
        let failed = |cause: sqlx::Error| error::connecting(&cause);
        let mut connection = self.options.connect().await.map_err(failed)?;
        let version: String = sqlx::query_scalar("SELECT VERSION()")
            .fetch_one(&mut connection)
            .await
            .map_err(failed)?;
        let mariadb = version.to_lowercase().contains("mariadb");
        sqlx::raw_sql(if mariadb { MARIADB_MODE } else { MYSQL_MODE })
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        if !self.powerful {
            roles::mysql(&mut connection).await?;
        }
        Ok(ServerConnection {
            connection,
            mariadb,
        })
    }

    fn begin(connection: &ServerConnection, order: Order, bounds: Bounds) -> String {
        // 0 would mean no limit.
        let time = bounds.time.max(Duration::from_millis(1));
        // The limit of MySQL itself holds for queries alone.
        let limit = if connection.mariadb {
            format!("max_statement_time = {:.3}", time.as_secs_f64())
        } else {
            format!("max_execution_time = {}", time.as_millis())
        };
        let (access, max) = match order {
            Order::Write => ("READ WRITE", "DEFAULT".to_owned()),
            // One more than fits, so that the cut is reported.
            _ => ("READ ONLY", bounds.rows.saturating_add(1).to_string()),
        };
        format!(
            "SET SESSION TRANSACTION {access}; SET SESSION {limit}, sql_select_limit = {max}; \
             START TRANSACTION {access}"
        )
    }

    async fn inside(
        connection: &mut MySqlConnection,
        order: Order,
        statement: &CheckedStatement,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        let sql = match order {
            Order::Explain => format!("EXPLAIN {}", statement.sql),
            _ => statement.sql.clone(),
        };
        let columns = session::prepare::<Self>(connection, &sql, bounds).await?;
        if order == Order::Prepare {
            return Ok(Rows::new(bounds, columns));
        }
        if order != Order::Write && columns.is_empty() {
            return Err(error::no_rows());
        }
        let steps = connection.fetch_many(sqlx::query(AssertSqlSafe(sql)));
        session::read::<Self>(steps, columns, order, bounds).await
    }

    fn affected(done: &MySqlQueryResult) -> u64 {
        done.rows_affected()
    }

    fn cell(row: &MySqlRow, at: usize, _: &str) -> Value {
        cell(row, at)
    }

    /// Reads text that may come as bytes.
    fn text(row: &MySqlRow, at: usize) -> Value {
        match row.try_get_raw(at) {
            Ok(value) if !value.is_null() => match value.type_info().name() {
                "BLOB" | "LONGBLOB" | "MEDIUMBLOB" | "TINYBLOB" | "VARBINARY" | "BINARY" => {
                    <&[u8] as Decode<MySql>>::decode(value).map_or(Value::Null, rows::lossy)
                }
                _ => cell(row, at),
            },
            _ => Value::Null,
        }
    }

    /// The driver has no command that cleans a session, and locks by name, variables and
    /// temporary tables would outlive the transaction: so each ends with its call.
    async fn clean(connection: ServerConnection) -> Option<ServerConnection> {
        drop(timeout(CLOSE_TIMEOUT, connection.connection.close()).await);
        None
    }
}

fn cell(row: &MySqlRow, at: usize) -> Value {
    let value = row.try_get_raw(at).ok();
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Value::Null;
    };
    let kind = value.type_info().name().to_owned();
    read(&kind, value).unwrap_or_else(|| format!("<{kind}>").into())
}

/// A value of the prepared protocol.
fn read(kind: &str, value: MySqlValueRef<'_>) -> Option<Value> {
    Some(match kind {
        "BIT" | "YEAR" => rows::unsigned(<u64 as Decode<MySql>>::decode(value).ok()?),
        _ if kind.ends_with("UNSIGNED") => {
            rows::unsigned(<u64 as Decode<MySql>>::decode(value).ok()?)
        }
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "INT" | "MEDIUMINT" | "BIGINT" => {
            rows::integer(<i64 as Decode<MySql>>::decode(value).ok()?)
        }
        // As it is written, not as the nearest double of it.
        "FLOAT" => {
            let short = <f32 as Decode<MySql>>::decode(value).ok()?;
            rows::float(short.to_string().parse().ok()?)
        }
        "DOUBLE" => rows::float(<f64 as Decode<MySql>>::decode(value).ok()?),
        _ => {
            let bytes = <&[u8] as Decode<MySql>>::decode(value).ok()?;
            match kind {
                "DATE" | "DATETIME" | "TIMESTAMP" => moment(bytes, kind)?.into(),
                "TIME" => span(bytes)?.into(),
                "BINARY" | "VARBINARY" | "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB"
                | "GEOMETRY" => rows::binary(bytes.len()),
                _ => rows::lossy(bytes),
            }
        }
    })
}

/// A date and time: a length, then as much of year, month, day, hour, minute,
/// second and microseconds as is not zero at the end.
fn moment(bytes: &[u8], kind: &str) -> Option<String> {
    let (_, rest) = bytes.split_first()?;
    let byte = |at: usize| rest.get(at).copied().unwrap_or_default();
    let year = u16::from_le_bytes([byte(0), byte(1)]);
    let date = format!("{year:04}-{:02}-{:02}", byte(2), byte(3));
    if kind == "DATE" {
        return Some(date);
    }
    let micros = u32::from_le_bytes([byte(7), byte(8), byte(9), byte(10)]);
    Some(format!(
        "{date} {:02}:{:02}:{:02}{}",
        byte(4),
        byte(5),
        byte(6),
        fraction(micros)
    ))
}

/// A span of time: a length, a sign, days, hours, minutes, seconds, microseconds.
fn span(bytes: &[u8]) -> Option<String> {
    let (_, rest) = bytes.split_first()?;
    let byte = |at: usize| rest.get(at).copied().unwrap_or_default();
    let sign = if byte(0) == 0 { "" } else { "-" };
    let days = u32::from_le_bytes([byte(1), byte(2), byte(3), byte(4)]);
    let hours = u64::from(days) * 24 + u64::from(byte(5));
    let micros = u32::from_le_bytes([byte(8), byte(9), byte(10), byte(11)]);
    Some(format!(
        "{sign}{hours:02}:{:02}:{:02}{}",
        byte(6),
        byte(7),
        fraction(micros)
    ))
}

fn fraction(micros: u32) -> String {
    if micros == 0 {
        String::new()
    } else {
        format!(".{micros:06}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_however_short_they_are() {
        for (bytes, kind, text) in [
            (&[4, 0xe9, 7, 2, 28][..], "DATE", "2025-02-28"),
            (&[4, 0xe9, 7, 2, 28], "DATETIME", "2025-02-28 00:00:00"),
            (
                &[11, 0xe9, 7, 2, 28, 23, 59, 58, 1, 0, 0, 0],
                "TIMESTAMP",
                "2025-02-28 23:59:58.000001",
            ),
        ] {
            assert_eq!(moment(bytes, kind).as_deref(), Some(text));
        }
        assert_eq!(span(&[0]).as_deref(), Some("00:00:00"));
        assert_eq!(
            span(&[8, 1, 1, 0, 0, 0, 2, 3, 4]).as_deref(),
            Some("-26:03:04")
        );
        assert_eq!(moment(&[], "DATE"), None);
    }
}
