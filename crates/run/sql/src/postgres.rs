//! `PostgreSQL`.
//!
//! Each call is one transaction, which only reads and is rolled back unless it
//! writes. A query is first prepared, by which the server itself makes sure that
//! it is one statement that gives columns; then it is run as the inside of a
//! `SELECT` that turns each column into text, cuts it, and limits the rows.
//! So any type can be read, a result costs no more than it may, and what is
//! inside cannot be anything but a query to the server either.
//!
//! A transaction that only reads does not keep functions from locking, signalling or
//! reading files. For those there are the list of functions, the role, and a session
//! that is cleaned after each call.

use std::time::Duration;

use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgQueryResult, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Postgres, Row as _, ValueRef as _};
use tokio::time::timeout;

use super::engine::Order;
use super::error;
use super::guard::CheckedStatement;
use super::roles;
use super::rows::{self, Bounds, Column, Rows};
use super::server;
use super::session::{self, Server};
use handler::ToolError;

/// The first version that notices in the middle of a statement that its client
/// is gone.
const MIN_DISCONNECT_CHECK_VERSION: u32 = 140_000;

/// Time that the server may take to clean a session.
const SESSION_RESET_TIMEOUT: Duration = Duration::from_secs(5);

/// How to reach a `PostgreSQL` database.
pub(super) struct PostgresServer {
    options: PgConnectOptions,
    /// Roles that may do more than read are let through.
    powerful: bool,
}

/// A connection, and what its server can do.
pub(super) struct ServerConnection {
    connection: PgConnection,
    notices: bool,
}

impl AsMut<PgConnection> for ServerConnection {
    fn as_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl PostgresServer {
    /// `powerful`: roles that may do more than read are let through.
    pub(super) fn new(options: PgConnectOptions, powerful: bool) -> Self {
        let options = options
            .application_name("repertoire")
            // A cached statement would outlive its call. Statements are not logged because they
            // reveal what people look for.
            .statement_cache_capacity(0)
            .disable_statement_logging();
        Self { options, powerful }
    }
}

impl Server for PostgresServer {
    type Driver = Postgres;
    type ServerConnection = ServerConnection;

    async fn open(&self) -> Result<ServerConnection, ToolError> {
        let connection = self.options.connect().await;
        let mut connection = connection.map_err(|cause| error::connecting(&cause))?;
        if !self.powerful {
            roles::postgres(&mut connection).await?;
        }
        let version = connection.server_version_num();
        Ok(ServerConnection {
            connection,
            notices: version.is_some_and(|version| version >= MIN_DISCONNECT_CHECK_VERSION),
        })
    }

    fn begin(connection: &ServerConnection, order: Order, bounds: Bounds) -> String {
        let access = match order {
            Order::Write => "READ WRITE",
            _ => "READ ONLY",
        };
        // Every setting is `LOCAL`, so it ends with the transaction and the next call starts
        // afresh.
        let notices = if connection.notices {
            "SET LOCAL client_connection_check_interval = 1000; "
        } else {
            ""
        };
        // Strings end where the parser of the guard thinks that they do.
        format!(
            "BEGIN {access}; {notices}\
             SET LOCAL statement_timeout = {}; \
             SET LOCAL idle_in_transaction_session_timeout = 60000; \
             SET LOCAL standard_conforming_strings = on; \
             SET LOCAL DateStyle = ISO",
            // 0 would mean no limit.
            bounds.time.as_millis().max(1)
        )
    }

    async fn inside(
        connection: &mut PgConnection,
        order: Order,
        statement: &CheckedStatement,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        server::check(connection, &statement.names, bounds.time).await?;
        let sql = &statement.sql;
        let mut columns = session::prepare::<Self>(connection, sql, bounds).await?;
        let query = match order {
            Order::Prepare => return Ok(Rows::new(bounds, columns)),
            Order::Write => {
                // It was prepared, so it is one statement; this way its values are text.
                let sql = sqlx::raw_sql(AssertSqlSafe(sql.clone()));
                let steps = connection.fetch_many(sql);
                return session::read::<Self>(steps, columns, order, bounds).await;
            }
            Order::Query if columns.is_empty() => return Err(error::no_rows()),
            Order::Query => wrapped(sql, &columns, bounds.rows),
            Order::Explain => {
                columns = vec![Column {
                    name: "QUERY PLAN".to_owned(),
                    kind: "TEXT".to_owned(),
                }];
                format!("EXPLAIN (ANALYZE false, COSTS true, FORMAT TEXT) {sql}")
            }
        };
        let query = sqlx::query(AssertSqlSafe(query)).persistent(false);
        session::read::<Self>(connection.fetch_many(query), columns, order, bounds).await
    }

    fn affected(done: &PgQueryResult) -> u64 {
        done.rows_affected()
    }

    /// All columns come as text.
    fn cell(row: &PgRow, at: usize, kind: &str) -> Value {
        let value = row.try_get_raw(at).ok();
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Value::Null;
        };
        let Ok(bytes) = value.as_bytes() else {
            return format!("<{kind}>").into();
        };
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let read = match kind {
            "BOOL" => match text {
                "t" | "true" => Some(true.into()),
                "f" | "false" => Some(false.into()),
                _ => None,
            },
            "INT2" | "INT4" | "INT8" | "OID" => text.parse().ok().map(rows::integer),
            "FLOAT4" | "FLOAT8" => text.parse().ok().map(rows::float),
            // Of a statement that writes: `\x` and two digits a byte.
            "BYTEA" if text.starts_with("\\x") => Some(rows::binary(text.len() / 2 - 1)),
            _ => None,
        };
        read.unwrap_or_else(|| rows::lossy(bytes))
    }

    fn text(row: &PgRow, at: usize) -> Value {
        Self::cell(row, at, "TEXT")
    }

    /// Without advisory locks, settings, prepared statements and temporary tables.
    async fn clean(mut connection: ServerConnection) -> Option<ServerConnection> {
        let discard = sqlx::raw_sql("DISCARD ALL").execute(&mut connection.connection);
        let done = timeout(SESSION_RESET_TIMEOUT, discard).await;
        matches!(done, Ok(Ok(_))).then_some(connection)
    }
}

/// A query as the inside of one that makes text of its columns, and takes one row
/// more than fits.
fn wrapped(sql: &str, columns: &[Column], limit: usize) -> String {
    // One character more than is shown, so that `rows` notices the cut.
    let max = rows::MAX_CELL_BYTES + 1;
    let text = |(at, column): (usize, &Column)| match column.kind.as_str() {
        "BYTEA" => format!("'<' || octet_length(t.c{at}) || ' bytes>' AS c{at}"),
        _ => format!("left(t.c{at}::text, {max}) AS c{at}"),
    };
    let texts: Vec<_> = columns.iter().enumerate().map(text).collect();
    // Columns are named by position: in a query, two may share a name or have none.
    let names: Vec<_> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let (texts, names) = (texts.join(", "), names.join(", "));
    let limit = limit.saturating_add(1);
    // The line feed ends a comment at the end of the query.
    format!("SELECT {texts} FROM (\n{sql}\n) AS t({names}) LIMIT {limit}")
}
