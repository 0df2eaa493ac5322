//! Rows of a result, within bounds, as text and for programs.
//!
//! Values that JSON can hold exactly are written as they are: whole numbers up to
//! 2^53, floating-point numbers, truth values, NULL. All others are strings as the
//! database writes them: larger and decimal numbers, dates, JSON, arrays. Binary
//! values are shown by their size.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// Bytes of a cell that are shown.
pub(super) const MAX_CELL_BYTES: usize = 4096;

/// The end of a cell that was cut.
pub(super) const CUT: &str = "… [cut]";

/// Whole numbers beyond this are not exact where JSON is read as doubles.
const MAX_EXACT_INTEGER: i64 = 1 << 53;

/// Bounds of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Rows of a result.
    pub(super) rows: usize,
    /// Bytes of a result.
    pub(super) bytes: usize,
    /// How long a statement may take.
    pub(super) time: Duration,
}

/// The bound that cut a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Rows,
    Bytes,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type in the database's words; empty: it has none.
    pub(super) kind: String,
}

/// Rows, as they come.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    bounds: Bounds,
    bytes: usize,
    pub(super) columns: Vec<Column>,
    pub(super) held: Vec<Vec<Value>>,
    pub(super) cut: Option<Cut>,
    /// Rows that the statement changed.
    pub(super) affected: Option<u64>,
}

impl Rows {
    pub(super) fn new(bounds: Bounds, columns: Vec<Column>) -> Self {
        Self {
            bounds,
            bytes: 0,
            columns,
            held: Vec::new(),
            cut: None,
            affected: None,
        }
    }

    /// Adds a row; false: it does not fit, and no further one will.
    pub(super) fn push(&mut self, row: Vec<Value>) -> bool {
        // 3 for the bar and the two spaces around a cell in the Markdown table.
        let bytes: usize = row.iter().map(|cell| size(cell) + 3).sum();
        if self.held.len() >= self.bounds.rows {
            self.cut = Some(Cut::Rows);
        } else if self.bytes.saturating_add(bytes) > self.bounds.bytes {
            self.cut = Some(Cut::Bytes);
        } else {
            self.bytes += bytes;
            self.held.push(row);
            return true;
        }
        false
    }

    /// As a Markdown table, and what was left out.
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(self.bytes + 256);
        if !self.columns.is_empty() {
            text.push('|');
            for column in &self.columns {
                _ = write!(text, " {} |", plain(&column.name));
            }
            text.push_str("\n|");
            text.push_str(&"---|".repeat(self.columns.len()));
            for row in &self.held {
                text.push_str("\n|");
                for cell in row {
                    _ = write!(text, " {} |", shown(cell));
                }
            }
            text.push_str("\n\n");
        }
        text.push_str(&self.summary());
        text
    }

    fn summary(&self) -> String {
        let count = |count: u64, what: &str| match count {
            1 => format!("1 row{what}"),
            count => format!("{count} rows{what}"),
        };
        let shown = self.held.len() as u64;
        let summary = match self.cut {
            None => count(shown, ""),
            Some(Cut::Rows) => format!(
                "{}; there are more. Aggregate, filter, or page with ORDER BY and LIMIT to see what you need.",
                count(shown, " shown")
            ),
            Some(Cut::Bytes) => format!(
                "{}; there are more, but the result may have {} bytes. Name fewer columns, or filter.",
                count(shown, " shown"),
                self.bounds.bytes
            ),
        };
        match self.affected {
            Some(affected) if self.columns.is_empty() => {
                format!("{}.", count(affected, " affected"))
            }
            Some(affected) => format!("{}. {summary}.", count(affected, " affected")),
            None if self.cut.is_some() => summary,
            None => format!("{summary}."),
        }
    }

    /// The rows as JSON for programs.
    pub(super) fn structured(&self) -> Map<String, Value> {
        let columns: Vec<Value> = self
            .columns
            .iter()
            .map(|column| json!({"name": column.name, "type": column.kind}))
            .collect();
        let mut map = super::object(json!({
            "columns": columns,
            "rows": self.held,
            "row_count": self.held.len(),
            "truncated": self.cut.is_some(),
        }));
        if let Some(affected) = self.affected {
            map.insert("rows_affected".to_owned(), affected.into());
        }
        map
    }
}

fn size(cell: &Value) -> usize {
    match cell {
        Value::String(text) => text.len(),
        _ => 8,
    }
}

fn shown(cell: &Value) -> String {
    match cell {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// Text in a cell of a table: on one line, its bars escaped.
fn plain(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

/// A text, cut where it is too long.
pub(super) fn text(text: &str) -> Value {
    if text.len() <= MAX_CELL_BYTES {
        return text.into();
    }
    let end = (0..=MAX_CELL_BYTES)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or_default();
    format!("{}{CUT}", text.get(..end).unwrap_or_default()).into()
}

/// A text that may not be UTF-8.
pub(super) fn lossy(bytes: &[u8]) -> Value {
    // A letter that the cut splits is cut off by `text`.
    let bytes = bytes.get(..MAX_CELL_BYTES + 4).unwrap_or(bytes);
    text(&String::from_utf8_lossy(bytes))
}

/// A whole number that every reader of JSON gets exactly.
pub(super) fn integer(number: i64) -> Value {
    if number.unsigned_abs() <= MAX_EXACT_INTEGER.unsigned_abs() {
        number.into()
    } else {
        number.to_string().into()
    }
}

/// The same without a sign.
pub(super) fn unsigned(number: u64) -> Value {
    match i64::try_from(number) {
        Ok(number) => integer(number),
        Err(_) => number.to_string().into(),
    }
}

/// A floating-point number; those that are none, and infinite ones, as text.
pub(super) fn float(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

/// A binary value.
pub(super) fn binary(bytes: usize) -> Value {
    format!("<{bytes} bytes>").into()
}
