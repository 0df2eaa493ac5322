//! The damage matrix: every file of a data directory, damaged in every way.
//!
//! Whatever was done to a file, each command either works whole, or refuses, or
//! says what is damaged: no panic, no hang, never a byte that is not the
//! original's, and nothing is missing unless `repertoire verify` says so.
//!
//! `REPERTOIRE_DAMAGE` (1, and 4 at night) multiplies the places at which bytes are damaged.

mod commands;
mod damages;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use commands::{Outcome, list, salvage, serve, verify};
use damages::{Damage, damages};
use tempfile::TempDir;

use crate::harness::client::{Client, Everything, read_everything};
use crate::harness::model::{Op, Skill, draft};
use crate::harness::{self, Dice, Server};

/// Within this every command has ended.
const LIMIT: Duration = Duration::from_secs(20);
const SKILLS: usize = 24;
const THREADS: usize = 3;

#[derive(Debug, Clone)]
struct Case {
    /// Path inside the data directory.
    file: PathBuf,
    damage: Damage,
    /// The server comes before `verify`, which may change what it finds.
    serve_first: bool,
    /// What is saved of it is served, too.
    serves_saved: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.serve_first {
            "server first"
        } else {
            "verify first"
        };
        write!(f, "{} {:?}, {order}", self.file.display(), self.damage)
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// The files of a data directory.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .map(|entry| entry.expect("an entry"));
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            entry
                .path()
                .strip_prefix(folder)
                .expect("below it")
                .to_owned()
        })
        .collect()
}

async fn stop(mut server: Server) {
    server.terminate();
    // Not on this thread: the clients have to hear that the server goes.
    let ended = tokio::task::spawn_blocking(move || server.ended(LIMIT)).await;
    let (status, stderr) = ended.expect("a wait");
    assert!(
        status.is_some_and(|status| status.success()),
        "{status:?} {stderr}"
    );
}

/// Fills a directory in two sessions; `older` is as it was after the first.
async fn fill(data: &Path, older: &Path) -> Vec<Skill> {
    let mut dice = Dice::new(3);
    let ids = (0..SKILLS).map(|number| format!("local/global/skill-{number}"));
    let mut skills: Vec<Skill> = ids.map(Skill::new).collect();
    for session in 0..2 {
        let (server, url) = Server::start(data);
        let client = Client::connect(&url).await.expect("a client");
        for (number, skill) in skills.iter_mut().enumerate() {
            let mut version = draft(&mut dice, &skill.id, 20_000, None);
            let mut files = (*version.files).clone();
            let size = if number % 4 == 0 { 250_000 } else { 15_000 };
            files.insert("assets/noise.npy".to_owned(), dice.bytes(size).into());
            version.digest = harness::model::digest(&files);
            version.files = files.into();
            let mut ops = vec![Op::Publish(version)];
            if session == 1 {
                match number % 6 {
                    1 => ops.push(Op::Activate(1)),
                    2 => ops.push(Op::Yank(2, "a mistake".to_owned())),
                    3 => ops.push(Op::Yank(1, "too old".to_owned())),
                    4 if number == 4 => ops.push(Op::Delete),
                    _ => {}
                }
            }
            for op in ops {
                let answer = client.write(&skill.id, &op, "").await.expect("an answer");
                assert_eq!(answer, skill.apply(&op));
            }
        }
        drop(client);
        stop(server).await;
        if session == 0 {
            copy(data, older);
        }
    }
    skills
}

/// All below `store`, as it is and where it was set aside. Files that are set aside are there
/// under a name that begins with their own.
fn stored(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |folder: &str| {
        let folder = data.join(folder);
        let names = if folder.is_dir() {
            files(&folder)
        } else {
            Vec::new()
        };
        names.into_iter().map(move |name| {
            let bytes = fs::read(folder.join(&name)).expect("a file");
            (name, bytes)
        })
    };
    read("aside").chain(read("store")).collect()
}

async fn examine(case: &Case, base: &Path, older: &Path, everything: &Everything) -> Outcome {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    copy(base, &data);
    case.damage
        .apply(&data.join(&case.file), &older.join(&case.file));
    let mut outcome = Outcome {
        complete: true,
        ..Outcome::default()
    };
    let searches = case.file.starts_with("search");
    let before = stored(&data);
    if case.serve_first {
        serve(&data, everything, searches, &mut outcome).await;
        list(&data, everything, &mut outcome);
        verify(&data, everything, &mut outcome);
    } else {
        verify(&data, everything, &mut outcome);
        list(&data, everything, &mut outcome);
        serve(&data, everything, searches, &mut outcome).await;
    }
    if outcome.sort() == "refused" && stored(&data) != before {
        outcome.wrong.push("what is refused is changed".to_owned());
    }
    if !outcome.verified && data.join("store/db").is_file() {
        salvage(&data, everything, case.serves_saved, &mut outcome).await;
    }
    if outcome.verified && !outcome.complete {
        outcome
            .wrong
            .push(format!("something is lost in silence: {}", outcome.said));
    }
    outcome
}

#[tokio::test]
async fn a_damaged_file_is_read_whole_or_said_to_be_damaged() {
    let folder = TempDir::new().expect("a folder");
    let (base, older) = (folder.path().join("base"), folder.path().join("older"));
    let skills = fill(&base, &older).await;

    let witness = folder.path().join("witness");
    copy(&base, &witness);
    let (server, url) = Server::start(&witness);
    let client = Client::connect(&url).await.expect("a client");
    let everything = read_everything(&client).await.expect("a whole directory");
    for skill in &skills {
        assert_eq!(
            everything.skills.get(&skill.id).cloned().flatten(),
            skill.state,
            "'{}'",
            skill.id
        );
    }
    stop(server).await;

    let mut dice = Dice::new(5);
    let mut cases: Vec<Case> = Vec::new();
    let thorough = std::env::var_os("REPERTOIRE_DAMAGE").is_some();
    let mut kinds = std::collections::BTreeSet::new();
    for file in files(&base) {
        // The search index has dozens of files of the same kinds: one of each will do.
        let kind = file.extension().unwrap_or(file.as_os_str()).to_owned();
        let derived = file.starts_with("search");
        if derived && !kinds.insert(kind) && !thorough {
            continue;
        }
        let length = usize::try_from(fs::metadata(base.join(&file)).expect("a file").len())
            .expect("a length");
        let mut damages = damages(length, &file, &mut dice);
        if older.join(&file).is_file() && !derived {
            damages.push(Damage::Older);
        }
        for damage in damages {
            let serve_first = cases.len().is_multiple_of(2);
            // Every byte of what is saved is read; that a server does so shows in some.
            let serves_saved = thorough || cases.len().is_multiple_of(5);
            cases.push(Case {
                file: file.clone(),
                damage,
                serve_first,
                serves_saved,
            });
        }
    }

    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<(Case, Outcome)>> = Mutex::default();
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = runtime.block_on(examine(case, &base, &older, &everything));
                    outcomes
                        .lock()
                        .expect("a lock")
                        .push((case.clone(), outcome));
                }
            });
        }
    });

    let outcomes = outcomes.into_inner().expect("a lock");
    assert_eq!(outcomes.len(), cases.len(), "every case was looked at");
    let mut table: BTreeMap<(String, &str, &str), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (case, outcome) in &outcomes {
        let row = (
            case.file.display().to_string(),
            case.damage.sort(),
            outcome.sort(),
        );
        *table.entry(row).or_default() += 1;
        wrong.extend(
            outcome
                .wrong
                .iter()
                .map(|what| format!("{case}: {what:.600}")),
        );
        if std::env::var_os("REPERTOIRE_SHOW").is_some() {
            println!("{case}: {} {:.300}", outcome.sort(), outcome.said);
        }
    }
    let saved: Vec<_> = outcomes
        .iter()
        .filter_map(|(_, outcome)| outcome.saved)
        .collect();
    let all = saved.iter().filter(|(_, all)| *all).count();
    println!("salvaged {} directories, {all} of them whole", saved.len());
    for ((file, damage, sort), count) in &table {
        println!("{file:28} {damage:12} {sort:20} {count}");
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
