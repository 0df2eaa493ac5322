use super::*;
use crate::tools::sql::guard::{Refusal, checked, judge};

#[test]
fn no_attempt_to_write_or_to_reach_beyond_the_database_passes_the_guard() {
    assert!(attempts::ATTEMPTS.len() > 100);
    let mut passed = Vec::new();
    for (letters, sql) in attempts::ATTEMPTS {
        for (letter, dialect) in dialects() {
            if letters.contains(letter) && judge(dialect, sql, true).is_ok() {
                passed.push(format!("{letter}: {sql}"));
            }
        }
    }
    assert_eq!(passed, Vec::<String>::new());
}

#[test]
fn queries_pass_the_guard() {
    let mut refused = Vec::new();
    for (letters, sql) in attempts::QUERIES {
        for (letter, dialect) in dialects() {
            if letters.contains(letter)
                && let Err(refusal) = judge(dialect, sql, true)
            {
                refused.push(format!("{letter}: {sql}: {}", refusal.message));
            }
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn the_guard_gives_reasons_that_help() {
    let refusal = |sql: &str| {
        let refusal = judge(dialect::Dialect::Sqlite, sql, true).expect_err(sql);
        (refusal.syntax, refusal.message)
    };
    for (sql, message) in [
        (
            "insert into customers values (1)",
            "INSERT operations not allowed in read-only mode.",
        ),
        (
            "DROP TABLE customers",
            "DROP operations not allowed in read-only mode.",
        ),
        (
            "WITH x AS (SELECT 1) DELETE FROM orders",
            "DELETE operations not allowed in read-only mode.",
        ),
        ("SELECT 1; SELECT 2", "Only one statement is run per call."),
        (
            "SELECT load_extension('x')",
            "The function load_extension() is not allowed.",
        ),
    ] {
        assert_eq!(refusal(sql), (false, message.to_owned()), "{sql}");
    }
    assert_eq!(refusal(" -- nothing\n").1, "The query is empty.");
    assert!(refusal("SELEC 1").1.starts_with("sql parser error: "));
    assert!(refusal("SELECT 'open").0);
    assert_eq!(
        refusal("SELECT ?"),
        (
            true,
            "Placeholders have no values here; write the values into the query.".to_owned()
        )
    );
}

#[test]
fn what_is_sent_is_the_statement_without_its_semicolon() {
    let sent = |sql: &str| judge(dialect::Dialect::Postgres, sql, true).map(|checked| checked.sql);
    assert_eq!(sent("SELECT 1 ; -- x").as_deref(), Ok("SELECT 1 "));
    assert_eq!(
        sent("SELECT ';'\n, 'é;' ;;").as_deref(),
        Ok("SELECT ';'\n, 'é;' ")
    );
    assert_eq!(sent("SELECT 1 -- ;").as_deref(), Ok("SELECT 1 -- ;"));
}

#[test]
fn where_writing_is_allowed_rows_and_tables_may_be_changed_and_nothing_else() {
    for (sql, writes) in [
        ("SELECT 1", Some(false)),
        ("INSERT INTO a VALUES (1)", Some(true)),
        ("UPDATE a SET b = 1", Some(true)),
        ("DELETE FROM a", Some(true)),
        ("CREATE TABLE a (b INTEGER)", Some(true)),
        ("ALTER TABLE a ADD COLUMN c INTEGER", Some(true)),
        ("DROP TABLE a", Some(true)),
        (
            "WITH x AS (DELETE FROM a RETURNING b) SELECT b FROM x",
            Some(true),
        ),
        ("INSERT INTO a SELECT nextval('s')", Some(true)),
        ("INSERT INTO a VALUES (1); DELETE FROM a", None),
        ("COPY a TO PROGRAM 'x'", None),
        ("SET transaction_read_only = off", None),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            None,
        ),
        ("INSERT INTO a SELECT pg_sleep(1)", None),
        ("GRANT ALL ON a TO b", None),
        ("COMMIT", None),
        ("DO $$ BEGIN END $$", None),
    ] {
        let checked = judge(dialect::Dialect::Postgres, sql, false);
        assert_eq!(checked.ok().map(|checked| checked.writes), writes, "{sql}");
    }
}

#[tokio::test]
async fn long_and_deep_statements_are_refused_or_read_without_harm() {
    for (_, dialect) in dialects() {
        let chain = format!("SELECT {}1", "1+".repeat(49_000));
        let chained = checked(dialect, &chain, true).await.expect("a verdict");
        assert!(chained.is_ok());
        for deep in [
            format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
            format!(
                "SELECT * FROM {}t{}",
                "(".repeat(20_000),
                ")".repeat(20_000)
            ),
            format!("SELECT {}1", "NOT ".repeat(24_000)),
            format!("SELECT {}", "'a".repeat(40_001)),
            "SELECT 1".repeat(20_000),
            // What the parser tries in two ways at each level.
            format!("SELECT * FROM {}t{} WHERE", "(".repeat(45), ")".repeat(45)),
            format!("SELECT {}SELECT{}", "(".repeat(45), ")".repeat(45)),
            format!(
                "SELECT {}1{} FROM",
                "CASE WHEN (".repeat(20),
                ") THEN 1 END".repeat(20)
            ),
        ] {
            let refusal = checked(dialect, &deep, true).await.expect("a verdict");
            assert!(matches!(refusal, Err(Refusal { syntax: true, .. })));
        }
    }
}
