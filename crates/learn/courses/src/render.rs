//! Values in the form in which a person would write them.

use sandbox::{Cell, Value};

use crate::grading::{Ask, Matcher, Table};

/// Characters of a value that are shown.
const MAX_SHOWN_CHARS: usize = 1_500;
/// Characters of a line.
const MAX_LINE_CHARS: usize = 72;
/// Rows of a table.
const MAX_ROWS: usize = 20;
/// Characters of a cell.
const MAX_CELL_CHARS: usize = 40;
/// Lines of a text of which a difference is shown.
const MAX_DIFF_LINES: usize = 400;

/// A value of JavaScript: `{ id: 1, name: 'Ada' }`.
pub(crate) fn value(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An error, or another value, that was thrown.
pub(crate) fn thrown(name: &str, message: &str, line: Option<u32>) -> String {
    let what = match (name, message) {
        ("", "") => "something was thrown that is no error".to_owned(),
        ("", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    };
    let what = cut(&what);
    match line {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}

/// `1 hint`, `2 hints`.
pub(crate) fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Rows with a line of names above them.
pub(crate) fn table(table: &Table) -> String {
    let cell = |cell: &Cell| match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Integer(number) => number.to_string(),
        // `2.0`, so that it is not mistaken for a whole number. Beyond this size the fraction would
        // only pad a row of digits.
        Cell::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            format!("{number:.1}")
        }
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => model::shown(text, MAX_CELL_CHARS),
        Cell::Blob(digits) => format!("x'{}'", model::shown(digits, MAX_CELL_CHARS)),
    };
    let names = table
        .columns
        .iter()
        .map(|name| model::shown(name, MAX_CELL_CHARS));
    let mut lines: Vec<Vec<String>> = vec![names.collect()];
    let rows = table.rows.iter().take(MAX_ROWS);
    lines.extend(rows.map(|row| row.iter().map(cell).collect()));
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            let cells = lines.iter().filter_map(|line| line.get(at));
            cells.map(|text| text.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(text, width)| format!("{text:width$}"))
            .collect();
        padded.join(" | ").trim_end().to_owned()
    };
    let mut out: Vec<String> = lines.iter().map(|cells| line(cells)).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    out.insert(1, rule.join("-+-"));
    match table.rows.len() {
        0 => out.push("(no rows)".to_owned()),
        rows if rows > MAX_ROWS => out.push(format!("… and {} more rows", rows - MAX_ROWS)),
        _ => {}
    }
    out.join("\n")
}

/// Printed text, with control characters made visible.
pub(crate) fn output(text: &str) -> String {
    if text.is_empty() {
        return "(nothing)".to_owned();
    }
    cut(&model::printable_lines(text.trim_end_matches('\n')))
}

/// The difference of two texts; none of those with few lines, where it is easy to see.
pub(crate) fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected.lines().count() < 3 && actual.lines().count() < 3 {
        return None;
    }
    let first = |text: &str| -> String {
        let lines: Vec<&str> = text
            .lines()
            .take(MAX_DIFF_LINES)
            .map(str::trim_end)
            .collect();
        lines.join("\n") + "\n"
    };
    let (expected, actual) = (first(expected), first(actual));
    let diff = similar::TextDiff::from_lines(&expected, &actual);
    let text = diff.unified_diff().context_radius(1).to_string();
    let text = cut(&model::printable_lines(text.trim_end()));
    (!text.is_empty()).then(|| format!("- is expected, + is there:\n{text}"))
}

/// A value of JSON.
pub(crate) fn json(value: &serde_json::Value) -> String {
    let short = value.to_string();
    if short.chars().count() <= MAX_LINE_CHARS {
        return short;
    }
    cut(&serde_json::to_string_pretty(value).unwrap_or(short))
}

/// A question to a skill.
pub(crate) fn ask(ask: &Ask) -> String {
    match ask {
        Ask::Pointer(pointer) if pointer.is_empty() => "all of it".to_owned(),
        Ask::Pointer(pointer) => pointer.clone(),
        Ask::Problems(severity) => match severity {
            model::Severity::Error => "rules that are broken: errors".to_owned(),
            model::Severity::Warning => "rules that are broken: errors and warnings".to_owned(),
            model::Severity::Info => "rules that are broken".to_owned(),
        },
        Ask::CheckTool {
            tool,
            arguments,
            fixtures,
            ..
        } => {
            let mut text = format!("may {tool} be used");
            if !arguments.is_empty() {
                let arguments = serde_json::Value::Object(arguments.clone());
                text.extend([" with ", &json(&arguments)]);
            }
            if !fixtures.is_empty() {
                text.extend([", together with ", &fixtures.join(", ")]);
            }
            text
        }
        Ask::Compose { fixtures, policy } if fixtures.is_empty() => {
            format!("composed alone ({})", policy.name())
        }
        Ask::Compose { fixtures, policy } => {
            format!("composed with {} ({})", fixtures.join(", "), policy.name())
        }
        Ask::FoundFor(question) => format!("its place when one searches for \"{question}\""),
        Ask::Lines => "lines of its body".to_owned(),
    }
}

/// The answer that is expected.
pub(crate) fn matcher(matcher: &Matcher) -> String {
    match matcher {
        Matcher::Expected(value) => json(value),
        Matcher::Contains(value) => format!("has {} in it", json(value)),
        Matcher::Matches(pattern) => format!("like {}", pattern.as_str()),
        Matcher::AtLeast(number) => format!("at least {number}"),
        Matcher::AtMost(number) => format!("at most {number}"),
        Matcher::Absent => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_too_long_to_show() {
        let long = Value::Array(vec![Value::Text("x".repeat(1_000)); 1_000]);
        assert_eq!(value(&long).chars().count(), MAX_SHOWN_CHARS + 1);
        let user = Value::Object(vec![("id".to_owned(), Value::Number(1.0))]);
        assert_eq!(value(&user), "{ id: 1 }");
    }

    #[test]
    fn rows_stand_below_their_names() {
        let rows = Table {
            columns: vec!["name".to_owned(), "n".to_owned()],
            rows: vec![
                vec![Cell::Text("Ada".to_owned()), Cell::Integer(10)],
                vec![Cell::Null, Cell::Real(2.0)],
            ],
        };
        assert_eq!(table(&rows), "name | n\n-----+----\nAda  | 10\nNULL | 2.0");
        let none = Table {
            rows: vec![],
            ..rows
        };
        assert_eq!(table(&none), "name | n\n-----+--\n(no rows)");
    }

    #[test]
    fn a_difference_is_shown_by_lines() {
        assert_eq!(difference("a", "b"), None);
        let shown = difference("a\nb\nc\n", "a\nx\nc\n").expect("a difference");
        assert!(shown.contains("-b\n+x"), "{shown}");
    }
}
