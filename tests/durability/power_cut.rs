//! Power cuts: what a registry wrote and synced is recorded, and replayed up to many
//! points, with what was not synced dropped wholly, in part, or not at all. Every state
//! must open, hold what was acknowledged, and hold what was read.
//!
//! A child process, which is this program again, does the writes below strace, and
//! compacts the store beside and after them. It
//! notes what was acknowledged and what a reader saw in a file, so that the order of
//! notes, writes and syncs is that of the trace.
//!
//! `REPERTOIRE_POWER_CUTS` is how many states to try (200), `REPERTOIRE_WITHDRAWALS` how
//! many versions are withdrawn (60), `REPERTOIRE_SEED` what to begin with (1).

mod disk;
mod trace;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use disk::{Disk, Loss};
use executor::Stop;
use model::{Digest, FilePath, Principal, SkillId, SystemClock, VersionNumber, bundle_digest};
use registry::{Bundle, Caller, Registry};
use store::{Batch, Content, Options, Store};
use tempfile::TempDir;
use trace::{CALLS, Event, Trace};

use crate::harness::Dice;

const CHILD: &str = "REPERTOIRE_POWER_CUT_CHILD";
/// Versions of a skill with as many files as a skill may have, and long paths.
const LARGE_VERSIONS: usize = 6;
const FILES: usize = 500;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().expect("a number"))
}

#[derive(Debug, Clone)]
enum Op {
    Publish(BTreeMap<FilePath, Bytes>),
    Yank(u32, String),
}

type Versions = BTreeMap<u32, (String, Option<String>)>;

fn id(writer: usize) -> SkillId {
    format!("local/global/skill-{writer}")
        .parse()
        .expect("an id")
}

fn bundle(text: &str, more: usize, round: usize) -> BTreeMap<FilePath, Bytes> {
    let skill = format!("---\nname: x\ndescription: Made by a test.\n---\n{text}\n");
    let name = |n: usize| format!("references/{}/{n:04}.md", "long-".repeat(28));
    let mut files = BTreeMap::from([("SKILL.md".to_owned(), skill)]);
    // Most files stay as they were from version to version.
    files.extend((0..more).map(|n| {
        let changed = if n % 50 == round % 50 { round } else { 0 };
        (
            name(n),
            format!("{n} {changed} {}", "text ".repeat(n % 100)),
        )
    }));
    files
        .into_iter()
        .map(|(path, text)| (path.parse().expect("a path"), Bytes::from(text)))
        .collect()
}

/// What each writer does, in order.
fn operations(writer: usize, withdrawals: usize) -> Vec<Op> {
    if writer == 0 {
        return (0..LARGE_VERSIONS)
            .map(|n| Op::Publish(bundle(&format!("large {n}"), FILES, n)))
            .collect();
    }
    (0..withdrawals)
        .flat_map(|n| {
            let publish = Op::Publish(bundle(&format!("small {n}"), 1, n));
            let number = u32::try_from(n).expect("a number") + 1;
            // As long as a reason may be.
            let reason = format!("{number} {}", "🙅".repeat(1000));
            [publish, Op::Yank(number, reason)]
        })
        .collect()
}

/// The versions after so many operations.
fn after(operations: &[Op]) -> Versions {
    let mut versions = Versions::new();
    for op in operations {
        match op {
            Op::Publish(files) => {
                let number = u32::try_from(versions.len()).expect("a number") + 1;
                let digests = files.iter().map(|(path, bytes)| (path, Digest::of(bytes)));
                let digest = bundle_digest(digests);
                versions.insert(number, (digest.to_string(), None));
            }
            Op::Yank(number, reason) => {
                versions.get_mut(number).expect("a version").1 = Some(reason.clone());
            }
        }
    }
    versions
}

/// The versions that a registry has.
fn versions(registry: &Registry, id: &SkillId) -> Versions {
    if registry.head(id).is_err() {
        return Versions::new();
    }
    let (mut found, mut token) = (Versions::new(), String::new());
    loop {
        let page = registry.list_versions(id, 100, &token).expect("versions");
        found.extend(page.versions.iter().map(|described| {
            let yank = described.yank.as_ref().map(|yank| yank.reason.clone());
            let digest = described.version.digest.to_string();
            (described.version.number.get(), (digest, yank))
        }));
        match page.next {
            Some(next) => token = next,
            None => return found,
        }
    }
}

fn options() -> Options {
    Options {
        reserve_bytes: 0,
        ..Options::default()
    }
}

fn open(data: &Path) -> Result<(Store, Registry), String> {
    let store = Store::open(data, &options()).map_err(|error| error.to_string())?;
    let registry = Registry::open(store.clone(), Arc::new(SystemClock));
    Ok((store, registry.map_err(|error| error.to_string())?))
}

fn caller() -> Caller {
    Caller::new(Principal::anonymous())
}

/// One line of notes, in one write.
fn note(mut notes: &File, line: &str) {
    notes
        .write_all(format!("{line}\n").as_bytes())
        .expect("a note");
}

async fn write(registry: Registry, notes: Arc<File>, writer: usize, part: std::ops::Range<usize>) {
    let operations = operations(writer, setting("REPERTOIRE_WITHDRAWALS", 60));
    let part = part.start * operations.len() / 2..part.end * operations.len() / 2;
    for at in part {
        match &operations[at] {
            Op::Publish(files) => {
                let bundle = Bundle {
                    id: Some(id(writer)),
                    files: files.clone(),
                    folder: String::new(),
                    strict: false,
                };
                let prepared = registry.prepare(bundle).await.expect("a skill");
                let published = registry.publish(prepared, "", true, &caller()).await;
                published.expect("a version");
            }
            Op::Yank(number, reason) => {
                let number = VersionNumber::new(*number).expect("a number");
                let yanked = registry.yank(&id(writer), number, reason, &caller()).await;
                yanked.expect("a withdrawal");
            }
        }
        note(&notes, &format!("acknowledged {writer} {}", at + 1));
    }
}

/// Writes the store anew, without a content that nothing uses: so it is exchanged.
async fn compact(store: Store, registry: Registry, name: String) {
    let unused = Bytes::from(name.repeat(1000));
    let mut batch = Batch::new();
    batch.content(&Content::pack(Digest::of(&unused), &unused));
    let committed = store.commit(batch).await;
    committed.expect("a content");
    let compact = move || registry.compact(&Stop::never(), |_| ());
    let compacted = tokio::task::spawn_blocking(compact).await.expect("a task");
    assert!(compacted.expect("a compaction").replaced);
}

/// What is recorded. Does nothing but in the child.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_writes() {
    let Some(root) = std::env::var_os(CHILD) else {
        return;
    };
    let root = Path::new(&root);
    let notes = Arc::new(File::create(root.join("notes")).expect("a file"));
    for half in 0..2 {
        let (store, registry) = open(&root.join("data")).expect("a registry");
        let done = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let (registry, notes, done) = (registry.clone(), Arc::clone(&notes), Arc::clone(&done));
            move || {
                while !done.load(Ordering::SeqCst) {
                    for writer in 0..2 {
                        let seen = versions(&registry, &id(writer));
                        let yanked = seen.values().filter(|(_, yank)| yank.is_some()).count();
                        note(&notes, &format!("read {writer} {}", seen.len() + yanked));
                    }
                }
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let part = half..half + 1;
                tokio::spawn(write(registry.clone(), Arc::clone(&notes), writer, part))
            })
            .collect();
        compact(store.clone(), registry.clone(), format!("beside {half}")).await;
        for writer in writers {
            writer.await.expect("a writer");
        }
        compact(store.clone(), registry.clone(), format!("after {half}")).await;
        done.store(true, Ordering::SeqCst);
        reader.join().expect("a reader");
        if half == 0 {
            registry.close().await;
        }
    }
    // As SIGKILL would: nothing is closed.
    std::process::exit(0);
}

/// Records the child. None: strace cannot.
fn record(root: &Path) -> Option<Trace> {
    let file = root.join("trace");
    let ran = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "16777216", "--seccomp-bpf", "-e"])
        .arg(format!("trace={CALLS}"))
        .arg("-o")
        .arg(&file)
        .arg(std::env::current_exe().expect("this program"))
        .args(["power_cut::child_that_writes", "--exact", "--nocapture"])
        .env(CHILD, root)
        .output();
    let failed = match ran {
        Ok(ran) if ran.status.success() => None,
        Ok(ran) => Some(String::from_utf8_lossy(&ran.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = failed {
        testing::skip(&format!(
            "strace is missing (`tests/packages`) or refused: {why}"
        ));
        return None;
    }
    let text = fs::read_to_string(&file).expect("a trace");
    fs::remove_file(&file).expect("a file");
    Some(Trace::read(&text, &root.join("data"), &root.join("notes")))
}

/// How far each writer is known to have come.
#[derive(Debug, Default, Clone, Copy)]
struct Known {
    acknowledged: [usize; 2],
    read: [usize; 2],
}

impl Known {
    fn learn(&mut self, note: &str) {
        let mut words = note.split(' ');
        let (word, writer) = (words.next(), words.next());
        let (writer, count): (usize, usize) = (
            writer.expect("a writer").parse().expect("a number"),
            words.next().expect("a count").parse().expect("a number"),
        );
        let known = match word {
            Some("acknowledged") => &mut self.acknowledged,
            _ => &mut self.read,
        };
        known[writer] = known[writer].max(count);
    }
}

/// Opens what a power cut left; says what is wrong with it.
fn compare(data: &Path, known: &Known, all: &[Vec<Op>; 2]) -> Result<(), String> {
    let (store, registry) = open(data).map_err(|error| format!("refused: {error}"))?;
    for (writer, operations) in all.iter().enumerate() {
        let found = versions(&registry, &id(writer));
        let done = found.len() + found.values().filter(|(_, yank)| yank.is_some()).count();
        let (acknowledged, read) = (known.acknowledged[writer], known.read[writer]);
        if done < acknowledged {
            return Err(format!(
                "writer {writer}: {done} of {acknowledged} acknowledged"
            ));
        }
        if done < read {
            return Err(format!("writer {writer}: {done}, but {read} were read"));
        }
        if done > acknowledged + 1 || found != after(&operations[..done]) {
            return Err(format!(
                "writer {writer}: another state than after {done} writes"
            ));
        }
    }
    let audit = registry.audit().map_err(|error| error.to_string())?;
    let verified = store.verify(|_| {});
    match audit.damage.iter().chain(&verified.damage).next() {
        Some(damage) => Err(format!("damaged: {damage}")),
        None => Ok(()),
    }
}

#[test]
#[ignore = "nightly: it opens hundreds of states of a store"]
fn a_power_cut_takes_nothing_that_was_acknowledged_or_read() {
    let folder = TempDir::new().expect("a folder");
    let root = fs::canonicalize(folder.path()).expect("a path");
    let Some(trace) = record(&root) else { return };
    let withdrawals = setting("REPERTOIRE_WITHDRAWALS", 60);
    let all = [operations(0, withdrawals), operations(1, withdrawals)];
    let data = root.join("data");
    let blobs = fs::read_dir(data.join("store/blobs"))
        .expect("a folder")
        .count();
    assert_eq!(blobs, 0, "sled writes no page to a file");

    let exchanges: Vec<usize> = (1..=trace.events.len())
        .filter(|at| matches!(trace.events[at - 1], Event::Exchange(..)))
        .collect();
    assert_eq!(exchanges.len(), 4, "compactions that took effect");

    let mut dice = Dice::new(setting("REPERTOIRE_SEED", 1) as u64);
    let cuts = setting("REPERTOIRE_POWER_CUTS", 200);
    let mut places: Vec<usize> = (0..cuts)
        .map(|_| dice.index(trace.events.len() + 1))
        .collect();
    // The end, where everything is acknowledged.
    places[0] = trace.events.len();
    // Before each exchange, after it, and after what is done next. Once for each loss.
    for at in exchanges {
        for place in [at - 1, at, at + 2, at + 8] {
            places.extend([place.min(trace.events.len()); 4]);
        }
    }
    let cuts = places.len();
    places.sort_unstable();
    let (mut disk, mut known, mut at) = (Disk::default(), Known::default(), 0);
    let mut wrong = Vec::new();
    for (n, place) in places.into_iter().enumerate() {
        for event in &trace.events[at..place] {
            disk.happens(event);
            if let Event::Note(note) = event {
                known.learn(note);
            }
        }
        at = place;
        let loss = [Loss::All, Loss::Some, Loss::Some, Loss::None][n % 4];
        let copy = root.join("copy");
        fs::create_dir(&copy).expect("a folder");
        disk.cut(&data, &copy, loss, &mut dice);
        if let Err(why) = compare(&copy, &known, &all) {
            wrong.push(format!(
                "cut at {place} of {}, {loss:?} lost: {why}",
                trace.events.len()
            ));
        }
        fs::remove_dir_all(&copy).expect("a folder");
    }
    println!(
        "{cuts} power cuts over {} events, {} pages dropped, {} writes acknowledged",
        trace.events.len(),
        disk.dropped,
        known.acknowledged.iter().sum::<usize>(),
    );
    assert_eq!(known.acknowledged, [all[0].len(), all[1].len()]);
    assert_eq!(wrong, Vec::<String>::new());
}
