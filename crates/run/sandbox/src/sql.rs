//! SQL, on a scratch `SQLite` in memory.
//!
//! The engine itself is asked for everything that a statement names, when it is prepared
//! (`authorize`): tables and functions, in views too; `ATTACH`, `PRAGMA`, `VACUUM` and
//! what loads code are not among it. Its own limits bound lengths, its own counter ends
//! what takes too long, and what would differ from run to run has one value.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Batch, Connection, Error, ErrorCode};

use crate::deadline::used;
use crate::job::{Cell, Limits, Outcome, SqlCase, Stopped};

/// Steps after which a statement checks the time.
const TIME_CHECK_INTERVAL: i32 = 1000;

/// Limits of a statement. Lengths bound the cost of one step.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1 << 10),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 500),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 500),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 100),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Functions that a statement may call.
const FUNCTIONS: &str = include_str!("functions.txt");

/// The time in every case, so that the same solution has the same rows every day.
const NOW: &str = "2025-01-15 12:00:00";

/// Functions that read the clock, and the number of arguments before the one for the time,
/// which may be missing.
const CLOCKS: &[(&str, usize)] = &[
    ("date", 0),
    ("time", 0),
    ("datetime", 0),
    ("julianday", 0),
    ("unixepoch", 0),
    ("strftime", 1),
];

/// Lets the library read what it opens files for, once: the seed of random numbers, and
/// for both engines the time zone.
pub(crate) fn prepare() -> rusqlite::Result<()> {
    let sql = "SELECT random(), datetime('now', 'localtime')";
    Connection::open_in_memory()?.query_row(sql, [], |_| Ok(()))
}

/// Runs the solution on one database.
pub(crate) fn run(
    case: &SqlCase,
    solution: &str,
    may_write: bool,
    limits: &Limits,
    until: Duration,
) -> Outcome {
    let late = Arc::new(AtomicBool::new(false));
    match rows(case, solution, may_write, limits, until, &late) {
        Ok(outcome) => outcome,
        Err(_) if late.load(Ordering::Relaxed) => Outcome::Stopped(Stopped::Time),
        Err(error) => thrown(&error, solution),
    }
}

fn rows(
    case: &SqlCase,
    solution: &str,
    may_write: bool,
    limits: &Limits,
    until: Duration,
    late: &Arc<AtomicBool>,
) -> rusqlite::Result<Outcome> {
    let connection = Connection::open_in_memory()?;
    let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
    // SQLite has one such limit for the whole process, which is fine here: cases run one at a
    // time.
    connection.pragma_update(None, "hard_heap_limit", memory)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let late = Arc::clone(late);
    connection.progress_handler(
        TIME_CHECK_INTERVAL,
        Some(move || {
            let over = used() >= until;
            late.fetch_or(over, Ordering::Relaxed);
            over
        }),
    )?;
    // As the engine is where nobody changed its defaults; the exercise may.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    clocks(&connection)?;
    // The exercise's own.
    connection.execute_batch(&case.data)?;
    // From here on, views and triggers may call only functions that are marked as harmless, and no
    // statement can write the tables that hold the schema itself.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for (limit, max) in LIMITS {
        connection.set_limit(*limit, *max)?;
    }
    if !may_write {
        // The authorizer also refuses statements that write: this is a second barrier.
        connection.pragma_update(None, "query_only", true)?;
    }
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        authorize(&context.action, may_write)
    }))?;
    let answer = all(&connection, solution, limits)?;
    let Some(query) = &case.query else {
        return Ok(answer);
    };
    if let Outcome::Stopped(_) = answer {
        return Ok(answer);
    }
    all(&connection, query, limits)
}

/// Runs statement after statement: the rows are those of the last one that has any columns.
fn all(connection: &Connection, sql: &str, limits: &Limits) -> rusqlite::Result<Outcome> {
    let mut answer = Outcome::Rows {
        columns: Vec::new(),
        rows: Vec::new(),
    };
    let mut batch = Batch::new(connection, sql);
    while let Some(mut statement) = batch.next()? {
        let columns: Vec<String> = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let width = columns.len();
        // Each statement has the whole allowance, since only the rows of the last one are
        // returned.
        let mut left = limits.output_bytes;
        let mut taken = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut cells = Vec::with_capacity(width);
            for index in 0..width {
                let (cell, bytes) = cell(row.get_ref(index)?);
                let Some(rest) = left.checked_sub(bytes) else {
                    return Ok(Outcome::Stopped(Stopped::Output));
                };
                left = rest;
                cells.push(cell);
            }
            if width > 0 {
                taken.push(cells);
            }
        }
        if width > 0 {
            answer = Outcome::Rows {
                columns,
                rows: taken,
            };
        }
    }
    Ok(answer)
}

/// A cell, and what it counts of the output.
fn cell(value: ValueRef<'_>) -> (Cell, usize) {
    match value {
        ValueRef::Null => (Cell::Null, 4),
        ValueRef::Integer(number) => (Cell::Integer(number), 4),
        // JSON has no word for infinity, and SQLite has no other number that is not one.
        ValueRef::Real(number) if !number.is_finite() => (Cell::Text(number.to_string()), 4),
        ValueRef::Real(number) => (Cell::Real(number), 4),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            (Cell::Text(text), bytes.len() + 4)
        }
        ValueRef::Blob(bytes) => {
            let digit = |four: u8| char::from_digit(u32::from(four), 16).unwrap_or('0');
            let digits: String = bytes
                .iter()
                .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
                .collect();
            (Cell::Blob(digits.to_uppercase()), bytes.len() * 2 + 4)
        }
    }
}

/// Converts an error of the database.
fn thrown(error: &Error, solution: &str) -> Outcome {
    match error {
        Error::SqliteFailure(cause, _) if cause.code == ErrorCode::OutOfMemory => {
            Outcome::Stopped(Stopped::Memory)
        }
        Error::SqlInputError {
            msg, sql, offset, ..
        } => {
            // It names the rest of the text, from the statement on.
            let before = solution.strip_suffix(sql.as_str()).and_then(|before| {
                let offset = usize::try_from(*offset).ok()?;
                solution.get(..before.len() + offset)
            });
            Outcome::Thrown {
                name: String::new(),
                message: msg.clone(),
                line: before.and_then(|text| u32::try_from(text.matches('\n').count() + 1).ok()),
            }
        }
        Error::SqliteFailure(_, Some(message)) => plain(message.clone()),
        other => plain(other.to_string()),
    }
}

fn plain(message: String) -> Outcome {
    Outcome::Thrown {
        name: String::new(),
        message,
        line: None,
    }
}

/// Answers the engine's authorizer while it prepares a statement.
fn authorize(action: &AuthAction<'_>, writes: bool) -> Authorization {
    let allowed = match action {
        AuthAction::Select | AuthAction::Recursive | AuthAction::Read { .. } => true,
        AuthAction::Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            FUNCTIONS
                .lines()
                .filter(|line| !line.starts_with('#'))
                .flat_map(str::split_whitespace)
                .any(|listed| listed == name)
                // Those of ALTER TABLE, which no statement can name.
                || (writes && name.starts_with("sqlite_"))
        }
        AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. } => writes,
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

/// Replaces functions that read the clock by ones for which it is [`NOW`]. They call the
/// engine's own functions on a second connection.
fn clocks(connection: &Connection) -> rusqlite::Result<()> {
    for (name, before) in CLOCKS {
        // It is opened by the first call, since most solutions never ask for the time.
        let second = OnceCell::new();
        connection.create_scalar_function(
            *name,
            -1,
            // Without this mark no view could call them, now that schemas are not trusted.
            FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS,
            move |context| {
                let mut given: Vec<Value> = Vec::with_capacity(context.len() + 1);
                for index in 0..context.len() {
                    given.push(match context.get_raw(index) {
                        ValueRef::Text(text)
                            if index == *before && text.eq_ignore_ascii_case(b"now") =>
                        {
                            Value::Text(NOW.to_owned())
                        }
                        other => other.try_into()?,
                    });
                }
                if given.len() == *before {
                    given.push(Value::Text(NOW.to_owned()));
                }
                let second = if let Some(second) = second.get() {
                    second
                } else {
                    let opened = Connection::open_in_memory()?;
                    second.get_or_init(|| opened)
                };
                let marks = vec!["?"; given.len()].join(",");
                second
                    .prepare_cached(&format!("SELECT {name}({marks})"))?
                    .query_row(rusqlite::params_from_iter(given), |row| {
                        row.get::<_, Value>(0)
                    })
            },
        )?;
    }
    for (name, value) in [
        ("current_timestamp", NOW.get(..)),
        ("current_date", NOW.get(..10)),
        ("current_time", NOW.get(11..)),
    ] {
        connection.create_scalar_function(
            name,
            0,
            FunctionFlags::SQLITE_UTF8
                | FunctionFlags::SQLITE_INNOCUOUS
                | FunctionFlags::SQLITE_DETERMINISTIC,
            move |_| Ok(value),
        )?;
    }
    Ok(())
}
