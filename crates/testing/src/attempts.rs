//! What an agent may try in order to change something, or to reach beyond the
//! database, and what analysts ask. Held against the guard, and the attempts against
//! databases without the guard as well.
//!
//! Those of one dialect are in `attempts/*.txt`, a statement on a line, in groups with a
//! title (`##`). Those with letters that a line cannot show, or for several dialects,
//! are here.

/// The attempts of a dialect, all of which the guard refuses.
#[must_use]
pub fn attempts(letter: char) -> Vec<&'static str> {
    let more = match letter {
        'p' => include_str!("attempts/attempts-postgresql.txt"),
        'm' => include_str!("attempts/attempts-mysql.txt"),
        _ => include_str!("attempts/attempts-sqlite.txt"),
    };
    of(ATTEMPTS, letter).chain(lines(more)).collect()
}

/// Those of them that several dialects have, or that a line cannot show.
#[must_use]
pub fn shared(letter: char) -> Vec<&'static str> {
    of(ATTEMPTS, letter).collect()
}

/// The queries of a dialect, all of which are answered.
#[must_use]
pub fn queries(letter: char) -> Vec<&'static str> {
    let more = match letter {
        'p' => include_str!("attempts/queries-postgresql.txt"),
        'm' => include_str!("attempts/queries-mysql.txt"),
        _ => include_str!("attempts/queries-sqlite.txt"),
    };
    of(QUERIES, letter).chain(lines(more)).collect()
}

fn of(
    all: &'static [(&'static str, &'static str)],
    letter: char,
) -> impl Iterator<Item = &'static str> {
    all.iter()
        .filter(move |(letters, _)| letters.contains(letter))
        .map(|(_, text)| *text)
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("##"))
}

/// The letters are the dialects that it is tried on: `s` for `SQLite`, `p` for
/// `PostgreSQL`, `m` for `MySQL` and `MariaDB`. The guard refuses all of these.
const ATTEMPTS: &[(&str, &str)] = &[
    // Plain statements that write.
    ("spm", "INSERT INTO customers (id, name) VALUES (900, 'x')"),
    ("spm", "insert into customers (id, name) values (901, 'x')"),
    ("spm", "UPDATE customers SET name = 'x'"),
    ("spm", "DELETE FROM orders"),
    ("spm", "DROP TABLE orders"),
    ("spm", "CREATE TABLE evil (a INTEGER)"),
    ("spm", "CREATE TEMPORARY TABLE evil (a INTEGER)"),
    ("spm", "CREATE VIEW evil AS SELECT 1 AS one"),
    ("spm", "CREATE INDEX evil ON orders (total)"),
    ("spm", "ALTER TABLE customers ADD COLUMN evil INTEGER"),
    ("pm", "TRUNCATE TABLE orders"),
    ("sm", "REPLACE INTO customers (id, name) VALUES (1, 'x')"),
    (
        "sp",
        "INSERT INTO customers (id, name) VALUES (902, 'x') RETURNING id",
    ),
    ("sp", "DELETE FROM orders RETURNING id"),
    (
        "sp",
        "INSERT INTO customers (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'x'",
    ),
    (
        "m",
        "INSERT INTO customers (id, name) VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = 'x'",
    ),
    (
        "p",
        "MERGE INTO customers USING orders ON false WHEN NOT MATCHED THEN INSERT (id, name) VALUES (903, 'x')",
    ),
    // Comments and white space before them, and around.
    ("spm", "/* SELECT */ DELETE FROM orders"),
    ("spm", "-- SELECT 1\nDELETE FROM orders"),
    ("m", "# SELECT 1\nDELETE FROM orders"),
    ("spm", "\n\t  DELETE\n/**/FROM orders"),
    ("p", "/* /* nested */ */ DELETE FROM orders"),
    // More than one.
    ("spm", "SELECT 1; DELETE FROM orders"),
    ("spm", "SELECT 1; DELETE FROM orders;"),
    ("spm", "SELECT 1;;DROP TABLE orders;--"),
    ("spm", "SELECT 1 -- harmless\n; DELETE FROM orders"),
    ("spm", "SELECT ';' ; DELETE FROM orders"),
    ("spm", "SELECT 1; COMMIT; DELETE FROM orders"),
    ("spm", "COMMIT; DELETE FROM orders"),
    ("spm", "ROLLBACK; DELETE FROM orders"),
    // Strings and quotes that two parsers may end at two places.
    ("sp", "SELECT 'a\\'; DELETE FROM orders; --'"),
    ("m", "SELECT 'a\\\\'; DELETE FROM orders; -- '"),
    ("m", "SELECT \"a\\\\\"; DELETE FROM orders; -- \""),
    ("p", "SELECT E'a\\''; DELETE FROM orders; --'"),
    ("p", "SELECT $a$ $a$; DELETE FROM orders; --$a$"),
    ("spm", "SELECT 1\0; DELETE FROM orders"),
    ("p", "SELECT 1 AS a$b$; DELETE FROM orders; --$b$"),
    ("p", "SELECT 1 -- \r; DELETE FROM orders"),
    ("p", "SELECT 1 -- \r, pg_sleep(0)"),
    (
        "m",
        "SELECT 1 --\u{a0} + SLEEP(0)\nFROM (SELECT 1 AS `\u{a0}`) t",
    ),
    ("m", "SELECT 1 --1, SLEEP(0)"),
    ("m", "SELECT N'\\'', SLEEP(0) -- '"),
    ("m", "SELECT _utf8'\\'', SLEEP(0) -- '"),
    ("m", "SELECT \"\\\"\", SLEEP(0) -- \""),
    ("m", "SELECT '''', SLEEP(0), ''''"),
    // Queries that write.
    (
        "sp",
        "WITH x AS (SELECT 1 AS a) INSERT INTO customers (id, name) SELECT 904, 'x' FROM x",
    ),
    (
        "spm",
        "WITH x AS (SELECT 1 AS a) DELETE FROM orders WHERE id IN (SELECT a FROM x)",
    ),
    (
        "spm",
        "WITH x AS (SELECT 1 AS a) UPDATE customers SET name = 'x' WHERE id IN (SELECT a FROM x)",
    ),
    (
        "p",
        "WITH x AS (DELETE FROM orders RETURNING id) SELECT * FROM x",
    ),
    (
        "p",
        "WITH x AS (INSERT INTO customers (id, name) VALUES (905, 'x') RETURNING id) SELECT * FROM x",
    ),
    (
        "p",
        "WITH x AS (UPDATE customers SET name = 'x' RETURNING id) SELECT count(*) FROM x",
    ),
    (
        "p",
        "SELECT * FROM (WITH x AS (DELETE FROM orders RETURNING id) SELECT * FROM x) y",
    ),
    ("p", "SELECT * INTO evil FROM customers"),
    ("p", "SELECT * INTO TEMP evil FROM customers"),
    ("p", "WITH x AS (SELECT 1 AS a) SELECT a INTO evil FROM x"),
    ("p", "CREATE TABLE evil AS SELECT * FROM customers"),
    ("spm", "SELECT * FROM customers FOR UPDATE"),
    ("p", "SELECT * FROM customers FOR SHARE"),
    ("p", "SELECT * FROM customers FOR NO KEY UPDATE SKIP LOCKED"),
    ("p", "SELECT * FROM (SELECT * FROM customers FOR UPDATE) x"),
    ("m", "SELECT * FROM customers LOCK IN SHARE MODE"),
    // Files and programs of the server.
    (
        "m",
        "SELECT * FROM customers INTO OUTFILE '/tmp/evil-outfile'",
    ),
    (
        "m",
        "SELECT name INTO DUMPFILE '/tmp/evil-dumpfile' FROM customers LIMIT 1",
    ),
    ("m", "SELECT name INTO @evil FROM customers LIMIT 1"),
    ("m", "SELECT LOAD_FILE('/etc/passwd')"),
    ("m", "SELECT load_file /* */ ('/etc/passwd')"),
    (
        "m",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE customers",
    ),
    ("p", "COPY customers TO '/tmp/evil-copy'"),
    ("p", "COPY customers TO STDOUT"),
    ("p", "COPY (SELECT 1) TO PROGRAM 'touch /tmp/evil-program'"),
    ("p", "COPY customers FROM '/etc/passwd'"),
    ("p", "SELECT pg_read_file('/etc/passwd')"),
    ("p", "SELECT * FROM pg_ls_dir('/')"),
    ("p", "SELECT pg_catalog.pg_read_binary_file('/etc/passwd')"),
    ("p", "SELECT lo_export(1, '/tmp/evil-lo')"),
    ("p", "SELECT lo_from_bytea(0, 'x')"),
    ("s", "SELECT load_extension('/tmp/evil.so')"),
    ("s", "SELECT writefile('/tmp/evil', 'x')"),
    ("s", "SELECT readfile('/etc/passwd')"),
    ("s", "ATTACH DATABASE '/tmp/evil-attached.db' AS evil"),
    ("s", "VACUUM INTO '/tmp/evil-vacuum.db'"),
    ("s", "VACUUM"),
    ("s", "REINDEX"),
    ("s", "ANALYZE"),
    // What the session is.
    ("s", "PRAGMA query_only = OFF"),
    ("s", "PRAGMA writable_schema = ON"),
    ("s", "PRAGMA user_version = 7"),
    ("s", "PRAGMA journal_mode = WAL"),
    ("spm", "BEGIN"),
    ("spm", "COMMIT"),
    ("pm", "SET TRANSACTION READ WRITE"),
    ("p", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"),
    ("p", "SET transaction_read_only = off"),
    (
        "p",
        "SELECT set_config('transaction_read_only', 'off', false)",
    ),
    (
        "p",
        "SELECT \"set_config\"('statement_timeout', '0', false)",
    ),
    ("p", "RESET ALL"),
    ("p", "DISCARD ALL"),
    ("m", "SET GLOBAL max_connections = 77"),
    ("m", "SET SESSION TRANSACTION READ WRITE"),
    ("m", "SET STATEMENT max_statement_time = 0 FOR SELECT 1"),
    ("m", "SELECT @evil := 1"),
    ("m", "FLUSH TABLES"),
    ("m", "LOCK TABLES customers WRITE"),
    ("m", "HANDLER customers OPEN"),
    ("m", "USE mysql"),
    // Functions.
    ("p", "SELECT pg_sleep(0)"),
    ("p", "SELECT PG_SLEEP(0)"),
    ("p", "SELECT pg_catalog.pg_sleep(0)"),
    ("p", "SELECT \"pg_sleep\"(0)"),
    ("p", "SELECT * FROM pg_sleep(0)"),
    ("p", "SELECT * FROM customers, LATERAL pg_sleep(0)"),
    ("p", "SELECT * FROM ROWS FROM (pg_sleep(0)) x"),
    ("p", "SELECT U&\"pg\\005fsleep\"(0)"),
    ("p", "SELECT 1 ORDER BY pg_sleep(0)"),
    (
        "p",
        "SELECT count(*) FILTER (WHERE pg_sleep(0) IS NULL) FROM orders",
    ),
    ("p", "SELECT setval('evil', 1)"),
    ("p", "SELECT nextval('evil')"),
    (
        "p",
        "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
    ),
    ("p", "SELECT ts_stat('DELETE FROM orders')"),
    ("p", "SELECT pg_terminate_backend(pg_backend_pid() + 1)"),
    ("p", "SELECT pg_advisory_lock(1)"),
    ("p", "SELECT pg_notify('a', 'b')"),
    ("p", "SELECT dblink_exec('', 'DELETE FROM orders')"),
    ("m", "SELECT SLEEP(0)"),
    ("m", "SELECT sleep (0)"),
    ("m", "SELECT `sleep`(0)"),
    ("m", "SELECT \u{17f}leep(0)"),
    ("m", "SELECT BENCHMARK(1, 1)"),
    ("m", "SELECT GET_LOCK('a', 0)"),
    ("m", "SELECT * FROM customers WHERE id = (SELECT SLEEP(0))"),
    ("m", "SELECT * FROM customers ORDER BY IF(1, SLEEP(0), 1)"),
    // Comments that are code.
    ("m", "SELECT 1 /*! ; DELETE FROM orders */"),
    ("m", "SELECT 1 /*!50000 INTO OUTFILE '/tmp/evil-comment' */"),
    ("m", "/*!50000 DELETE FROM orders */"),
    ("m", "SELECT 1 /*M! INTO OUTFILE '/tmp/evil-comment' */"),
    ("m", "SELECT 1 /*M!100100 + SLEEP(0) */"),
    ("m", "SELECT /*+ MAX_EXECUTION_TIME(0) */ 1"),
    ("m", "SELECT /*+ SET_VAR(sql_mode = 'ANSI_QUOTES') */ 1"),
    // Statements that carry statements.
    ("spm", "EXPLAIN DELETE FROM orders"),
    ("pm", "EXPLAIN ANALYZE DELETE FROM orders"),
    ("p", "EXPLAIN (ANALYZE) DELETE FROM orders"),
    ("p", "EXPLAIN ANALYZE SELECT 1"),
    ("p", "DO $$ BEGIN DELETE FROM orders; END $$"),
    ("p", "PREPARE evil AS DELETE FROM orders"),
    ("m", "PREPARE evil FROM 'DELETE FROM orders'"),
    ("pm", "EXECUTE evil"),
    ("m", "EXECUTE IMMEDIATE 'DELETE FROM orders'"),
    ("pm", "CALL evil()"),
    ("p", "DECLARE evil CURSOR FOR SELECT 1"),
    (
        "p",
        "CREATE FUNCTION evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ),
    ("m", "CREATE PROCEDURE evil() DELETE FROM orders"),
    ("pm", "GRANT ALL ON customers TO PUBLIC"),
    ("p", "VACUUM"),
    ("p", "LISTEN evil"),
    ("p", "NOTIFY evil"),
    ("p", "REFRESH MATERIALIZED VIEW evil"),
    ("p", "LOCK TABLE customers"),
    ("p", "COMMENT ON TABLE customers IS 'x'"),
    ("p", "ALTER SYSTEM SET work_mem = '1GB'"),
    ("m", "KILL 1"),
    ("m", "SHUTDOWN"),
    ("m", "DO SLEEP(0)"),
    // Letters that look like others.
    ("spm", "\u{feff}DELETE FROM orders"),
    ("spm", "\u{ff24}ELETE FROM orders"),
    ("spm", "DELETE\u{a0}FROM orders"),
    // To MySQL a harmless name.
    ("sp", "SELECT 1\u{37e} DELETE FROM orders"),
    // Names that the server would cut, or that the parser ends elsewhere.
    (
        "p",
        "SELECT x.pg_read_file_a_name_of_more_than_sixty_three_bytes_is_cut_by_the_server FROM lower('a') AS x",
    ),
    ("p", "SELECT U&\"pg\\005fread\\005ffile\"('/etc/hostname')"),
    ("p", "SELECT ('/etc/hostname'::text)\n.\npg_read_file"),
    ("p", "SELECT ('/etc/hostname'::text)--\n.pg_read_file"),
    ("p", "SELECT ('/etc/hostname'::text)\r.pg_read_file"),
    ("p", "SELECT 1 -- \u{2028}, pg_sleep(0)\n, pg_sleep(0)"),
    ("p", "SELECT 'a'\n'b', pg_sleep(0)"),
    ("m", "SELECT SLEEP\n(0)"),
    ("m", "SELECT SLEEP\u{a0}(0)"),
    ("m", "SELECT 'a' -- \n, SLEEP(0)"),
    ("m", "SELECT \"a\\\", SLEEP(0), \"b\""),
    ("s", "SELECT load_extension\n('/tmp/evil.so')"),
    ("s", "SELECT \"load_extension\"('/tmp/evil.so')"),
    ("s", "SELECT [load_extension]('/tmp/evil.so')"),
    ("s", "SELECT `load_extension`('/tmp/evil.so')"),
];

/// Queries that the guard lets through.
const QUERIES: &[(&str, &str)] = &[
    ("spm", "SELECT 1"),
    ("spm", "SELECT 1;"),
    ("spm", "  SELECT 1 ; -- done; really\n ;"),
    ("spm", "/* why; */ SELECT 1 -- because"),
    ("pm", "(SELECT 1) UNION ALL (SELECT 2)"),
    ("spm", "SELECT 1 UNION ALL SELECT 2"),
    ("spm", "SELECT 'DELETE FROM orders; --' AS text"),
    (
        "spm",
        "SELECT name FROM customers WHERE city = 'D''Or' OR name LIKE '%drop table%'",
    ),
    ("spm", "SELECT REPLACE(name, 'a', 'b') FROM customers"),
    (
        "spm",
        "WITH x AS (SELECT id FROM customers) SELECT COUNT(*) FROM x",
    ),
    (
        "spm",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n",
    ),
    (
        "spm",
        "SELECT c.name, SUM(o.total) OVER (PARTITION BY c.id ORDER BY o.order_date) FROM customers AS c \
         LEFT JOIN orders AS o ON o.customer_id = c.id AND o.status IN ('paid', 'shipped')",
    ),
    (
        "spm",
        "SELECT city, COUNT(*) AS n FROM customers GROUP BY city HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 5",
    ),
    (
        "spm",
        "SELECT CASE WHEN total IS NULL THEN 'none' ELSE CAST(total AS CHAR(10)) END FROM orders WHERE EXISTS \
         (SELECT 1 FROM products AS p WHERE p.id = orders.product_id)",
    ),
    ("sp", "VALUES (1, 'a'), (2, 'b')"),
    (
        "s",
        "SELECT strftime('%Y-%m', order_date) AS month, COUNT(*) FROM orders GROUP BY month",
    ),
    ("s", "SELECT json_extract('{\"a\": 1}', '$.a')"),
    (
        "p",
        "SELECT DISTINCT ON (city) city, name FROM customers ORDER BY city, name",
    ),
    (
        "p",
        "SELECT date_trunc('month', order_date::date), count(*) FILTER (WHERE status = 'paid') FROM orders GROUP BY 1",
    ),
    ("p", "SELECT $tag$ ; DELETE $tag$"),
    ("p", "SELECT * FROM generate_series(1, 3) AS g(i)"),
    (
        "m",
        "SELECT `name` FROM `customers` WHERE name <> \"it's; DELETE\"",
    ),
    ("m", "SELECT 'it\\'s; DELETE'"),
    (
        "m",
        "SELECT DATE_FORMAT(order_date, '%Y-%m'), COUNT(*) FROM orders GROUP BY 1 # months",
    ),
];
