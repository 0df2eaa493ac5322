//! Values as a terminal shows them: much as Node does.

use std::fmt;

use crate::job::Value;

/// Characters of a line.
const MAX_LINE_CHARS: usize = 80;

/// Objects deeper than this are named only.
const MAX_OBJECT_DEPTH: usize = 2;

/// Levels of a value that fit on one line.
const MAX_LINE_DEPTH: usize = 3;

impl fmt::Display for Value {
    /// As a person would write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self))
    }
}

/// A value, texts in quotes.
pub(super) fn show(value: &Value) -> String {
    inspect(value, 0, 0)
}

fn inspect(value: &Value, depth: usize, indent: usize) -> String {
    let deeper = |value: &Value| inspect(value, depth + 1, indent + 2);
    match value {
        Value::Undefined => "undefined".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(*value),
        Value::NotFinite(name) => name.clone(),
        Value::BigInt(digits) => format!("{digits}n"),
        Value::Text(text) => quoted(text),
        Value::Date(Some(time)) => date(*time),
        Value::Date(None) => "Invalid Date".to_owned(),
        Value::Error(name, message) if depth == 0 => titled(name, message),
        Value::Error(name, message) => format!("[{}]", titled(name, message)),
        Value::Function(name) if name.is_empty() => "[Function (anonymous)]".to_owned(),
        Value::Function(name) => format!("[Function: {name}]"),
        Value::Symbol(name) => format!("Symbol({name})"),
        Value::Cycle => "[Circular *1]".to_owned(),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Array(_) if depth > MAX_OBJECT_DEPTH => "[Array]".to_owned(),
        Value::Array(items) => {
            let items = items.iter().map(deeper).collect();
            together("", ('[', ']'), items, (value, depth), indent)
        }
        Value::Object(properties) if properties.is_empty() => "{}".to_owned(),
        Value::Object(_) if depth > MAX_OBJECT_DEPTH => "[Object]".to_owned(),
        Value::Object(properties) => {
            let items = properties
                .iter()
                .map(|(key, value)| format!("{}: {}", named(key), deeper(value)))
                .collect();
            together("", ('{', '}'), items, (value, depth), indent)
        }
        Value::Map(entries) if entries.is_empty() => "Map(0) {}".to_owned(),
        Value::Map(_) if depth > MAX_OBJECT_DEPTH => "[Map]".to_owned(),
        Value::Map(entries) => {
            let items = entries
                .iter()
                .map(|(key, value)| format!("{} => {}", deeper(key), deeper(value)))
                .collect();
            let title = format!("Map({}) ", entries.len());
            together(&title, ('{', '}'), items, (value, depth), indent)
        }
        Value::Set(items) if items.is_empty() => "Set(0) {}".to_owned(),
        Value::Set(_) if depth > MAX_OBJECT_DEPTH => "[Set]".to_owned(),
        Value::Set(items) => {
            let title = format!("Set({}) ", items.len());
            let items = items.iter().map(deeper).collect();
            together(&title, ('{', '}'), items, (value, depth), indent)
        }
    }
}

/// Items on one line, if they fit, else each on its own, or a long list in columns.
fn together(
    title: &str,
    (open, close): (char, char),
    items: Vec<String>,
    (value, depth): (&Value, usize),
    indent: usize,
) -> String {
    let count = items.len();
    // Like Node, which groups only lists of more than six items.
    let items = if open == '[' && count > 6 {
        grouped(items, indent)
    } else {
        items
    };
    let width: usize = items.iter().map(|item| item.chars().count()).sum();
    // This is the sum of Node's `reduceToSingleString`: two for each item, 10, and 1 for the
    // bracket.
    let fits = width + 2 * items.len() + indent + title.len() + 11 <= MAX_LINE_CHARS
        && levels(value, depth) <= MAX_LINE_DEPTH
        && items.iter().all(|item| !item.contains('\n'));
    if fits && items.len() == count {
        return format!("{title}{open} {} {close}", items.join(", "));
    }
    let space = " ".repeat(indent);
    let items = items.join(&format!(",\n{space}  "));
    format!("{title}{open}\n{space}  {items}\n{space}{close}")
}

/// Levels of objects that are shown in a value, by the last of the objects in it, as Node
/// counts them.
fn levels(value: &Value, depth: usize) -> usize {
    if depth > MAX_OBJECT_DEPTH {
        return 0;
    }
    let inside = |value: &Value| Some(levels(value, depth + 1)).filter(|levels| *levels > 0);
    let last = match value {
        Value::Array(items) | Value::Set(items) if !items.is_empty() => {
            items.iter().filter_map(inside).next_back()
        }
        Value::Object(properties) if !properties.is_empty() => {
            let values = properties.iter().map(|(_, value)| value);
            values.filter_map(inside).next_back()
        }
        Value::Map(entries) if !entries.is_empty() => {
            let values = entries.iter().flat_map(|(key, value)| [key, value]);
            values.filter_map(inside).next_back()
        }
        _ => return 0,
    };
    last.map_or(1, |levels| levels + 1)
}

/// Short items of a long list in columns, as near to a square as Node makes them.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "widths of a screen"
)]
fn grouped(items: Vec<String>, indent: usize) -> Vec<String> {
    let widths: Vec<usize> = items.iter().map(|item| item.chars().count()).collect();
    let widest = widths.iter().copied().max().unwrap_or_default() + 2;
    let total: usize = widths.iter().map(|width| width + 2).sum();
    let count = items.len() as f64;
    let is_short = total as f64 / widest as f64 > 5.0 || widest <= 8;
    if widest * 3 + indent >= MAX_LINE_CHARS
        || !is_short
        || items.iter().any(|item| item.contains('\n'))
    {
        return items;
    }
    // From here on Node's `groupArrayElements` with its constants: a character is 2.5 times as
    // high as it is wide, and the last bound is four columns for each of three levels.
    let bias = (widest as f64 - total as f64 / count).sqrt();
    let bias = (widest as f64 - 3.0 - bias).max(1.0);
    let columns = ((2.5 * bias * count).sqrt() / bias).round() as usize;
    let columns = columns.min((MAX_LINE_CHARS - indent) / widest).min(12);
    if columns <= 1 {
        return items;
    }
    let is_number = |item: &String| item.trim_end_matches('n').parse::<f64>().is_ok();
    let to_the_right = items.iter().all(is_number);
    let widths: Vec<usize> = (0..columns)
        .map(|column| widths.iter().skip(column).step_by(columns).max())
        .map(|widest| widest.copied().unwrap_or_default())
        .collect();
    let row = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (item, &width))| {
            let is_last = column + 1 == row.len();
            match (to_the_right, is_last) {
                (true, true) => format!("{item:>width$}"),
                (true, false) => format!("{:>width$}", format!("{item}, "), width = width + 2),
                (false, true) => item.clone(),
                (false, false) => format!("{:<width$}", format!("{item}, "), width = width + 2),
            }
        });
        cells.collect::<String>()
    };
    items.chunks(columns).map(row).collect()
}

fn titled(name: &str, message: &str) -> String {
    match (name, message) {
        (name, "") => name.to_owned(),
        ("", message) => message.to_owned(),
        (name, message) => format!("{name}: {message}"),
    }
}

/// A number as the language writes it.
fn number(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
        _ => text,
    }
}

fn quoted(text: &str) -> String {
    let quote = match (text.contains('\''), text.contains('"'), text.contains('`')) {
        (true, false, _) => '"',
        (true, true, false) => '`',
        _ => '\'',
    };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.extend(format!("\\x{:02X}", u32::from(c)).chars()),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

fn named(key: &str) -> String {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let is_plain = !key.is_empty() && key.chars().all(is_letter);
    if is_plain && !key.starts_with(|c: char| c.is_ascii_digit()) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// A date as `toISOString` writes it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a Date holds 8.64e15 milliseconds at most"
)]
fn date(time: f64) -> String {
    let time = time as i64;
    let (days, rest) = (time.div_euclid(86_400_000), time.rem_euclid(86_400_000));
    // Days to a date of the Gregorian calendar, by eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        year if year < 0 => format!("-{:06}", -year),
        year => format!("+{year:06}"),
    };
    let (seconds, milliseconds) = (rest / 1000, rest % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}Z")
}
