use super::*;
use testing::fuzz;

#[test]
fn fuzz_the_guard() {
    let words = [
        "SELECT ",
        "FROM ",
        "(",
        ")",
        ".",
        "::",
        ";",
        "--",
        "/*",
        "*/",
        "/*!",
        "'",
        "\"",
        "`",
        "$$",
        "WITH ",
        " AS ",
        "INSERT INTO t ",
        "UPDATE t SET a=1 ",
        "DELETE FROM t ",
        "INTO OUTFILE ",
        "pg_sleep",
        "load_file('x')",
        "E'\\'",
        "U&'\\0041'",
        ", ",
        "EXPLAIN ANALYZE ",
        "@a:=",
        "\\",
        "#",
        "[",
        "]",
        "CASE ",
        "position(",
        " JOIN t ON 1) a",
        "FROM ((",
        "OVER (",
        "x'41'",
        "N'a'",
        "_utf8'a'",
        "PRAGMA ",
        "ATTACH ",
    ];
    fuzz("sql_guard", &words, |input| {
        let sql = String::from_utf8_lossy(input);
        for (_, dialect) in dialects() {
            let Ok(passed) = judge(dialect, &sql) else {
                continue;
            };
            assert!(!passed.writes, "{sql}");
            // What is sent passes, too, and as itself.
            let again = judge(dialect, &passed.sql).map(|again| again.sql);
            assert_eq!(again.ok().as_ref(), Some(&passed.sql), "{sql}");
        }
    });
}
