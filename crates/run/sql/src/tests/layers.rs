//! The database's own layer, without the guard before it.

use futures_util::{StreamExt as _, stream};

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

/// Attempts as a query, to be explained, and to be prepared: nothing that is stored
/// changes.
async fn unguarded(sql: &Sql, attempts: &[&str]) {
    let before = contents(sql).await;
    let glimpse = glance(sql).await;
    assert!(attempts.len() > 40);
    let bounds = Bounds {
        // Some sleep, and some never end: how long they may is not looked at here.
        time: Duration::from_millis(300),
        ..sql.bounds
    };
    for attempts in attempts.chunks(20) {
        stream::iter(attempts)
            .for_each_concurrent(pool::MAX_CONNECTIONS, |attempt| async move {
                for order in [Order::Query, Order::Explain, Order::Prepare] {
                    let outcome = sql.engine.run(order, &unchecked(attempt), bounds).await;
                    let busy = |error: &ToolError| error.message.contains("busy");
                    assert!(
                        !outcome.as_ref().is_err_and(busy),
                        "{attempt:?} was not tried"
                    );
                }
            })
            .await;
        assert_eq!(glance(sql).await, glimpse, "by one of {attempts:?}");
    }
    assert_eq!(contents(sql).await, before);
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
            .run(Order::Query, &unchecked(statement), sql.bounds)
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
    let url = file(folder.path());
    let path = folder.path().join("shop.db");
    let bytes = std::fs::read(&path).expect("a file");
    for sql in [sample(), Sql::open(settings(Some(url))).expect("a file")] {
        refuses(&sql, WRITES).await;
        unguarded(&sql, &attempts::attempts('s')).await;
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
    let folder = tempfile::tempdir().expect("a folder");
    for sql in [
        sample(),
        Sql::open(settings(Some(file(folder.path())))).expect("a file"),
    ] {
        let Engine::Sqlite(engine) = &sql.engine else {
            panic!("not SQLite");
        };
        for statement in WRITES {
            let tried = engine.work(false, sql.bounds, move |connection| {
                connection.pragma_update(None, "query_only", false)?;
                connection.execute(statement, [])?;
                Ok(Ok(()))
            });
            let error = tried.await.expect_err(statement);
            assert!(error.message.contains("readonly"), "{statement}: {error:?}");
        }
    }
}

/// The engine's own list, without the guard: functions in views, behind operators, and
/// as tables are asked about, too.
#[tokio::test]
async fn sqlite_asks_about_every_function_and_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = file(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("shop.db")).expect("a file");
    connection
        .execute_batch("CREATE VIEW told AS SELECT sqlite_version() AS version; CREATE VIEW low AS SELECT lower('A')")
        .expect("views");
    let sql = Sql::open(settings(Some(url))).expect("a file");
    let run = async |text: &str| {
        sql.engine
            .run(Order::Query, &unchecked(text), sql.bounds)
            .await
    };
    for text in [
        "SELECT * FROM low",
        "SELECT 'a' LIKE 'A', 'a' GLOB 'a', '{}' -> 'a', json_extract('{}', '$.a')",
        "SELECT sum(total) OVER (ORDER BY id) FROM orders",
        "SELECT name FROM sqlite_master",
    ] {
        assert!(run(text).await.is_ok(), "{text}");
    }
    for text in [
        "SELECT * FROM told",
        "SELECT sqlite_version()",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM dbstat",
        "PRAGMA database_list",
        "ATTACH ':memory:' AS evil",
    ] {
        let error = run(text).await.expect_err(text);
        assert_eq!(error.kind, ToolErrorKind::Denied, "{text}: {error:?}");
    }
}

#[tokio::test]
#[ignore = "nightly: every attempt on two servers of databases"]
async fn postgresql_and_mariadb_alone_keep_their_data_unchanged() {
    for server in databases::start().await {
        let sql = Sql::open(settings(Some(server.url.clone()))).expect("a database");
        refuses(&sql, WRITES).await;
        unguarded(&sql, &attempts::shared(server.letter)).await;
        let mut as_reader = settings(Some(server.reader.clone()));
        as_reader.allow_powerful_role = false;
        let sql = Sql::open(as_reader).expect("a database");
        let watch = Watch::begin(&server).await;
        refuses(&sql, WRITES).await;
        unguarded(&sql, &attempts::attempts(server.letter)).await;
        all_are_back(&sql).await;
        watch.nothing_is_left(&server).await;
        if server.letter == 'p' {
            answers_before_it_cleans(&server).await;
        }
    }
}

/// Waits until every session of a server is clean, or closed.
async fn all_are_back(sql: &Sql) {
    let free_permits = match &sql.engine {
        Engine::Postgres(engine) => engine.free_permits(),
        Engine::MySql(engine) => engine.free_permits(),
        Engine::Sqlite(_) => panic!("no server"),
    };
    let all = u32::try_from(pool::MAX_CONNECTIONS).expect("a few");
    drop(free_permits.acquire_many(all).await.expect("free_permits"));
}

/// A write that was committed is told as such, however long its session takes to be
/// clean. Until it is, its place is taken.
async fn answers_before_it_cleans(server: &databases::Database) {
    let mut config = settings(Some(through_what_holds_back(&server.url).await));
    config.read_only = false;
    config.timeout = Duration::from_secs(2);
    let sql = Sql::open(config).expect("a database");
    let changed = query(&sql, "UPDATE customers SET name = name WHERE id = 1").await;
    changed.expect("a write");
    let Engine::Postgres(engine) = &sql.engine else {
        panic!("not PostgreSQL");
    };
    assert_eq!(
        engine.free_permits().available_permits(),
        pool::MAX_CONNECTIONS - 1
    );
}

/// The address of a way to a server that lets everything through up to a word to clean
/// the session.
async fn through_what_holds_back(url: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let (before, after) = url.split_once('@').expect("an address");
    let (server, base) = after.split_once('/').expect("a database");
    let port = listener.local_addr().expect("an address").port();
    let server = server.to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = tokio::net::TcpStream::connect(&server).await;
            let (mut answers, mut orders) = server.expect("a server").into_split();
            let (mut said, mut told) = client.into_split();
            tokio::spawn(async move { copy(&mut answers, &mut told).await });
            tokio::spawn(async move {
                let mut words = [0; 4096];
                while let Ok(length @ 1..) = said.read(&mut words).await {
                    if words[..length]
                        .windows(11)
                        .any(|word| word == b"DISCARD ALL")
                    {
                        std::future::pending::<()>().await;
                    }
                    orders.write_all(&words[..length]).await.expect("a server");
                }
            });
        }
    });
    format!("{before}@127.0.0.1:{port}/{base}")
}

/// What could be left behind beside rows: looked at by others.
enum Watch {
    Postgres {
        sequence: i64,
        canary: Box<sqlx::PgConnection>,
        listener: Box<sqlx::postgres::PgListener>,
    },
    MySql,
}

impl Watch {
    async fn begin(server: &databases::Database) -> Self {
        use sqlx::Connection as _;
        if server.letter != 'p' {
            return Self::MySql;
        }
        let mut listener = sqlx::postgres::PgListener::connect(&server.url)
            .await
            .expect("a listener");
        listener.listen("evil").await.expect("a channel");
        let canary = sqlx::PgConnection::connect(&server.reader).await;
        Self::Postgres {
            sequence: number(server, "SELECT last_value FROM evil_seq").await,
            canary: Box::new(canary.expect("a connection")),
            listener: Box::new(listener),
        }
    }

    async fn nothing_is_left(self, server: &databases::Database) {
        let Self::Postgres {
            sequence,
            mut canary,
            mut listener,
        } = self
        else {
            let locked = "SELECT COALESCE(IS_USED_LOCK('evil'), 0)";
            assert_eq!(number(server, locked).await, 0);
            return;
        };
        for (sql, left) in [
            ("SELECT last_value FROM evil_seq", sequence),
            (
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
                0,
            ),
            ("SELECT count(*) FROM pg_largeobject_metadata", 0),
            ("SELECT count(*) FROM pg_replication_slots", 0),
            ("SELECT count(*) FROM pg_db_role_setting", 0),
            ("SELECT count(*) FROM pg_prepared_xacts", 0),
            (
                "SELECT count(*) FROM pg_stat_activity WHERE usename = 'readeruser' AND state <> 'idle'",
                0,
            ),
        ] {
            assert_eq!(number(server, sql).await, left, "{sql}");
        }
        let alive: i32 = sqlx::query_scalar("SELECT 1")
            .fetch_one(&mut *canary)
            .await
            .expect("a session that nobody ended");
        assert_eq!(alive, 1);
        // The first notice is ours.
        sqlx::raw_sql("NOTIFY evil, 'the end'")
            .execute(&mut *canary)
            .await
            .expect("a notice");
        let notice = listener.recv().await.expect("a notice");
        assert_eq!(notice.payload(), "the end");
    }
}

async fn number(server: &databases::Database, sql: &'static str) -> i64 {
    use sqlx::Connection as _;
    if server.letter == 'p' {
        let connection = sqlx::PgConnection::connect(&server.url).await;
        let mut connection = connection.expect("a connection");
        let number = sqlx::query_scalar(sql).fetch_one(&mut connection).await;
        return number.expect(sql);
    }
    let connection = sqlx::MySqlConnection::connect(&server.url).await;
    let mut connection = connection.expect("a connection");
    let number = sqlx::query_scalar(sql).fetch_one(&mut connection).await;
    number.expect(sql)
}
