//! `SQLite`: a file of the operator's, or the sample database.
//!
//! A statement runs on a thread and a connection of its own, which keep one of a few
//! permits until they are back, even if nobody waits any more. Reading is held to by the engine:
//! the file is opened for reading only, or is an image in memory that cannot be
//! written; `query_only` is set; and its authorizer is asked about every table and
//! function that a statement names, in views too.
//!
//! The engine asks every thousand steps whether the statement is still wanted. What one
//! step can cost is bounded by the lengths of values and patterns, and by functions of
//! ours where the engine's own take too long.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::engine::{Order, Question};
use super::error;
use super::functions::Functions;
use super::pool::{self, MAX_CONNECTIONS};
use super::relations;
use super::rows::{self, Bounds, Column, Rows};
use super::scalar;
use handler::ToolError;

/// The sample database.
const SAMPLE: &str = include_str!("sample.sql");

/// Bytes of memory that `SQLite` may have in this process: a query cannot make
/// values, sorts or groups that the server would die of.
const MAX_MEMORY_BYTES: i64 = 256 << 20;

/// Steps after which a statement checks whether it is still wanted.
const STOP_CHECK_INTERVAL: i32 = 1000;

/// Bytes that a value may have.
const LENGTH: i32 = 1 << 20;

/// Limits of a statement. Lengths bound the cost of one step, the others the cost of
/// preparing.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, LENGTH),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1 << 10),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 17),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 500),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 200),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 100),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Time that a statement may take to stop once it was asked to.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// The location of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The sample, which is never written.
    Sample,
    /// A file. `immutable`: nobody writes it while it is read.
    File { path: PathBuf, immutable: bool },
}

/// A `SQLite` database.
pub(super) struct SqliteEngine {
    source: Source,
    read_only: bool,
    functions: Arc<Functions>,
    permits: Arc<Semaphore>,
}

/// Stops the statement when it is dropped, at the end or before.
struct StatementGuard(Arc<AtomicBool>);

impl Drop for StatementGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl SqliteEngine {
    pub(super) fn new(source: Source, read_only: bool, functions: Arc<Functions>) -> Self {
        Self {
            read_only: read_only || source == Source::Sample,
            source,
            functions,
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// See [`super::engine::Engine::run`].
    pub(super) async fn run(
        &self,
        order: Order,
        sql: &str,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        let writes = order == Order::Write && !self.read_only;
        let functions = Arc::clone(&self.functions);
        let sql = match order {
            Order::Explain => format!("EXPLAIN QUERY PLAN {sql}"),
            _ => sql.to_owned(),
        };
        self.work(writes, bounds, move |connection| {
            // `SQLite` asks about every function and table itself, in views and triggers too,
            // which no reading of the statement sees. sqlx has no safe way to this, so
            // `SQLite` goes by rusqlite.
            connection.authorizer(Some(move |context: AuthContext<'_>| {
                authorize(&context.action, &functions, writes)
            }))?;
            inside(connection, order, &sql, bounds)
        })
        .await
    }

    /// Answers of the catalog.
    pub(super) async fn ask(
        &self,
        questions: &[Question<'_>],
        bounds: Bounds,
    ) -> Result<Vec<Rows>, ToolError> {
        let questions: Vec<(&'static str, Option<String>)> = questions
            .iter()
            .map(|(question, tables)| (*question, tables.map(str::to_owned)))
            .collect();
        self.work(false, bounds, move |connection| {
            let mut answers = Vec::with_capacity(questions.len());
            for (question, tables) in &questions {
                let mut statement = connection.prepare(question)?;
                let width = statement.column_count();
                let mut found = statement.query(rusqlite::params_from_iter(tables))?;
                let mut rows = Rows::new(bounds, Vec::new());
                while let Some(row) = found.next()? {
                    if !rows.push(cells(row, width)?) {
                        break;
                    }
                }
                answers.push(rows);
            }
            Ok(Ok(answers))
        })
        .await
    }

    /// Works on a connection, on a thread that keeps its permit until it is back.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        writes: bool,
        bounds: Bounds,
        task: impl FnOnce(&Connection) -> rusqlite::Result<Result<T, ToolError>> + Send + 'static,
    ) -> Result<T, ToolError> {
        // Waiting for a permit is part of the call's time.
        let deadline = Instant::now() + bounds.time;
        let permit = pool::permit(&self.permits).await?;
        let flag = Arc::new(AtomicBool::new(true));
        let (source, asked) = (self.source.clone(), Arc::clone(&flag));
        let wanted = StatementGuard(flag);
        let (answer, mut answered) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("sql-sqlite".to_owned())
            .spawn(move || {
                let outcome = match open(&source, writes, &asked) {
                    Ok(connection) => task(&connection)
                        .unwrap_or_else(|cause| Err(error::sqlite(&cause, bounds.time))),
                    Err(_) => Err(error::unreachable()),
                };
                // By the thread, not by its caller: a statement that nobody waits for still
                // has a processor and its memory.
                drop(permit);
                // Nobody may wait any more.
                drop(answer.send(outcome));
            });
        thread.map_err(|_| error::unreachable())?;
        if let Ok(outcome) = timeout_at(deadline, &mut answered).await {
            return outcome.unwrap_or_else(|_| Err(error::unreachable()));
        }
        drop(wanted);
        match timeout(STOP_TIMEOUT, answered).await {
            // It ended before it saw the flag, so what it wrote is written.
            Ok(Ok(Ok(outcome))) => Ok(outcome),
            Ok(_) => Err(error::late(bounds.time)),
            Err(_) => Err(error::given_up(bounds.time, writes)),
        }
    }

    /// Permits that no thread holds.
    #[cfg(test)]
    pub(super) fn free_permits(&self) -> usize {
        self.permits.available_permits()
    }
}

/// The sample database as the bytes of a file.
fn image() -> rusqlite::Result<&'static [u8]> {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(image) = IMAGE.get() {
        return Ok(image);
    }
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SAMPLE)?;
    let image = connection.serialize("main")?.to_vec();
    // Two callers may both build it; the first to finish wins.
    Ok(IMAGE.get_or_init(|| image))
}

/// A connection that is bounded and, unless it `writes`, only reads.
fn open(source: &Source, writes: bool, wanted: &Arc<AtomicBool>) -> rusqlite::Result<Connection> {
    let connection = match source {
        Source::Sample => {
            let mut connection = Connection::open_in_memory()?;
            let image = image()?;
            connection.deserialize_read_exact("main", image, image.len(), true)?;
            connection
        }
        Source::File { path, immutable } => {
            let access = if writes {
                OpenFlags::SQLITE_OPEN_READ_WRITE
            } else {
                OpenFlags::SQLITE_OPEN_READ_ONLY
            };
            // A connection never leaves its thread, so the engine need not lock it.
            let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            if *immutable {
                // A `?` in the path would start options of the URI, such as `mode=rwc`.
                let path = percent_encoding::utf8_percent_encode(
                    &path.to_string_lossy(),
                    percent_encoding::NON_ALPHANUMERIC,
                )
                .to_string();
                let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?
            } else {
                Connection::open_with_flags(path, flags)?
            }
        }
    };
    connection.busy_timeout(Duration::from_secs(2))?;
    // The engine has one such limit for the whole process: all running statements share it.
    connection.pragma_update(None, "hard_heap_limit", MAX_MEMORY_BYTES)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "query_only", !writes)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for (limit, max) in LIMITS {
        connection.set_limit(*limit, *max)?;
    }
    scalar::install(&connection, LENGTH.unsigned_abs() as usize)?;
    let wanted = Arc::clone(wanted);
    connection.progress_handler(
        STOP_CHECK_INTERVAL,
        Some(move || !wanted.load(Ordering::Relaxed)),
    )?;
    Ok(connection)
}

/// Answers the engine's authorizer while it prepares a statement.
fn authorize(action: &AuthAction<'_>, functions: &Functions, writes: bool) -> Authorization {
    let allowed = match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => relations::sqlite(table_name),
        AuthAction::Function { function_name } => {
            functions
                .allow(None, &function_name.to_ascii_lowercase())
                .is_some()
                // Those of ALTER TABLE, which no statement can name.
                || (writes && function_name.starts_with("sqlite_"))
        }
        // Full-text search asks by this whether the file has changed.
        AuthAction::Pragma {
            pragma_name,
            pragma_value: None,
        } => pragma_name.eq_ignore_ascii_case("data_version"),
        AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. } => writes,
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

fn inside(
    connection: &Connection,
    order: Order,
    sql: &str,
    bounds: Bounds,
) -> rusqlite::Result<Result<Rows, ToolError>> {
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<Column> = statement
        .columns()
        .iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            kind: column.decl_type().unwrap_or_default().to_owned(),
        })
        .collect();
    let width = columns.len();
    let mut rows = Rows::new(bounds, columns);
    // The guard lets unknown syntax through if it begins like a query. The engine knows whether it
    // is one.
    if order != Order::Write && (width == 0 || !statement.readonly()) {
        return Ok(Err(error::no_rows()));
    }
    if order == Order::Prepare {
        return Ok(Ok(rows));
    }
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        name_types(&mut rows.columns, row)?;
        // A statement that writes runs to its end, even if its rows no longer fit.
        if !rows.push(cells(row, width)?) && order != Order::Write {
            break;
        }
    }
    drop(found);
    if order == Order::Write {
        rows.affected = Some(connection.changes());
    }
    Ok(Ok(rows))
}

/// The type of a computed column is that of its first value.
fn name_types(columns: &mut [Column], row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
    for (at, column) in columns.iter_mut().enumerate() {
        if column.kind.is_empty() {
            let kind = match row.get_ref(at)? {
                ValueRef::Null => "",
                ValueRef::Integer(_) => "INTEGER",
                ValueRef::Real(_) => "REAL",
                ValueRef::Text(_) => "TEXT",
                ValueRef::Blob(_) => "BLOB",
            };
            kind.clone_into(&mut column.kind);
        }
    }
    Ok(())
}

fn cells(row: &rusqlite::Row<'_>, width: usize) -> rusqlite::Result<Vec<Value>> {
    (0..width)
        .map(|at| {
            Ok(match row.get_ref(at)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => rows::integer(number),
                ValueRef::Real(number) => rows::float(number),
                ValueRef::Text(bytes) => rows::lossy(bytes),
                ValueRef::Blob(bytes) => rows::binary(bytes.len()),
            })
        })
        .collect()
}
