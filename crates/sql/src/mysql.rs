//! `MySQL` and `MariaDB`.
//!
//! Each call is one transaction, which only reads and is rolled back unless it
//! writes. Statements of callers go by the prepared protocol alone, in which the
//! server takes one statement and no more, and one that gives no columns is not
//! run as a query: read-only transactions of this server let `SET GLOBAL` or
//! `INTO OUTFILE` pass, and those give none. The session's mode is fixed, so that
//! strings and names end where the parser of the guard thinks that they do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use serde_json::Value;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow, MySqlValueRef};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Decode, Either,
    Executor as _, MySql, Row as _, SqlSafeStr as _, Statement as _, TypeInfo as _, ValueRef as _,
};
#[cfg(test)]
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::engine::{Order, Question};
use super::error;
use super::pool::{Lease, Opener, Pool};
use super::roles;
use super::rows::{self, Bounds, Column, Rows};
use handler::{ToolError, ToolErrorKind};

/// The mode of `MariaDB`: strict, without ANSI quotes, with backslash escapes.
const MARIADB_MODE: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// That of `MySQL`, which in addition refuses to choose a value of a group.
const MYSQL_MODE: &str = "SET SESSION sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// How long the server may take to say goodbye.
const CLOSING: Duration = Duration::from_secs(1);

/// Opens connections to one database.
pub(super) struct MySqlOpener {
    options: MySqlConnectOptions,
    /// Users that may do more than read are let through.
    powerful: bool,
}

/// A connection, and which of the two servers it leads to.
pub(super) struct Connected {
    inner: MySqlConnection,
    mariadb: bool,
}

impl Opener for MySqlOpener {
    type Connection = Connected;

    async fn open(&self) -> Result<Connected, ToolError> {
        let failed = |cause: sqlx::Error| error::connecting(&cause);
        let mut inner = self.options.connect().await.map_err(failed)?;
        let version: String = sqlx::query_scalar("SELECT VERSION()")
            .fetch_one(&mut inner)
            .await
            .map_err(failed)?;
        let mariadb = version.to_lowercase().contains("mariadb");
        sqlx::raw_sql(if mariadb { MARIADB_MODE } else { MYSQL_MODE })
            .execute(&mut inner)
            .await
            .map_err(failed)?;
        if !self.powerful {
            roles::mysql(&mut inner).await?;
        }
        Ok(Connected { inner, mariadb })
    }

    fn alive(connection: &mut Connected) -> impl Future<Output = bool> + Send {
        let ping = connection.inner.ping();
        async { ping.await.is_ok() }
    }
}

/// A `MySQL` or `MariaDB` database.
pub(super) struct MySqlEngine {
    pool: Arc<Pool<MySqlOpener>>,
}

impl MySqlEngine {
    /// `powerful`: users that may do more than read are let through.
    pub(super) fn new(options: MySqlConnectOptions, powerful: bool) -> Self {
        let options = options
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .statement_cache_capacity(0)
            .disable_statement_logging();
        Self {
            pool: Arc::new(Pool::new(MySqlOpener { options, powerful })),
        }
    }

    /// See [`super::engine::Engine::run`].
    pub(super) async fn run(
        &self,
        order: Order,
        sql: &str,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        let mut lease = self.pool.take().await?;
        begin(&mut lease.connection, order, bounds).await?;
        let connection = &mut lease.connection.inner;
        let mut outcome = inside(connection, order, sql, bounds).await;
        let clean = match &outcome {
            Ok(rows) => rows.cut.is_none() || order == Order::Write,
            Err(error) => !matches!(
                error.kind,
                ToolErrorKind::Unavailable | ToolErrorKind::Timeout
            ),
        };
        if !clean {
            return outcome;
        }
        let end = if order == Order::Write && outcome.is_ok() {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        match sqlx::raw_sql(end).execute(connection).await {
            Ok(_) => close(lease),
            Err(cause) if order == Order::Write && outcome.is_ok() => {
                outcome = Err(error::statement(cause, bounds.time));
            }
            Err(_) => {}
        }
        outcome
    }

    /// Places that no call and no session that is being closed holds.
    #[cfg(test)]
    pub(super) fn places(&self) -> &Arc<Semaphore> {
        self.pool.places()
    }

    /// Answers of the catalog.
    pub(super) async fn ask(
        &self,
        questions: &[Question<'_>],
        bounds: Bounds,
    ) -> Result<Vec<Rows>, ToolError> {
        let mut lease = self.pool.take().await?;
        begin(&mut lease.connection, Order::Query, bounds).await?;
        let connection = &mut lease.connection.inner;
        let failed = |cause| error::statement(cause, bounds.time);
        let mut answers = Vec::with_capacity(questions.len());
        for (question, tables) in questions {
            let mut query = sqlx::query(*question);
            if let Some(tables) = tables {
                query = query.bind((*tables).to_owned());
            }
            let mut rows = Rows::new(bounds, Vec::new());
            let mut stream = query.fetch(&mut *connection);
            while let Some(row) = stream.try_next().await.map_err(failed)? {
                let cells = (0..row.len()).map(|at| text(&row, at)).collect();
                if !rows.push(cells) {
                    break;
                }
            }
            drop(stream);
            answers.push(rows);
        }
        let ended = sqlx::raw_sql("ROLLBACK").execute(connection).await.is_ok();
        if ended && answers.iter().all(|rows| rows.cut.is_none()) {
            close(lease);
        }
        Ok(answers)
    }
}

/// Ends a session. The driver has no command that cleans one, and locks by name,
/// variables and temporary tables would outlive the transaction. Its place is free when
/// it has ended; the answer, which may be of a write, does not wait for that.
fn close(lease: Lease<Connected>) {
    tokio::spawn(async move {
        let Lease { connection, place } = lease;
        drop(timeout(CLOSING, connection.inner.close()).await);
        drop(place);
    });
}

async fn begin(connection: &mut Connected, order: Order, bounds: Bounds) -> Result<(), ToolError> {
    let time = bounds.time;
    // The limit of MySQL itself holds for queries alone.
    let limit = if connection.mariadb {
        format!("max_statement_time = {:.3}", time.as_secs_f64())
    } else {
        format!("max_execution_time = {}", time.as_millis().max(1))
    };
    let (access, most) = match order {
        Order::Write => ("READ WRITE", "DEFAULT".to_owned()),
        // One more than there is room for, so that it is told.
        _ => ("READ ONLY", bounds.rows.saturating_add(1).to_string()),
    };
    let begin = format!(
        "SET SESSION TRANSACTION {access}; SET SESSION {limit}, sql_select_limit = {most}; \
         START TRANSACTION {access}"
    );
    sqlx::raw_sql(AssertSqlSafe(begin))
        .execute(&mut connection.inner)
        .await
        .map(drop)
        .map_err(|cause| error::statement(cause, time))
}

async fn inside(
    connection: &mut MySqlConnection,
    order: Order,
    sql: &str,
    bounds: Bounds,
) -> Result<Rows, ToolError> {
    let failed = |cause| error::statement(cause, bounds.time);
    let sql = match order {
        Order::Explain => format!("EXPLAIN {sql}"),
        _ => sql.to_owned(),
    };
    let statement = (&mut *connection)
        .prepare(AssertSqlSafe(sql.clone()).into_sql_str())
        .await
        .map_err(failed)?;
    if matches!(statement.parameters(), Some(Either::Right(count)) if count > 0) {
        return Err(ToolError::new(
            ToolErrorKind::Failed,
            "Placeholders have no values here; write the values into the query.",
        ));
    }
    let columns = named(statement.columns());
    let mut rows = Rows::new(bounds, columns);
    if order == Order::Prepare {
        return Ok(rows);
    }
    if order != Order::Write && rows.columns.is_empty() {
        return Err(error::no_rows());
    }
    let (mut affected, mut seen) = (0, 0);
    let mut stream = connection.fetch_many(sqlx::query(AssertSqlSafe(sql)));
    while let Some(step) = stream.try_next().await.map_err(failed)? {
        match step {
            Either::Left(done) => affected += done.rows_affected(),
            Either::Right(row) => {
                let cells = (0..row.len()).map(|at| cell(&row, at)).collect();
                seen += 1;
                // MariaDB tells those of RETURNING only when it runs.
                if rows.columns.is_empty() {
                    rows.columns = named(row.columns());
                }
                // What is written is written to its end.
                if !rows.push(cells) && order != Order::Write {
                    break;
                }
            }
        }
    }
    drop(stream);
    if order == Order::Write {
        // With RETURNING the server tells rows and no number.
        rows.affected = Some(affected.max(seen));
    }
    Ok(rows)
}

fn named(columns: &[sqlx::mysql::MySqlColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            kind: column.type_info().name().to_owned(),
        })
        .collect()
}

/// A column of the catalog, whose text may come as bytes.
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

fn cell(row: &MySqlRow, at: usize) -> Value {
    let Ok(value) = row.try_get_raw(at) else {
        return Value::Null;
    };
    if value.is_null() {
        return Value::Null;
    }
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
