//! `write_sql` over real databases: the same suite against `SQLite`, `PostgreSQL` and
//! `MariaDB`, through the handler that the gate calls.
//!
//! The servers are started from the packages of the system (`tests/packages`
//! installs them). Without them the test says so and looks at `SQLite` alone; with
//! `CI=true` it fails.

#[path = "sql_servers/roles.rs"]
mod roles;
#[path = "sql_servers/secrets.rs"]
mod secrets;

use std::time::{Duration, Instant};

use handler::{Handler as _, Invocation, LOAD_CORE, Output, ToolError, ToolErrorKind};
use model::{Digest, Principal, VersionNumber};
use secrets::{quiet, secrets};
use serde_json::{Map, Value, json};
use sql::{Config as SqlSettings, Sql};
use testing::{attempts, databases};

fn settings(url: Option<String>) -> SqlSettings {
    SqlSettings {
        url: url.map(Into::into),
        read_only: true,
        max_rows: 1000,
        max_bytes: 256 * 1024,
        timeout: Duration::from_secs(15),
        skills: Vec::new(),
        functions: Vec::new(),
        // The users of these servers may do anything, but for the reader.
        allow_powerful_role: true,
    }
}

fn open(url: Option<&str>, change: impl FnOnce(&mut SqlSettings)) -> Sql {
    let mut settings = settings(url.map(str::to_owned));
    change(&mut settings);
    Sql::open(settings).expect("settings")
}

async fn call(sql: &Sql, method: &str, arguments: Value) -> Result<Output, ToolError> {
    let Value::Object(arguments) = arguments else {
        panic!("not an object");
    };
    sql.call(Invocation {
        id: "1".to_owned(),
        skill: "builtin/repertoire/write_sql".parse().expect("an id"),
        version: VersionNumber::new(1).expect("a number"),
        digest: Digest::of(b""),
        tool: None,
        method: method.to_owned(),
        arguments,
        context: Map::new(),
        timeout: Duration::from_secs(30),
        idempotency_key: String::new(),
        caller: Principal::token("test"),
        progress: None,
    })
    .await
}

async fn query(sql: &Sql, text: &str) -> Result<Output, ToolError> {
    call(sql, "execute_query", json!({"query": text})).await
}

async fn text(sql: &Sql, method: &str, arguments: Value) -> String {
    call(sql, method, arguments).await.expect("an answer").text
}

async fn cells(sql: &Sql, query_text: &str) -> Value {
    let output = query(sql, query_text).await.expect("rows");
    output.structured.expect("rows")["rows"].clone()
}

async fn contents(sql: &Sql) -> Vec<Value> {
    let mut all = vec![json!(text(sql, "list_tables", json!({})).await)];
    for table in ["customers", "orders", "products"] {
        all.push(json!(
            text(sql, "describe_table", json!({"table_name": table})).await
        ));
        all.push(cells(sql, &format!("SELECT * FROM {table} ORDER BY id")).await);
    }
    all
}

fn dialect(letter: char) -> &'static str {
    match letter {
        'p' => "postgresql",
        'm' => "mysql",
        _ => "sqlite",
    }
}

async fn describing(sql: &Sql) {
    let described = call(sql, "describe_table", json!({"table_name": "ORDERS"})).await;
    let described = described.expect("a table");
    assert!(
        described.text.starts_with("CREATE TABLE orders ("),
        "{}",
        described.text
    );
    let table = described.structured.expect("a table");
    assert_eq!(table["primary_key"], json!(["id"]));
    let names: Vec<&str> = table["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "id",
            "customer_id",
            "product_id",
            "quantity",
            "order_date",
            "status",
            "total"
        ]
    );
    let keys = table["foreign_keys"].as_array().expect("keys");
    for (column, other) in [("customer_id", "customers"), ("product_id", "products")] {
        let key = json!({"columns": [column], "references": {"table": other, "columns": ["id"]}});
        assert!(keys.contains(&key), "{keys:?}");
    }
    let index = json!({"name": "orders_by_customer", "unique": false, "columns": ["customer_id", "order_date"]});
    assert!(
        table["indexes"]
            .as_array()
            .expect("indexes")
            .contains(&index),
        "{table:?}"
    );

    let unknown = call(sql, "describe_table", json!({"table_name": "costumers"})).await;
    assert_eq!(
        unknown.expect_err("unknown").suggestions,
        ["Did you mean 'customers'?"]
    );
}

async fn tools(sql: &Sql, letter: char) {
    assert_eq!(
        text(sql, "list_tables", json!({})).await,
        "customers, orders, products"
    );
    let counted = query(sql, "SELECT COUNT(*) AS n FROM customers")
        .await
        .expect("a count");
    assert_eq!(counted.text, "| n |\n|---|\n| 42 |\n\n1 row.");
    assert_eq!(counted.structured.expect("rows")["rows"], json!([[42]]));

    describing(sql).await;

    let plan = text(
        sql,
        "explain_query",
        json!({"query": "SELECT c.name, COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.name"}),
    )
    .await;
    assert!(plan.starts_with("## Query Execution Plan\n\n"), "{plan}");
    assert!(
        plan.to_lowercase().contains("scan")
            || plan.contains("| orders |")
            || plan.contains("| o |"),
        "{plan}"
    );

    let validate = async |query: &str| text(sql, "validate_query", json!({"query": query})).await;
    assert_eq!(
        validate("SELECT name FROM customers WHERE id = 1").await,
        "✓ Query syntax is valid.\n\nThe query is syntactically correct and can be executed."
    );
    for wrong in [
        "SELECT nam FROM customers",
        "SELECT name FROM costumers",
        "SELECT FROM WHERE",
        "SELECT lower(1, 2, 3)",
    ] {
        let answer = validate(wrong).await;
        assert!(
            answer.starts_with("✗ Query syntax error:\n\n"),
            "{wrong}: {answer}"
        );
    }

    let samples = text(sql, "get_sample_rows", json!({})).await;
    assert!(
        samples.starts_with("## Sample Data\n\n### customers\n| id | name | email | city |\n"),
        "{samples}"
    );
    assert_eq!(samples.matches("\n\n3 rows.").count(), 3, "{samples}");

    let core = text(sql, LOAD_CORE, json!({})).await;
    let begin = format!(
        "## SQL Skill Activated\n\n### Database Information\n- Dialect: {}\n\
         - Available Tables: customers, orders, products\n\n### Database Schema\nCREATE TABLE customers (\n    id ",
        dialect(letter)
    );
    assert!(core.starts_with(&begin), "{core}");
    assert!(core.contains("REFERENCES customers"), "{core}");

    let wrong = query(sql, "SELECT nam FROM customers")
        .await
        .expect_err("no column");
    assert_eq!(wrong.kind, ToolErrorKind::Failed);
    assert!(wrong.message.starts_with("The database answered: ") && wrong.message.contains("nam"));
}

async fn queries(sql: &Sql, letter: char) {
    let mut refused = Vec::new();
    for text in attempts::queries(letter) {
        if let Err(error) = query(sql, text).await {
            refused.push(format!("{letter}: {text}: {}", error.message));
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}

async fn refusals(sql: &Sql, letter: char) {
    let before = contents(sql).await;
    let mut passed = Vec::new();
    for attempt in attempts::attempts(letter) {
        match query(sql, attempt).await {
            Err(error)
                if matches!(error.kind, ToolErrorKind::Denied | ToolErrorKind::Invalid)
                    && !error.message.starts_with("The database refused") => {}
            // The engine of SQLite is the one that decides.
            Err(error)
                if letter == 's'
                    && matches!(error.kind, ToolErrorKind::Denied | ToolErrorKind::Failed) => {}
            other => passed.push(format!("{attempt}: {other:?}")),
        }
    }
    assert_eq!(passed, Vec::<String>::new());
    for attempt in attempts::shared(letter) {
        let error = call(sql, "explain_query", json!({"query": attempt})).await;
        let error = error.expect_err(attempt);
        let engine = letter == 's' && error.kind == ToolErrorKind::Failed;
        assert!(
            engine || matches!(error.kind, ToolErrorKind::Denied | ToolErrorKind::Invalid),
            "{attempt}: {error:?}"
        );
        // An answer or a refusal; never a change.
        drop(call(sql, "validate_query", json!({"query": attempt})).await);
    }
    assert_eq!(contents(sql).await, before);
}

async fn bounds(url: Option<&str>) {
    let sql = open(url, |settings| settings.max_rows = 3);
    for text in [
        "SELECT id FROM customers ORDER BY id",
        "SELECT id FROM customers ORDER BY id LIMIT 40",
    ] {
        let output = query(&sql, text).await.expect("rows");
        assert!(
            output.text.contains("3 rows shown; there are more."),
            "{}",
            output.text
        );
        let rows = output.structured.expect("rows");
        assert_eq!(rows["rows"], json!([[1], [2], [3]]));
        assert_eq!(rows["truncated"], json!(true));
    }
    let sql = open(url, |settings| settings.max_bytes = 500);
    let output = query(&sql, "SELECT * FROM customers ORDER BY id")
        .await
        .expect("rows");
    assert!(
        output.text.contains("the result may have 500 bytes"),
        "{}",
        output.text
    );
    // The connection serves on, or another does.
    query(&sql, "SELECT 1").await.expect("a row");
}

/// It would take hours.
const LONG: &str = "SELECT COUNT(*) FROM orders a, orders b, orders c, orders d, orders e, orders f \
                    WHERE a.total + b.total + c.total + d.total + e.total + f.total = 0.123";

async fn times(url: Option<&str>) {
    let sql = open(url, |settings| settings.timeout = Duration::from_secs(1));
    let begin = Instant::now();
    let error = query(&sql, LONG).await.expect_err("late");
    assert_eq!(error.kind, ToolErrorKind::Timeout, "{error:?}");
    assert_eq!(
        error.message,
        "The statement took longer than 1 seconds and was stopped."
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    // Nobody waits: more often than there are connections.
    let sql = open(url, |settings| settings.timeout = Duration::from_secs(3));
    for _ in 0..6 {
        let left = tokio::time::timeout(Duration::from_millis(300), query(&sql, LONG)).await;
        assert!(left.is_err());
    }
    query(&sql, "SELECT 1").await.expect("a row");
}

async fn types(sql: &Sql, letter: char) {
    if letter == 'p' {
        let row = cells(
            sql,
            "SELECT NULL, true, 1::smallint, 9007199254740993::bigint, 1.10::numeric(10,2), 1.5::float8, 0.1::float4, \
             'NaN'::float8, DATE '2025-02-28', TIMESTAMP '2025-02-28 01:02:03.5', \
             TIMESTAMPTZ '2025-02-28 00:00:00+00' AT TIME ZONE 'UTC', INTERVAL '1 day 02:00', '\\x0102'::bytea, \
             ARRAY[1,2,NULL], ARRAY['a','b c'], '{\"a\": [1]}'::jsonb, 'b6ad2f1e-7e5b-4f0e-9f3c-0a4f0d0c7f11'::uuid, \
             '10.0.0.1'::inet, int4range(1,5), ROW(1,'x'), '(1,2)'::point, B'101', 'a'::\"char\", 12.5::money::numeric, \
             to_tsvector('simple', 'a b'), '<a/>'::text, 'pg_class'::regclass, E'a|b\\nc', 1 AS dup, 2 AS dup",
        )
        .await;
        assert_eq!(
            row,
            json!([[
                null,
                true,
                1,
                "9007199254740993",
                "1.10",
                1.5,
                0.1,
                "NaN",
                "2025-02-28",
                "2025-02-28 01:02:03.5",
                "2025-02-28 00:00:00",
                "1 day 02:00:00",
                "<2 bytes>",
                "{1,2,NULL}",
                "{a,\"b c\"}",
                "{\"a\": [1]}",
                "b6ad2f1e-7e5b-4f0e-9f3c-0a4f0d0c7f11",
                "10.0.0.1/32",
                "[1,5)",
                "(1,x)",
                "(1,2)",
                "101",
                "a",
                "12.50",
                "'a':1 'b':2",
                "<a/>",
                "pg_class",
                "a|b\nc",
                1,
                2
            ]])
        );
        // A value of a gigabyte is cut by the server.
        let huge = cells(sql, "SELECT repeat('x', 200000000)").await;
        assert!(huge[0][0].as_str().is_some_and(|text| text.len() < 4200));
    }
    if letter == 'm' {
        let row = cells(
            sql,
            "SELECT NULL, TRUE, CAST(1 AS SIGNED), 9007199254740993, CAST(18446744073709551615 AS UNSIGNED), \
             CAST(1.10 AS DECIMAL(10,2)), 1.5e0, DATE '2025-02-28', TIMESTAMP '2025-02-28 01:02:03.5', \
             TIME '26:03:04', CAST('-01:00:00' AS TIME), x'0102', JSON_OBJECT('a', 1), b'101' + 0, 'a|b\\nc', \
             ST_GeomFromText('POINT(1 2)'), YEAR(DATE '2025-01-01'), INET6_ATON('10.0.0.1'), 1 AS dup, 2 AS dup",
        )
        .await;
        assert_eq!(
            row,
            json!([[
                null,
                1,
                1,
                "9007199254740993",
                "18446744073709551615",
                "1.10",
                1.5,
                "2025-02-28",
                "2025-02-28 01:02:03.500000",
                "26:03:04",
                "-01:00:00",
                "<2 bytes>",
                "{\"a\": 1}",
                5,
                "a|b\nc",
                "<25 bytes>",
                2025,
                "<4 bytes>",
                1,
                2
            ]])
        );
    }
}

async fn writing(url: &str) {
    let sql = open(Some(url), |settings| settings.read_only = false);
    let changed = query(&sql, "UPDATE customers SET city = 'Rome' WHERE id <= 3")
        .await
        .expect("a change");
    assert_eq!(changed.text, "3 rows affected.");
    query(
        &sql,
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, note VARCHAR(20))",
    )
    .await
    .expect("a table");
    query(
        &sql,
        "INSERT INTO notes (id, note) VALUES (1, 'a'), (2, NULL)",
    )
    .await
    .expect("rows");
    assert_eq!(
        cells(&sql, "SELECT id, note FROM notes ORDER BY id").await,
        json!([[1, "a"], [2, null]])
    );
    let returned = query(&sql, "DELETE FROM notes WHERE id = 1 RETURNING id, note")
        .await
        .expect("a row");
    assert!(
        returned
            .text
            .starts_with("| id | note |\n|---|---|\n| 1 | a |\n\n1 row affected. "),
        "{}",
        returned.text
    );
    let two = query(&sql, "DELETE FROM notes; DELETE FROM orders")
        .await
        .expect_err("two");
    assert_eq!(two.kind, ToolErrorKind::Denied);
    query(&sql, "DROP TABLE notes").await.expect("no table");
    // Others see it: it was kept.
    let reader = open(Some(url), |_| ());
    let rome = cells(
        &reader,
        "SELECT COUNT(*) FROM customers WHERE city = 'Rome'",
    )
    .await;
    assert_eq!(rome, json!([[3]]));
}

async fn suite(url: Option<&str>, letter: char) {
    let sql = open(url, |_| ());
    tools(&sql, letter).await;
    queries(&sql, letter).await;
    types(&sql, letter).await;
    refusals(&sql, letter).await;
    bounds(url).await;
    times(url).await;
}

#[tokio::test]
async fn the_tools_work_and_change_nothing_on_the_sample() {
    suite(None, 's').await;
}

#[tokio::test]
async fn the_tools_work_and_change_nothing_on_postgresql_and_mariadb() {
    for mut server in databases::start().await {
        let letter = server.letter;
        suite(Some(&server.url), letter).await;
        quiet(&server).await;
        roles::functions(&server).await;
        roles::sessions(&server).await;
        roles::roles(&server).await;
        writing(&server.url).await;
        secrets(&mut server).await;
        eprintln!("databases: {} passed", dialect(letter));
    }
}
