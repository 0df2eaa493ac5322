//! Functions of `SQLite` whose time grows with the product of two texts, with time that
//! grows with their sum: `instr`, `replace`, and `trim` with letters.
//!
//! The engine asks whether a statement is still wanted between its steps, and a call is
//! one step. Its own `instr` of a mebibyte in another takes half a minute.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Result, ffi};
use rustc_hash::FxHashSet;

/// Replaces the engine's own functions. `limit`: bytes that a value may have.
pub(super) fn install(connection: &Connection, limit: usize) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("instr", 2, flags, |call| Ok(instr(call)))?;
    connection.create_scalar_function("replace", 3, flags, move |call| replace(call, limit))?;
    for (name, left, right) in [
        ("trim", true, true),
        ("ltrim", true, false),
        ("rtrim", false, true),
    ] {
        for arguments in [1, 2] {
            connection.create_scalar_function(name, arguments, flags, move |call| {
                Ok(trim(call, left, right))
            })?;
        }
    }
    Ok(())
}

/// A value as text, as the engine would make one; none of NULL.
fn text(value: ValueRef<'_>) -> Option<String> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    })
}

/// A number with a point, in up to 15 digits as the engine writes it.
fn real(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let short = number.to_string();
    if short.len() <= 17 && short.parse() == Ok(number) {
        if short.contains('.') {
            short
        } else {
            format!("{short}.0")
        }
    } else {
        format!("{number:.14e}")
    }
}

fn instr(call: &Context<'_>) -> Option<i64> {
    let (within, wanted) = (call.get_raw(0), call.get_raw(1));
    let at = if let (ValueRef::Blob(within), ValueRef::Blob(wanted)) = (within, wanted) {
        memchr::memmem::find(within, wanted)
    } else {
        let (within, wanted) = (text(within)?, text(wanted)?);
        memchr::memmem::find(within.as_bytes(), wanted.as_bytes())
            .map(|at| within.get(..at).map_or(0, |before| before.chars().count()))
    };
    Some(at.map_or(0, |at| i64::try_from(at + 1).unwrap_or(i64::MAX)))
}

fn replace(call: &Context<'_>, limit: usize) -> Result<Option<String>> {
    let (Some(within), Some(wanted)) = (text(call.get_raw(0)), text(call.get_raw(1))) else {
        return Ok(None);
    };
    if wanted.is_empty() {
        return Ok(Some(within));
    }
    let Some(by) = text(call.get_raw(2)) else {
        return Ok(None);
    };
    let times = memchr::memmem::find_iter(within.as_bytes(), wanted.as_bytes()).count();
    // Counted before it is made.
    let length =
        (within.len() - times * wanted.len()).saturating_add(times.saturating_mul(by.len()));
    if length > limit {
        return Err(Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_TOOBIG),
            None,
        ));
    }
    Ok(Some(within.replace(&wanted, &by)))
}

fn trim(call: &Context<'_>, left: bool, right: bool) -> Option<ToSqlOutput<'static>> {
    let value = text(call.get_raw(0))?;
    // A set, because the engine compares each character of the one text with each of the other.
    let letters: FxHashSet<char> = if call.len() > 1 {
        text(call.get_raw(1))?.chars().collect()
    } else {
        FxHashSet::from_iter([' '])
    };
    let mut trimmed = value.as_str();
    if left {
        trimmed = trimmed.trim_start_matches(|letter| letters.contains(&letter));
    }
    if right {
        trimmed = trimmed.trim_end_matches(|letter| letters.contains(&letter));
    }
    Some(ToSqlOutput::Owned(Value::Text(trimmed.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine's own functions are the model: on everything that is quick there, ours
    /// answer the same.
    #[test]
    fn they_answer_as_the_engine_does() {
        let own = Connection::open_in_memory().expect("a connection");
        let ours = Connection::open_in_memory().expect("a connection");
        install(&ours, 1 << 20).expect("functions");
        let values = [
            "''",
            "'a'",
            "'aXbX'",
            "'XX'",
            "'  é a '",
            "'éa'",
            "' '",
            "NULL",
            "12",
            "-7",
            "1.5",
            "100.0",
            "x''",
            "x'6158'",
            "x'58'",
            "'aaa'",
            "'aa'",
        ];
        let mut calls = Vec::new();
        for one in values {
            for name in ["trim", "ltrim", "rtrim"] {
                calls.push(format!("{name}({one})"));
            }
            for two in values {
                for name in ["instr", "trim", "ltrim", "rtrim"] {
                    calls.push(format!("{name}({one}, {two})"));
                }
                for three in ["'-'", "'éé'", "''", "NULL", "3"] {
                    calls.push(format!("replace({one}, {two}, {three})"));
                }
            }
        }
        for call in calls {
            let sql = format!("SELECT quote({call}), typeof({call})");
            let answer = |connection: &Connection| {
                connection
                    .query_row(&sql, [], |row| {
                        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
                    })
                    .expect(&sql)
            };
            assert_eq!(answer(&ours), answer(&own), "{call}");
        }
    }

    #[test]
    fn what_would_be_too_long_is_not_made() {
        let connection = Connection::open_in_memory().expect("a connection");
        install(&connection, 1000).expect("functions");
        let length = |text: &str| connection.query_row(text, [], |row| row.get::<_, i64>(0));
        assert_eq!(
            length("SELECT length(replace(hex(zeroblob(50)), '0', '0123456789'))"),
            Ok(1000)
        );
        let error = length("SELECT length(replace(hex(zeroblob(50)), '0', '0123456789a'))");
        assert!(error.expect_err("too long").to_string().contains("too big"));
    }
}
