//! Does a search find what people look for? Questions about the skills of
//! `tests/corpus`; and judged queries over public ones, in eight classes, which
//! `tests/relevance/README.md` explains.
//!
//! `cargo test --release --test services relevance -- --nocapture` prints the table.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use embed::{CombinedEmbedder, Embedder, Table, Transformer};
use executor::Stop;
use model::{SkillId, SystemClock};
use registry::{Bundle, Registry};
use search::{SearchIndex, SearchQuery};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::corpus;

const CLASSES: [&str; 8] = [
    "exact", "part", "keywords", "body", "typo", "task", "synonym", "language",
];
/// Results that count.
const TOP: usize = 10;

/// A query and the skills that serve it, by folder, with their grades.
struct Judged {
    class: String,
    tuning: bool,
    query: String,
    grades: HashMap<String, u32>,
}

fn judged() -> Vec<Judged> {
    let mut found: BTreeMap<(String, String), Judged> = BTreeMap::new();
    for line in include_str!("../relevance/queries.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [class, half, query, grade, path] = fields[..] else {
            panic!("five fields: {line}");
        };
        let key = (class.to_owned(), query.to_owned());
        let judged = found.entry(key).or_insert_with(|| Judged {
            class: class.to_owned(),
            tuning: half == "tune",
            query: query.to_owned(),
            grades: HashMap::new(),
        });
        let grade = grade.parse().expect("a grade");
        judged.grades.insert(path.to_owned(), grade);
    }
    found.into_values().collect()
}

/// A real skill: its folder in the corpus, and what it says first.
struct Real {
    folder: String,
    id: String,
    name: String,
    description: String,
    tags: String,
    author: String,
}

/// The registry in a folder.
fn open(directory: &TempDir) -> Registry {
    let (options, clock) = (testing::options(), Arc::new(SystemClock));
    testing::registry(directory.path(), &options, clock).1
}

/// Publishes every skill of a corpus under the id that its folder is given, else its
/// name; of several of one id the one that lies highest, as an import does.
async fn publish(
    registry: &Registry,
    corpus: &Path,
    id: impl Fn(&Path) -> Option<SkillId>,
) -> Vec<Real> {
    let mut folders = corpus::skill_folders(corpus);
    folders.sort_by_key(|folder| (folder.components().count(), folder.clone()));
    let mut real = Vec::new();
    let mut taken = HashSet::new();
    for folder in folders {
        let inside = folder.strip_prefix(corpus).expect("inside");
        let name = folder.file_name().expect("a name");
        let files = corpus::files(&folder)
            .into_iter()
            .filter_map(|(path, file)| {
                let bytes = std::fs::read(file).expect("a file");
                Some((path.parse().ok()?, Bytes::from(bytes)))
            });
        let bundle = Bundle {
            id: id(inside),
            files: files.collect(),
            folder: name.to_string_lossy().into_owned(),
            strict: false,
        };
        let candidate = bundle.read();
        let (Some(id), Some(skill)) = (candidate.id, candidate.skill) else {
            continue;
        };
        if !taken.insert(id.to_string()) {
            continue;
        }
        let prepared = registry.prepare(bundle).await.expect("a skill");
        let published = registry
            .publish(prepared, "", true, &testing::caller())
            .await;
        real.push(Real {
            folder: inside.display().to_string(),
            id: published.expect("published").id.to_string(),
            name: skill.name,
            description: skill.description,
            tags: skill.tags.join(" "),
            author: skill.author.unwrap_or_default(),
        });
    }
    real
}

/// Normalised discounted cumulative gain, reciprocal rank of the first skill that
/// serves well (grade 2 or 3), and the share of all that serve which is there; of the
/// first ten.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    ndcg: f64,
    mrr: f64,
    recall: f64,
}

fn figures(ranked: &[String], grades: &HashMap<String, u32>) -> Figures {
    let gain = |grade: u32, at: usize| {
        let place = f64::from(u32::try_from(at + 2).expect("small")).log2();
        f64::from((1_u32 << grade) - 1) / place
    };
    let grade = |folder: &String| grades.get(folder).copied().unwrap_or_default();
    let top = &ranked[..ranked.len().min(TOP)];
    let reached: f64 = top
        .iter()
        .enumerate()
        .map(|(at, folder)| gain(grade(folder), at))
        .sum();
    let mut ideal: Vec<u32> = grades.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let best: f64 = ideal
        .iter()
        .take(TOP)
        .enumerate()
        .map(|(at, grade)| gain(*grade, at))
        .sum();
    let first = top.iter().position(|folder| grade(folder) >= 2);
    let found = top.iter().filter(|folder| grade(folder) > 0).count();
    let count = |n: usize| f64::from(u32::try_from(n).expect("small"));
    Figures {
        ndcg: reached / best,
        mrr: first.map_or(0.0, |at| 1.0 / count(at + 1)),
        recall: count(found) / count(grades.len().min(TOP)),
    }
}

/// The mean of the classes, and each class.
struct Row {
    name: String,
    mean: Figures,
    classes: Vec<Figures>,
}

fn row(name: &str, judged: &[&Judged], mut ranked: impl FnMut(&str) -> Vec<String>) -> Row {
    let mean = |figures: &[Figures]| {
        let count = f64::from(u32::try_from(figures.len().max(1)).expect("small"));
        let sum = |of: fn(&Figures) -> f64| figures.iter().map(of).sum::<f64>() / count;
        Figures {
            ndcg: sum(|figures| figures.ndcg),
            mrr: sum(|figures| figures.mrr),
            recall: sum(|figures| figures.recall),
        }
    };
    let classes: Vec<Figures> = CLASSES
        .iter()
        .map(|class| {
            let of_class = judged.iter().filter(|judged| judged.class == *class);
            let of_class: Vec<Figures> = of_class
                .map(|judged| figures(&ranked(&judged.query), &judged.grades))
                .collect();
            mean(&of_class)
        })
        .collect();
    Row {
        name: name.to_owned(),
        mean: mean(&classes),
        classes,
    }
}

fn print(title: &str, rows: &[&Row]) {
    println!(
        "\n{title}\n{:<24} nDCG@10   MRR  recall  {}",
        "",
        CLASSES.map(|c| format!("{c:>8}")).join(" ")
    );
    for row in rows {
        let classes: Vec<String> = row
            .classes
            .iter()
            .map(|c| format!("{:8.3}", c.ndcg))
            .collect();
        let Figures { ndcg, mrr, recall } = row.mean;
        println!(
            "{:<24} {ndcg:7.3} {mrr:.3}  {recall:.3}  {}",
            row.name,
            classes.join(" ")
        );
    }
}

/// What the product of the tool specification runs: `SQLite`'s FTS5 over the columns that
/// a catalog shows, with every word as the beginning of one.
struct Fts5 {
    database: rusqlite::Connection,
    folders: Vec<String>,
}

impl Fts5 {
    fn new(real: &[Real]) -> Self {
        let database = rusqlite::Connection::open_in_memory().expect("a database");
        let make = "CREATE VIRTUAL TABLE skills USING fts5(name, description, tags, author)";
        database.execute(make, []).expect("FTS5");
        for skill in real {
            let insert = "INSERT INTO skills (name, description, tags, author) VALUES (?, ?, ?, ?)";
            let values = (&skill.name, &skill.description, &skill.tags, &skill.author);
            database.execute(insert, values).expect("inserted");
        }
        Self {
            database,
            folders: real.iter().map(|skill| skill.folder.clone()).collect(),
        }
    }

    fn all(&self, judged: &[&Judged]) -> HashMap<String, Vec<String>> {
        let mut found = HashMap::new();
        for judged in judged {
            found.insert(judged.query.clone(), self.ranked(&judged.query));
        }
        found
    }

    fn ranked(&self, query: &str) -> Vec<String> {
        let words = query.split(|c: char| !c.is_alphanumeric());
        let words: Vec<String> = words
            .filter(|w| !w.is_empty())
            .map(|w| format!("\"{w}\"*"))
            .collect();
        let select = "SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY bm25(skills) LIMIT 10";
        let mut select = self.database.prepare(select).expect("a query");
        let rows = select.query_map([words.join(" OR ")], |row| row.get::<_, i64>(0));
        rows.expect("rows")
            .map(|row| {
                let at = usize::try_from(row.expect("a row") - 1).expect("a row");
                self.folders[at].clone()
            })
            .collect()
    }
}

/// Skills by how near they are in meaning alone.
fn by_meaning(embedder: &dyn Embedder, real: &[Real]) -> impl Fn(&str) -> Vec<String> {
    let texts: Vec<String> = real
        .iter()
        .map(|skill| {
            format!(
                "{}. {}",
                skill.name.replace(['-', '_'], " "),
                skill.description
            )
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts).expect("vectors");
    move |query| {
        let query = embedder.embed(&[query]).expect("a vector").remove(0);
        let mut near: Vec<(f32, &String)> = vectors
            .iter()
            .zip(real)
            .map(|(vector, skill)| {
                let near = vector.iter().zip(&query).map(|(a, b)| a * b).sum();
                (near, &skill.folder)
            })
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        near.into_iter()
            .take(TOP)
            .map(|(_, folder)| folder.clone())
            .collect()
    }
}

/// The transformer, where `REPERTOIRE_TEST_MODEL` names one and this is a release build:
/// without optimisation it takes minutes.
fn transformer() -> Option<Arc<dyn Embedder>> {
    let folder = std::env::var_os("REPERTOIRE_TEST_MODEL")?;
    if cfg!(debug_assertions) {
        return None;
    }
    let model = Transformer::open(Path::new(&folder)).expect("a model");
    Some(Arc::new(model))
}

/// An index that has caught up, and what stops it.
async fn indexed(
    registry: &Registry,
    folder: PathBuf,
    embedder: Arc<dyn Embedder>,
) -> (SearchIndex, CancellationToken) {
    let index = SearchIndex::new(registry.clone(), folder, Some(embedder));
    let stop = CancellationToken::new();
    tokio::spawn({
        let (index, stop) = (index.clone(), stop.clone());
        async move { index.follow(stop).await }
    });
    index.complete().await;
    (index, stop)
}

/// The best of what is found, by id.
fn best(index: &SearchIndex, text: &str, words_only: bool) -> Vec<String> {
    let query = SearchQuery {
        text: text.to_owned(),
        limit: TOP,
        words_only,
        ..SearchQuery::default()
    };
    let found = index.search(&query, &Stop::never()).expect("an answer");
    let hits = found.hits.iter();
    hits.map(|hit| hit.head.id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_about_skills_of_ours_find_them_among_the_first() {
    let directory = TempDir::new().expect("a folder");
    let registry = open(&directory);
    let id = |folder: &Path| {
        let (repository, _) = folder.to_str()?.split_once("__")?;
        let slug = folder.file_name()?.to_str()?;
        format!("github/{repository}/{slug}").parse().ok()
    };
    publish(&registry, &corpus::ours(), id).await;
    let folder = directory.path().join("search");
    let (index, stop) = indexed(&registry, folder, Arc::new(Table)).await;
    let mut wrong = Vec::new();
    for row in corpus::table("questions.tsv") {
        let [most, question, folder] = &row[..] else {
            panic!("three columns: {row:?}");
        };
        let wanted = id(Path::new(folder)).expect("an id").to_string();
        let found = best(&index, question, false);
        let rank = found.iter().position(|id| *id == wanted).map(|at| at + 1);
        let most = most.parse::<usize>().expect("a rank");
        if rank.is_none_or(|rank| rank > most) {
            wrong.push(format!(
                "{question}: {folder} is at {rank:?}, first is {:?}",
                found.first()
            ));
        }
    }
    stop.cancel();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn no_question_is_taken_for_noise_in_any_language() {
    let judged = judged().into_iter().map(|judged| judged.query);
    let ours = corpus::table("questions.tsv");
    let ours = ours.iter().map(|row| row[1].clone());
    let noise: Vec<String> = judged
        .chain(ours)
        .filter(|query| Table.is_noise(query))
        .collect();
    assert_eq!(noise, Vec::<String>::new());
}

#[test]
fn the_judged_queries_keep_to_the_rules_of_their_classes() {
    let Some(corpus) = corpus::public() else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relevance");
    let checked = std::process::Command::new("python3")
        .arg(folder.join("check.py"))
        .arg(corpus)
        .arg(folder.join("queries.tsv"))
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "nightly: some 500 public skills"]
async fn words_and_meaning_together_find_more_than_either_and_more_than_full_text_search() {
    let Some(corpus) = corpus::public() else {
        return;
    };
    let directory = TempDir::new().expect("a folder");
    let registry = open(&directory);
    let real = publish(&registry, &corpus, |_| None).await;
    let folders: HashMap<&str, &str> = real
        .iter()
        .map(|skill| (skill.id.as_str(), skill.folder.as_str()))
        .collect();
    let judged = judged();
    for judged in &judged {
        for folder in judged.grades.keys() {
            let is_there = real.iter().any(|skill| skill.folder == *folder);
            assert!(is_there, "{folder} is judged and not published");
        }
    }
    let table: Arc<dyn Embedder> = Arc::new(Table);
    let (index, stop) = indexed(
        &registry,
        directory.path().join("table"),
        Arc::clone(&table),
    )
    .await;
    let fts5 = Fts5::new(&real);
    let run = |index: &SearchIndex, text: &str, words_only| -> Vec<String> {
        let ids = best(index, text, words_only).into_iter();
        ids.map(|id| folders[id.as_str()].to_owned()).collect()
    };
    let meaning = by_meaning(&*table, &real);
    let (model, with_model) = match transformer() {
        None => (None, None),
        Some(model) => {
            let both: Arc<dyn Embedder> = Arc::new(
                CombinedEmbedder::new(Arc::clone(&table), Arc::clone(&model), 0.6).expect("both"),
            );
            let indexed = indexed(&registry, directory.path().join("both"), both).await;
            (Some(model), Some(indexed))
        }
    };
    let of_model = model.as_ref().map(|model| by_meaning(&**model, &real));
    for (title, tuning) in [("half for tuning", true), ("half for the figure", false)] {
        let half: Vec<&Judged> = judged
            .iter()
            .filter(|judged| judged.tuning == tuning)
            .collect();
        let of_fts5 = fts5.all(&half);
        let rows = [
            row("SQLite FTS5", &half, |query| of_fts5[query].clone()),
            row("words", &half, |query| run(&index, query, true)),
            row("meaning, built in", &half, &meaning),
            row("fused, built in", &half, |query| run(&index, query, false)),
        ];
        let mut printed: Vec<&Row> = rows.iter().collect();
        let mut more = Vec::new();
        if let (Some(by_model), Some((index, _))) = (&of_model, &with_model) {
            more.push(row("meaning, MiniLM", &half, by_model));
            more.push(row("fused, with MiniLM", &half, |query| {
                run(index, query, false)
            }));
        }
        printed.extend(&more);
        print(
            &format!("{title}: {} queries, {} skills", half.len(), real.len()),
            &printed,
        );
        let [.., fused] = &rows;
        for other in &rows[..3] {
            assert!(
                fused.mean.ndcg > other.mean.ndcg,
                "{} of {title}",
                other.name
            );
            for (class, (fused, other_class)) in
                CLASSES.iter().zip(fused.classes.iter().zip(&other.classes))
            {
                let loss = other_class.ndcg - fused.ndcg;
                assert!(
                    loss <= 0.03,
                    "{} of {title} loses {loss:.3} in {class}",
                    other.name
                );
            }
        }
    }
    stop.cancel();
    if let Some((_, stop)) = with_model {
        stop.cancel();
    }
}
