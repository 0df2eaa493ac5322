use std::sync::Arc;

use sqlparser::ast::Statement;

use super::dialect::Dialect;
use super::functions::Functions;
use super::guard::{Guard, Refusal};
use super::*;

/// The parser does not know these, and the engine of `SQLite` refuses them.
const BY_ENGINE: &[&str] = &[
    "SELECT 1\u{37e} DELETE FROM orders",
    "SELECT 1 IS sqlite_version()",
];

#[test]
fn no_attempt_to_write_or_to_reach_beyond_the_database_passes_the_guard() {
    let mut passed = Vec::new();
    let mut all = 0;
    for (letter, dialect) in dialects() {
        let attempts = attempts::attempts(letter);
        assert!(attempts.len() >= 200, "{letter}: {}", attempts.len());
        all += attempts.len();
        for sql in attempts {
            // What only the server can decide, `sql_servers` tries on one.
            let by_engine = dialect == Dialect::Sqlite && BY_ENGINE.contains(&sql);
            if judge(dialect, sql).is_ok_and(|checked| checked.names.is_empty()) && !by_engine {
                passed.push(format!("{letter}: {sql}"));
            }
        }
    }
    assert_eq!(passed, Vec::<String>::new());
    assert!(all >= 900, "{all}");
}

#[test]
fn queries_pass_the_guard() {
    let mut refused = Vec::new();
    for (letter, dialect) in dialects() {
        let queries = attempts::queries(letter);
        assert!(queries.len() >= 60, "{letter}: {}", queries.len());
        for sql in queries {
            if let Err(refusal) = judge(dialect, sql) {
                refused.push(format!("{letter}: {sql}: {}", refusal.message));
            }
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn a_function_that_is_not_listed_is_named_with_its_place_and_what_to_do() {
    let refusal = judge(
        Dialect::Postgres,
        "SELECT lower(name),\n  pg_sleeep(1) FROM t",
    );
    let error = ToolError::from(refusal.expect_err("not listed"));
    assert_eq!(
        error,
        ToolError {
            kind: ToolErrorKind::Denied,
            message: "The function pg_sleeep() (line 2, column 3) is not on the list of functions that may be \
                      called here."
                .to_owned(),
            suggestions: vec![
                "Compute it with listed functions, or leave it out".to_owned(),
                "If it only computes a value, the operator of this server can allow it: \
                 `tools.sql.functions: [pg_sleeep]`"
                    .to_owned(),
            ],
            field: "query".to_owned(),
            retry_after: None,
        }
    );
    let near = judge(Dialect::MySql, "SELECT DATEFORMAT(a) FROM t").expect_err("not listed");
    assert!(
        near.steps[0].starts_with("Listed functions with such a name: date_format()"),
        "{near:?}"
    );
}

#[test]
fn the_operator_adds_functions_to_the_list() {
    let own = ["similarity", "app.net_price"].map(|name| name.parse().expect(name));
    for dialect in [Dialect::Postgres, Dialect::MySql] {
        let functions = Functions::new(dialect, true, own.to_vec());
        let sent =
            |sql: &str| guard::judge(dialect, &functions, sql, true).map(|checked| checked.sql);
        for sql in [
            "SELECT similarity(a, b) FROM t",
            "SELECT app.net_price(a) FROM t",
        ] {
            assert_eq!(sent(sql).as_deref(), Ok(sql));
        }
        for sql in [
            "SELECT app.similarity(a)",
            "SELECT net_price(a)",
            "SELECT other(a)",
        ] {
            assert!(sent(sql).is_err(), "{sql}");
        }
    }
}

#[test]
fn the_guard_gives_reasons_that_help() {
    let refusal = |sql: &str| {
        let refusal = judge(Dialect::Sqlite, sql).expect_err(sql);
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
            "The function load_extension() (line 1, column 8) is not on the list of functions that may be called here.",
        ),
    ] {
        assert_eq!(refusal(sql), (false, message.to_owned()), "{sql}");
    }
    assert_eq!(refusal(" -- nothing\n").1, "The query is empty.");
    let wrong = judge(Dialect::Postgres, "SELEC 1").expect_err("no statement");
    assert!(wrong.syntax && wrong.message.starts_with("sql parser error: "));
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
fn what_is_sent_is_the_statement_as_it_was_understood() {
    for (dialect, sql, sent) in [
        (Dialect::Postgres, "SELECT 1 ; -- x", "SELECT 1"),
        (
            Dialect::Postgres,
            "select ';'\n, 'é;' ;;",
            "SELECT ';', 'é;'",
        ),
        (
            Dialect::Postgres,
            "SELECT /* a */ Lower(name), count(*), \"left\"('a', 1) FROM t",
            "SELECT pg_catalog.\"lower\"(name), pg_catalog.\"count\"(*), pg_catalog.\"left\"('a', 1) FROM t",
        ),
        (
            Dialect::Postgres,
            "SELECT substring(a, 1, 2), ceil(b), substring(a from 1), coalesce(a, 'x'), - -1 FROM t",
            "SELECT pg_catalog.\"substring\"(a, 1, 2), pg_catalog.\"ceil\"(b), SUBSTRING(a FROM 1), coalesce(a, 'x'), -(-1) FROM t",
        ),
        (
            Dialect::Postgres,
            "SELECT E'it\\'s', $$it's$$, U&'\\0061', 'it''s', 'a\\'",
            "SELECT 'it''s', 'it''s', 'a', 'it''s', 'a\\'",
        ),
        (
            Dialect::Postgres,
            "SELECT * FROM unnest(ARRAY[1]) AS u, generate_series(1, 2) g",
            "SELECT * FROM pg_catalog.\"unnest\"(ARRAY[1]) AS u, pg_catalog.\"generate_series\"(1, 2) g",
        ),
        (
            Dialect::MySql,
            "SELECT count (*), 'it\\'s', 'a\\\\', \"b\" # c",
            "SELECT count(*), 'it\\'s', 'a\\\\', \"b\"",
        ),
        (
            Dialect::Sqlite,
            "SELECT 1 /* a */ ; -- x",
            "SELECT 1 /* a */ ",
        ),
    ] {
        let checked = judge(dialect, sql).map(|checked| checked.sql);
        assert_eq!(checked.as_deref(), Ok(sent), "{sql}");
    }
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
        let functions = Functions::new(Dialect::Postgres, false, Vec::new());
        let checked = guard::judge(Dialect::Postgres, &functions, sql, false);
        assert_eq!(checked.ok().map(|checked| checked.writes), writes, "{sql}");
    }
}

/// `SELECT`, then so many levels.
fn nested(levels: usize, open: &str, inside: &str, close: &str) -> String {
    let (open, close) = (open.repeat(levels), close.repeat(levels));
    format!("SELECT {open}{inside}{close}")
}

/// What a parser makes of so many levels of a form, on a stack that is deep enough.
fn read(dialect: Dialect, levels: usize, form: [&str; 3]) -> Result<Statement, Refusal> {
    let [open, inside, close] = form;
    let sql = nested(levels, open, inside, close);
    let tokens = guard::tokens(dialect, &sql).expect("tokens");
    let parse = move || guard::parse(dialect, tokens);
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(parse).expect("a thread");
    thread.join().expect("an answer")
}

#[test]
fn what_the_parser_reads_twice_at_each_level_is_read_a_bounded_number_of_times() {
    for (_, dialect) in dialects() {
        for form in [
            ["position(", "1", ")"],
            ["* FROM ((SELECT ", "1", ") a JOIN t ON 1)"],
        ] {
            assert!(read(dialect, 3, form).is_ok(), "{form:?}");
            let refused = (4..=20).find_map(|levels| read(dialect, levels, form).err());
            let message = refused.expect("a bound").message;
            let is_bounded = message.contains("nested") || message.contains("recursion limit");
            assert!(is_bounded, "{message}");
        }
    }
}

#[tokio::test]
async fn long_and_deep_statements_are_refused_or_read_without_harm() {
    for (_, dialect) in dialects() {
        let functions = Arc::new(Functions::new(dialect, true, Vec::new()));
        let guard = Guard::new(dialect, functions, true);
        let chain = format!("SELECT {}1", "1+".repeat(49_000));
        let chained = guard.checked(&chain).await.expect("a verdict");
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
            nested(20, "position(", "1", ")"),
            nested(45, "position(", "1", ")"),
            nested(45, "position(", &format!("'{}'", "a".repeat(90_000)), ")"),
        ] {
            let refusal = guard.checked(&deep).await.expect("a verdict");
            // What only SQLite may know goes to its engine, which has limits of its own.
            let engine = dialect == Dialect::Sqlite && refusal.is_ok();
            assert!(engine || matches!(refusal, Err(Refusal { syntax: true, .. })));
            if engine && let Err(error) = query(&sample(), &deep).await {
                assert_eq!(error.kind, ToolErrorKind::Failed);
            }
        }
    }
}
