//! A call on a database server: one transaction in one session.
//!
//! It only reads and is rolled back unless the call writes. A session whose answer was
//! not read to its end, or whose server did not answer in time, is closed at once; any
//! other is cleaned, and returns to the pool only if that succeeded. A [`Server`] is what
//! differs between `PostgreSQL` and `MySQL`.

use std::future::Future;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::Value;
use sqlx::database::HasStatementCache;
use sqlx::{
    AssertSqlSafe, Database, Either, Encode, Executor, IntoArguments, Row as _, SqlSafeStr as _,
    Statement as _, Type, TypeInfo as _,
};
#[cfg(test)]
use tokio::sync::Semaphore;

use super::engine::{Order, Question};
use super::error;
use super::guard::CheckedStatement;
use super::pool::{Lease, Pool};
use super::rows::{Bounds, Column, Rows};
use handler::{ToolError, ToolErrorKind};

/// The driver's connection to a server.
pub(super) type Connection<S> = <<S as Server>::Driver as Database>::Connection;

type Row<S> = <<S as Server>::Driver as Database>::Row;
type Done<S> = <<S as Server>::Driver as Database>::QueryResult;

/// Rows of a statement, and how many it changed, as they come.
pub(super) type Steps<'a, S> = BoxStream<'a, Result<Either<Done<S>, Row<S>>, sqlx::Error>>;

/// A database server.
pub(super) trait Server: Send + Sync + Sized + 'static {
    /// Its driver.
    type Driver: Database<Arguments: IntoArguments<Self::Driver>> + HasStatementCache;

    /// A connection, and what is known of its server.
    type ServerConnection: AsMut<Connection<Self>> + Send;

    /// Opens a connection, and makes sure that it may be used.
    fn open(&self) -> impl Future<Output = Result<Self::ServerConnection, ToolError>> + Send;

    /// The statements that begin a transaction, which only reads unless the order is to write.
    fn begin(connection: &Self::ServerConnection, order: Order, bounds: Bounds) -> String;

    /// Runs a statement inside of the transaction.
    fn inside(
        connection: &mut Connection<Self>,
        order: Order,
        statement: &CheckedStatement,
        bounds: Bounds,
    ) -> impl Future<Output = Result<Rows, ToolError>> + Send;

    /// Rows that a statement changed.
    fn affected(done: &Done<Self>) -> u64;

    /// A value of a column of this type.
    fn cell(row: &Row<Self>, at: usize, kind: &str) -> Value;

    /// A text of the catalog.
    fn text(row: &Row<Self>, at: usize) -> Value;

    /// Clears what outlives a transaction from a session; none where there is no way to do
    /// that, or it failed. Then the session is closed.
    fn clean(
        connection: Self::ServerConnection,
    ) -> impl Future<Output = Option<Self::ServerConnection>> + Send;
}

/// A database on a server.
pub(super) struct ServerEngine<S: Server> {
    pool: Arc<Pool<S>>,
}

impl<S: Server> ServerEngine<S>
where
    for<'c> &'c mut Connection<S>: Executor<'c, Database = S::Driver>,
    for<'q> String: Encode<'q, S::Driver> + Type<S::Driver>,
{
    pub(super) fn new(server: S) -> Self {
        Self {
            pool: Arc::new(Pool::new(server)),
        }
    }

    /// See [`super::engine::Engine::run`].
    pub(super) async fn run(
        &self,
        order: Order,
        statement: &CheckedStatement,
        bounds: Bounds,
    ) -> Result<Rows, ToolError> {
        let mut lease = self.begin(order, bounds).await?;
        let connection = lease.connection.as_mut();
        let mut outcome = S::inside(connection, order, statement, bounds).await;
        let clean = match &outcome {
            Ok(rows) => rows.cut.is_none() || order == Order::Write,
            Err(error) => !matches!(
                error.kind,
                ToolErrorKind::Unavailable | ToolErrorKind::Timeout
            ),
        };
        // Rows or an answer may still be on their way, so the session is closed and not given
        // to the next call.
        if !clean {
            return outcome;
        }
        // Whatever reads ends with a rollback: had it changed anything after all, that would
        // be gone.
        let commits = order == Order::Write && outcome.is_ok();
        let end = if commits { "COMMIT" } else { "ROLLBACK" };
        match sqlx::raw_sql(end).execute(connection).await {
            Ok(_) => self.clean(lease),
            Err(cause) if commits => outcome = Err(error::statement(cause, bounds.time)),
            Err(_) => {}
        }
        outcome
    }

    /// Answers of the catalog.
    pub(super) async fn ask(
        &self,
        questions: &[Question<'_>],
        bounds: Bounds,
    ) -> Result<Vec<Rows>, ToolError> {
        let mut lease = self.begin(Order::Query, bounds).await?;
        let connection = lease.connection.as_mut();
        let failed = |cause| error::statement(cause, bounds.time);
        let mut answers = Vec::with_capacity(questions.len());
        for (question, tables) in questions {
            let mut query = sqlx::query::<S::Driver>(*question).persistent(false);
            if let Some(tables) = tables {
                query = query.bind((*tables).to_owned());
            }
            let mut rows = Rows::new(bounds, Vec::new());
            let mut stream = connection.fetch(query);
            while let Some(row) = stream.try_next().await.map_err(failed)? {
                if !rows.push((0..row.len()).map(|at| S::text(&row, at)).collect()) {
                    break;
                }
            }
            drop(stream);
            answers.push(rows);
        }
        let ended = sqlx::raw_sql("ROLLBACK").execute(connection).await.is_ok();
        if ended && answers.iter().all(|rows| rows.cut.is_none()) {
            self.clean(lease);
        }
        Ok(answers)
    }

    /// A session in which a transaction has begun.
    async fn begin(
        &self,
        order: Order,
        bounds: Bounds,
    ) -> Result<Lease<S::ServerConnection>, ToolError> {
        let mut lease = self.pool.acquire().await?;
        // One round trip for several statements: this text is ours, so it needs no prepared
        // protocol.
        let begin = AssertSqlSafe(S::begin(&lease.connection, order, bounds));
        match sqlx::raw_sql(begin)
            .execute(lease.connection.as_mut())
            .await
        {
            Ok(_) => Ok(lease),
            Err(cause) => Err(error::statement(cause, bounds.time)),
        }
    }

    /// Returns a session to the pool if it can be cleaned.
    ///
    /// The answer does not wait for it, since the call's time may end meanwhile: what was
    /// committed would be reported as given up, and be written again. The permit does.
    fn clean(&self, lease: Lease<S::ServerConnection>) {
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move {
            let Lease { connection, permit } = lease;
            if let Some(connection) = S::clean(connection).await {
                pool.give_back(Lease { connection, permit });
            }
        });
    }

    /// Permits that no call and no session that is being cleaned holds.
    #[cfg(test)]
    pub(super) fn free_permits(&self) -> &Arc<Semaphore> {
        self.pool.permits()
    }
}

/// The columns that a statement will give. The server prepares it and so makes sure that
/// it is one.
pub(super) async fn prepare<S: Server>(
    connection: &mut Connection<S>,
    sql: &str,
    bounds: Bounds,
) -> Result<Vec<Column>, ToolError>
where
    for<'c> &'c mut Connection<S>: Executor<'c, Database = S::Driver>,
{
    let statement = connection
        .prepare(AssertSqlSafe(sql.to_owned()).into_sql_str())
        .await
        .map_err(|cause| error::statement(cause, bounds.time))?;
    let values = match statement.parameters() {
        Some(Either::Left(types)) => types.len(),
        Some(Either::Right(count)) => count,
        None => 0,
    };
    if values > 0 {
        return Err(ToolError::failed(
            "Placeholders have no values here; write the values into the query.",
        ));
    }
    Ok(named(statement.columns()))
}

fn named(columns: &[impl sqlx::Column]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            kind: column.type_info().name().to_owned(),
        })
        .collect()
}

/// Reads what a statement gives: as far as there is memory, or to its end where it writes.
pub(super) async fn read<S: Server>(
    mut steps: Steps<'_, S>,
    columns: Vec<Column>,
    order: Order,
    bounds: Bounds,
) -> Result<Rows, ToolError> {
    let mut rows = Rows::new(bounds, columns);
    let (mut affected, mut seen) = (0, 0);
    let failed = |cause| error::statement(cause, bounds.time);
    while let Some(step) = steps.try_next().await.map_err(failed)? {
        match step {
            Either::Left(done) => affected += S::affected(&done),
            Either::Right(row) => {
                seen += 1;
                // MariaDB has the columns of RETURNING only when it runs.
                if rows.columns.is_empty() {
                    rows.columns = named(row.columns());
                }
                let kind = |at: usize| rows.columns.get(at).map_or("", |column| &column.kind);
                let cells = (0..row.len()).map(|at| S::cell(&row, at, kind(at)));
                let cells = cells.collect();
                // A statement that writes is read to its end: dropping the connection would roll
                // it back.
                if !rows.push(cells) && order != Order::Write {
                    break;
                }
            }
        }
    }
    if order == Order::Write {
        // With RETURNING MariaDB sends rows and no number.
        rows.affected = Some(affected.max(seen));
    }
    Ok(rows)
}
