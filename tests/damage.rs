//! The damage matrix: every file of a data directory, damaged in every way.
//!
//! Whatever was done to a file, each command either works whole, or refuses, or
//! says what is damaged: no panic, no hang, never a byte that is not the
//! original's, and nothing is missing unless `repertoire verify` says so.
//!
//! `REPERTOIRE_DAMAGE` (1) multiplies the places at which bytes are damaged.

mod durability;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use durability::client::{Client, Everything, read_everything, read_skill};
use durability::model::{Files, Kept, Op, Skill, State, draft};
use durability::{Dice, Ran, Server, repertoire, run};
use model::{SystemClock, VersionNumber};
use registry::Registry;
use repertoire::contract::v1;
use store::{Options, Store};
use tempfile::TempDir;
use tonic::Code;

/// Within this every command has ended.
const LIMIT: Duration = Duration::from_secs(20);
const SKILLS: usize = 24;
const THREADS: usize = 3;
const PAGE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Damage {
    /// Only so many bytes are left.
    Truncate(usize),
    /// One bit of a byte is another.
    Flip(usize),
    /// 4 KiB are zero.
    Zero(usize),
    /// Bytes are added at the end.
    Append,
    Delete,
    /// The file is as it was some time ago.
    Older,
    /// There is a directory in its place.
    Directory,
}

impl Damage {
    fn sort(self) -> &'static str {
        match self {
            Self::Truncate(_) => "truncate",
            Self::Flip(_) => "flip a bit",
            Self::Zero(_) => "zero 4 KiB",
            Self::Append => "append",
            Self::Delete => "delete",
            Self::Older => "older copy",
            Self::Directory => "directory",
        }
    }

    fn apply(self, file: &Path, older: &Path) {
        let mut bytes = fs::read(file).expect("a file");
        match self {
            Self::Truncate(length) => bytes.truncate(length),
            Self::Flip(at) => bytes[at] ^= 1 << (at % 8),
            Self::Zero(at) => {
                let end = bytes.len().min(at + PAGE);
                bytes[at..end].fill(0);
            }
            Self::Append => bytes.extend_from_slice(&Dice::new(7).bytes(1000)),
            Self::Older => bytes = fs::read(older).expect("a file"),
            Self::Delete | Self::Directory => {
                fs::remove_file(file).expect("a file");
                if self == Self::Directory {
                    fs::create_dir(file).expect("a folder");
                }
                return;
            }
        }
        fs::write(file, bytes).expect("a file");
    }
}

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

/// What the commands made of a case.
#[derive(Debug, Default)]
struct Outcome {
    /// `verify` found the directory whole.
    verified: bool,
    /// All that was read is all there was.
    complete: bool,
    /// The server came up.
    served: bool,
    /// Versions that `salvage` saved, and whether that is all there was.
    saved: Option<(u64, bool)>,
    said: String,
    wrong: Vec<String>,
}

impl Outcome {
    fn sort(&self) -> &'static str {
        match (self.verified, self.complete, self.served) {
            (true, true, _) => "whole",
            (true, false, _) => "LOST IN SILENCE",
            (false, _, false) => "refused",
            (false, true, true) => "reported, all read",
            (false, false, true) => "reported, some lost",
        }
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
            files.insert("assets/noise.bin".to_owned(), dice.bytes(size).into());
            version.digest = durability::model::digest(&files);
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

/// The lengths and places at which a file is damaged.
fn damages(length: usize, file: &Path, dice: &mut Dice) -> Vec<Damage> {
    let is_database = file.ends_with("db");
    if file.starts_with("search") {
        // It is derived: nothing that happens to it touches what is stored.
        let at = dice.index(length.max(1));
        let mut damages = vec![Damage::Truncate(length / 2), Damage::Delete];
        damages.extend((length > 0).then_some(Damage::Flip(at)));
        return damages;
    }
    let more = std::env::var("REPERTOIRE_DAMAGE").map_or(1, |text| text.parse().expect("a number"));
    let mut damages = vec![Damage::Append, Damage::Delete, Damage::Directory];
    damages.extend([0, length / 2, length.saturating_sub(1)].map(Damage::Truncate));
    if length == 0 {
        return damages;
    }
    let (flips, zeros) = if is_database {
        (8 * more, 6 * more)
    } else {
        (4 * more, 1)
    };
    // Spread over the file, so that every part of it is hit.
    for (count, damage) in [
        (flips, Damage::Flip as fn(usize) -> Damage),
        (zeros, Damage::Zero),
    ] {
        damages.extend((0..count).map(|n| damage(length * n / count + dice.index(length / count))));
    }
    if is_database {
        damages.extend([length * 9 / 10, length * 99 / 100, length / 4].map(Damage::Truncate));
    }
    damages
}

fn clear(ran: &Ran, what: &str, outcome: &mut Outcome) {
    if ran.status.is_none() {
        outcome.wrong.push(format!("{what} hangs"));
    }
    if ran.stderr.contains("panicked") || ran.stdout.contains("panicked") {
        outcome.wrong.push(format!("{what} panics: {}", ran.stderr));
    }
    let refused =
        ran.code() == Some(1) && (!ran.stderr.trim().is_empty() || !ran.stdout.trim().is_empty());
    if ran.code() != Some(0) && !refused {
        outcome.wrong.push(format!(
            "{what} ends with {:?} and says nothing",
            ran.status
        ));
    }
}

fn verify(data: &Path, everything: &Everything, outcome: &mut Outcome) {
    let ran = run(repertoire(&["verify", "--json"], data), LIMIT);
    clear(&ran, "verify", outcome);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    outcome.verified = ran.code() == Some(0) && found["whole"] == true;
    let there: Vec<&State> = everything.skills.values().flatten().collect();
    let versions: usize = there.iter().map(|state| state.versions.len()).sum();
    if outcome.verified && (found["skills"] != there.len() || found["versions"] != versions) {
        outcome.complete = false;
        outcome.said = format!("verify is content with {}", ran.stdout);
    }
    if !outcome.verified {
        outcome.said = if ran.stderr.is_empty() {
            found["damage"].to_string()
        } else {
            ran.stderr
        };
    }
}

fn list(data: &Path, everything: &Everything, outcome: &mut Outcome) {
    let ran = run(repertoire(&["list", "--json"], data), LIMIT);
    clear(&ran, "list", outcome);
    if ran.code() != Some(0) {
        return;
    }
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let ids = found["skills"]
        .as_array()
        .map(|skills| skills.iter().filter_map(|skill| skill["id"].as_str()));
    let ids: Vec<&str> = ids.into_iter().flatten().collect();
    let active = |state: &Option<State>| state.as_ref().is_some_and(|state| state.active != 0);
    let expected: Vec<&str> = everything
        .skills
        .iter()
        .filter(|(_, state)| active(state))
        .map(|(id, _)| id.as_str())
        .collect();
    if ids != expected {
        outcome.complete = false;
    }
}

/// Reads every byte of every skill of a directory, without a server.
fn saved_skills(data: &Path) -> Result<BTreeMap<String, State>, String> {
    let options = Options {
        reserve_bytes: 0,
        ..Options::default()
    };
    let store = Store::open(data, &options).map_err(|error| error.to_string())?;
    let registry =
        Registry::open(store, Arc::new(SystemClock)).map_err(|error| error.to_string())?;
    let mut found = BTreeMap::new();
    for head in registry.catalog().by_location() {
        let mut state = State {
            active: head.active.map_or(0, VersionNumber::get),
            ..State::default()
        };
        let mut token = String::new();
        loop {
            let page = registry.list_versions(&head.id, 100, &token);
            let page = page.map_err(|error| format!("{}: {error}", head.id))?;
            for described in &page.versions {
                let version = &described.version;
                let mut files = Files::new();
                for file in &version.files {
                    let content = registry.content(file);
                    let content =
                        content.map_err(|error| format!("{} {}: {error}", head.id, file.path))?;
                    files.insert(file.path.to_string(), content);
                }
                let kept = Kept {
                    semantic: version.semantic.to_string(),
                    digest: version.digest.to_string(),
                    summary: version.change_summary.clone(),
                    yanked: described.yank.as_ref().map(|yank| yank.reason.clone()),
                    files: Arc::new(files),
                };
                state.versions.insert(version.number.get(), kept);
            }
            match page.next {
                Some(next) => token = next,
                None => break,
            }
        }
        found.insert(head.id.to_string(), state);
    }
    Ok(found)
}

/// Compares a skill as it was read with what it was.
fn compare(id: &str, was: Option<&State>, found: Option<&State>, outcome: &mut Outcome) {
    if found == was {
        return;
    }
    outcome.complete = false;
    // What is shown must be what it was, even where something lacks.
    let known = was.into_iter().flat_map(|state| &state.versions);
    let known: BTreeMap<_, _> = known.map(|(number, kept)| (number, &kept.files)).collect();
    for (number, kept) in found.iter().flat_map(|state| &state.versions) {
        if known.get(number).is_some_and(|files| **files != kept.files) {
            outcome
                .wrong
                .push(format!("version {number} of '{id}' has other bytes"));
        }
    }
}

/// Saves what is whole of a directory that is refused, and reads every byte of it.
async fn salvage(data: &Path, everything: &Everything, serves: bool, outcome: &mut Outcome) {
    let saved = data.with_file_name("saved");
    let ran = run(
        repertoire(
            &["salvage", saved.to_str().expect("a name"), "--json"],
            data,
        ),
        LIMIT,
    );
    clear(&ran, "salvage", outcome);
    if ran.code() != Some(0) {
        outcome
            .wrong
            .push(format!("nothing is saved: {}", ran.stderr));
        return;
    }
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let mut after = Outcome {
        complete: true,
        ..Outcome::default()
    };
    let ran = run(repertoire(&["verify", "--json"], &saved), LIMIT);
    if ran.code() != Some(0) {
        after.wrong.push(format!(
            "what is saved is not whole: {} {}",
            ran.stdout, ran.stderr
        ));
    }
    match saved_skills(&saved) {
        Ok(mut found) => {
            for (id, state) in &everything.skills {
                compare(id, state.as_ref(), found.remove(id).as_ref(), &mut after);
            }
        }
        Err(error) => after
            .wrong
            .push(format!("what is saved cannot be read: {error}")),
    }
    if serves {
        serve(&saved, everything, false, &mut after).await;
        assert!(after.served || !after.wrong.is_empty(), "it says why not");
    }
    let lost = said["lost"].as_array().is_none_or(|lost| !lost.is_empty());
    if !after.complete && said["whole"] == true && !lost {
        after
            .wrong
            .push(format!("salvage loses in silence: {}", after.said));
    }
    outcome.wrong.append(&mut after.wrong);
    outcome.saved = Some((said["versions"].as_u64().unwrap_or(0), after.complete));
}

/// Searches until a skill is found that is there; it has a name of its own.
async fn found(client: &Client, everything: &Everything) -> Result<(), String> {
    let is_found = |(id, state): &(&String, &Option<State>)| {
        id.starts_with("local/") && state.as_ref().is_some_and(|state| state.active != 0)
    };
    let (id, _) = everything.skills.iter().find(is_found).expect("a skill");
    let request = || v1::SearchRequest {
        query: id.rsplit('/').next().unwrap_or_default().to_owned(),
        ..Default::default()
    };
    let until = Instant::now() + LIMIT;
    loop {
        let answer = client.lookup.clone().search(request()).await;
        let said = match answer {
            Ok(answer) => {
                let results = answer.into_inner().results;
                if results.iter().any(|skill| skill.id == *id) {
                    return Ok(());
                }
                format!("'{id}' is not among {} results", results.len())
            }
            Err(status) if status.code() == Code::Unavailable => status.message().to_owned(),
            Err(status) => return Err(format!("{:?} {}", status.code(), status.message())),
        };
        if Instant::now() > until {
            return Err(said);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Serves the directory and reads every byte of it.
async fn serve(data: &Path, everything: &Everything, searches: bool, outcome: &mut Outcome) {
    let mut server = Server::spawn(data);
    let Some(url) = server.listens(LIMIT) else {
        let (status, stderr) = server.ended(Duration::from_millis(500));
        let ran = Ran {
            status,
            stdout: String::new(),
            stderr,
        };
        return clear(&ran, "serve", outcome);
    };
    outcome.served = true;
    let client = Client::connect(&url).await.expect("a client");
    for (id, state) in &everything.skills {
        match read_skill(&client, id).await {
            Ok(found) => compare(id, state.as_ref(), found.as_ref(), outcome),
            Err(error) => {
                outcome.complete = false;
                outcome.said = error;
            }
        }
    }
    if searches && let Err(error) = found(&client, everything).await {
        outcome.wrong.push(format!("the search: {error}"));
    }
    let stderr = server.kill();
    if stderr.contains("panicked") {
        outcome.wrong.push(format!("the server panics: {stderr}"));
    }
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
