//! Errors of databases in words for the caller.
//!
//! Callers get a database's own error about their statement. Errors on the way to it
//! have fixed texts only: those of the drivers may hold the address, the user, or the
//! password.

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;

use handler::ToolError;

const ADVICE: &str = "Tell the user that the database of this server (`tools.sql.url`) needs its operator; \
                      write the query without running it";

/// Numbers of `MySQL` for errors whose texts name the user and the host.
const MYSQL_RIGHTS: &[u16] = &[
    1044, 1045, 1095, 1142, 1143, 1227, 1370, 1410, 1449, 1698, 3118,
];

/// Numbers of `MySQL` for a statement that took too long.
const MYSQL_LATE: &[u16] = &[1028, 1317, 1969, 3024];

/// Numbers of `MySQL` for a server that goes away.
const MYSQL_GONE: &[u16] = &[1053, 1152, 1153, 1927, 4031];

/// The database cannot be reached.
pub(super) fn unreachable() -> ToolError {
    unavailable("The database cannot be reached.")
}

fn unavailable(message: &str) -> ToolError {
    let mut error = ToolError::unavailable(message).suggest(ADVICE);
    error.retry_after = Some(Duration::from_secs(10));
    error
}

/// No connection could be opened.
pub(super) fn connecting(cause: &sqlx::Error) -> ToolError {
    let code = match cause {
        sqlx::Error::Database(error) => number(error.as_ref()),
        sqlx::Error::Tls(_) => {
            return unavailable("The database cannot be reached: TLS could not be agreed on.");
        }
        _ => return unreachable(),
    };
    match code.as_str() {
        // These are SQLSTATEs of PostgreSQL and error numbers of MySQL, here for a login that was
        // refused.
        "28P01" | "28000" | "1044" | "1045" | "1698" => {
            unavailable("The database does not let this server in.")
        }
        "3D000" | "1049" => unavailable("The database server has no such database."),
        "53300" | "1040" | "1203" => unavailable("The database has no connection left."),
        _ => unreachable(),
    }
}

/// The code of an error: a SQLSTATE, or a number of `MySQL`.
fn number(error: &dyn DatabaseError) -> String {
    match error.try_downcast_ref::<MySqlDatabaseError>() {
        Some(error) => error.number().to_string(),
        None => error.code().unwrap_or_default().into_owned(),
    }
}

/// It took too long.
pub(super) fn late(limit: Duration) -> ToolError {
    ToolError::timeout(format!(
        "The statement took longer than {} seconds and was stopped.",
        limit.as_secs_f64()
    ))
    .suggest("Read its plan with sql_explain_query, narrow the range, or aggregate first")
}

/// It took too long, and whether it has ended is not known; `may_write`: nor whether it
/// has changed anything.
pub(super) fn given_up(limit: Duration, may_write: bool) -> ToolError {
    let error = ToolError::timeout(format!(
        "The statement took longer than {} seconds and was given up; the database may still work on it.",
        limit.as_secs_f64()
    ));
    let error = if may_write {
        error.suggest(
            "If it changes anything, check whether it took effect before you send it again",
        )
    } else {
        error
    };
    error.suggest("Read its plan with sql_explain_query, narrow the range, or aggregate first")
}

/// A statement failed. `limit` is how long it may take.
pub(super) fn statement(cause: sqlx::Error, limit: Duration) -> ToolError {
    let sqlx::Error::Database(error) = cause else {
        return match cause {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                ToolError::failed("A value could not be read.")
                    .suggest("Cast it to text in the query")
            }
            sqlx::Error::Protocol(_) => {
                ToolError::failed("The answer of the database could not be understood.")
                    .suggest("Leave out columns of unusual types, or cast them to text")
            }
            _ => unavailable("The connection to the database was lost."),
        };
    };
    let message = error.message().to_owned();
    if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
        let number = error.number();
        return match number {
            _ if MYSQL_LATE.contains(&number) => late(limit),
            _ if MYSQL_GONE.contains(&number) => unavailable("The database is shutting down."),
            _ if MYSQL_RIGHTS.contains(&number) => {
                ToolError::denied("The database does not allow this server's user to do that.")
            }
            // 1792: the transaction only reads. 1290 and 1836: the server only reads.
            1792 | 1290 | 1836 => denied(&message),
            _ => failed(&message),
        };
    }
    if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
        return match error.code() {
            // 57014 is a canceled statement, 25006 a write in a read-only transaction, 42501 a
            // missing right.
            "57014" => late(limit),
            "25006" | "42501" => denied(&message),
            code if code.starts_with("57P") => unavailable("The database is shutting down."),
            // A function tried to reach another server; details may name it.
            code if code.starts_with("08") => failed(error.message()),
            _ => failed(&postgres(error)),
        };
    }
    failed(&message)
}

/// A statement of `SQLite` failed. `limit` is how long it may take.
pub(super) fn sqlite(cause: &rusqlite::Error, limit: Duration) -> ToolError {
    use rusqlite::Error::{MultipleStatement, SqlInputError, SqliteFailure};
    let (error, message) = match cause {
        SqliteFailure(error, message) => (error, message.clone()),
        SqlInputError { error, msg, .. } => (error, Some(msg.clone())),
        MultipleStatement => return failed("only one statement is run per call"),
        other => return failed(&other.to_string()),
    };
    let message = message.unwrap_or_else(|| error.to_string());
    // The lower byte is the code, the rest makes it more precise.
    match error.extended_code & 0xff {
        // The codes are INTERRUPT; READONLY and AUTH; ERROR; BUSY and LOCKED; NOMEM; CANTOPEN and
        // NOTADB; TOOBIG.
        9 => late(limit),
        8 | 23 => denied(&message),
        // The authorizer's refusal of a function has no code of its own.
        1 if message.starts_with("not authorized") => denied(&message),
        5 | 6 => unavailable("The database is locked by another program."),
        7 => failed("the statement needs more memory than it may have"),
        14 | 26 => unavailable("The database cannot be opened."),
        18 => failed("a value has more than 1 MiB; use length() for its size"),
        _ => failed(&message),
    }
}

fn postgres(error: &PgDatabaseError) -> String {
    let mut text = error.message().to_owned();
    for more in [error.detail(), error.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(more);
    }
    text
}

fn denied(message: &str) -> ToolError {
    ToolError::denied(format!("The database refused: {message}"))
}

fn failed(message: &str) -> ToolError {
    ToolError::failed(format!("The database answered: {message}"))
        .suggest("Check names with sql_list_tables and sql_describe_table")
}

/// A statement that gives no rows was handed in as a query.
pub(super) fn no_rows() -> ToolError {
    ToolError::denied("The database says that this is no query: it gives no columns.")
        .field("query")
}
