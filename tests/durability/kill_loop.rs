//! The kill loop: a server under a mixed load is killed again and again, and
//! what a fresh one then shows is compared, byte by byte, with what was asked for
//! and what was acknowledged.
//!
//! Each writer owns its skills and knows what each must look like after each of
//! its writes (`harness::model`). A write without an answer may be there or not;
//! which of the two shows the log, and then the skill must be so in full. All
//! writers also publish to one common skill, where the order is the server's.
//!
//! A quarter of the kills fall into a start, or into `compact`, `backup`, `restore` or
//! `salvage` of the stopped directory. Every other server that is killed under its load compacts
//! meanwhile, again and again.
//!
//! `REPERTOIRE_KILLS` is how often to kill (5, and 100 at night), `REPERTOIRE_SEED` what to
//! begin with (1). The release build does a thousand kills in a quarter of an hour:
//! `REPERTOIRE_KILLS=1000 cargo test --release --test durability kill_loop -- --nocapture`.

mod at_rest;
mod compacting;
mod comparison;
mod tally;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use compacting::Compacting;
use comparison::{brief, happened};
use tally::{Sort, Tally};
use tempfile::TempDir;
use testing::at_night;
use writer::{Common, Owned, Writer};

use crate::harness::client::{Client, Everything, Gone, read_everything};
use crate::harness::model::{Op, Skill};
use crate::harness::{Dice, START_LIMIT, Server, repertoire, run};

const WRITERS: usize = 6;

/// Kills before the next one begins with an empty directory.
const KILLS_A_DIRECTORY: usize = 12;

/// A skill to which all writers publish.
const COMMON: &str = "local/global/common";
const VERIFY_LIMIT: Duration = Duration::from_secs(60);

/// One data directory and all who write to it.
struct World {
    folder: TempDir,
    dice: Dice,
    writers: Vec<Writer>,
    common: Common,
    /// The log as it was read last; it never changes but at its end.
    before: Everything,
    /// About how long a server takes to start.
    start: Duration,
    /// About how long `compact`, `backup`, `restore` and `salvage` take.
    commands: [Duration; 4],
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            folder: TempDir::new().expect("a folder"),
            writers: (0..WRITERS)
                .map(|name| Writer::new(name, dice.next()))
                .collect(),
            dice,
            common: Common::default(),
            before: Everything::default(),
            start: Duration::from_millis(150),
            commands: [Duration::from_millis(400); 4],
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts a server that must come up.
    fn start(&mut self, tally: &mut Tally) -> Option<(Server, String)> {
        let mut server = Server::spawn(&self.data());
        let Some(url) = server.listens(START_LIMIT) else {
            tally.find(
                Sort::Lost,
                format!("the server does not start any more: {}", server.kill()),
            );
            return None;
        };
        self.start = server.started.elapsed();
        Some((server, url))
    }

    /// Reads everything back and compares it with what it must be.
    async fn compare(&mut self, url: &str, tally: &mut Tally) {
        let read = match Client::connect(url).await {
            Ok(client) => read_everything(&client)
                .await
                .map(|everything| (client, everything)),
            Err(error) => Err(error.to_string()),
        };
        let (client, everything) = match read {
            Ok(read) => read,
            Err(error) => return tally.find(Sort::Half, error),
        };
        let known = &self.before;
        if !known.log.is_empty() && known.log != everything.log {
            tally.find(Sort::Wrong, "the log has another identity");
        }
        if !everything.events.starts_with(&known.events) {
            tally.find(Sort::Lost, "the log is not what it was");
        }
        tally.bytes_read += bytes(&everything);
        for writer in &mut self.writers {
            if let Err(Gone(status)) = writer.compare(&client, &everything, tally).await {
                tally.find(
                    Sort::Wrong,
                    format!("a server that nobody killed went away: {status:?}"),
                );
            }
        }
        self.compare_common(&everything, tally);
        self.compare_others(&everything, tally);
        self.before = everything;
    }

    /// The common skill: each version once, numbers without a hole, each answer
    /// true; what was not answered is there or not, and from now on stays so.
    fn compare_common(&self, everything: &Everything, tally: &mut Tally) {
        let mut wanted = self.common.lock().expect("a lock");
        let mut skill = Skill::new(COMMON.to_owned());
        for event in happened(everything, COMMON) {
            let Some(wanted) = wanted.get_mut(&event.digest) else {
                tally.find(Sort::Wrong, format!("nobody asked for {event:?}"));
                continue;
            };
            let answer = skill.apply(&Op::Publish(wanted.draft.clone()));
            if skill.log.last() != Some(&event) {
                tally.find(
                    Sort::Wrong,
                    format!("{event:?} instead of {answer:?} in the common skill"),
                );
            }
            if wanted.answer.get_or_insert_with(|| answer.clone()) != &answer {
                tally.find(
                    Sort::Wrong,
                    format!("{:?} was answered, {answer:?} is there", wanted.answer),
                );
            }
        }
        let there = |digest: &str| skill.log.iter().any(|event| event.digest == digest);
        for (digest, wanted) in wanted.iter().filter(|(digest, _)| !there(digest)) {
            if wanted.answer.is_some() {
                tally.find(
                    Sort::Lost,
                    format!("the common skill lacks {digest}: {:?}", wanted.answer),
                );
            }
        }
        wanted.retain(|digest, _| there(digest));
        let shown = everything.skills.get(COMMON).cloned().flatten();
        if shown != skill.state {
            let (shown, state) = (brief(shown.as_ref()), brief(skill.state.as_ref()));
            tally.find(
                Sort::Half,
                format!("the common skill is {shown}, while its log makes it {state}"),
            );
        }
    }

    /// Nothing else is there but what comes with the server, and that is as the
    /// log says.
    fn compare_others(&self, everything: &Everything, tally: &mut Tally) {
        let ours = |id: &str| id == COMMON || self.owned().any(|owned| owned.skill.id == *id);
        for (id, state) in everything.skills.iter().filter(|(id, _)| !ours(id)) {
            let log = happened(everything, id);
            let versions = state.iter().flat_map(|state| &state.versions);
            let versions: Vec<_> = versions
                .map(|(number, kept)| (*number, kept.digest.clone()))
                .collect();
            let told: Vec<_> = log
                .iter()
                .map(|event| (event.number, event.digest.clone()))
                .collect();
            if !id.starts_with("builtin/") || versions != told || versions.len() != 1 {
                tally.find(
                    Sort::Wrong,
                    format!("'{id}' is {}, its log {log:?}", brief(state.as_ref())),
                );
            }
        }
    }

    fn owned(&self) -> impl Iterator<Item = &Owned> {
        self.writers.iter().flat_map(|writer| &writer.owned)
    }

    /// Lets the writers write and kills the server under them.
    async fn load_and_kill(&mut self, mut server: Server, url: &str, tally: &mut Tally) {
        let delay = Duration::from_micros(5_000 + self.dice.below(795_000));
        let working: Vec<_> = self
            .writers
            .drain(..)
            .map(|writer| tokio::spawn(writer.work(url.to_owned(), Arc::clone(&self.common))))
            .collect();
        let compacting = self.dice.percent(50).then(|| Compacting::of(&self.data()));
        // The kill is to come at any moment; nothing waits for this.
        tokio::time::sleep(delay).await;
        let killed = Instant::now();
        if let Some(compacting) = &compacting {
            compacting.killed.store(true, Ordering::SeqCst);
        }
        let stderr = tokio::task::spawn_blocking(move || server.kill())
            .await
            .expect("a kill");
        tally.kills += 1;
        no_panic(tally, &stderr);
        if let Some(compacting) = compacting {
            compacting.end(tally);
        }
        for writer in working {
            let mut writer = writer.await.expect("a writer");
            if let Some((_, error)) = writer.ended.take().filter(|(ended, _)| *ended < killed) {
                tally.find(
                    Sort::Wrong,
                    format!("the server went away before it was killed: {error}"),
                );
            }
            tally.found.append(&mut writer.found);
            self.writers.push(writer);
        }
    }

    /// `repertoire verify` on the stopped directory.
    fn verify(&self, versions: Option<(usize, usize)>, tally: &mut Tally) {
        let ran = run(
            repertoire(&["verify", "--json"], &self.data()),
            VERIFY_LIMIT,
        );
        let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        if ran.code() != Some(0) || found["whole"] != true {
            tally.find(Sort::Half, format!("verify: {} {}", ran.stdout, ran.stderr));
        }
        if let Some((skills, versions)) = versions
            && (found["skills"] != skills || found["versions"] != versions)
        {
            tally.find(
                Sort::Wrong,
                format!(
                    "{} instead of {skills} skills and {versions} versions",
                    ran.stdout
                ),
            );
        }
        no_panic(tally, &ran.stderr);
    }

    /// So many kills, then a clean stop.
    async fn live(&mut self, kills: usize, tally: &mut Tally) {
        for kill in 0..kills {
            if self.dice.percent(if kill == 0 { 50 } else { 25 }) {
                self.kill_at_rest(tally);
                if !tally.found.is_empty() {
                    return;
                }
                continue;
            }
            let Some((server, url)) = self.start(tally) else {
                return;
            };
            self.compare(&url, tally).await;
            if !tally.found.is_empty() {
                return;
            }
            self.load_and_kill(server, &url, tally).await;
            if !tally.found.is_empty() {
                return;
            }
            if self.dice.percent(15) {
                self.verify(None, tally);
            }
        }
        let Some((mut server, url)) = self.start(tally) else {
            return;
        };
        self.compare(&url, tally).await;
        if !tally.found.is_empty() {
            return;
        }
        server.terminate();
        let (status, stderr) = server.ended(Duration::from_secs(10));
        if status.and_then(|status| status.code()) != Some(0) {
            tally.find(
                Sort::Wrong,
                format!("a stop ended with {status:?}: {stderr}"),
            );
        }
        // What was repeated after the reading is known to the writers alone.
        let owned: Vec<_> = self
            .owned()
            .filter_map(|owned| owned.skill.state.as_ref())
            .collect();
        let others: Vec<_> = self
            .before
            .skills
            .iter()
            .filter(|(id, _)| self.owned().all(|owned| owned.skill.id != **id))
            .filter_map(|(_, state)| state.as_ref())
            .collect();
        let versions = owned
            .iter()
            .chain(&others)
            .map(|state| state.versions.len())
            .sum();
        self.verify(Some((owned.len() + others.len(), versions)), tally);
    }
}

fn bytes(everything: &Everything) -> u64 {
    let states = everything.skills.values().flatten();
    let files = states
        .flat_map(|state| state.versions.values())
        .flat_map(|kept| kept.files.values());
    files.map(|bytes| bytes.len() as u64).sum()
}

fn no_panic(tally: &mut Tally, stderr: &str) {
    if stderr.contains("panicked") {
        tally.find(Sort::Wrong, format!("the server panicked: {stderr}"));
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Keeps the directory of a failure, for whoever looks into it.
fn keep(world: World, tally: &mut Tally) {
    if !tally.found.is_empty() {
        let kept: &Path = &world.folder.keep();
        eprintln!("the data directory is kept below {}", kept.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_server_acknowledged_is_there_whole_and_nothing_else_is() {
    let kills =
        usize::try_from(setting("REPERTOIRE_KILLS", at_night(5, 100))).expect("a number of kills");
    let mut dice = Dice::new(setting("REPERTOIRE_SEED", 1));
    let mut tally = Tally::default();
    let began = Instant::now();
    while tally.kills < kills && tally.found.is_empty() {
        let mut world = World::new(dice.next());
        world
            .live(KILLS_A_DIRECTORY.min(kills - tally.kills), &mut tally)
            .await;
        eprintln!("kill loop, {} s: {tally}", began.elapsed().as_secs());
        keep(world, &mut tally);
    }
    println!("kill loop: {tally}");
    assert!(tally.found.is_empty(), "{:#?}", tally.found);
}
