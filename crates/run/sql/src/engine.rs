//! A database of any dialect, and the orders that it runs.

use super::catalog::{self, Table, TableName};
use super::dialect::Dialect;
use super::guard::CheckedStatement;
use super::mysql::MySqlServer;
use super::postgres::PostgresServer;
use super::rows::{Bounds, Rows};
use super::session::ServerEngine;
use super::sqlite::SqliteEngine;
use handler::ToolError;

/// The way in which a statement is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Its rows are read; the database holds it to reading.
    Query,
    /// Its plan is returned.
    Explain,
    /// It is read and its names are looked up.
    Prepare,
    /// It is run, and its changes are committed.
    Write,
}

/// A question to the catalog of a database, and the JSON array of tables that it
/// is about.
pub(super) type Question<'a> = (&'static str, Option<&'a str>);

/// A database.
pub(super) enum Engine {
    Sqlite(SqliteEngine),
    Postgres(ServerEngine<PostgresServer>),
    MySql(ServerEngine<MySqlServer>),
}

impl Engine {
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
            Self::MySql(_) => Dialect::MySql,
        }
    }

    /// Runs a statement that `guard` let through. In a test it may be any: all but `Write` change no rows even so.
    pub(super) async fn run(
        &self,
        order: Order,
        statement: &CheckedStatement,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        match self {
            Self::Sqlite(engine) => engine.run(order, &statement.sql, bounds).await,
            Self::Postgres(engine) => engine.run(order, statement, bounds).await,
            Self::MySql(engine) => engine.run(order, statement, bounds).await,
        }
    }

    async fn ask(
        &self,
        questions: &[Question<'_>],
        bounds: Bounds,
    ) -> Result<Vec<Rows>, ToolError> {
        match self {
            Self::Sqlite(engine) => engine.ask(questions, bounds).await,
            Self::Postgres(engine) => engine.ask(questions, bounds).await,
            Self::MySql(engine) => engine.ask(questions, bounds).await,
        }
    }

    /// Tables and views, by name.
    pub(super) async fn tables(&self, bounds: Bounds) -> Result<Vec<TableName>, ToolError> {
        let question = catalog::tables(self.dialect());
        let answers = self
            .ask(&[(question, None)], catalog::bounds(bounds))
            .await?;
        Ok(catalog::read_tables(&answers))
    }

    /// Returns the details of some tables.
    pub(super) async fn describe(
        &self,
        tables: &[TableName],
        bounds: Bounds,
    ) -> Result<Vec<Table>, ToolError> {
        let keys: Vec<&str> = tables.iter().map(|table| table.key.as_str()).collect();
        let keys = serde_json::Value::from(keys).to_string();
        let questions: Vec<Question<'_>> = catalog::details(self.dialect())
            .iter()
            .map(|question| (*question, Some(keys.as_str())))
            .collect();
        let answers = self.ask(&questions, catalog::bounds(bounds)).await?;
        Ok(catalog::read_details(tables, &answers))
    }
}
