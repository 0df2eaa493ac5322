//! `PostgreSQL`.
//!
//! Each call is one transaction, which only reads and is rolled back unless it
//! writes. A query is first prepared, by which the server itself makes sure that
//! it is one statement that gives columns; then it is run as the inside of a
//! `SELECT` that turns each column into text, cuts it, and takes so many rows.
//! So any type can be read, a result costs no more than it may, and what is
//! inside cannot be anything but a query to the server either.
//!
//! A transaction that only reads does not keep functions from locking, signalling or
//! reading files. For those there are the list of functions, the role, and a session
//! that is cleaned after each call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Either, Executor as _,
    Row as _, SqlSafeStr as _, Statement as _, TypeInfo as _, ValueRef as _,
};
#[cfg(test)]
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::engine::{Order, Question};
use super::error;
use super::guard::Checked;
use super::pool::{Lease, Opener, Pool};
use super::roles;
use super::rows::{self, Bounds, Column, Rows};
use super::server;
use handler::{ToolError, ToolErrorKind};

/// The first version that notices in the middle of a statement that its client
/// is gone.
const NOTICES: u32 = 140_000;

/// How long the server may take to clean a session.
const CLEANING: Duration = Duration::from_secs(5);

/// Opens connections to one database.
pub(super) struct PostgresOpener {
    options: PgConnectOptions,
    /// Roles that may do more than read are let through.
    powerful: bool,
}

/// A connection, and what its server can do.
pub(super) struct PostgresConnection {
    inner: PgConnection,
    notices: bool,
}

impl Opener for PostgresOpener {
    type Connection = PostgresConnection;

    async fn open(&self) -> Result<PostgresConnection, ToolError> {
        let inner = self.options.connect().await;
        let mut inner = inner.map_err(|cause| error::connecting(&cause))?;
        if !self.powerful {
            roles::postgres(&mut inner).await?;
        }
        let version = inner.server_version_num();
        Ok(PostgresConnection {
            inner,
            notices: version.is_some_and(|version| version >= NOTICES),
        })
    }

    fn alive(connection: &mut PostgresConnection) -> impl Future<Output = bool> + Send {
        let ping = connection.inner.ping();
        async { ping.await.is_ok() }
    }
}

/// A `PostgreSQL` database.
pub(super) struct PostgresEngine {
    pool: Arc<Pool<PostgresOpener>>,
}

impl PostgresEngine {
    /// `powerful`: roles that may do more than read are let through.
    pub(super) fn new(options: PgConnectOptions, powerful: bool) -> Self {
        let options = options
            .application_name("repertoire")
            .statement_cache_capacity(0)
            .disable_statement_logging();
        Self {
            pool: Arc::new(Pool::new(PostgresOpener { options, powerful })),
        }
    }

    /// See [`super::engine::Engine::run`].
    pub(super) async fn run(
        &self,
        order: Order,
        statement: &Checked,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        let mut lease = self.pool.take().await?;
        begin(&mut lease.connection, order, bounds.time).await?;
        let connection = &mut lease.connection.inner;
        let mut outcome = match server::check(connection, &statement.names, bounds.time).await {
            Ok(()) => inside(connection, order, &statement.sql, bounds).await,
            Err(error) => Err(error),
        };
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
            Ok(_) => self.clean(lease),
            Err(cause) if order == Order::Write && outcome.is_ok() => {
                outcome = Err(error::statement(cause, bounds.time));
            }
            Err(_) => {}
        }
        outcome
    }

    /// Keeps a connection without what outlives a transaction: advisory locks, settings,
    /// prepared statements, temporary tables. Where that fails it is closed.
    ///
    /// The answer does not wait for it, since the call's time may end meanwhile: what was
    /// committed would be told as given up, and be written again. The place does.
    fn clean(&self, mut lease: Lease<PostgresConnection>) {
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move {
            let discard = sqlx::raw_sql("DISCARD ALL").execute(&mut lease.connection.inner);
            if matches!(timeout(CLEANING, discard).await, Ok(Ok(_))) {
                pool.give_back(lease);
            }
        });
    }

    /// Places that no call and no session that is being cleaned holds.
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
        begin(&mut lease.connection, Order::Query, bounds.time).await?;
        let connection = &mut lease.connection.inner;
        let failed = |cause| error::statement(cause, bounds.time);
        let mut answers = Vec::with_capacity(questions.len());
        for (question, tables) in questions {
            let mut query = sqlx::query(*question).persistent(false);
            if let Some(tables) = tables {
                query = query.bind((*tables).to_owned());
            }
            let mut rows = Rows::new(bounds, Vec::new());
            let mut stream = query.fetch(&mut *connection);
            while let Some(row) = stream.try_next().await.map_err(failed)? {
                let width = row.len();
                if !rows.push((0..width).map(|at| cell(&row, at, "TEXT")).collect()) {
                    break;
                }
            }
            drop(stream);
            answers.push(rows);
        }
        let ended = sqlx::raw_sql("ROLLBACK").execute(connection).await.is_ok();
        if ended && answers.iter().all(|rows| rows.cut.is_none()) {
            self.clean(lease);
        }
        Ok(answers)
    }
}

async fn begin(
    connection: &mut PostgresConnection,
    order: Order,
    time: Duration,
) -> Result<(), ToolError> {
    let access = match order {
        Order::Write => "READ WRITE",
        _ => "READ ONLY",
    };
    let notices = if connection.notices {
        "SET LOCAL client_connection_check_interval = 1000; "
    } else {
        ""
    };
    // Strings end where the parser of the guard thinks that they do.
    let begin = format!(
        "BEGIN {access}; {notices}\
         SET LOCAL statement_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = 60000; \
         SET LOCAL standard_conforming_strings = on; \
         SET LOCAL DateStyle = ISO",
        time.as_millis().max(1)
    );
    sqlx::raw_sql(AssertSqlSafe(begin))
        .execute(&mut connection.inner)
        .await
        .map(drop)
        .map_err(|cause| error::statement(cause, time))
}

async fn inside(
    connection: &mut PgConnection,
    order: Order,
    sql: &str,
    bounds: Bounds,
) -> Result<Rows, ToolError> {
    let failed = |cause| error::statement(cause, bounds.time);
    let statement = (&mut *connection)
        .prepare(AssertSqlSafe(sql.to_owned()).into_sql_str())
        .await
        .map_err(failed)?;
    let values = match statement.parameters() {
        Some(Either::Left(types)) => types.len(),
        Some(Either::Right(count)) => count,
        None => 0,
    };
    if values > 0 {
        return Err(ToolError::new(
            ToolErrorKind::Failed,
            "Placeholders have no values here; write the values into the query.",
        ));
    }
    let columns: Vec<Column> = statement
        .columns()
        .iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            kind: column.type_info().name().to_owned(),
        })
        .collect();
    let query = match order {
        Order::Prepare => return Ok(Rows::new(bounds, columns)),
        Order::Write => return write(connection, sql, bounds, columns).await,
        Order::Query if columns.is_empty() => return Err(error::no_rows()),
        Order::Query => wrapped(sql, &columns, bounds.rows),
        Order::Explain => format!("EXPLAIN (ANALYZE false, COSTS true, FORMAT TEXT) {sql}"),
    };
    let columns = match order {
        Order::Explain => vec![Column {
            name: "QUERY PLAN".to_owned(),
            kind: "TEXT".to_owned(),
        }],
        _ => columns,
    };
    let mut rows = Rows::new(bounds, columns);
    let mut stream = sqlx::query(AssertSqlSafe(query))
        .persistent(false)
        .fetch(connection);
    while let Some(row) = stream.try_next().await.map_err(failed)? {
        let cells = read(&row, &rows.columns);
        if !rows.push(cells) {
            break;
        }
    }
    Ok(rows)
}

/// A query as the inside of one that makes text of its columns, and takes one row
/// more than there is room for.
fn wrapped(sql: &str, columns: &[Column], limit: usize) -> String {
    let mut outer = String::from("SELECT ");
    let mut names = String::new();
    for (at, column) in columns.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let text = match column.kind.as_str() {
            "BYTEA" => format!("{comma}'<' || octet_length(t.c{at}) || ' bytes>' AS c{at}"),
            _ => format!("{comma}left(t.c{at}::text, {}) AS c{at}", rows::CELL + 1),
        };
        outer.push_str(&text);
        names.push_str(comma);
        let name = format!("c{at}");
        names.push_str(&name);
    }
    // The line feed ends a comment at the end of the query.
    format!(
        "{outer} FROM (\n{sql}\n) AS t({names}) LIMIT {}",
        limit.saturating_add(1)
    )
}

/// Runs what was prepared before, so that it is one statement, and reads its rows
/// as text.
async fn write(
    connection: &mut PgConnection,
    sql: &str,
    bounds: Bounds,
    columns: Vec<Column>,
) -> Result<Rows, ToolError> {
    let mut rows = Rows::new(bounds, columns);
    let mut affected = 0;
    let mut stream = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_many(connection);
    while let Some(step) = stream
        .try_next()
        .await
        .map_err(|cause| error::statement(cause, bounds.time))?
    {
        match step {
            Either::Left(done) => affected += done.rows_affected(),
            // Where there is no room for more, the rest is read all the same:
            // what is written is written to its end.
            Either::Right(row) => {
                let cells = read(&row, &rows.columns);
                rows.push(cells);
            }
        }
    }
    drop(stream);
    rows.affected = Some(affected);
    Ok(rows)
}

fn read(row: &PgRow, columns: &[Column]) -> Vec<Value> {
    columns
        .iter()
        .enumerate()
        .map(|(at, column)| cell(row, at, &column.kind))
        .collect()
}

/// A column that came as text.
fn cell(row: &PgRow, at: usize, kind: &str) -> Value {
    let Ok(value) = row.try_get_raw(at) else {
        return Value::Null;
    };
    if value.is_null() {
        return Value::Null;
    }
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
