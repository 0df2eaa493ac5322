//! Looks up the names of a statement in the catalog of `PostgreSQL`, before the statement is sent.
//!
//! A name behind a dot is a column, or, where there is none, a function of one
//! argument; which, only the server knows. It also knows which types are enumerations,
//! and whether somebody gave its operators a second meaning.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::error;
use super::names::{Attribute, Names};
use handler::ToolError;

/// Functions of these names that one argument may call without their schema: whether
/// one of them is not the server's, and whether one takes any row.
const ATTRIBUTES: &str = "\
    SELECT p.proname::text, pg_catalog.bool_or(n.nspname <> 'pg_catalog'), pg_catalog.bool_or(EXISTS ( \
        SELECT 1 FROM pg_catalog.pg_type t WHERE t.oid = ANY (p.proargtypes) AND t.typtype IN ('c', 'd', 'p'))) \
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
    WHERE p.proname = ANY ($1::text[]::name[]) AND p.pronargs >= 1 AND p.pronargs - p.pronargdefaults <= 1 \
    AND pg_catalog.pg_function_is_visible(p.oid) GROUP BY p.proname";

/// Those of these types that are enumerations.
const TYPES: &str = "\
    SELECT x.name FROM pg_catalog.unnest($1::text[]) AS x(name) WHERE EXISTS ( \
        SELECT 1 FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
        WHERE t.typtype = 'e' AND (n.nspname || '.' || t.typname = x.name \
        OR (t.typname = x.name AND pg_catalog.pg_type_is_visible(t.oid))))";

/// Operators over the server's own types that are neither its own nor an extension's.
/// 16384 is the first number that is given out after a server was set up.
const OPERATORS: &str = "\
    SELECT DISTINCT o.oprname::text FROM pg_catalog.pg_operator o \
    WHERE o.oid >= 16384 AND o.oprleft < 16384 AND o.oprright < 16384 AND pg_catalog.pg_operator_is_visible(o.oid) \
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d \
        WHERE d.classid = 2617 AND d.objid = o.oid AND d.deptype = 'e')";

/// Operators that forms such as `IN`, `LIKE` and `CASE` mean without naming them.
const IMPLIED: &[&str] = &[
    "=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "~",
];

/// Compares names with the catalog. Nothing is run but questions about names.
pub(super) async fn check(
    connection: &mut PgConnection,
    names: &Names,
    limit: Duration,
) -> Result<(), ToolError> {
    if names.is_empty() {
        return Ok(());
    }
    let failed = |cause| error::statement(cause, limit);
    // Another order would let a type, an operator or a function of somebody else come
    // before the server's own.
    let path: Vec<String> = sqlx::query_scalar("SELECT pg_catalog.current_schemas(true)::text[]")
        .persistent(false)
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    // PostgreSQL looks for tables in the temporary schema first, but never for functions or
    // operators.
    let first = path.iter().find(|schema| !schema.starts_with("pg_temp_"));
    if first.is_some_and(|schema| schema != "pg_catalog") {
        return Err(ToolError::unavailable(
            "The search path of this server's database role has other schemas before pg_catalog.",
        )
        .suggest(
            "Tell the operator: ALTER ROLE … SET search_path without pg_catalog puts it first",
        ));
    }
    if !names.attributes.is_empty() {
        let asked: Vec<&str> = names.attributes.keys().map(String::as_str).collect();
        let found: Vec<(String, bool, bool)> = sqlx::query_as(ATTRIBUTES)
            .bind(asked)
            .persistent(false)
            .fetch_all(&mut *connection)
            .await
            .map_err(failed)?;
        for (name, foreign, takes_rows) in found {
            if let Some(attribute) = names.attributes.get(&name)
                && may_call(*attribute, foreign, takes_rows)
            {
                return Err(attribute_refused(&name, *attribute));
            }
        }
    }
    if !names.types.is_empty() {
        let asked: Vec<&str> = names.types.iter().map(String::as_str).collect();
        let known: Vec<String> = sqlx::query_scalar(TYPES)
            .bind(asked)
            .persistent(false)
            .fetch_all(&mut *connection)
            .await
            .map_err(failed)?;
        if let Some(name) = names.types.iter().find(|name| !known.contains(name)) {
            return Err(denied(format!("Values cannot be cast to {name} here."))
                .suggest("Cast to a built-in type or to an enumeration"));
        }
    }
    let foreign: Vec<String> = sqlx::query_scalar(OPERATORS)
        .persistent(false)
        .fetch_all(&mut *connection)
        .await
        .map_err(failed)?;
    let used = |name: &&String| names.operators.contains(*name) || IMPLIED.contains(&name.as_str());
    match foreign.iter().find(used) {
        None => Ok(()),
        Some(name) => Err(denied(format!(
            "Somebody gave the operator {name} another meaning in this database, so it is not used here."
        ))
        .suggest("Tell the operator of this server: pg_operator has an operator that PostgreSQL did not create")),
    }
}

/// A name behind a dot may call a function that nobody allowed.
fn may_call(attribute: Attribute, foreign: bool, takes_rows: bool) -> bool {
    // Of a row it is called only where it takes rows; else it is a column, or an error.
    if attribute.of_row && !takes_rows {
        return false;
    }
    foreign || !attribute.listed
}

fn denied(message: String) -> ToolError {
    ToolError::denied(message).field("query")
}

fn attribute_refused(name: &str, attribute: Attribute) -> ToolError {
    let (line, column) = attribute.position;
    denied(format!(
        "`.{name}` (line {line}, column {column}) may call the function {name}(), which is not allowed \
         in this form."
    ))
    .suggest("If a column is meant, put the table's name or alias before the dot; else leave it out")
}
