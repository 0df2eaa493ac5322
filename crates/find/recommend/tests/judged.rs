//! Are skills recommended that one would want? Projects of many kinds, and what each
//! skill is to each of them, judged by hand (`tests/recommend/README.md`).
//!
//! `cargo test -p repertoire-recommend --test judged -- --ignored --nocapture` prints the table.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use codebase::{Analysis, InlineFile, Inventory, ScanOptions, analyze};
use executor::Stop;
use model::{SkillId, SystemClock};
use registry::{Bundle, Registry};
use repertoire_recommend::{Priority, Recommendation, Wish, recommend};
use search::SearchIndex;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

#[path = "../../../../tests/support/corpus.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the tests of the server use the rest"
)]
mod corpus;

/// The first skills, which are looked at.
const TOP: usize = 5;
/// What each half must come to: nDCG, and the shares of the first five that are useful, and
/// that one would at least not mind.
const MIN_NDCG: f64 = 0.75;
const MIN_USEFUL: f64 = 0.85;
const MIN_FINE: f64 = 0.9;

/// A project and what skills are to it, by author and name.
struct Project {
    name: String,
    tuning: bool,
    analysis: Analysis,
    grades: BTreeMap<String, u32>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/recommend")
}

/// Projects of `projects.txt`: `= name | half | what it is`, `@ path` for each file, and
/// what is in it on the lines below.
fn projects() -> Vec<Project> {
    let text = std::fs::read_to_string(folder().join("projects.txt")).expect("projects");
    let judged = ["judgments-tune.tsv", "judgments-test.tsv"];
    let judged = judged.map(|file| std::fs::read_to_string(folder().join(file)).expect(file));
    let rows = judged.iter().flat_map(|text| text.lines());
    let judged: Vec<Vec<&str>> = rows.map(|row| row.split('\t').collect()).collect();
    let mut read = Vec::new();
    for part in text.split("\n= ") {
        let (title, files) = part.split_once('\n').expect("files");
        let title: Vec<&str> = title.trim_start_matches("= ").split(" | ").collect();
        let [name, half, _] = title[..] else {
            panic!("name, half and what it is: {title:?}");
        };
        let files = format!("\n{files}");
        let files = files.split("\n@ ").skip(1).map(|file| {
            let (path, content) = file.split_once('\n').unwrap_or((file, ""));
            InlineFile {
                path: path.to_owned(),
                content: (!content.trim().is_empty()).then(|| content.to_owned()),
            }
        });
        let options = ScanOptions::default();
        let inventory = Inventory::inline(files.collect(), &options).expect("an inventory");
        let of_it = judged.iter().filter(|row| row[0] == name);
        read.push(Project {
            name: name.to_owned(),
            tuning: half == "tune",
            analysis: analyze(&inventory, &options),
            grades: of_it
                .map(|row| (row[2].to_owned(), row[1].parse().expect("a grade")))
                .collect(),
        });
    }
    read
}

/// Skills of the corpus in a registry, and what finds them.
struct World {
    _directory: TempDir,
    registry: Registry,
    index: SearchIndex,
    stop: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Publishes every skill of a corpus; of several of one name those that lie highest.
async fn published(corpus: &Path) -> World {
    let directory = TempDir::new().expect("a folder");
    let clock = Arc::new(SystemClock);
    let (_, registry) = testing::registry(directory.path(), &testing::options(), clock);
    let mut folders = corpus::skill_folders(corpus);
    folders.sort_by_key(|folder| (folder.components().count(), folder.clone()));
    let mut taken = HashSet::new();
    for folder in folders {
        let inside = folder.strip_prefix(corpus).expect("inside");
        let (author, _) = inside
            .to_str()
            .expect("UTF-8")
            .split_once("__")
            .expect("an author");
        let name = folder.file_name().expect("a name").to_string_lossy();
        let Ok(id) = format!("github/{author}/{name}").parse::<SkillId>() else {
            continue;
        };
        if !taken.insert(id.clone()) {
            continue;
        }
        let files = corpus::files(&folder)
            .into_iter()
            .filter_map(|(path, file)| {
                let bytes = std::fs::read(file).expect("a file");
                Some((path.parse().ok()?, Bytes::from(bytes)))
            });
        let bundle = Bundle {
            id: Some(id),
            files: files.collect(),
            folder: name.into_owned(),
            strict: false,
        };
        // What import refuses is not there to be recommended.
        if bundle.clone().read().skill.is_none() {
            continue;
        }
        let prepared = registry.prepare(bundle).await.expect("a skill");
        let caller = testing::caller();
        let published = registry.publish(prepared, "", true, &caller).await;
        published.expect("published");
    }
    let table = Arc::new(embed::Table);
    let index = SearchIndex::new(
        registry.clone(),
        directory.path().join("search"),
        Some(table),
    );
    let stop = CancellationToken::new();
    tokio::spawn({
        let (index, stop) = (index.clone(), stop.clone());
        async move { index.follow(stop).await }
    });
    index.complete().await;
    World {
        _directory: directory,
        registry,
        index,
        stop,
    }
}

/// Author and name, as judgments have them.
fn key(recommendation: &Recommendation) -> String {
    let id = &recommendation.head.id;
    format!("{}/{}", id.author(), id.slug())
}

/// What is recommended to a project, by its grades.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    /// Normalised discounted cumulative gain.
    ndcg: f64,
    /// Share of the first that help, and of those that nobody would mind.
    useful: f64,
    fine: f64,
}

fn figures(found: &[Recommendation], grades: &BTreeMap<String, u32>) -> Figures {
    let gain = |grade: u32, at: usize| {
        let place = f64::from(u32::try_from(at + 2).expect("small")).log2();
        f64::from((1_u32 << grade) - 1) / place
    };
    let sum = |grades: &[u32]| -> f64 {
        let gains = grades.iter().take(TOP).enumerate();
        gains.map(|(at, grade)| gain(*grade, at)).sum()
    };
    let of = |skill: &Recommendation| grades.get(&key(skill)).copied().unwrap_or_default();
    let top: Vec<u32> = found.iter().take(TOP).map(of).collect();
    let mut ideal: Vec<u32> = grades.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let share = |least: u32| {
        let good = top.iter().filter(|grade| **grade >= least).count();
        // No more can be right than there are.
        let all = ideal
            .iter()
            .filter(|grade| **grade >= least)
            .count()
            .min(TOP);
        count(good) / count(all.max(top.len()).max(1))
    };
    Figures {
        ndcg: sum(&top) / sum(&ideal),
        useful: share(2),
        fine: share(1),
    }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("small"))
}

/// What a half of the projects comes to.
#[derive(Debug, Default)]
struct Half {
    mean: Figures,
    essential: usize,
    wrong: Vec<String>,
    for_nothing: Vec<String>,
    without: Vec<String>,
}

fn recommended(world: &World, project: &Project) -> Vec<Recommendation> {
    let (registry, index) = (&world.registry, &world.index);
    let found = recommend(
        registry,
        index,
        &project.analysis,
        &Wish::default(),
        &Stop::never(),
    );
    found.expect("an answer").skills
}

fn judge(world: &World, projects: &[Project], tuning: bool) -> Half {
    let mut half = Half::default();
    let mut judged = 0;
    for project in projects.iter().filter(|project| project.tuning == tuning) {
        let found = recommended(world, project);
        if project.grades.is_empty() {
            half.for_nothing.extend(
                found
                    .iter()
                    .map(|s| format!("{}: {}", project.name, key(s))),
            );
            continue;
        }
        judged += 1;
        if found.is_empty() {
            half.without.push(project.name.clone());
        }
        let figures = figures(&found, &project.grades);
        half.mean.ndcg += figures.ndcg;
        half.mean.useful += figures.useful;
        half.mean.fine += figures.fine;
        println!(
            "{:<20} {:.2} {:.2} {:.2}",
            project.name, figures.ndcg, figures.useful, figures.fine
        );
        for (at, skill) in found.iter().enumerate() {
            let key = key(skill);
            let grade = project.grades.get(&key).copied().unwrap_or_default();
            let essential = skill.priority == Priority::Essential;
            if at < 8 {
                let first = skill
                    .reasons
                    .first()
                    .map_or("", |reason| reason.text.as_str());
                let mark = if essential { "!" } else { " " };
                println!("    {grade}{mark} {:.2} {key}: {first}", skill.score);
            }
            if essential {
                half.essential += 1;
                if grade < 3 {
                    half.wrong
                        .push(format!("{}: {key} ({grade})", project.name));
                }
            }
        }
    }
    for sum in [
        &mut half.mean.ndcg,
        &mut half.mean.useful,
        &mut half.mean.fine,
    ] {
        *sum /= count(judged);
    }
    half
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "nightly: some 500 public skills"]
async fn projects_get_the_skills_that_one_would_want() {
    let Some(corpus) = corpus::public_at(&folder().join("../..")) else {
        return;
    };
    let world = published(&corpus).await;
    let projects = projects();
    let catalog = world.registry.catalog();
    let judged: BTreeSet<&String> = projects.iter().flat_map(|p| p.grades.keys()).collect();
    let missing = judged.into_iter().filter(|judged| {
        let id = format!("github/{judged}")
            .parse::<SkillId>()
            .expect("an id");
        catalog.get(&id.key()).is_none()
    });
    assert_eq!(
        missing.collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "judged and not published"
    );
    for (title, tuning) in [("for tuning", true), ("for the figure", false)] {
        println!("\nhalf {title}");
        let half = judge(&world, &projects, tuning);
        let Figures { ndcg, useful, fine } = half.mean;
        println!(
            "half {title}: nDCG@5 {ndcg:.3}, P@5 {useful:.3} (one would not mind {fine:.3}), {} essential",
            half.essential
        );
        assert_eq!(half.wrong, Vec::<String>::new(), "not essential");
        assert_eq!(half.for_nothing, Vec::<String>::new(), "nothing fits");
        assert_eq!(half.without, Vec::<String>::new(), "something fits");
        assert!(ndcg >= MIN_NDCG, "{ndcg}");
        assert!(useful >= MIN_USEFUL, "{useful}");
        assert!(fine >= MIN_FINE, "{fine}");
    }
}

/// What the skills inside the project must come to for some projects: those among the
/// first five, and those that are never told.
const OURS: &[(&str, &[&str], &[&str])] = &[
    (
        "fastapi-orders",
        &["pytest-unit-tests", "sql-migrations"],
        &[
            "rust-errors",
            "kubernetes-rollout",
            "press-release",
            "pdf-forms",
        ],
    ),
    (
        "gitops-cluster",
        &["kubernetes-debugging", "kubernetes-rollout"],
        &["pytest-unit-tests", "sql-migrations", "email-campaigns"],
    ),
    (
        "rust-cli",
        &["rust-errors", "code-review"],
        &["pytest-unit-tests", "kubernetes-rollout", "charts"],
    ),
    (
        "office-folder",
        &["pdf-extraction"],
        &["pytest-unit-tests", "rust-errors", "code-review"],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn skills_inside_the_project_are_for_those_who_have_use_for_them() {
    let world = published(&folder().join("../corpus")).await;
    let projects = projects();
    let mut wrong = Vec::new();
    for (name, wanted, unwanted) in OURS {
        let project = projects.iter().find(|project| project.name == *name);
        let found = recommended(&world, project.expect("a project"));
        let slugs: Vec<&str> = found.iter().map(|skill| skill.head.id.slug()).collect();
        for slug in *wanted {
            if !slugs.iter().take(TOP).any(|found| found == slug) {
                wrong.push(format!("{name}: {slug} is not among {slugs:?}"));
            }
        }
        for slug in *unwanted {
            if slugs.contains(slug) {
                wrong.push(format!("{name}: {slug} is"));
            }
        }
    }
    for project in projects.iter().filter(|project| project.grades.is_empty()) {
        let found = recommended(&world, project);
        wrong.extend(
            found
                .iter()
                .map(|skill| format!("{}: {}", project.name, key(skill))),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
}
