//! What a role may do, what somebody planted, and what a session keeps.

use super::*;

/// A function that the database defines itself writes. The guard does not know it; where
/// the operator allows it, the database refuses.
pub(super) async fn functions(server: &databases::Database) {
    let sql = open(Some(&server.url), |_| ());
    let before = contents(&sql).await;
    let error = query(&sql, "SELECT evil_write()").await;
    let error = error.expect_err("not listed");
    assert!(error.message.contains("is not on the list"), "{error:?}");
    let sql = open(Some(&server.url), |settings| {
        settings.functions = vec!["evil_write".parse().expect("a name")];
    });
    let error = query(&sql, "SELECT evil_write()").await;
    let error = error.expect_err("refused");
    assert_eq!(error.kind, ToolErrorKind::Denied, "{error:?}");
    assert!(
        error.message.starts_with("The database refused: ")
            && error.message.contains("transaction"),
        "{error:?}"
    );
    assert_eq!(contents(&sql).await, before);
}

/// A role that may do anything is refused, with words that say what to do; one that may
/// only `SELECT` has all tools, and the same refusals.
pub(super) async fn roles(server: &databases::Database) {
    let refuse = |settings: &mut SqlSettings| settings.allow_powerful_role = false;
    let sql = open(Some(&server.url), refuse);
    let error = query(&sql, "SELECT 1").await.expect_err("powerful");
    assert_eq!(error.kind, ToolErrorKind::Unavailable);
    let (what, how) = if server.letter == 'p' {
        ("it is a superuser", "CREATE ROLE agents LOGIN")
    } else {
        ("it has ALL PRIVILEGES on *.*", "CREATE USER agents")
    };
    assert!(
        error
            .message
            .starts_with("The database role of this server may do more than its tools need: ")
            && error.message.contains(what),
        "{error:?}"
    );
    assert!(error.suggestions[0].contains(how), "{error:?}");
    assert!(
        error.suggestions[1].contains("allow_powerful_role: true"),
        "{error:?}"
    );
    let core = text(&sql, LOAD_CORE, json!({})).await;
    assert!(core.contains(what), "{core}");
    let reader = open(Some(&server.reader), refuse);
    queries(&reader, server.letter).await;
    refusals(&reader, server.letter).await;
    if server.letter == 'p' {
        planted(server, &reader).await;
        powers(server).await;
    }
}

/// What somebody planted is not called where the server's own is meant.
async fn planted(server: &databases::Database, reader: &Sql) {
    let lower = "SELECT lower('X'::varchar), 'Y'::varchar || 'z'";
    assert_eq!(cells(reader, lower).await, json!([["x", "Yz"]]));
    run(
        server,
        "CREATE FUNCTION evil_join(varchar, varchar) RETURNS text LANGUAGE sql AS 'SELECT ''planted''::text'; \
         CREATE OPERATOR public.|| (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = evil_join)",
    )
    .await;
    let error = query(reader, "SELECT c.name || 'z' FROM customers AS c").await;
    let error = error.expect_err("another operator");
    assert!(
        error
            .message
            .starts_with("Somebody gave the operator || another meaning"),
        "{error:?}"
    );
    run(server, "DROP OPERATOR public.|| (varchar, varchar)").await;
    run(
        server,
        "ALTER ROLE readeruser SET search_path = public, pg_catalog",
    )
    .await;
    let late = open(Some(&server.reader), |_| ());
    let error = query(&late, "SELECT c.name FROM customers AS c").await;
    let error = error.expect_err("another order");
    assert!(error.message.contains("before pg_catalog"), "{error:?}");
    run(server, "ALTER ROLE readeruser RESET search_path").await;
}

/// Each power of a role is found.
async fn powers(server: &databases::Database) {
    for (give, take, found) in [
        (
            "ALTER ROLE readeruser REPLICATION",
            "ALTER ROLE readeruser NOREPLICATION",
            "REPLICATION",
        ),
        (
            "ALTER ROLE readeruser CREATEROLE",
            "ALTER ROLE readeruser NOCREATEROLE",
            "CREATEROLE",
        ),
        (
            "GRANT pg_signal_backend TO readeruser",
            "REVOKE pg_signal_backend FROM readeruser",
            "pg_signal_backend",
        ),
        (
            "GRANT pg_read_server_files TO readeruser",
            "REVOKE pg_read_server_files FROM readeruser",
            "pg_read_server_files",
        ),
        (
            "GRANT EXECUTE ON FUNCTION lo_export(oid, text) TO readeruser",
            "REVOKE EXECUTE ON FUNCTION lo_export(oid, text) FROM readeruser",
            "lo_export()",
        ),
        (
            "CREATE EXTENSION dblink",
            "DROP EXTENSION dblink",
            "dblink_connect()",
        ),
    ] {
        run(server, give).await;
        if give.contains("dblink") {
            // Also a role that may do anything does not reach another server by it.
            let sql = open(Some(&server.url), |_| ());
            for text in [
                "SELECT ('host=127.0.0.1 port=1'::text).dblink_connect",
                "SELECT ('DELETE FROM orders'::text).dblink_exec",
            ] {
                let error = query(&sql, text).await.expect_err(text);
                assert!(
                    error.message.contains("may call the function dblink_"),
                    "{error:?}"
                );
            }
        }
        let sql = open(Some(&server.reader), |settings| {
            settings.allow_powerful_role = false;
        });
        let error = query(&sql, "SELECT 1").await.expect_err(give);
        assert!(error.message.contains(found), "{give}: {error:?}");
        run(server, take).await;
        query(&sql, "SELECT 1").await.expect(take);
    }
}

async fn run(server: &databases::Database, sql: &'static str) {
    use sqlx::Connection as _;
    let connection = sqlx::PgConnection::connect(&server.url).await;
    let mut connection = connection.expect("a connection");
    sqlx::raw_sql(sql)
        .execute(&mut connection)
        .await
        .expect(sql);
}

/// Nothing of a call is left in the session that the next one gets: what the list would
/// not let through is allowed here, so that there is something to leave.
pub(super) async fn sessions(server: &databases::Database) {
    // A session is cleaned after its call was answered, so the next one waits for the lock. It is
    // within the statement, as a session that kept its settings would show them there.
    let (lock, free) = if server.letter == 'p' {
        (
            "SELECT pg_advisory_lock(4242), set_config('application_name', 'evil', false)",
            "SELECT current_setting('application_name') = 'evil' FROM pg_advisory_lock(4242)",
        )
    } else {
        (
            "SELECT GET_LOCK('evil', 0)",
            "SELECT GET_LOCK('evil', 20) = 0",
        )
    };
    let allowed = |settings: &mut SqlSettings| {
        let names = [
            "pg_advisory_lock",
            "set_config",
            "current_setting",
            "get_lock",
        ];
        settings.functions = names
            .iter()
            .map(|name| name.parse().expect("a name"))
            .collect();
    };
    let one = open(Some(&server.url), allowed);
    let other = open(Some(&server.url), allowed);
    query(&one, lock).await.expect("a lock");
    for sql in [&other, &one] {
        let kept = cells(sql, free).await;
        assert!(
            kept == json!([[false]]) || kept == json!([[0]]),
            "{free}: {kept}"
        );
    }
}
