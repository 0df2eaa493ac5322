//! The tools of `write_sql`: a database of the operator's, read by agents.
//!
//! Rules:
//!
//! * Read-only is enforced three times: by `guard`, which parses the statement and
//!   lets listed functions through; by the database, whose transaction only reads; and
//!   by the role, which is refused where it may do more. Side effects of a function other
//!   than writing rows are not stopped by the database: only by the list and the role.
//! * Only what was understood is sent. Names of tables are looked up in the catalog
//!   and quoted; nothing else of a caller becomes SQL.
//! * Results are bounded while they are read, and say what they left out.
//! * A statement that nobody waits for stops, and its connection is closed. Its permit
//!   is free when its thread is back, not before.
//! * Nothing of a call stays in a session: it is cleaned, or closed.
//! * Nothing of the connection (address, user, password) is in an error, a log or
//!   a `Debug`.
//!
//! Not here: which tools a skill declares, and who may call them (the gate);
//! resources of a skill that are files.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod budget;
mod catalog;
mod config;
mod dialect;
mod engine;
mod error;
mod expr;
mod functions;
mod guard;
mod mysql;
mod names;
mod pool;
mod postgres;
mod refusal;
mod relations;
mod roles;
mod rows;
mod scalar;
mod schema;
mod server;
mod session;
mod sqlite;
#[cfg(test)]
mod tests;
mod types;
mod walk;

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use self::catalog::TableName;
pub use self::config::{Config, ConfigError};
use self::engine::{Engine, Order};
pub use self::functions::{FunctionName, FunctionNameError};
use self::guard::{CheckedStatement, Guard};
use self::names::Names;
use self::rows::Bounds;
use handler::{Handler, Invocation, LOAD_CORE, Output, ToolError, ToolErrorKind, Work};
use model::{SkillId, shown};

/// Time to wait beyond the limit that the database has: a busy one stops a statement
/// late, and its own error is better than a guess.
const STATEMENT_STOP_MARGIN: Duration = Duration::from_secs(2);

/// Methods that it runs.
const METHODS: &[&str] = &[
    LOAD_CORE,
    "execute_query",
    "describe_table",
    "explain_query",
    "validate_query",
    "list_tables",
    "get_sample_rows",
];

/// Tables that samples are taken of, and rows of each.
const SAMPLES: (usize, usize) = (5, 3);

/// The tools of `write_sql`.
pub struct Sql {
    engine: Engine,
    guard: Guard,
    bounds: Bounds,
    skills: Vec<SkillId>,
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sql")
            .field("dialect", &self.engine.dialect())
            .field("read_only", &self.guard.read_only)
            .field("skills", &self.skills)
            .finish_non_exhaustive()
    }
}

impl Sql {
    /// The tools, on a database that is connected to at the first call.
    ///
    /// # Errors
    /// The address is none of a database that is supported.
    pub fn open(config: Config) -> Result<Self, ConfigError> {
        let (engine, functions) = config.engine()?;
        Ok(Self {
            guard: Guard::new(engine.dialect(), functions, config.reads_only()),
            engine,
            bounds: Bounds {
                rows: config.max_rows,
                bytes: config.max_bytes,
                time: config.timeout,
            },
            skills: config.skills(),
        })
    }

    async fn run(&self, invocation: Invocation) -> Result<Output, ToolError> {
        let bounds = Bounds {
            time: self.bounds.time.min(invocation.timeout),
            ..self.bounds
        };
        let arguments = &invocation.arguments;
        let work = async {
            match invocation.method.as_str() {
                LOAD_CORE => self.core(bounds).await,
                "execute_query" => self.query(argument(arguments, "query")?, bounds).await,
                "explain_query" => self.explain(argument(arguments, "query")?, bounds).await,
                "validate_query" => self.validate(argument(arguments, "query")?, bounds).await,
                "describe_table" => {
                    self.describe(argument(arguments, "table_name")?, bounds)
                        .await
                }
                "list_tables" => self.list(bounds).await,
                "get_sample_rows" => self.samples(bounds).await,
                other => Err(ToolError::failed(format!("There is no method '{other}'."))),
            }
        };
        // The database has the same limit, and then the connection stays open. This one is
        // for a database that ignores its limit.
        tokio::time::timeout(bounds.time + STATEMENT_STOP_MARGIN, work)
            .await
            .unwrap_or_else(|_| Err(error::given_up(bounds.time, !self.guard.read_only)))
    }

    async fn query(&self, sql: &str, bounds: Bounds) -> Result<Output, ToolError> {
        let checked = self.guard.check(sql).await?;
        let order = if checked.writes {
            Order::Write
        } else {
            Order::Query
        };
        let rows = self.engine.run(order, &checked, bounds).await?;
        Ok(Output::structured(rows.text(), rows.structured()))
    }

    async fn explain(&self, sql: &str, bounds: Bounds) -> Result<Output, ToolError> {
        let checked = self.guard.check(sql).await?;
        let rows = self.engine.run(Order::Explain, &checked, bounds).await?;
        let plan = match &self.engine {
            Engine::Sqlite(_) => tree(&rows.held),
            Engine::Postgres(_) => {
                let lines: Vec<&str> = rows
                    .held
                    .iter()
                    .filter_map(|row| row.first()?.as_str())
                    .collect();
                format!("```\n{}\n```", lines.join("\n"))
            }
            Engine::MySql(_) => rows.text(),
        };
        Ok(Output::structured(
            format!("## Query Execution Plan\n\n{plan}"),
            rows.structured(),
        ))
    }

    async fn validate(&self, sql: &str, bounds: Bounds) -> Result<Output, ToolError> {
        let checked = match self.guard.checked(sql).await? {
            Ok(checked) => checked,
            Err(refusal) if refusal.syntax => return Ok(wrong(&refusal.message)),
            Err(refusal) => return Err(refusal.into()),
        };
        match self
            .engine
            .run(Order::Prepare, &checked, bounds)
            .await
        {
            Ok(_) => Ok(Output {
                text: "✓ Query syntax is valid.\n\nThe query is syntactically correct and can be executed."
                    .to_owned(),
                structured: Some(object(json!({"valid": true}))),
            }),
            // An error while the database prepares the statement is the answer here, not a
            // failure.
            Err(error) if error.kind == ToolErrorKind::Failed => {
                let answer = error.message.trim_start_matches("The database answered: ");
                Ok(wrong(answer))
            }
            Err(error) => Err(error),
        }
    }

    async fn list(&self, bounds: Bounds) -> Result<Output, ToolError> {
        let tables = self.engine.tables(bounds).await?;
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let text = if names.is_empty() {
            "The database has no tables.".to_owned()
        } else {
            names.join(", ")
        };
        Ok(Output::structured(text, object(json!({"tables": names}))))
    }

    async fn describe(&self, name: &str, bounds: Bounds) -> Result<Output, ToolError> {
        let tables = self.engine.tables(bounds).await?;
        let table = find(&tables, name)?;
        let described = self
            .engine
            .describe(std::slice::from_ref(table), bounds)
            .await?;
        let described = described.first().ok_or_else(|| unknown(&tables, name))?;
        Ok(Output::structured(
            schema::description(self.engine.dialect(), described),
            described.structured(),
        ))
    }

    async fn samples(&self, bounds: Bounds) -> Result<Output, ToolError> {
        let (max, rows) = SAMPLES;
        let tables = self.engine.tables(bounds).await?;
        let bounds = Bounds {
            // All samples share the bounds of one result.
            bytes: bounds.bytes / max,
            ..bounds
        };
        let mut text = "## Sample Data".to_owned();
        let mut structured = Vec::new();
        for table in tables.iter().take(max) {
            let quoted = table.quoted(self.engine.dialect());
            let all = CheckedStatement {
                sql: format!("SELECT * FROM {quoted} LIMIT {rows}"),
                writes: false,
                names: Names::default(),
            };
            text.push_str("\n\n### ");
            text.push_str(&table.name);
            text.push('\n');
            match self.engine.run(Order::Query, &all, bounds).await {
                Ok(rows) => {
                    text.push_str(&rows.text());
                    let mut rows = rows.structured();
                    rows.insert("table".to_owned(), table.name.clone().into());
                    structured.push(Value::Object(rows));
                }
                // One table that cannot be read leaves the others.
                Err(error)
                    if matches!(error.kind, ToolErrorKind::Denied | ToolErrorKind::Failed) =>
                {
                    text.push_str(&error.message);
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(more @ 1..) = tables.len().checked_sub(max) {
            let more = format!("\n\n{more} more tables: sql_query has their rows.");
            text.push_str(&more);
        }
        Ok(Output::structured(
            text,
            object(json!({"tables": structured})),
        ))
    }

    /// The beginning of level 2. It also reports that a database is down, so that the
    /// skill can still be loaded.
    async fn core(&self, bounds: Bounds) -> Result<Output, ToolError> {
        let dialect = self.engine.dialect();
        let overview = async {
            let tables = self.engine.tables(bounds).await?;
            let first = tables
                .get(..schema::MAX_TABLE_STATEMENTS)
                .unwrap_or(&tables);
            let described = self.engine.describe(first, bounds).await?;
            Ok::<_, ToolError>(schema::overview(dialect, &tables, &described))
        };
        let text = match overview.await {
            Ok(text) => text,
            Err(error) => format!(
                "## SQL Skill Activated\n\n### Database Information\n- Dialect: {}\n- Not available now: {} {}\n",
                dialect.name(),
                error.message,
                error.suggestions.join(" ")
            ),
        };
        Ok(Output::text(text))
    }
}

impl Handler for Sql {
    fn serves(&self, skill: &SkillId, method: &str) -> bool {
        METHODS.contains(&method) && self.skills.iter().any(|served| served.key() == skill.key())
    }

    fn skills(&self) -> Vec<SkillId> {
        self.skills.clone()
    }

    fn call(&self, invocation: Invocation) -> Work<'_, Result<Output, ToolError>> {
        Box::pin(self.run(invocation))
    }
}

fn argument<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolError> {
    match arguments.get(name).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(ToolError::invalid(format!("`{name}` is empty.")).field(name.to_owned())),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn wrong(error: &str) -> Output {
    Output::structured(
        format!("✗ Query syntax error:\n\n{error}\n\nPlease fix the syntax and try again."),
        object(json!({"valid": false, "error": error})),
    )
}

/// A plan of `SQLite`: each step below the one that it is part of.
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "each step has an id, that of the step above, a number and its text"
)]
fn tree(rows: &[Vec<Value>]) -> String {
    let root = Value::from(0);
    let mut depths: Vec<(&Value, usize)> = vec![(&root, 0)];
    let mut lines = Vec::new();
    for row in rows {
        let (id, parent) = (&row[0], &row[1]);
        let above = depths.iter().rev().find(|(id, _)| *id == parent);
        let depth = above.map_or(1, |(_, depth)| depth + 1);
        depths.push((id, depth));
        let step = row[3].as_str().expect("a text");
        lines.push(format!("{}- {step}", "  ".repeat(depth - 1)));
    }
    lines.join("\n")
}

/// Finds a table by its name, with its schema or without; then ignoring case.
fn find<'a>(tables: &'a [TableName], name: &str) -> Result<&'a TableName, ToolError> {
    // The exact spelling comes first: a database may have both `Users` and `users`.
    let full = |table: &TableName| format!("{}.{}", table.schema, table.bare);
    let lower = name.to_lowercase();
    tables
        .iter()
        .find(|table| table.name == name || full(table) == name)
        .or_else(|| {
            tables.iter().find(|table| {
                table.name.to_lowercase() == lower || full(table).to_lowercase() == lower
            })
        })
        .ok_or_else(|| unknown(tables, name))
}

fn unknown(tables: &[TableName], name: &str) -> ToolError {
    let lower = name.to_lowercase();
    let known: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let near = similar::get_close_matches(lower.as_str(), &known, 3, 0.6);
    let step = if near.is_empty() {
        "Call sql_list_tables to see which tables there are".to_owned()
    } else {
        let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
        format!("Did you mean {}?", near.join(" or "))
    };
    let shown = shown(name, 100);
    ToolError::invalid(format!("There is no table '{shown}'."))
        .field("table_name")
        .suggest(step)
}
