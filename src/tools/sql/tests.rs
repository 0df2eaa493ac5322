#[path = "../../../tests/support/attempts.rs"]
mod attempts;
#[path = "../../../tests/support/databases.rs"]
mod databases;
mod guarding;
mod layers;
mod limits;
mod tools;

use std::path::Path;

use super::*;

fn settings(url: Option<String>) -> Config {
    Config {
        url: url.map(Into::into),
        read_only: true,
        max_rows: 1000,
        max_bytes: 256 * 1024,
        timeout: Duration::from_secs(15),
        skills: Vec::new(),
    }
}

fn sample() -> Sql {
    Sql::open(settings(None)).expect("the sample")
}

/// The sample as a file, which could be written.
async fn file(folder: &Path) -> String {
    let url = format!("sqlite:{}/shop.db", folder.display());
    let mut connection =
        <sqlx::SqliteConnection as sqlx::Connection>::connect(&format!("{url}?mode=rwc"))
            .await
            .expect("a file");
    sqlx::raw_sql(include_str!("sample.sql"))
        .execute(&mut connection)
        .await
        .expect("the sample");
    url
}

fn invocation(method: &str, arguments: Value) -> Invocation {
    Invocation {
        id: "1".to_owned(),
        skill: "builtin/repertoire/write_sql".parse().expect("an id"),
        version: crate::model::VersionNumber::new(1).expect("a number"),
        digest: crate::model::Digest::of(b""),
        tool: String::new(),
        method: method.to_owned(),
        arguments: object(arguments),
        context: Map::new(),
        timeout: Duration::from_secs(30),
        idempotency_key: String::new(),
        caller: "test".to_owned(),
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
