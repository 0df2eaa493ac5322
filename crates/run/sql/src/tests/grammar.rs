//! Random statements that mix what is allowed with what is not. Whatever the guard lets
//! through is looked at by others: a scan of what is sent, and the servers themselves,
//! which tell the functions that they understood.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config as Runs, RngAlgorithm, TestRng, TestRunner};
use sqlparser::parser::Parser;

use super::dialect::Dialect;
use super::functions::{Allowed, Functions};
use super::*;

/// Functions of one text, by all sorts of names.
const CALLS: &[&str] = &[
    "lower",
    "upper",
    "Lower",
    "\"lower\"",
    "\"LOWER\"",
    "reverse",
    "trim",
    "hex",
    "quote",
    "coalesce",
    "concat",
    "max",
    "count",
    "pg_catalog.lower",
    "pg_catalog . upper",
    "public.lower",
    "shop.lower",
    "initcap",
    "md5",
    "pg_read_file",
    "pg_sleep",
    "evil_text",
    "public.evil_text",
    "evil_write",
    "sleep",
    "load_file",
    "get_lock",
    "load_extension",
    "readfile",
    "sqlite_version",
    "version",
    "set_config",
    "pg_catalog.pg_read_file",
    "current_setting",
    "query_to_xml",
    "lo_import",
    "nextval",
    "user",
    "`lower`",
    "`sleep`",
    "[load_extension]",
];

/// What may stand behind a dot.
const ATTRIBUTES: &[&str] = &[
    "name",
    "city",
    "upper",
    "lower",
    "pg_read_file",
    "\"pg_read_file\"",
    "evil_text",
    "evil_row",
    "evil_any",
    "length",
    "UPPER",
    "reverse",
    "lo_import",
    "id",
];

const TYPES: &[&str] = &[
    "text",
    "varchar",
    "varchar(10)",
    "char(5)",
    "name",
    "evil_domain",
    "public.mood",
    "regproc",
];

/// Forms with one text in them, and forms with two.
const FORMS: &[&str] = &[
    "({a})",
    "(({a}))",
    "(SELECT {a})",
    "CAST({a} AS char)",
    "CASE WHEN {a} = 'x' THEN {a} ELSE 'y' END",
    "substring({a} from 1)",
    "substring({a}, 1, 2)",
    "left({a}, 2)",
    "trim(both 'x' from {a})",
    "{a} || 'x'",
    "replace({a}, 'a', 'b')",
    "coalesce({a}, 'x')",
    "nullif({a}, 'x')",
    "position({a} in 'x')",
    "- - 1",
    "{a} /* x */",
    "{a} -- x\n",
    "$${a}$$",
    "E'\\''",
    "'it''s'",
    "max({a}) OVER (ORDER BY {a})",
    "(ARRAY[{a}])[1]",
    "string_agg({a}, ',' ORDER BY {a})",
    "count(*) FILTER (WHERE {a} = 'x')",
    "(SELECT {a} FROM lower('X') AS x)",
    "({a} COLLATE \"C\")",
    "current_user",
    "current_date",
    "{a} OPERATOR(public.||) 'x'",
    "({a} LIKE 'x%')",
    "({a} IN ('x', {a}))",
    "(SELECT max({a}) FROM orders AS o WHERE o.id = c.id)",
];

fn text() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "'a'",
        "c.name",
        "name",
        "'/etc/hostname'",
        "c.city",
        "x.name",
        "\"name\"",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            4 => (select(CALLS), inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            1 => (select(CALLS), inner.clone()).prop_map(|(name, a)| format!("{name} /* */ ({a})")),
            2 => (inner.clone(), select(ATTRIBUTES)).prop_map(|(a, name)| format!("({a}).{name}")),
            1 => select(ATTRIBUTES).prop_map(|name| format!("c.{name}")),
            1 => select(ATTRIBUTES).prop_map(|name| format!("x.{name}")),
            1 => (inner.clone(), select(TYPES)).prop_map(|(a, kind)| format!("({a})::{kind}")),
            4 => (select(FORMS), inner).prop_map(|(form, a)| form.replace("{a}", &a)),
        ]
    })
}

fn statement() -> impl Strategy<Value = String> {
    let forms = select(vec![
        "SELECT {a} FROM customers AS c",
        "SELECT 1 FROM customers AS c WHERE {a} = 'x'",
        "SELECT 1 FROM customers AS c ORDER BY {a}",
        "SELECT count(*) FROM customers AS c GROUP BY {a}",
        "WITH x AS (SELECT 'x' AS name) SELECT {a} FROM x, customers AS c",
        "SELECT {a} FROM lower('X') AS x, customers AS c",
        "SELECT {a} FROM (SELECT 'x' AS name) AS x, customers AS c",
        "SELECT y.b FROM customers AS c CROSS JOIN LATERAL (SELECT {a} AS b) AS y",
        "SELECT 1 FROM customers AS c JOIN orders AS o ON {a} = 'x'",
        "SELECT {a} FROM customers AS c UNION ALL SELECT 'x'",
    ]);
    (forms, text()).prop_map(|(form, a)| form.replace("{a}", &a))
}

/// Pieces of a text as any database takes them: words, quoted names, signs; no strings.
fn pieces(sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = sql.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        let mut piece = letter.to_string();
        if letter == '\'' || letter == '"' || letter == '`' {
            while let Some(next) = letters.next() {
                piece.push(next);
                if next == letter {
                    if letters.peek() == Some(&letter) {
                        piece.extend(letters.next());
                    } else {
                        break;
                    }
                }
            }
        } else if letter.is_alphanumeric() || letter == '_' {
            while let Some(next) = letters.peek()
                && (next.is_alphanumeric() || *next == '_' || *next == '$')
            {
                piece.extend(letters.next());
            }
        }
        found.push(piece);
    }
    found
}

/// Words that a bracket may follow without a call.
const GRAMMAR: &[&str] = &[
    "and",
    "any",
    "array",
    "as",
    "both",
    "by",
    "case",
    "cast",
    "char",
    "coalesce",
    "else",
    "exists",
    "filter",
    "from",
    "in",
    "join",
    "lateral",
    "like",
    "not",
    "nullif",
    "on",
    "or",
    "over",
    "position",
    "replace_",
    "select",
    "substring",
    "then",
    "trim",
    "varchar",
    "when",
    "where",
    "all",
    "union",
];

/// Calls and names behind dots in what is sent, by a look at its pieces alone.
fn scan(dialect: Dialect, functions: &Functions, checked: &CheckedStatement) -> Result<(), String> {
    let pieces = pieces(&checked.sql);
    let piece = |at: usize| pieces.get(at).map_or("", String::as_str);
    for at in 0..pieces.len() {
        let word = piece(at).trim_matches(['"', '`', '[', ']']).to_lowercase();
        if !word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
            continue;
        }
        let dotted = at > 0 && piece(at - 1) == ".";
        if piece(at + 1) == "(" {
            let listed = functions.allow(None, &word) == Some(Allowed::Listed);
            let qualified = dotted && piece(at - 2) == "pg_catalog";
            let fine = match dialect {
                Dialect::Postgres => listed && qualified,
                _ => listed && !dotted,
            };
            if !fine && (dotted || !GRAMMAR.contains(&word.as_str())) {
                return Err(format!("a call of {word} in {}", checked.sql));
            }
        } else if dotted
            && dialect == Dialect::Postgres
            && !checked.names.attributes.contains_key(&word)
            && !checked
                .names
                .types
                .contains(&format!("{}.{word}", piece(at - 2)))
        {
            return Err(format!("a name {word} behind a dot in {}", checked.sql));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(Runs::with_cases(600))]

    #[test]
    fn what_passes_the_guard_calls_listed_functions_only(sql in statement()) {
        for (_, dialect) in dialects() {
            let functions = Functions::new(dialect, true, Vec::new());
            if let Ok(checked) = judge(dialect, &sql)
                && dialect != Dialect::Sqlite
            {
                prop_assert_eq!(scan(dialect, &functions, &checked), Ok(()));
            }
        }
    }

    /// A bound on its work changes nothing of a language.
    #[test]
    fn a_budget_reads_what_its_language_reads(sql in statement()) {
        for (_, dialect) in dialects() {
            let Ok(tokens) = guard::tokens(dialect, &sql) else { continue };
            let read = Parser::new(dialect.grammar())
                .with_tokens_with_locations(tokens.clone())
                .parse_statements();
            let bounded = guard::parse(dialect, tokens).ok();
            let read = read.ok().filter(|read| read.len() == 1).and_then(|mut read| read.pop());
            prop_assert_eq!(bounded, read);
        }
    }

    #[test]
    fn sqlite_finds_listed_functions_only_in_what_passes_the_guard(sql in statement()) {
        prop_assert_eq!(finds_listed_functions(&sql), Ok(()));
    }
}

/// `SQLite` tells each function that it finds. Where the parser understood what passes the
/// guard, all are listed; what it did not understand is the engine's to refuse.
fn finds_listed_functions(sql: &str) -> Result<(), String> {
    let functions = Functions::new(Dialect::Sqlite, true, Vec::new());
    let Ok(checked) = judge(Dialect::Sqlite, sql) else {
        return Ok(());
    };
    let connection = rusqlite::Connection::open_in_memory().expect("a connection");
    let tables = include_str!("../sample.sql");
    connection.execute_batch(tables).expect("the sample");
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let heard = Arc::clone(&seen);
    let hook = move |context: rusqlite::hooks::AuthContext<'_>| {
        if let rusqlite::hooks::AuthAction::Function { function_name } = context.action {
            let mut heard = heard.lock().expect("names");
            heard.insert(function_name.to_lowercase());
        }
        rusqlite::hooks::Authorization::Allow
    };
    connection.authorizer(Some(hook)).expect("a hook");
    drop(connection.prepare(&checked.sql));
    let seen = seen.lock().expect("names");
    let Some(name) = seen
        .iter()
        .find(|name| functions.allow(None, name).is_none())
    else {
        return Ok(());
    };
    let tokens = guard::tokens(Dialect::Sqlite, &checked.sql).expect("tokens");
    if guard::parse(Dialect::Sqlite, tokens).is_ok() {
        return Err(format!("{name} in {}", checked.sql));
    }
    let sql = sample();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let outcome = runtime.block_on(sql.engine.run(Order::Query, &checked, sql.bounds));
    let refused = matches!(&outcome, Err(error)
        if matches!(error.kind, ToolErrorKind::Denied | ToolErrorKind::Failed));
    if refused {
        Ok(())
    } else {
        Err(format!("{name} in {}: {outcome:?}", checked.sql))
    }
}

/// The parser knows no such operator here; the engine meets the function before it meets
/// what is wrong.
#[test]
fn sqlite_refuses_functions_in_what_the_parser_did_not_understand() {
    let text = "SELECT load_extension('a') OPERATOR(public.||) 'x' FROM customers AS c";
    assert!(judge(Dialect::Sqlite, text).is_ok());
    assert_eq!(finds_listed_functions(text), Ok(()));
}

/// Numbers of the functions that trees in a log name. Casts have functions of their own,
/// which are of another format.
fn told(log: &str) -> BTreeSet<i64> {
    let log = log.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut functions = BTreeSet::new();
    for key in ["{FUNCEXPR :funcid ", ":aggfnoid ", ":winfnoid "] {
        for after in log.split(key).skip(1) {
            let number: String = after.chars().take_while(char::is_ascii_digit).collect();
            let format = after.split(":funcformat ").nth(1).unwrap_or_default();
            if !key.contains("FUNCEXPR") || format.starts_with('0') || format.starts_with('3') {
                functions.insert(number.parse().expect("a number"));
            }
        }
    }
    functions
}

/// `PostgreSQL` writes the tree that it makes of a statement into its log, with the
/// number of each function. The statements are those that would be sent.
#[tokio::test]
async fn postgresql_understands_listed_functions_only_in_what_passes_the_guard() {
    use sqlx::Connection as _;
    use sqlx::Executor as _;
    for server in databases::start().await {
        if server.letter != 'p' {
            continue;
        }
        let connect = async || {
            sqlx::PgConnection::connect(&server.url)
                .await
                .expect("a connection")
        };
        let (mut telling, mut asking) = (connect().await, connect().await);
        let settings = "SET debug_print_parse = on; SET debug_pretty_print = off";
        telling.execute(settings).await.expect("settings");
        let config = Runs {
            failure_persistence: None,
            ..Runs::default()
        };
        let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, chance);
        let mut understood = 0;
        for _ in 0..1500 {
            let sql = statement()
                .new_tree(&mut runner)
                .expect("a statement")
                .current();
            let Ok(checked) = judge(Dialect::Postgres, &sql) else {
                continue;
            };
            let time = Duration::from_secs(10);
            if server::check(&mut asking, &checked.names, time)
                .await
                .is_ok()
            {
                let sent = sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(checked.sql));
                understood += usize::from(telling.prepare(sent).await.is_ok());
            }
        }
        assert!(understood > 50, "{understood} understood");
        let functions = told(&server.log());
        assert!(functions.len() >= 8, "{functions:?}");
        let listed = Functions::new(Dialect::Postgres, true, Vec::new());
        for number in functions {
            let name: (String, String) = sqlx::query_as(
                "SELECT pronamespace::regnamespace::text, proname::text FROM pg_proc WHERE oid = $1::bigint::oid",
            )
            .bind(number)
            .fetch_one(&mut asking)
            .await
            .expect("a function");
            assert_eq!(name.0, "pg_catalog", "{name:?}");
            assert_eq!(
                listed.allow(None, &name.1),
                Some(Allowed::Listed),
                "{name:?}"
            );
        }
    }
}
