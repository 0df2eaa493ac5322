//! The database's own layer, without the guard before it.

use super::*;

/// Enough to see which attempt it was.
async fn glance(sql: &Sql) -> Vec<String> {
    let counts = "SELECT (SELECT COUNT(*) FROM customers), (SELECT COUNT(*) FROM orders), \
                  (SELECT COUNT(*) FROM products), (SELECT MIN(name) FROM customers), \
                  (SELECT MAX(name) FROM customers)";
    vec![
        text(sql, "list_tables", json!({})).await,
        query(sql, counts).await.expect("a row").text,
    ]
}

/// Each attempt, as a query, to be explained, and to be prepared: nothing that is
/// stored changes.
async fn unguarded(sql: &Sql, letter: char) {
    let before = contents(sql).await;
    let glimpse = glance(sql).await;
    let mut tried = 0;
    for (letters, attempt) in attempts::ATTEMPTS {
        if !letters.contains(letter) {
            continue;
        }
        tried += 1;
        let bounds = Bounds {
            time: Duration::from_secs(5),
            ..sql.bounds
        };
        for order in [Order::Query, Order::Explain, Order::Prepare] {
            drop(sql.engine.run(order, attempt, bounds).await);
        }
        assert_eq!(glance(sql).await, glimpse, "after {attempt:?}");
    }
    assert_eq!(contents(sql).await, before);
    assert!(tried > 40, "{letter}: {tried}");
    for left in [
        "/tmp/evil-outfile",
        "/tmp/evil-dumpfile",
        "/tmp/evil-copy",
        "/tmp/evil-lo",
        "/tmp/evil-program",
        "/tmp/evil-comment",
        "/tmp/evil-attached.db",
        "/tmp/evil-vacuum.db",
    ] {
        assert!(!Path::new(left).exists(), "{left}");
    }
}

/// Statements that write are refused by the database, not only without effect.
async fn refuses(sql: &Sql, statements: &[&str]) {
    for statement in statements {
        let error = sql
            .engine
            .run(Order::Query, statement, sql.bounds)
            .await
            .expect_err(statement);
        assert!(
            matches!(error.kind, ToolErrorKind::Denied | ToolErrorKind::Failed),
            "{statement}: {error:?}"
        );
    }
}

const WRITES: &[&str] = &[
    "INSERT INTO customers (id, name) VALUES (900, 'x')",
    "UPDATE customers SET name = 'x'",
    "DELETE FROM orders",
    "DROP TABLE orders",
    "CREATE TABLE evil (a INTEGER)",
];

#[tokio::test]
async fn sqlite_alone_keeps_a_file_and_the_sample_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = file(folder.path()).await;
    let path = folder.path().join("shop.db");
    let bytes = std::fs::read(&path).expect("a file");
    for sql in [sample(), Sql::open(settings(Some(url))).expect("a file")] {
        refuses(&sql, WRITES).await;
        unguarded(&sql, 's').await;
    }
    assert!(std::fs::read(&path).expect("a file") == bytes);
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["shop.db"]);
}

#[tokio::test]
async fn sqlite_refuses_to_write_though_query_only_was_turned_off() {
    use sqlx::Executor as _;
    let folder = tempfile::tempdir().expect("a folder");
    let options: sqlx::sqlite::SqliteConnectOptions =
        file(folder.path()).await.parse().expect("an address");
    let engine = crate::tools::sql::sqlite::SqliteEngine::file(options, true);
    for mut connection in [
        engine.connection().await,
        crate::tools::sql::sqlite::SqliteEngine::sample()
            .connection()
            .await,
    ] {
        for statement in WRITES {
            connection
                .execute("PRAGMA query_only = OFF")
                .await
                .expect("a setting");
            let error = connection.execute(*statement).await.expect_err(statement);
            assert!(
                error.to_string().contains("readonly"),
                "{statement}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn postgresql_and_mariadb_alone_keep_their_data_unchanged() {
    for server in databases::start().await {
        let sql = Sql::open(settings(Some(server.url.clone()))).expect("a database");
        refuses(&sql, WRITES).await;
        unguarded(&sql, server.letter).await;
    }
}
