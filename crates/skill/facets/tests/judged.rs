//! The facets of real skills against a person's judgment: `tests/facets/judged.tsv`.
//! `cargo test -p repertoire-facets --test judged -- --nocapture` prints the figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::{Digest, FileEntry, FilePath};
use repertoire_facets::{Facets, Inferred, infer};

/// What a person said of a skill.
struct Judged {
    tuning: bool,
    folder: &'static str,
    main: &'static str,
    categories: BTreeSet<&'static str>,
    technologies: BTreeSet<&'static str>,
}

fn judged() -> Vec<Judged> {
    let text = include_str!("../../../../tests/facets/judged.tsv");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let [half, folder, main, categories, technologies] = cells[..] else {
                panic!("five columns: {line}");
            };
            Judged {
                tuning: half == "tune",
                folder,
                main,
                categories: categories.split_whitespace().collect(),
                technologies: technologies.split_whitespace().collect(),
            }
        })
        .collect()
}

/// Some 500 public skills beside the project. Where they are missing, the test is skipped.
fn corpus() -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus");
    if corpus.join("EXPECT.tsv").is_file() {
        return Some(corpus);
    }
    testing::skip("there are no public skills at ../shared/corpus");
    None
}

fn files(folder: &Path) -> BTreeMap<FilePath, Bytes> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| {
            let inside = entry.path().strip_prefix(folder).expect("below it");
            let path = inside.to_str()?.parse().ok()?;
            Some((path, std::fs::read(entry.path()).expect("a file").into()))
        })
        .collect()
}

/// The facets of a folder; none where it is no skill to the reader.
fn facets(folder: &Path) -> Option<Facets> {
    let files = files(folder);
    let name = folder.file_name()?.to_str();
    let options = skill_md::ReadOptions {
        folder: name,
        ..skill_md::ReadOptions::default()
    };
    let skill = skill_md::read(&files, &options).skill?;
    let entries: Vec<FileEntry> = files
        .iter()
        .map(|(path, bytes)| FileEntry {
            path: path.clone(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
        })
        .collect();
    Some(infer(&skill, &entries))
}

/// Counts of what was right.
#[derive(Debug, Default)]
struct Figures {
    skills: u32,
    main: u32,
    categories: [u32; 3],
    technologies: [u32; 3],
    without: u32,
    rightly_without: u32,
}

fn share(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole.max(1))
}

impl Figures {
    fn add(&mut self, judged: &Judged, facets: &Facets) -> Vec<String> {
        let ids = |found: &[Inferred]| -> Vec<String> {
            found.iter().map(|found| found.id.to_string()).collect()
        };
        let (categories, technologies) = (ids(&facets.categories), ids(&facets.technologies));
        let mut wrong = Vec::new();
        self.skills += 1;
        if categories.first().map(String::as_str) == Some(judged.main) {
            self.main += 1;
        } else {
            wrong.push(format!("main {:?} is {}", categories.first(), judged.main));
        }
        for (counts, found, right, what) in [
            (
                &mut self.categories,
                &categories,
                &judged.categories,
                "category",
            ),
            (
                &mut self.technologies,
                &technologies,
                &judged.technologies,
                "technology",
            ),
        ] {
            for id in found {
                counts[1] += 1;
                if right.contains(id.as_str()) {
                    counts[0] += 1;
                } else {
                    wrong.push(format!("{what} +{id}"));
                }
            }
            counts[2] += u32::try_from(right.len()).expect("few");
            let missing = right
                .iter()
                .filter(|id| !found.iter().any(|found| found == *id));
            wrong.extend(missing.map(|id| format!("{what} -{id}")));
        }
        if judged.technologies.is_empty() {
            self.without += 1;
            self.rightly_without += u32::from(technologies.is_empty());
        }
        wrong
    }

    /// Precision and recall.
    fn both([right, found, wanted]: [u32; 3]) -> [f64; 2] {
        [share(right, found), share(right, wanted)]
    }

    fn print(&self, half: &str) {
        let [precision, recall] = Self::both(self.categories);
        let [sure, whole] = Self::both(self.technologies);
        println!(
            "{half}: {} skills: main {:.3}, categories P {precision:.3} R {recall:.3}, technologies P {sure:.3} R {whole:.3}, none where none {:.3} of {}",
            self.skills,
            share(self.main, self.skills),
            share(self.rightly_without, self.without),
            self.without,
        );
    }
}

#[test]
fn what_skills_are_about_is_what_a_person_says() {
    let Some(corpus) = corpus() else { return };
    let (mut tune, mut test) = (Figures::default(), Figures::default());
    for judged in judged() {
        let Some(facets) = facets(&corpus.join(judged.folder)) else {
            println!("not read: {}", judged.folder);
            continue;
        };
        if judged.tuning {
            let wrong = tune.add(&judged, &facets);
            if !wrong.is_empty() {
                println!("{}: {}", judged.folder, wrong.join(", "));
            }
        } else {
            test.add(&judged, &facets);
        }
    }
    tune.print("tuning");
    test.print("held back");
    for (figures, half) in [(&tune, "tuning"), (&test, "held back")] {
        let [precision, recall] = Figures::both(figures.technologies);
        assert!(precision >= 0.88, "{half}: technologies {precision}");
        assert!(recall >= 0.78, "{half}: technologies {recall}");
        let [precision, recall] = Figures::both(figures.categories);
        assert!(precision >= 0.85, "{half}: categories {precision}");
        assert!(recall >= 0.6, "{half}: categories {recall}");
        let main = share(figures.main, figures.skills);
        assert!(main >= 0.7, "{half}: main category {main}");
        let without = share(figures.rightly_without, figures.without);
        assert!(without >= 0.9, "{half}: no technology {without}");
        // Few are refused by the reader; else the figures would be of something else.
        assert!(figures.skills >= 110, "{half}: {} skills", figures.skills);
    }
}

/// The same of the skills of this project, which are there everywhere.
#[test]
fn what_skills_of_ours_are_about_is_what_a_person_says() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/corpus");
    let (mut figures, mut all) = (Figures::default(), Vec::new());
    for line in include_str!("../../../../tests/corpus/facets.tsv").lines() {
        let cells: Vec<&'static str> = line.split('\t').collect();
        let [folder, main, technologies] = cells[..] else {
            continue;
        };
        let judged = Judged {
            tuning: false,
            folder,
            main,
            categories: BTreeSet::from([main]),
            technologies: technologies.split_whitespace().collect(),
        };
        let mut facets = facets(&corpus.join(folder)).expect("a skill");
        // Only main categories were judged; "none" is one too.
        facets.categories.truncate(1);
        let wrong = figures.add(&judged, &facets);
        if !wrong.is_empty() {
            all.push(format!("{folder}: {}", wrong.join(", ")));
        }
    }
    figures.print("of ours");
    let [precision, recall] = Figures::both(figures.technologies);
    assert!(
        precision >= 0.9 && recall >= 0.9,
        "technologies {precision} {recall}: {all:#?}"
    );
    let main = share(figures.main, figures.skills);
    assert!(main >= 0.8, "main category {main}: {all:#?}");
}

/// Prints the facets of skills that nobody judged, to be read.
#[test]
#[ignore = "for reading"]
fn facets_of_all_skills() {
    let Some(corpus) = corpus() else { return };
    let known: BTreeSet<&str> = judged().iter().map(|judged| judged.folder).collect();
    for entry in walkdir::WalkDir::new(&corpus).sort_by_file_name() {
        let entry = entry.expect("an entry");
        let folder = entry.path().parent().expect("a folder");
        let inside = folder
            .strip_prefix(&corpus)
            .unwrap_or(folder)
            .to_str()
            .expect("UTF-8");
        if entry.file_name().eq_ignore_ascii_case("SKILL.md") && !known.contains(inside) {
            let show = |found: &[Inferred]| -> Vec<String> {
                found
                    .iter()
                    .map(|found| format!("{} {}", found.id, found.confidence()))
                    .collect()
            };
            if let Some(facets) = facets(folder) {
                println!(
                    "{inside}\t{}\t{}",
                    show(&facets.categories).join(", "),
                    show(&facets.technologies).join(", ")
                );
            }
        }
    }
}
