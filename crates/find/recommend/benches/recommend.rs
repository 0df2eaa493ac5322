//! What recommendations for a codebase take, by the number of skills.
//!
//! `cargo bench -p repertoire-recommend`; `BENCH_SKILLS=20000` takes that many.

use std::sync::Arc;
use std::time::Instant;

use codebase::{InlineFile, Inventory, ScanOptions, analyze};
use executor::Stop;
use futures_util::StreamExt as _;
use model::SystemClock;
use registry::Registry;
use repertoire_recommend::{Wish, recommend};
use search::SearchIndex;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Publishes that run side by side.
const AT_ONCE: usize = 32;
/// Recommendations that are timed.
const ROUNDS: usize = 50;

const TECHNOLOGIES: [&str; 20] = [
    "React",
    "FastAPI",
    "Python",
    "Go",
    "PostgreSQL",
    "Django",
    "Rust",
    "Kubernetes",
    "Docker",
    "TypeScript",
    "Vue",
    "Terraform",
    "MongoDB",
    "Spring Boot",
    "Swift",
    "Flutter",
    "Laravel",
    "Azure",
    "Playwright",
    "",
];
const WORK: [&str; 10] = [
    "unit testing",
    "code review",
    "performance profiling",
    "security hardening",
    "database migrations",
    "deployment",
    "documentation",
    "debugging",
    "API design",
    "accessibility",
];

/// Made-up skills for technologies and kinds of work.
async fn publish(registry: &Registry, count: usize) {
    let one = |at: usize| async move {
        let technology = TECHNOLOGIES
            .get(at % TECHNOLOGIES.len())
            .copied()
            .unwrap_or_default();
        let work = WORK
            .get(at / TECHNOLOGIES.len() % WORK.len())
            .copied()
            .unwrap_or_default();
        let name = format!("{technology} {work} {at}").to_lowercase();
        let name: Vec<&str> = name.split_whitespace().collect();
        let name = name.join("-");
        let text = format!(
            "---\nname: {name}\ndescription: Guides {work} for {technology} projects, step by step. Use when {work} is to be done.\n---\n# {work}\n\nRead the code, then do what the list says, for each part of it.\n"
        );
        let id = format!("github/acme/{name}");
        testing::publish(registry, &id, &[("SKILL.md", text.as_bytes())], true).await;
    };
    let mut published = futures_util::stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE);
    while published.next().await.is_some() {}
}

fn main() {
    let count = std::env::var("BENCH_SKILLS").ok();
    let count: usize = count.map_or(500, |count| count.parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = TempDir::new().expect("a folder");
    let (registry, index, stop) = runtime.block_on(async {
        let clock = Arc::new(SystemClock);
        let (_, registry) = testing::registry(directory.path(), &testing::options(), clock);
        publish(&registry, count).await;
        let table = Arc::new(embed::Table);
        let folder = directory.path().join("search");
        let index = SearchIndex::new(registry.clone(), folder, Some(table));
        let stop = CancellationToken::new();
        tokio::spawn({
            let (index, stop) = (index.clone(), stop.clone());
            async move { index.follow(stop).await }
        });
        index.complete().await;
        (registry, index, stop)
    });
    let file = |(path, content): (&str, &str)| InlineFile {
        path: path.to_owned(),
        content: (!content.is_empty()).then(|| content.to_owned()),
    };
    let react = r#"{"name": "shop", "dependencies": {"react": "^18.3.1"}, "devDependencies": {"typescript": "^5.5.4", "@playwright/test": "^1.46.0"}}"#;
    let python =
        "[project]\nname = \"orders\"\ndependencies = [\"fastapi\", \"asyncpg\", \"pytest\"]\n";
    let codebases = [
        ("React", vec![("package.json", react), ("src/app.tsx", "")]),
        (
            "FastAPI",
            vec![
                ("pyproject.toml", python),
                ("orders/main.py", ""),
                ("Dockerfile", "FROM python:3.12"),
            ],
        ),
    ];
    for (name, files) in codebases {
        let files = files.into_iter().map(file).collect();
        let options = ScanOptions::default();
        let analysis = analyze(
            &Inventory::inline(files, &options).expect("an inventory"),
            &options,
        );
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begin = Instant::now();
                let found = recommend(
                    &registry,
                    &index,
                    &analysis,
                    &Wish::default(),
                    &Stop::never(),
                );
                assert!(
                    !found.expect("an answer").skills.is_empty(),
                    "something fits"
                );
                begin.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
        let least = times.first().copied().unwrap_or_default();
        println!("{count} skills, {name}: {median:.2} ms at the median, {least:.2} ms at least");
    }
    stop.cancel();
}
