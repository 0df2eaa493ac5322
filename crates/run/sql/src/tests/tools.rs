use super::*;

#[tokio::test]
async fn a_query_is_answered_as_a_table_and_as_rows() {
    let sql = sample();
    let output = query(&sql, "SELECT COUNT(*) AS n FROM customers;").await;
    assert_eq!(
        output.expect("rows"),
        Output {
            text: "| n |\n|---|\n| 42 |\n\n1 row.".to_owned(),
            structured: Some(object(json!({
                "columns": [{"name": "n", "type": "INTEGER"}],
                "rows": [[42]],
                "row_count": 1,
                "truncated": false,
            }))),
        }
    );
    let none = query(&sql, "SELECT id, name FROM customers WHERE id < 0").await;
    assert_eq!(
        none.expect("no rows").text,
        "| id | name |\n|---|---|\n\n0 rows."
    );
}

#[tokio::test]
async fn values_are_exact_and_stay_on_their_line() {
    let sql = sample();
    let output = query(
        &sql,
        "SELECT NULL AS a, 9007199254740992 AS b, 9007199254740993 AS c, -9223372036854775808 AS d, 1.5 AS e, \
         9e999 AS f, x'0102ff' AS g, 'a|b' || char(10) || 'c' AS h, '' AS i, CAST(x'ff41' AS TEXT) AS j",
    )
    .await
    .expect("a row");
    let rows = output.structured.expect("rows");
    assert_eq!(
        rows["rows"],
        json!([[
            null,
            9_007_199_254_740_992_i64,
            "9007199254740993",
            "-9223372036854775808",
            1.5,
            "inf",
            "<3 bytes>",
            "a|b\nc",
            "",
            "\u{fffd}A"
        ]])
    );
    assert!(output.text.contains("| a\\|b\\nc |"), "{}", output.text);
}

#[tokio::test]
async fn a_statement_that_writes_is_denied_in_the_words_of_the_specification() {
    let error = query(
        &sample(),
        "INSERT INTO customers (id, name) VALUES (99, 'x')",
    )
    .await;
    assert_eq!(
        error.expect_err("denied"),
        ToolError {
            kind: ToolErrorKind::Denied,
            message: "INSERT operations not allowed in read-only mode.".to_owned(),
            suggestions: vec![
                "Write the statement down for the user to run; do not look for another spelling"
                    .to_owned()
            ],
            field: "query".to_owned(),
            retry_after: None,
        }
    );
}

#[tokio::test]
async fn tables_are_listed_and_described() {
    let sql = sample();
    let tables = call(&sql, "list_tables", json!({})).await.expect("tables");
    assert_eq!(tables.text, "customers, orders, products");
    let described = call(&sql, "describe_table", json!({"table_name": "Orders"})).await;
    let described = described.expect("a table");
    for part in [
        "CREATE TABLE orders (",
        "| id | INTEGER | no |  | primary key |",
        "| customer_id | INTEGER | no |  | → customers.id |",
        "## Indexes\n- orders_by_customer: customer_id, order_date",
    ] {
        assert!(described.text.contains(part), "{}", described.text);
    }
    let structured = described.structured.expect("a table");
    assert_eq!(structured["primary_key"], json!(["id"]));
    assert_eq!(
        structured["foreign_keys"][0],
        json!({"columns": ["product_id"], "references": {"table": "products", "columns": ["id"]}})
    );
    assert_eq!(
        structured["columns"][1],
        json!({"name": "customer_id", "type": "INTEGER", "nullable": false, "default": null, "primary_key": false})
    );
}

#[tokio::test]
async fn an_unknown_table_is_answered_with_names_that_are_near() {
    for (name, step) in [
        ("costumers", "Did you mean 'customers'?"),
        (
            "x'; DROP TABLE orders; --",
            "Call sql_list_tables to see which tables there are",
        ),
    ] {
        let error = call(&sample(), "describe_table", json!({"table_name": name})).await;
        let error = error.expect_err("unknown");
        assert_eq!(error.kind, ToolErrorKind::Invalid);
        assert_eq!(error.field, "table_name");
        assert_eq!(error.message, format!("There is no table '{name}'."));
        assert_eq!(error.suggestions, [step]);
    }
}

#[tokio::test]
async fn a_plan_is_told_and_nothing_runs() {
    let plan = text(
        &sample(),
        "explain_query",
        json!({"query": "SELECT * FROM orders WHERE customer_id = 1 ORDER BY total"}),
    )
    .await;
    assert_eq!(
        plan,
        "## Query Execution Plan\n\n- SEARCH orders USING INDEX orders_by_customer (customer_id=?)\n\
         - USE TEMP B-TREE FOR ORDER BY"
    );
}

#[tokio::test]
async fn validation_is_an_answer_whatever_it_finds() {
    let sql = sample();
    let validate = async |query: &str| text(&sql, "validate_query", json!({"query": query})).await;
    assert_eq!(
        validate("SELECT name FROM customers").await,
        "✓ Query syntax is valid.\n\nThe query is syntactically correct and can be executed."
    );
    assert_eq!(
        validate("SELECT nam FROM customers").await,
        "✗ Query syntax error:\n\nno such column: nam\n\nPlease fix the syntax and try again."
    );
    let wrong = validate("SELECT FROM WHERE").await;
    assert!(
        wrong.starts_with("✗ Query syntax error:\n\nnear \"FROM\": syntax error"),
        "{wrong}"
    );
    let write = call(
        &sql,
        "validate_query",
        json!({"query": "DELETE FROM orders"}),
    )
    .await;
    assert_eq!(write.expect_err("denied").kind, ToolErrorKind::Denied);
}

#[tokio::test]
async fn samples_are_three_rows_of_each_table() {
    let samples = text(&sample(), "get_sample_rows", json!({})).await;
    assert!(
        samples.starts_with("## Sample Data\n\n### customers\n| id | name | email | city |\n|---|---|---|---|\n| 1 | Ada "),
        "{samples}"
    );
    assert_eq!(samples.matches("\n\n3 rows.").count(), 3);
}

#[tokio::test]
async fn level_two_tells_the_dialect_the_tables_and_the_schema() {
    let core = text(&sample(), LOAD_CORE, json!({})).await;
    assert!(
        core.starts_with(
            "## SQL Skill Activated\n\n### Database Information\n- Dialect: sqlite\n\
             - Available Tables: customers, orders, products\n\n### Database Schema\nCREATE TABLE customers (\n    \
             id INTEGER PRIMARY KEY,\n"
        ),
        "{core}"
    );
}

#[tokio::test]
async fn level_two_is_bounded_where_there_are_many_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}/many.db", folder.path().display());
    let path = folder.path().join("many.db");
    let connection = rusqlite::Connection::open(path).expect("a file");
    for at in 0..250 {
        let sql = format!("CREATE TABLE \"t {at:03}\" (a INTEGER)");
        connection.execute(&sql, []).expect("a table");
    }
    let sql = Sql::open(settings(Some(url))).expect("a file");
    let core = text(&sql, LOAD_CORE, json!({})).await;
    assert!(
        core.contains("t 199, and 50 more: sql_list_tables has them all"),
        "{core}"
    );
    assert!(
        core.ends_with("-- 210 more tables are not shown: sql_describe_table has each of them.\n")
    );
    let described = text(&sql, "describe_table", json!({"table_name": "t 249"})).await;
    assert!(described.starts_with("CREATE TABLE \"t 249\" (a INTEGER);"));
    let samples = text(&sql, "get_sample_rows", json!({})).await;
    assert!(samples.ends_with("245 more tables: sql_query has their rows."));
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told_where_it_is_asked_for() {
    let planted = "planted-Pa55word";
    for url in [
        format!("sqlite:/no/such/{planted}.db"),
        format!("postgres://planted-user:{planted}@127.0.0.1:1/planted-base"),
        format!("mysql://planted-user:{planted}@127.0.0.1:1/planted-base"),
    ] {
        let sql = Sql::open(settings(Some(url))).expect("lazily");
        let error = query(&sql, "SELECT 1").await.expect_err("no database");
        assert_eq!(error.kind, ToolErrorKind::Unavailable);
        let core = text(&sql, LOAD_CORE, json!({})).await;
        assert!(
            core.contains("- Not available now: The database cannot be reached."),
            "{core}"
        );
        for shown in [format!("{error:?}"), format!("{sql:?}"), core] {
            assert!(
                !shown.contains("planted") && !shown.contains("127.0.0.1"),
                "{shown}"
            );
        }
    }
}

#[test]
fn settings_that_are_wrong_are_refused_by_their_keys() {
    let open = |url: &str| {
        let config = settings(Some(url.to_owned()));
        assert!(!format!("{config:?}").contains("planted"));
        Sql::open(config).expect_err(url).to_string()
    };
    for (url, message) in [
        (
            "oracle://planted",
            "`tools.sql.url` begins with none of `sqlite:`, `postgres://` and `mysql://`",
        ),
        (
            "postgres://planted:pa/ss@[host/planted",
            "`tools.sql.url` cannot be read as an address of PostgreSQL; special letters of a password are \
             written as %XX",
        ),
        (
            "mysql://planted@host",
            "`tools.sql.url` names no database: put its name behind the host, as in `mysql://host/name`",
        ),
    ] {
        assert_eq!(open(url), message);
    }
    let mut config = settings(None);
    config.max_rows = 0;
    let error = Sql::open(config).expect_err("zero").to_string();
    assert_eq!(error, "`tools.sql.max_rows` must be greater than 0");
}

#[tokio::test]
async fn where_the_operator_allows_it_rows_are_changed_one_statement_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = settings(Some(file(folder.path())));
    config.read_only = false;
    let sql = Sql::open(config).expect("a file");
    let changed = query(&sql, "UPDATE customers SET city = 'Rome' WHERE id <= 3").await;
    let changed = changed.expect("a change");
    assert_eq!(changed.text, "3 rows affected.");
    assert_eq!(
        changed.structured.expect("a count")["rows_affected"],
        json!(3)
    );
    let returned = query(&sql, "DELETE FROM orders WHERE id = 1 RETURNING id").await;
    assert_eq!(
        returned.expect("a row").text,
        "| id |\n|---|\n| 1 |\n\n1 row affected. 1 row."
    );
    let rome = query(&sql, "SELECT COUNT(*) FROM customers WHERE city = 'Rome'").await;
    assert!(rome.expect("a count").text.contains("| 3 |"));
    let two = query(&sql, "DELETE FROM orders; DELETE FROM customers").await;
    assert_eq!(two.expect_err("two").kind, ToolErrorKind::Denied);
    // The sample stays as it is even so.
    let mut config = settings(None);
    config.read_only = false;
    let sample = Sql::open(config).expect("the sample");
    let denied = query(&sample, "DELETE FROM orders")
        .await
        .expect_err("denied");
    assert_eq!(denied.kind, ToolErrorKind::Denied);
}

#[test]
fn it_serves_the_bundled_skill_and_those_that_the_operator_names() {
    let mut config = settings(None);
    let ours: SkillId = "local/team/reports".parse().expect("an id");
    config.skills = vec![ours.clone()];
    let sql = Sql::open(config).expect("the sample");
    let bundled: SkillId = "builtin/repertoire/write_sql".parse().expect("an id");
    assert_eq!(sql.skills(), [bundled.clone(), ours.clone()]);
    for (skill, method, serves) in [
        (&bundled, "execute_query", true),
        (&bundled, LOAD_CORE, true),
        (&ours, "get_sample_rows", true),
        (&bundled, "load_details", false),
        (
            &"a/b/write_sql".parse().expect("an id"),
            "execute_query",
            false,
        ),
    ] {
        assert_eq!(sql.serves(skill, method), serves, "{skill} {method}");
    }
}
