//! Tables in words: the statement that would make one, and its description.

use std::fmt::Write as _;

use super::catalog::{Table, TableName};
use super::dialect::Dialect;

/// Tables whose names level 2 has.
const MAX_TABLE_NAMES: usize = 200;

/// Tables whose statements level 2 has.
pub(super) const MAX_TABLE_STATEMENTS: usize = 40;

/// Bytes of statements in level 2.
const BYTES: usize = 24 * 1024;

/// Columns that the statement of a table has.
const MAX_COLUMNS: usize = 200;

/// A name, in quotes where it needs them.
fn name(dialect: Dialect, name: &str) -> String {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(letter)
        // PostgreSQL folds names that are not quoted to lower case.
        && (dialect != Dialect::Postgres || !name.contains(|c: char| c.is_ascii_uppercase()));
    if plain {
        name.to_owned()
    } else {
        dialect.quoted(name)
    }
}

fn names(dialect: Dialect, all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| name(dialect, one)).collect();
    all.join(", ")
}

/// The statement that would make a table; for a view of a database that does not
/// keep it, its columns.
pub(super) fn statement(dialect: Dialect, table: &Table) -> String {
    if let Some(statement) = &table.statement {
        return format!("{};", statement.trim_end_matches([';', ' ', '\n']));
    }
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .take(MAX_COLUMNS)
        .map(|column| {
            let default = column.default.as_ref();
            let default = default.map_or_else(String::new, |value| format!(" DEFAULT {value}"));
            let null = if column.nullable { "" } else { " NOT NULL" };
            format!(
                "{} {}{null}{default}",
                name(dialect, &column.name),
                column.kind
            )
        })
        .collect();
    if let Some(more @ 1..) = table.columns.len().checked_sub(MAX_COLUMNS) {
        lines.push(format!("-- and {more} more columns"));
    }
    if !table.primary_key.is_empty() {
        let columns = names(dialect, &table.primary_key);
        lines.push(format!("PRIMARY KEY ({columns})"));
    }
    for key in &table.foreign_keys {
        let (columns, table) = (names(dialect, &key.columns), &key.table);
        let others = match names(dialect, &key.others) {
            others if others.is_empty() => others,
            others => format!(" ({others})"),
        };
        lines.push(format!(
            "FOREIGN KEY ({columns}) REFERENCES {table}{others}"
        ));
    }
    let what = if table.name.view {
        "-- A view\nCREATE TABLE"
    } else {
        "CREATE TABLE"
    };
    let full = if table.name.name == table.name.bare {
        name(dialect, &table.name.bare)
    } else {
        format!(
            "{}.{}",
            name(dialect, &table.name.schema),
            name(dialect, &table.name.bare)
        )
    };
    format!("{what} {full} (\n    {}\n);", lines.join(",\n    "))
}

/// A table with all details, as text.
pub(super) fn description(dialect: Dialect, table: &Table) -> String {
    let mut text = format!("{}\n\n", statement(dialect, table));
    text.push_str("| column | type | nullable | default | key |\n|---|---|---|---|---|\n");
    for column in &table.columns {
        let mut keys: Vec<String> = Vec::new();
        if table.primary_key.contains(&column.name) {
            keys.push("primary key".to_owned());
        }
        for key in &table.foreign_keys {
            if let Some(at) = key.columns.iter().position(|mine| *mine == column.name) {
                let other = key.others.get(at).map_or("", String::as_str);
                let dot = if other.is_empty() { "" } else { "." };
                keys.push(format!("→ {}{dot}{other}", key.table));
            }
        }
        let cells = [
            column.name.clone(),
            column.kind.clone(),
            if column.nullable { "yes" } else { "no" }.to_owned(),
            column.default.clone().unwrap_or_default(),
            keys.join(", "),
        ];
        for cell in cells {
            let cell = cell.replace('|', "\\|").replace('\n', " ");
            _ = write!(text, "| {cell} ");
        }
        text.push_str("|\n");
    }
    text.push_str("\n## Indexes\n");
    if table.indexes.is_empty() {
        text.push_str("None.");
    }
    for index in &table.indexes {
        let unique = if index.unique { " (unique)" } else { "" };
        let columns = index.columns.join(", ");
        _ = writeln!(text, "- {}{unique}: {columns}", index.name);
    }
    text.trim_end().to_owned()
}

/// The database as level 2 shows it, within bounds.
pub(super) fn overview(dialect: Dialect, tables: &[TableName], described: &[Table]) -> String {
    let shown: Vec<&str> = tables
        .iter()
        .take(MAX_TABLE_NAMES)
        .map(|table| table.name.as_str())
        .collect();
    let mut text = format!(
        "## SQL Skill Activated\n\n### Database Information\n- Dialect: {}\n- Available Tables: {}",
        dialect.name(),
        shown.join(", ")
    );
    if let Some(more @ 1..) = tables.len().checked_sub(MAX_TABLE_NAMES) {
        _ = write!(text, ", and {more} more: sql_list_tables has them all");
    }
    text.push_str("\n\n### Database Schema\n");
    let begin = text.len();
    let mut shown = 0;
    for table in described {
        let statement = statement(dialect, table);
        if text.len() - begin + statement.len() > BYTES {
            break;
        }
        text.push_str(&statement);
        text.push('\n');
        shown += 1;
    }
    if let Some(more @ 1..) = tables.len().checked_sub(shown) {
        _ = writeln!(
            text,
            "-- {more} more tables are not shown: sql_describe_table has each of them."
        );
    }
    text
}
