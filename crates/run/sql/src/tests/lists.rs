//! The lists of functions, against the catalogs of the servers.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Names of a list, each with the version of the server that brought it.
fn listed(list: &str) -> BTreeMap<&str, u32> {
    let mut all = BTreeMap::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let (since, names) = match line.strip_prefix('@') {
            Some(rest) => {
                let (version, names) = rest.split_once(' ').expect("names");
                (version.parse().expect("a version"), names)
            }
            None => (0, line),
        };
        all.extend(names.split_whitespace().map(|name| (name, since)));
    }
    all
}

/// Listed though the server calls them volatile or does not run them in parallel: they
/// read the clock or chance, and nothing else.
const BY_HAND: &[&str] = &["age", "clock_timestamp", "gen_random_uuid", "random"];

/// What a value may not be made of or into: names of functions, of cursors and roles,
/// and the insides of the server.
const UNUSUAL_TYPES: &[&str] = &[
    "aclitem",
    "cstring",
    "internal",
    "pg_snapshot",
    "refcursor",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "txid_snapshot",
    "trigger",
    "void",
];

async fn postgresql(server: &databases::Database) {
    use sqlx::Connection as _;
    let connection = sqlx::PgConnection::connect(&server.url).await;
    let mut connection = connection.expect("a connection");
    let version: String = sqlx::query_scalar("SHOW server_version_num")
        .fetch_one(&mut connection)
        .await
        .expect("a version");
    let version = version.parse::<u32>().expect("a version") / 10_000;
    let every = "SELECT proname::text, provolatile = 'v' OR proparallel <> 's', \
                 ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[] || prorettype) AS t) \
                 FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace";
    let every: Vec<(String, bool, Vec<String>)> = sqlx::query_as(every)
        .fetch_all(&mut connection)
        .await
        .expect("the catalog");
    let listed = listed(include_str!("../allowed/postgresql.txt"));
    assert!(listed.len() >= 250, "{}", listed.len());
    let known: BTreeSet<&str> = every.iter().map(|(name, _, _)| name.as_str()).collect();
    let missing: Vec<&&str> = listed
        .iter()
        .filter(|(name, since)| **since <= version && !known.contains(**name))
        .map(|(name, _)| name)
        .collect();
    assert!(missing.is_empty(), "not in pg_catalog: {missing:?}");
    let of_list = || {
        every
            .iter()
            .filter(|(name, ..)| listed.contains_key(name.as_str()))
    };
    let volatile: BTreeSet<&str> = of_list()
        .filter(|(_, volatile, _)| *volatile)
        .map(|(name, ..)| name.as_str())
        .collect();
    assert_eq!(volatile, BY_HAND.iter().copied().collect());
    let unusual: Vec<_> = of_list()
        .filter(|(_, _, types)| {
            types
                .iter()
                .any(|kind| UNUSUAL_TYPES.contains(&kind.as_str()))
        })
        .collect();
    assert!(unusual.is_empty(), "{unusual:?}");
    let shows = [
        "pg_",
        "lo_",
        "has_",
        "inet_client",
        "inet_server",
        "txid_",
        "to_reg",
        "current_",
        "session_",
        "query_",
        "cursor_",
        "table_to",
        "schema_to",
        "database_to",
        "dblink",
        "xpath_table",
        "ts_rewrite",
        "ts_stat",
        "version",
        "set_config",
        "setseed",
        "nextval",
        "currval",
        "lastval",
        "setval",
        "loread",
        "lowrite",
    ];
    let harmless = [
        "pg_column_size",
        "pg_size_bytes",
        "pg_size_pretty",
        "pg_typeof",
    ];
    for name in listed.keys().filter(|name| !harmless.contains(name)) {
        assert!(!shows.iter().any(|begin| name.starts_with(begin)), "{name}");
    }
}

/// What `MariaDB` 10.11 does not know: `MySQL` 8 or a newer `MariaDB` brought it.
const ELSEWHERE: &[&str] = &[
    "any_value",
    "bin_to_uuid",
    "crc32c",
    "format_bytes",
    "grouping",
    "is_uuid",
    "json_array_intersect",
    "json_key_value",
    "json_object_filter_keys",
    "json_object_to_array",
    "json_overlaps",
    "json_pretty",
    "json_storage_size",
    "regexp_like",
    "st_asgeojson",
    "st_distance_sphere",
    "st_geomfromgeojson",
    "uuid_to_bin",
];

async fn mariadb(server: &databases::Database) {
    use sqlx::Connection as _;
    let connection = sqlx::MySqlConnection::connect(&server.url).await;
    let mut connection = connection.expect("a connection");
    let mut known = BTreeSet::new();
    for sql in [
        "SELECT LOWER(CAST(function AS CHAR)) FROM information_schema.sql_functions",
        "SELECT LOWER(CAST(word AS CHAR)) FROM information_schema.keywords",
    ] {
        let names: Vec<String> = sqlx::query_scalar(sql)
            .fetch_all(&mut connection)
            .await
            .expect("names");
        known.extend(names);
    }
    let mut unknown = Vec::new();
    for name in listed(include_str!("../allowed/mysql.txt")).into_keys() {
        if known.contains(name) || ELSEWHERE.contains(&name) {
            continue;
        }
        // What is neither has to be native all the same: the server looks for a stored
        // function only where there is no native one.
        let mut native = false;
        for arguments in ["1", "1, 2", "1, 2, 3"] {
            let call = format!("SELECT {name}({arguments})");
            let call = sqlx::raw_sql(sqlx::AssertSqlSafe(call)).execute(&mut connection);
            let error = call.await.err().map(|error| error.to_string());
            native |= !error.is_some_and(|error| error.contains("does not exist"));
        }
        if !native {
            unknown.push(name);
        }
    }
    assert!(unknown.is_empty(), "not in the server: {unknown:?}");
}

#[tokio::test]
async fn listed_functions_are_the_servers_own_and_compute_values() {
    for server in databases::start().await {
        if server.letter == 'p' {
            postgresql(&server).await;
        } else {
            mariadb(&server).await;
        }
    }
}
