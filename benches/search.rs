//! Search over 50,000 skills of real size: how long the index takes to build, what a
//! search takes on one processor, how it compares with `SQLite`'s FTS5, and how soon a
//! new skill is found.
//!
//! `BENCH_SKILLS=1000000 BENCH_SUMMARIES=1` takes skills of a name and a description.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use executor::Stop;
use futures_util::StreamExt as _;
use model::{Principal, SystemClock};
use registry::{Bundle, Caller, Registry};

use embed::Table;
use search::{SearchIndex, SearchQuery};
use store::{Options, Store};
use support::corpus::Corpus;
use support::process::memory;
use support::{Bar, against, figure, mib, quantile, quick};
use tokio_util::sync::CancellationToken;

/// Results of a search.
const TOP: usize = 10;
/// Publishes that run side by side.
const AT_ONCE: usize = 32;

fn skills() -> usize {
    let given = std::env::var("BENCH_SKILLS").ok();
    let given = given.map(|text| text.parse().expect("a number"));
    given.unwrap_or(if quick() { 2_000 } else { 50_000 })
}

fn bundle(corpus: &Corpus, at: usize, summaries: bool) -> Bundle {
    let request = corpus.request(at);
    let files = request.files.into_iter().map(|file| {
        let mut content = file.content;
        if summaries && file.path == "SKILL.md" {
            // The front matter alone, and a body of one line.
            let text = String::from_utf8(content.to_vec()).expect("text");
            let end = text[4..].find("\n---\n").map_or(text.len(), |at| at + 4);
            content = format!("{}\n---\nA body.\n", &text[..end]).into();
        }
        (file.path.parse().expect("a path"), content)
    });
    Bundle {
        id: Some(request.skill_id.parse().expect("an id")),
        files: files
            .filter(|(path, _): &(model::FilePath, _)| !summaries || path.as_str() == "SKILL.md")
            .collect(),
        ..Bundle::default()
    }
}

async fn publish(registry: &Registry, bundle: Bundle) {
    let prepared = registry.prepare(bundle).await.expect("a skill");
    let caller = Caller::new(Principal::system());
    let published = registry.publish(prepared, "", true, &caller).await;
    published.expect("published");
}

/// The judged queries of the tests.
fn queries() -> Vec<String> {
    let mut queries: Vec<String> = include_str!("../tests/relevance/queries.tsv")
        .lines()
        .filter_map(|line| line.split('\t').nth(2).map(ToOwned::to_owned))
        .collect();
    queries.dedup();
    queries
}

fn search(index: &SearchIndex, text: &str, words_only: bool) -> usize {
    let query = SearchQuery {
        text: text.to_owned(),
        limit: TOP,
        words_only,
        ..SearchQuery::default()
    };
    index
        .search(&query, &Stop::never())
        .expect("an answer")
        .hits
        .len()
}

/// Milliseconds of each query.
fn times(queries: &[String], rounds: usize, mut run: impl FnMut(&str)) -> Vec<f64> {
    let mut times = Vec::new();
    for round in 0..=rounds {
        for query in queries {
            let begin = Instant::now();
            run(query);
            if round > 0 {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    times
}

/// What the product of the tool specification runs, over the same skills.
fn fts5(registry: &Registry) -> rusqlite::Connection {
    let database = rusqlite::Connection::open_in_memory().expect("a database");
    let make = "CREATE VIRTUAL TABLE skills USING fts5(name, description, tags, author)";
    database.execute(make, []).expect("FTS5");
    let insert = database.unchecked_transaction().expect("a transaction");
    for head in registry.catalog().by_location() {
        let summary = head.summary.as_ref().expect("a summary");
        let values = (
            &summary.name,
            &summary.description,
            summary.tags.join(" "),
            head.id.author(),
        );
        let text = "INSERT INTO skills (name, description, tags, author) VALUES (?, ?, ?, ?)";
        insert.execute(text, values).expect("inserted");
    }
    insert.commit().expect("committed");
    database
}

fn ask_fts5(database: &rusqlite::Connection, query: &str) -> usize {
    let words = query.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|w| !w.is_empty())
        .map(|w| format!("\"{w}\"*"))
        .collect();
    let select = "SELECT rowid, name, snippet(skills, 1, '**', '**', '…', 24) AS text \
                  FROM skills WHERE skills MATCH ? ORDER BY bm25(skills) LIMIT 10";
    let mut select = database.prepare_cached(select).expect("a query");
    let rows = select.query_map([words.join(" OR ")], |row| {
        Ok((row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    });
    rows.expect("rows")
        .filter(|row| row.as_ref().is_ok_and(|(name, _)| !name.is_empty()))
        .count()
}

/// What searches take, and what the other product takes for the same.
fn searches(registry: &Registry, index: &SearchIndex, skills: usize) {
    let queries = queries();
    let rounds = if quick() { 1 } else { 10 };
    let fused = times(&queries, rounds, |query| {
        search(index, query, false);
    });
    let (median, last) = if skills > 100_000 {
        (50.0, 50.0)
    } else {
        (2.0, 10.0)
    };
    against(
        "fused search, p50",
        quantile(&fused, 0.5),
        "ms",
        Bar::AtMost(median),
    );
    against(
        "fused search, p99",
        quantile(&fused, 0.99),
        "ms",
        Bar::AtMost(last),
    );
    let by_words = times(&queries, rounds, |query| {
        search(index, query, true);
    });
    figure("words only, p50", quantile(&by_words, 0.5), "ms");
    figure("words only, p99", quantile(&by_words, 0.99), "ms");
    figure(
        "memory of the process after these",
        mib(memory(std::process::id(), "VmRSS")),
        "MiB",
    );

    let database = fts5(registry);
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
        for query in &queries {
            let begin = Instant::now();
            search(index, query, false);
            ours += begin.elapsed();
            let begin = Instant::now();
            ask_fts5(&database, query);
            theirs += begin.elapsed();
        }
        ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
    }
    against(
        "SQLite FTS5 / fused search, time in turn, median of the rounds",
        quantile(&ratios, 0.5),
        "x",
        Bar::AtLeast(10.0),
    );
}

/// How soon what is published is found.
async fn publish_and_find(registry: &Registry, index: &SearchIndex) {
    let mut waits = Vec::new();
    for at in 0..20 {
        let name = format!("freshly-published-{at}");
        let text = format!("---\nname: {name}\ndescription: New.\n---\nx\n");
        let files = [("SKILL.md".parse().expect("a path"), text.into())].into();
        let id = Some(format!("bench/fresh/{name}").parse().expect("an id"));
        publish(
            registry,
            Bundle {
                id,
                files,
                ..Bundle::default()
            },
        )
        .await;
        let begin = Instant::now();
        index.caught_up().await;
        assert!(search(index, &name, true) > 0, "{name}");
        waits.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    figure(
        "a new skill is found after, median",
        quantile(&waits, 0.5),
        "ms",
    );
    against(
        "a new skill is found after, at most",
        quantile(&waits, 1.0),
        "ms",
        Bar::AtMost(1_000.0),
    );
}

#[tokio::main]
async fn main() {
    let (skills, summaries) = (skills(), std::env::var_os("BENCH_SUMMARIES").is_some());
    let corpus = Corpus::load();
    let directory = tempfile::TempDir::new().expect("a folder");
    let options = Options {
        reserve_bytes: 0,
        ..Options::default()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let registry = Registry::open(store, Arc::new(SystemClock)).expect("a registry");
    let begin = Instant::now();
    futures_util::stream::iter(0..skills)
        .map(|at| publish(&registry, bundle(&corpus, at, summaries)))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<()>>()
        .await;
    figure("publishing", begin.elapsed().as_secs_f64(), "s");
    let before = memory(std::process::id(), "VmRSS");

    let folder = directory.path().join("search");
    let index = SearchIndex::new(registry.clone(), folder.clone(), Some(Arc::new(Table)));
    let stop = CancellationToken::new();
    let begin = Instant::now();
    let following = tokio::spawn({
        let (index, stop) = (index.clone(), stop.clone());
        async move { index.follow(stop).await }
    });
    index.caught_up().await;
    let words = begin.elapsed().as_secs_f64();
    index.complete().await;
    let what = format!("index of {skills} skills, words");
    figure(&what, words, "s");
    against(
        "the same, with meaning",
        begin.elapsed().as_secs_f64(),
        "s",
        Bar::AtMost(60.0),
    );
    figure(
        "memory that the index added",
        mib(memory(std::process::id(), "VmRSS").saturating_sub(before)),
        "MiB",
    );

    searches(&registry, &index, skills);
    publish_and_find(&registry, &index).await;
    stop.cancel();
    following.await.expect("it stops");
}
