//! `SQLite`: a file of the operator's, or the sample database.
//!
//! Reading is held to three times: the file is opened for reading only, or is an
//! image in memory that cannot be written; `query_only` is set before each
//! statement; and a statement that gives no columns is not run. A statement
//! stops when nobody waits for it, by a handler that `SQLite` asks every thousand
//! steps.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteOwnedBuf, SqliteRow, SqliteValueRef,
};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Decode, Either,
    Executor as _, Row as _, SqlSafeStr as _, Sqlite, Statement as _, TypeInfo as _, ValueRef as _,
};
use tokio::sync::OnceCell;

use super::engine::{Order, Question};
use super::error;
use super::pool::{Lease, Opener, Pool};
use super::rows::{self, Bounds, Column, Rows};
use crate::tools::ToolError;

/// The sample database.
const SAMPLE: &str = include_str!("sample.sql");

/// Bytes of memory that `SQLite` may have in this process: a query cannot make
/// values, sorts or groups that the server would die of.
const MEMORY: &str = "268435456";

/// Steps after which a statement looks whether it is still wanted.
const STEPS: i32 = 1000;

/// Opens connections to one database.
pub(super) struct SqliteOpener {
    options: SqliteConnectOptions,
    /// The sample: its bytes, once they were made.
    sample: Option<OnceCell<Vec<u8>>>,
}

impl Opener for SqliteOpener {
    type Connection = SqliteConnection;

    async fn open(&self) -> Result<SqliteConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        if let Some(sample) = &self.sample {
            let image = sample.get_or_try_init(image).await?;
            let image = SqliteOwnedBuf::try_from(image.as_slice())?;
            connection.deserialize(None, image, true).await?;
        }
        Ok(connection)
    }

    fn alive(connection: &mut SqliteConnection) -> impl Future<Output = bool> + Send {
        let ping = connection.ping();
        async { ping.await.is_ok() }
    }
}

/// The sample database as the bytes of a file.
async fn image() -> Result<Vec<u8>, sqlx::Error> {
    let mut connection = quiet(SqliteConnectOptions::new()).connect().await?;
    sqlx::raw_sql(SAMPLE).execute(&mut connection).await?;
    let image = connection.serialize(None).await?.to_vec();
    connection.close().await?;
    Ok(image)
}

/// Statements may hold what logs should not.
fn quiet(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .disable_statement_logging()
        .statement_cache_capacity(0)
        .thread_name(|number| format!("sql-sqlite-{number}"))
}

/// A `SQLite` database.
pub(super) struct SqliteEngine {
    pool: Pool<SqliteOpener>,
    read_only: bool,
}

/// Stops the statement when it is dropped, at the end or before.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl SqliteEngine {
    /// The database in a file.
    pub(super) fn file(options: SqliteConnectOptions, read_only: bool) -> Self {
        Self::new(
            options.read_only(read_only).create_if_missing(false),
            None,
            read_only,
        )
    }

    /// The sample database, which is never written.
    pub(super) fn sample() -> Self {
        Self::new(SqliteConnectOptions::new(), Some(OnceCell::new()), true)
    }

    fn new(
        options: SqliteConnectOptions,
        sample: Option<OnceCell<Vec<u8>>>,
        read_only: bool,
    ) -> Self {
        let options = quiet(options)
            .busy_timeout(Duration::from_secs(2))
            .pragma("hard_heap_limit", MEMORY)
            .pragma("temp_store", "MEMORY")
            .pragma("trusted_schema", "OFF");
        Self {
            pool: Pool::new(SqliteOpener { options, sample }),
            read_only,
        }
    }

    /// A connection that is ready for one statement.
    async fn ready(
        &self,
        order: Order,
        limit: Duration,
    ) -> Result<(Lease<SqliteConnection>, Wanted), ToolError> {
        let mut lease = self.pool.take().await?;
        let wanted = Arc::new(AtomicBool::new(true));
        let look = Arc::clone(&wanted);
        let wanted = Wanted(wanted);
        let failed = |cause| error::statement(cause, limit);
        lease
            .connection
            .lock_handle()
            .await
            .map_err(failed)?
            .set_progress_handler(STEPS, move || look.load(Ordering::Relaxed));
        // Each time: a statement of before may have turned it off.
        let only = if self.read_only || order != Order::Write {
            "PRAGMA query_only = ON"
        } else {
            "PRAGMA query_only = OFF"
        };
        sqlx::raw_sql(only)
            .execute(&mut lease.connection)
            .await
            .map_err(failed)?;
        Ok((lease, wanted))
    }

    /// See [`super::engine::Engine::run`].
    pub(super) async fn run(
        &self,
        order: Order,
        sql: &str,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        let (mut lease, wanted) = self.ready(order, bounds.time).await?;
        let outcome = inside(&mut lease.connection, order, sql, bounds).await;
        drop(wanted);
        if outcome.as_ref().is_ok_and(|rows| rows.cut.is_none()) {
            self.pool.give_back(lease);
        }
        outcome
    }

    /// Answers of the catalog.
    pub(super) async fn ask(
        &self,
        questions: &[Question<'_>],
        bounds: Bounds,
    ) -> Result<Vec<Rows>, ToolError> {
        let (mut lease, wanted) = self.ready(Order::Query, bounds.time).await?;
        let mut answers = Vec::with_capacity(questions.len());
        for (question, tables) in questions {
            let mut query = sqlx::query(*question).persistent(false);
            if let Some(tables) = tables {
                query = query.bind((*tables).to_owned());
            }
            let mut rows = Rows::new(bounds, Vec::new());
            let mut stream = query.fetch(&mut lease.connection);
            while let Some(row) = next(&mut stream, bounds).await? {
                if !rows.push(cells(&row)) {
                    break;
                }
            }
            drop(stream);
            answers.push(rows);
        }
        drop(wanted);
        if answers.iter().all(|rows| rows.cut.is_none()) {
            self.pool.give_back(lease);
        }
        Ok(answers)
    }

    #[cfg(test)]
    pub(super) async fn connection(&self) -> SqliteConnection {
        let lease = self.pool.take().await;
        lease.expect("a connection").connection
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.pool.waiting()
    }
}

async fn next<T: Send>(
    stream: &mut futures_util::stream::BoxStream<'_, Result<T, sqlx::Error>>,
    bounds: Bounds,
) -> Result<Option<T>, ToolError> {
    stream
        .try_next()
        .await
        .map_err(|cause| error::statement(cause, bounds.time))
}

async fn inside(
    connection: &mut SqliteConnection,
    order: Order,
    sql: &str,
    bounds: Bounds,
) -> Result<Rows, ToolError> {
    // The driver would look for a next statement behind it for ever.
    if sql.contains('\0') {
        return Err(error::no_rows());
    }
    let sql = match order {
        Order::Explain => format!("EXPLAIN QUERY PLAN {sql}"),
        _ => sql.to_owned(),
    };
    let statement = (&mut *connection)
        .prepare(AssertSqlSafe(sql.clone()).into_sql_str())
        .await
        .map_err(|cause| error::statement(cause, bounds.time))?;
    let columns: Vec<Column> = statement
        .columns()
        .iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            kind: match column.type_info().name() {
                "NULL" => String::new(),
                kind => kind.to_owned(),
            },
        })
        .collect();
    let mut rows = Rows::new(bounds, columns);
    if order == Order::Prepare {
        return Ok(rows);
    }
    if order != Order::Write && rows.columns.is_empty() {
        return Err(error::no_rows());
    }
    let mut stream = connection.fetch_many(sqlx::query(AssertSqlSafe(sql)).persistent(false));
    while let Some(step) = next(&mut stream, bounds).await? {
        match step {
            Either::Left(done) if order == Order::Write => {
                rows.affected = Some(done.rows_affected());
            }
            Either::Left(_) => {}
            Either::Right(row) => {
                name_types(&mut rows.columns, &row);
                // What is written is written to its end.
                if !rows.push(cells(&row)) && order != Order::Write {
                    break;
                }
            }
        }
    }
    Ok(rows)
}

/// The type of a computed column is that of its first value.
fn name_types(columns: &mut [Column], row: &SqliteRow) {
    for (at, column) in columns.iter_mut().enumerate() {
        if column.kind.is_empty()
            && let Ok(value) = row.try_get_raw(at)
            && !value.is_null()
        {
            value.type_info().name().clone_into(&mut column.kind);
        }
    }
}

fn cells(row: &SqliteRow) -> Vec<serde_json::Value> {
    (0..row.len())
        .map(|at| row.try_get_raw(at).map_or(serde_json::Value::Null, cell))
        .collect()
}

fn cell(value: SqliteValueRef<'_>) -> serde_json::Value {
    if value.is_null() {
        return serde_json::Value::Null;
    }
    let kind = value.type_info().name().to_owned();
    let read = match kind.as_str() {
        "INTEGER" => <i64 as Decode<Sqlite>>::decode(value).map(rows::integer),
        "REAL" => <f64 as Decode<Sqlite>>::decode(value).map(rows::float),
        "BLOB" => <&[u8] as Decode<Sqlite>>::decode(value).map(|bytes| rows::binary(bytes.len())),
        _ => <&[u8] as Decode<Sqlite>>::decode(value).map(rows::lossy),
    };
    read.unwrap_or_else(|_| format!("<{kind}>").into())
}
