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
        .filter(|name| name.trim_end() == "sql-sqlite")
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
    // What a value may have is bounded, too.
    let huge = query(&sql, "SELECT length(hex(zeroblob(400000000)))").await;
    let error = huge.expect_err("too long");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            ToolErrorKind::Failed,
            "The database answered: a value has more than 1 MiB; use length() for its size"
        )
    );
}

#[tokio::test]
async fn rows_that_are_gathered_have_so_much_memory() {
    let sql = sample();
    let all = query(
        &sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
         SELECT count(*) FROM (SELECT DISTINCT i, zeroblob(1000000) AS b FROM n)",
    )
    .await;
    let error = all.expect_err("no memory");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            ToolErrorKind::Failed,
            "The database answered: the statement needs more memory than it may have"
        )
    );
}

fn engine(sql: &Sql) -> &sqlite::SqliteEngine {
    match &sql.engine {
        Engine::Sqlite(engine) => engine,
        _ => panic!("not SQLite"),
    }
}

/// Waits until every thread is back, which is when every permit is free.
async fn all_are_back(sql: &Sql) {
    let begin = Instant::now();
    while engine(sql).free_permits() < pool::MAX_CONNECTIONS {
        assert!(begin.elapsed() < Duration::from_secs(60), "a thread stays");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_statement_that_takes_too_long_stops_and_its_thread_is_back() {
    let sql = with(|config| config.timeout = Duration::from_millis(200));
    let error = query(&sql, ENDLESS).await.expect_err("late");
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    if error.message == "The statement took longer than 0.2 seconds and was stopped." {
        assert_eq!(engine(&sql).free_permits(), pool::MAX_CONNECTIONS);
    } else {
        assert_eq!(
            error.message,
            "The statement took longer than 0.2 seconds and was given up; the database may still work on it."
        );
    }
    all_are_back(&sql).await;
    query(&sql, "SELECT 1").await.expect("a row");
}

/// Each is one step of the engine, which asks between steps whether to go on.
#[tokio::test]
async fn what_one_step_can_cost_is_bounded() {
    let sql = with(|config| config.timeout = Duration::from_secs(60));
    for text in [
        "SELECT instr(hex(zeroblob(500000)), printf('%.*c', 500000, '0') || '1')",
        "SELECT instr(zeroblob(1000000), CAST(zeroblob(500000) || x'01' AS BLOB))",
        "SELECT length(replace(hex(zeroblob(500000)), printf('%.*c', 500000, '0') || '1', 'x'))",
        "SELECT length(trim(hex(zeroblob(500000)), hex(randomblob(300000))))",
        "SELECT length(ltrim(printf('%.*c', 1000000, 'é'), printf('%.*c', 500000, 'a') || 'é'))",
        "SELECT hex(zeroblob(500000)) LIKE '%0%0%0%0%0%0%1'",
    ] {
        // An answer in time; the engine's own functions take up to half a minute.
        let output = query(&sql, text).await;
        assert!(output.is_ok(), "{text}: {output:?}");
    }
    let long = query(&sql, "SELECT 'a' LIKE printf('%.*c', 2000, 'a')").await;
    assert!(
        long.expect_err("a long pattern")
            .message
            .contains("pattern too complex"),
    );
    let long = query(
        &sql,
        "SELECT length(replace(hex(zeroblob(500000)), '0', '12'))",
    )
    .await;
    assert!(
        long.expect_err("a long value")
            .message
            .contains("more than 1 MiB")
    );
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_stops_and_its_permit_is_free_when_its_thread_is_back() {
    let sql = sample();
    // More than there are connections.
    for _ in 0..12 {
        let call = query(&sql, ENDLESS);
        let outcome = tokio::time::timeout(Duration::from_millis(100), call).await;
        assert!(outcome.is_err());
        // Threads of other tests have the same name, and permits of their own.
        assert!(threads() + engine(&sql).free_permits() >= pool::MAX_CONNECTIONS);
    }
    query(&sql, "SELECT 1").await.expect("a row");
    all_are_back(&sql).await;
}

/// A thread that does not come back keeps its permit, and the answer says so.
#[tokio::test]
async fn while_a_thread_is_not_back_its_permit_is_taken() {
    let sql = with(|config| config.timeout = Duration::from_millis(50));
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let work = engine(&sql).work(false, sql.bounds, move |_| {
        assert!(held.recv().is_err());
        Ok(Ok(()))
    });
    let error = work.await.expect_err("late");
    assert_eq!(
        error.message,
        "The statement took longer than 0.05 seconds and was given up; the database may still work on it."
    );
    assert_eq!(engine(&sql).free_permits(), pool::MAX_CONNECTIONS - 1);
    drop(let_go);
    all_are_back(&sql).await;
}

/// A write that ended just then would be written again.
#[tokio::test(start_paused = true)]
async fn what_a_thread_did_just_after_its_deadline_is_told() {
    let sql = std::sync::Arc::new(sample());
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let call = tokio::spawn({
        let sql = std::sync::Arc::clone(&sql);
        async move {
            let work = engine(&sql).work(false, sql.bounds, move |_| {
                wait.recv().expect("a word");
                Ok(Ok("written"))
            });
            work.await
        }
    });
    // It has begun, and its time is over.
    tokio::task::yield_now().await;
    tokio::time::advance(sql.bounds.time + Duration::from_millis(1)).await;
    tokio::task::yield_now().await;
    go_on.send(()).expect("a thread");
    // Time stands still while this is busy.
    while !call.is_finished() {
        tokio::task::yield_now().await;
    }
    assert_eq!(call.await.expect("a call").expect("an outcome"), "written");
}

#[tokio::test]
async fn the_caller_may_wait_for_less_time_than_the_operator_allows() {
    let sql = sample();
    let mut invocation = invocation("execute_query", json!({"query": ENDLESS}));
    invocation.timeout = Duration::from_millis(100);
    let error = sql.call(invocation).await.expect_err("late");
    assert_eq!(error.kind, ToolErrorKind::Timeout);
}
