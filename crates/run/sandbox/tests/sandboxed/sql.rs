//! SQL on a scratch database.

use std::time::Duration;

use crate::common::{limits, run, sql};
use repertoire_sandbox::{Cell, Limits, Outcome, Program, SqlCase, Stopped};

const DATA: &str = "CREATE TABLE item (name TEXT, price REAL, left INTEGER, image BLOB);
    INSERT INTO item VALUES ('lamp', 12.5, 3, x'00ff'), ('chair', 40, NULL, NULL);";

fn rows(columns: &[&str], rows: Vec<Vec<Cell>>) -> Outcome {
    Outcome::Rows {
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows,
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn message(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Thrown { message, .. } => message,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[tokio::test]
async fn rows_come_out_with_every_kind_of_cell() {
    let found = sql(
        DATA,
        "SELECT name, price, left, image FROM item ORDER BY price",
    )
    .await;
    let expected = rows(
        &["name", "price", "left", "image"],
        vec![
            vec![
                text("lamp"),
                Cell::Real(12.5),
                Cell::Integer(3),
                Cell::Blob("00FF".into()),
            ],
            vec![text("chair"), Cell::Real(40.0), Cell::Null, Cell::Null],
        ],
    );
    assert_eq!(found, expected);
}

#[tokio::test]
async fn of_several_statements_the_last_one_with_columns_counts() {
    let found = sql(DATA, "SELECT 1 AS a; SELECT 2 AS b; -- the end\n").await;
    assert_eq!(found, rows(&["b"], vec![vec![Cell::Integer(2)]]));
    assert_eq!(sql(DATA, "-- nothing").await, rows(&[], vec![]));
}

#[tokio::test]
async fn a_mistake_has_its_line() {
    let wrong = sql(DATA, "SELECT name FROM items").await;
    assert_eq!(message(&wrong), "no such table: items");
    let wrong = sql(DATA, "SELECT 1;\nSELECT name,\nFROM item").await;
    assert_eq!(message(&wrong), "near \"FROM\": syntax error");
    let Outcome::Thrown { line, .. } = wrong else {
        panic!("it ran");
    };
    assert_eq!(line, Some(3));
}

#[tokio::test]
async fn a_solution_that_reads_can_do_nothing_else() {
    for statement in [
        "DELETE FROM item",
        "UPDATE item SET price = 0",
        "INSERT INTO item VALUES ('x', 1, 1, NULL)",
        "DROP TABLE item",
        "CREATE TABLE other (a)",
        "CREATE TEMP TABLE other (a)",
        "CREATE VIEW v AS SELECT 1",
        "ATTACH '/etc/passwd' AS p",
        "PRAGMA table_info(item)",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO '/tmp/left'",
        "SELECT load_extension('x')",
        "SELECT random()",
        "SELECT hex(randomblob(4))",
        "SELECT sqlite_version()",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/left', 'x')",
        "BEGIN",
        "WITH x AS (SELECT random() AS r) SELECT * FROM x",
    ] {
        let found = sql(DATA, statement).await;
        assert!(!message(&found).is_empty(), "{statement}");
    }
}

#[tokio::test]
async fn a_solution_that_writes_is_asked_afterwards_and_still_leaves_nothing() {
    let job = |solution: &str| Program::Sql {
        solution: solution.to_owned(),
        may_write: true,
        cases: vec![SqlCase {
            data: DATA.to_owned(),
            query: Some("SELECT name, left FROM item ORDER BY name".to_owned()),
        }],
    };
    let solution = "BEGIN; UPDATE item SET left = 9 WHERE name = 'chair'; COMMIT";
    let found = run(job(solution), limits()).await;
    let expected = rows(
        &["name", "left"],
        vec![
            vec![text("chair"), Cell::Integer(9)],
            vec![text("lamp"), Cell::Integer(3)],
        ],
    );
    assert_eq!(found, [expected]);
    for statement in [
        "ATTACH '/tmp/left.db' AS p",
        "PRAGMA writable_schema = ON",
        "VACUUM INTO '/tmp/left.db'",
        "UPDATE sqlite_schema SET sql = ''",
        "CREATE VIRTUAL TABLE v USING fts5(a)",
    ] {
        let found = run(job(statement), limits()).await;
        assert!(!message(&found[0]).is_empty(), "{statement}");
    }
}

#[tokio::test]
async fn what_differs_from_day_to_day_stands_still() {
    let found = sql(
        "CREATE TABLE log (at TEXT DEFAULT CURRENT_TIMESTAMP); INSERT INTO log DEFAULT VALUES",
        "SELECT date('now') AS a, date() AS b, datetime('NOW', '+1 day') AS c, strftime('%Y') AS d,
            CURRENT_DATE AS e, at AS f, date('2020-02-28', '+1 day') AS g, date(NULL) AS h FROM log",
    )
    .await;
    let expected = vec![
        text("2025-01-15"),
        text("2025-01-15"),
        text("2025-01-16 12:00:00"),
        text("2025"),
        text("2025-01-15"),
        text("2025-01-15 12:00:00"),
        text("2020-02-29"),
        Cell::Null,
    ];
    assert_eq!(
        found,
        rows(&["a", "b", "c", "d", "e", "f", "g", "h"], vec![expected])
    );
}

#[tokio::test]
async fn what_takes_too_much_is_stopped() {
    let counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let within = |limits: Limits, solution: String| async move {
        let program = Program::Sql {
            solution,
            may_write: false,
            cases: vec![SqlCase {
                data: DATA.to_owned(),
                query: None,
            }],
        };
        run(program, limits).await.remove(0)
    };
    let short = Limits {
        time: Duration::from_millis(300),
        ..limits()
    };
    assert_eq!(
        within(short, format!("{counting} SELECT count(*) FROM n")).await,
        Outcome::Stopped(Stopped::Time)
    );
    assert_eq!(
        within(limits(), format!("{counting} SELECT i FROM n")).await,
        Outcome::Stopped(Stopped::Output)
    );
    let sorted = format!(
        "{counting} SELECT i FROM (SELECT printf('%01000d', i) AS i FROM n LIMIT 1000000) ORDER BY i DESC"
    );
    assert_eq!(
        within(limits(), sorted).await,
        Outcome::Stopped(Stopped::Memory)
    );
    let long = "SELECT printf('%0100000d', 1)".to_owned();
    assert_eq!(
        within(limits(), long).await,
        Outcome::Stopped(Stopped::Output)
    );
}
