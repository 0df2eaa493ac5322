//! No password and no value is told to anybody.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use handler::{LOAD_CORE, ToolErrorKind};
use serde_json::json;
use testing::databases;

use super::{open, query, text};

/// Nothing of the suite goes on in the server.
pub(super) async fn quiet(server: &databases::Database) {
    use sqlx::Connection as _;
    let begin = Instant::now();
    loop {
        let running: i64 = if server.letter == 'p' {
            let mut connection = sqlx::PgConnection::connect(&server.url)
                .await
                .expect("a connection");
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%orders a%' \
                       AND pid <> pg_backend_pid()";
            sqlx::query_scalar(sql)
                .fetch_one(&mut connection)
                .await
                .expect("a count")
        } else {
            let mut connection = sqlx::MySqlConnection::connect(&server.url)
                .await
                .expect("a connection");
            let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%orders a%' \
                       AND id <> CONNECTION_ID()";
            sqlx::query_scalar(sql)
                .fetch_one(&mut connection)
                .await
                .expect("a count")
        };
        if running == 0 {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(15), "{running} go on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) async fn secrets(server: &mut databases::Database) {
    let log = Log::default();
    let to = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || to.clone())
        .finish();
    let logged = tracing::subscriber::set_default(subscriber);
    tracing::info!("begin");
    let wrong = server.url.replace(databases::PASSWORD, "wrong-Pa55word");
    let sql = open(Some(&wrong), |_| ());
    let refused = query(&sql, "SELECT 1").await.expect_err("refused");
    let nobody = open(Some(&format!("{}_none", server.url)), |_| ());
    let missing = query(&nobody, "SELECT 1")
        .await
        .expect_err("no such database");
    let good = open(Some(&server.url), |_| ());
    query(&good, "SELECT 1").await.expect("a row");
    server.stop();
    let gone = query(&good, "SELECT 1").await.expect_err("gone");
    let core = text(&good, LOAD_CORE, json!({})).await;
    assert!(
        core.contains("- Not available now: The database cannot be reached."),
        "{core}"
    );
    assert_eq!(refused.message, "The database does not let this server in.");
    assert_eq!(missing.message, "The database server has no such database.");
    for error in [&refused, &missing, &gone] {
        assert_eq!(error.kind, ToolErrorKind::Unavailable);
        assert!(!error.suggestions.is_empty());
    }
    drop(logged);
    let log = String::from_utf8_lossy(&log.0.lock().expect("a log")).into_owned();
    assert!(log.contains("begin"), "{log}");
    for secret in [databases::PASSWORD, "wrong-Pa55word"] {
        assert!(!log.contains(secret), "{log}");
    }
    let shown = format!("{refused:?}{missing:?}{gone:?}{core}{sql:?}{good:?}");
    for secret in [
        databases::PASSWORD,
        "wrong-Pa55word",
        databases::USER,
        "127.0.0.1",
    ] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
