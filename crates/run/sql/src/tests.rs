mod fuzz;
mod grammar;
mod guarding;
mod layers;
mod limits;
mod lists;
mod tools;

use std::path::Path;

use testing::{attempts, databases};

use super::*;

fn settings(url: Option<String>) -> Config {
    Config {
        url: url.map(Into::into),
        read_only: true,
        max_rows: 1000,
        max_bytes: 256 * 1024,
        timeout: Duration::from_secs(15),
        skills: Vec::new(),
        functions: Vec::new(),
        // The servers of these tests have users that may do anything.
        allow_powerful_role: true,
    }
}

fn sample() -> Sql {
    Sql::open(settings(None)).expect("the sample")
}

/// The sample as a file, which could be written.
fn file(folder: &Path) -> String {
    let path = folder.join("shop.db");
    let connection = rusqlite::Connection::open(&path).expect("a file");
    let sample = include_str!("sample.sql");
    connection.execute_batch(sample).expect("the sample");
    format!("sqlite:{}", path.display())
}

/// A statement as the guard gives it, without the guard.
fn unchecked(sql: &str) -> CheckedStatement {
    CheckedStatement {
        sql: sql.to_owned(),
        writes: false,
        names: Names::default(),
    }
}

/// What the guard says of a statement where nothing but reading is allowed.
fn judge(dialect: dialect::Dialect, sql: &str) -> Result<CheckedStatement, guard::Refusal> {
    let functions = functions::Functions::new(dialect, true, Vec::new());
    guard::judge(dialect, &functions, sql, true)
}

fn invocation(method: &str, arguments: Value) -> Invocation {
    Invocation {
        id: "1".to_owned(),
        skill: "builtin/repertoire/write_sql".parse().expect("an id"),
        version: model::VersionNumber::new(1).expect("a number"),
        digest: model::Digest::of(b""),
        tool: None,
        method: method.to_owned(),
        arguments: object(arguments),
        context: Map::new(),
        timeout: Duration::from_secs(30),
        idempotency_key: String::new(),
        caller: model::Principal::token("test"),
        progress: None,
    }
}

async fn call(sql: &Sql, method: &str, arguments: Value) -> Result<Output, ToolError> {
    sql.call(invocation(method, arguments)).await
}

async fn query(sql: &Sql, text: &str) -> Result<Output, ToolError> {
    call(sql, "execute_query", json!({"query": text})).await
}

async fn text(sql: &Sql, method: &str, arguments: Value) -> String {
    call(sql, method, arguments).await.expect("an answer").text
}

/// All that the shop holds, so that two of them can be compared.
async fn contents(sql: &Sql) -> Vec<String> {
    let mut all = vec![text(sql, "list_tables", json!({})).await];
    for table in ["customers", "orders", "products"] {
        all.push(text(sql, "describe_table", json!({"table_name": table})).await);
        let rows = query(sql, &format!("SELECT * FROM {table} ORDER BY id")).await;
        all.push(rows.expect("rows").text);
    }
    all
}

fn dialects() -> [(char, dialect::Dialect); 3] {
    [
        ('s', dialect::Dialect::Sqlite),
        ('p', dialect::Dialect::Postgres),
        ('m', dialect::Dialect::MySql),
    ]
}
