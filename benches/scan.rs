//! What scanning skills costs: one of 100 KB, one of 10 MB, all public ones, and beside
//! publishing.
//!
//! Bars: 50 ms, 2 s and 10 s for real texts on one core; publishing takes at most 1.5 times as
//! long with the scan as it would without.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt as _;
use model::{FilePath, SystemClock};
use registry::{Bundle, Caller, Registry};
use store::{Options, Store};
use support::corpus::Corpus;
use support::{Bar, against, figure};
use trust::{Input, Scanner};

/// Publishes on their way at once.
const AHEAD: usize = 64;

fn scan(files: &BTreeMap<FilePath, Bytes>) -> f64 {
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_ref()))
        .collect();
    let known: &[&str] = &[];
    let begin = Instant::now();
    let report = Scanner::bundled().scan(&Input {
        files: &files,
        name: "bench",
        allowed_tools: &[],
        known_names: &known,
    });
    std::hint::black_box(report);
    begin.elapsed().as_secs_f64()
}

/// Real texts, one after the other, up to a size.
fn of_size(corpus: &Corpus, size: usize) -> BTreeMap<FilePath, Bytes> {
    let mut files = BTreeMap::new();
    let mut total = 0;
    for at in 0.. {
        let mut text: Vec<u8> = Vec::new();
        // No file is larger than what a publish takes.
        while text.len() < (size - total).min(1024 * 1024) {
            let skill = corpus.bundle(at * 64 + text.len() / 4_096);
            for content in skill.files.values() {
                text.extend_from_slice(content);
            }
        }
        text.truncate((size - total).min(1024 * 1024));
        total += text.len();
        let path = if at == 0 {
            "SKILL.md".to_owned()
        } else {
            format!("references/{at}.md")
        };
        files.insert(path.parse().expect("a path"), Bytes::from(text));
        if total == size {
            break;
        }
    }
    files
}

/// Seconds that all scans take, shared by as many threads as there are processors.
fn scans(bundles: &[Bundle]) -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for part in bundles.chunks(bundles.len().div_ceil(threads)) {
            scope.spawn(|| part.iter().map(|bundle| scan(&bundle.files)).sum::<f64>());
        }
    });
    begin.elapsed().as_secs_f64()
}

/// Seconds that publishing all takes.
async fn publishes(bundles: Vec<Bundle>) -> f64 {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let store = Store::open(&folder.path().join("data"), &Options::default()).expect("a store");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let executor = executor::Executor::new(processors);
    let registry = Registry::open_with(
        store,
        Arc::new(SystemClock),
        executor,
        registry::Policy::default(),
    );
    let registry = registry.expect("a registry");
    let begin = Instant::now();
    futures_util::stream::iter(bundles)
        .for_each_concurrent(AHEAD, |bundle| {
            let registry = registry.clone();
            async move {
                let prepared = registry.prepare(bundle).await.expect("a skill");
                let caller = Caller::new(model::Principal::anonymous());
                let published = registry.publish(prepared, "", true, &caller);
                published.await.expect("published");
            }
        })
        .await;
    let took = begin.elapsed().as_secs_f64();
    registry.close().await;
    took
}

#[tokio::main]
async fn main() {
    let corpus = Corpus::load();
    let (rounds, skills) = if support::quick() {
        (3, 500)
    } else {
        (21, 50_000)
    };
    let all: Vec<Bundle> = (0..corpus.len()).map(|at| corpus.bundle(at)).collect();
    // The rules are compiled by then.
    for bundle in &all {
        scan(&bundle.files);
    }
    let small = of_size(&corpus, 100 * 1024);
    let times: Vec<f64> = (0..rounds).map(|_| scan(&small) * 1e3).collect();
    against(
        "a skill of 100 KB",
        support::median(&times),
        "ms",
        Bar::AtMost(50.0),
    );
    let large = of_size(&corpus, 10 * 1024 * 1024);
    let times: Vec<f64> = (0..3).map(|_| scan(&large)).collect();
    against(
        "a skill of 10 MB",
        support::median(&times),
        "s",
        Bar::AtMost(2.0),
    );
    let corpus_time: f64 = all.iter().map(|bundle| scan(&bundle.files)).sum();
    let what = format!("{} public skills on one core", corpus.len());
    against(&what, corpus_time, "s", Bar::AtMost(10.0));

    let bundles: Vec<Bundle> = (0..skills).map(|at| corpus.bundle(at)).collect();
    let alone = scans(&bundles);
    let published = publishes(bundles).await;
    figure("scanning as many skills as are published", alone, "s");
    figure("publishing them, with the scan", published, "s");
    figure("  skills a second", skills as f64 / published, "/s");
    against(
        "publishing with the scan / without",
        published / (published - alone),
        "x",
        Bar::AtMost(1.5),
    );
}
