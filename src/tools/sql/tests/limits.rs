use std::time::Instant;

use super::*;

/// Never ends by itself, and gives no row.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";

fn with(change: impl FnOnce(&mut Config)) -> Sql {
    let mut config = settings(None);
    change(&mut config);
    Sql::open(config).expect("the sample")
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .expect("the threads")
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("sql-sqlite-"))
        .count()
}

#[tokio::test]
async fn a_result_has_so_many_rows_and_says_that_there_are_more() {
    let sql = with(|config| config.max_rows = 3);
    let more = query(&sql, "SELECT id FROM customers ORDER BY id")
        .await
        .expect("rows");
    assert_eq!(
        more.text,
        "| id |\n|---|\n| 1 |\n| 2 |\n| 3 |\n\n3 rows shown; there are more. Aggregate, filter, or page with \
         ORDER BY and LIMIT to see what you need."
    );
    assert_eq!(
        Value::Object(more.structured.expect("rows")),
        json!({
            "columns": [{"name": "id", "type": "INTEGER"}],
            "rows": [[1], [2], [3]],
            "row_count": 3,
            "truncated": true,
        })
    );
    let all = query(&sql, "SELECT id FROM customers LIMIT 3")
        .await
        .expect("rows");
    assert!(all.text.ends_with("\n\n3 rows."));
    assert_eq!(
        all.structured.expect("rows").get("truncated"),
        Some(&json!(false))
    );
}

#[tokio::test]
async fn a_result_has_so_many_bytes_and_a_cell_so_many() {
    let sql = with(|config| config.max_bytes = 10_000);
    let cut = query(
        &sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT printf('%.*c', 100000, 'é') FROM n",
    )
    .await
    .expect("rows");
    assert!(cut.text.ends_with(
        "2 rows shown; there are more, but the result may have 10000 bytes. Name fewer columns, or filter."
    ));
    let rows = cut.structured.expect("rows");
    let cell = rows["rows"][0][0].as_str().expect("text");
    assert!(
        cell.ends_with("… [cut]") && cell.len() < 4200,
        "{}",
        cell.len()
    );
    // Memory is bounded, too.
    let huge = query(&sql, "SELECT length(hex(zeroblob(400000000)))").await;
    let error = huge.expect_err("no memory");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            ToolErrorKind::Failed,
            "The database answered: the statement needs more memory than it may have"
        )
    );
}

#[tokio::test]
async fn a_statement_that_takes_too_long_stops_and_its_connection_is_closed() {
    let sql = with(|config| config.timeout = Duration::from_millis(200));
    query(&sql, "SELECT 1").await.expect("a row");
    let Engine::Sqlite(engine) = &sql.engine else {
        panic!("not SQLite");
    };
    assert_eq!(engine.idle(), 1);
    let begin = Instant::now();
    for tool in ["execute_query"] {
        let error = call(&sql, tool, json!({"query": ENDLESS}))
            .await
            .expect_err("late");
        assert_eq!(error.kind, ToolErrorKind::Timeout);
        assert_eq!(
            error.message,
            "The statement took longer than 0.2 seconds and was stopped."
        );
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(engine.idle(), 0);
    query(&sql, "SELECT 1").await.expect("a row");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_stops_and_leaves_its_place_to_others() {
    let sql = sample();
    // More than there are connections.
    for _ in 0..12 {
        let call = query(&sql, ENDLESS);
        let outcome = tokio::time::timeout(Duration::from_millis(100), call).await;
        assert!(outcome.is_err());
    }
    query(&sql, "SELECT 1").await.expect("a row");
    drop(sql);
    let begin = Instant::now();
    // Other tests of this process have connections of their own, but not twelve
    // that never end.
    while threads() > 8 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{} threads",
            threads()
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_caller_may_wait_for_less_time_than_the_operator_allows() {
    let sql = sample();
    let mut invocation = invocation("execute_query", json!({"query": ENDLESS}));
    invocation.timeout = Duration::from_millis(100);
    let error = sql.call(invocation).await.expect_err("late");
    assert_eq!(error.kind, ToolErrorKind::Timeout);
}
