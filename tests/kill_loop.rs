//! The kill loop: a server under a mixed load is killed again and again, and
//! what a fresh one then shows is compared, byte by byte, with what was asked for
//! and what was acknowledged.
//!
//! Each writer owns its skills and knows what each must look like after each of
//! its writes (`durability::model`). A write without an answer may be there or not;
//! which of the two shows the log, and then the skill must be so in full. All
//! writers also publish to one common skill, where the order is the server's.
//!
//! A quarter of the kills fall into a start, or into `compact`, `backup`, `restore` or
//! `salvage` of the stopped directory. Every other server that is killed under its load compacts
//! meanwhile, again and again.
//!
//! `REPERTOIRE_KILLS` is how often to kill (25), `REPERTOIRE_SEED` what to begin
//! with (1). The release build does a thousand kills in a quarter of an hour:
//! `REPERTOIRE_KILLS=1000 cargo test --release --test kill_loop -- --nocapture`.

mod durability;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use durability::client::{Client, Everything, Gone, publication, published, read_everything};
use durability::model::{Answer, Draft, Happened, Op, Skill, State, draft};
use durability::{Dice, START_LIMIT, Server, repertoire, run};
use repertoire::contract::v1;
use semver::Version;
use tempfile::TempDir;

const WRITERS: usize = 6;
/// Skills that a writer owns, at most.
const SKILLS: usize = 10;
/// Kills before the next one begins with an empty directory.
const KILLS_A_DIRECTORY: usize = 12;
/// The largest file of a skill.
const MOST_BYTES: usize = 200_000;
/// A skill to which all writers publish.
const COMMON: &str = "local/global/common";
const VERIFY_LIMIT: Duration = Duration::from_secs(60);

/// What sort of failure was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// An acknowledged write is not there.
    Lost,
    /// A part of a write is there and a part is not.
    Half,
    /// Something is there that nobody asked for, or an answer is not true.
    Wrong,
}

struct Found(Sort, String);

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:.2000}", self.0, self.1)
    }
}

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    starting: usize,
    /// During `compact`, `backup`, `restore` and `salvage`.
    commands: [usize; 4],
    /// Compactions of a server that served, and how many came to their end.
    served: usize,
    served_whole: usize,
    acknowledged: u64,
    refused: u64,
    repeated: u64,
    unanswered: u64,
    unanswered_there: u64,
    bytes_read: u64,
    found: Vec<Found>,
}

impl Tally {
    fn find(&mut self, sort: Sort, what: impl fmt::Display) {
        self.found.push(Found(sort, what.to_string()));
    }

    fn count(&self, sort: Sort) -> usize {
        self.found.iter().filter(|found| found.0 == sort).count()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills ({} while starting, {} compacting, {} backing up, {} restoring, {} salvaging), {} compactions while serving, of which {} were done, \
             {} acknowledged writes, {} lost, {} half, {} wrong; \
             {} refusals and {} repeated answers as expected, {} writes without an answer, of which {} are there, \
             {} MiB read back",
            self.kills,
            self.starting,
            self.commands[0],
            self.commands[1],
            self.commands[2],
            self.commands[3],
            self.served,
            self.served_whole,
            self.acknowledged,
            self.count(Sort::Lost),
            self.count(Sort::Half),
            self.count(Sort::Wrong),
            self.refused,
            self.repeated,
            self.unanswered,
            self.unanswered_there,
            self.bytes_read >> 20,
        )
    }
}

/// A write that was sent and, so far, not answered.
#[derive(Debug)]
struct Pending {
    op: Op,
    key: String,
}

/// A skill of one writer.
#[derive(Debug)]
struct Owned {
    skill: Skill,
    pending: Vec<Pending>,
}

/// A write with an idempotency key, and its answer.
#[derive(Debug, Clone)]
struct Named {
    at: usize,
    op: Op,
    key: String,
    answer: Answer,
}

/// A version that somebody wants to publish to the common skill.
#[derive(Debug)]
struct Wanted {
    draft: Draft,
    answer: Option<Answer>,
}

type Common = Arc<Mutex<BTreeMap<String, Wanted>>>;

#[derive(Debug)]
struct Writer {
    name: usize,
    dice: Dice,
    owned: Vec<Owned>,
    named: Vec<Named>,
    keys: u64,
    acknowledged: u64,
    refused: u64,
    repeated: u64,
    found: Vec<Found>,
    ended: Option<(Instant, String)>,
}

impl Writer {
    fn new(name: usize, seed: u64) -> Self {
        Self {
            name,
            dice: Dice::new(seed),
            owned: Vec::new(),
            named: Vec::new(),
            keys: 0,
            acknowledged: 0,
            refused: 0,
            repeated: 0,
            found: Vec::new(),
            ended: None,
        }
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("writer-{}-{}", self.name, self.keys)
    }

    /// Writes until the server goes away.
    async fn work(mut self, url: String, common: Common) -> Self {
        let done = match Client::connect(&url).await {
            Ok(client) => self
                .write_on(&client, &common)
                .await
                .map_err(|Gone(status)| format!("{status:?}")),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = done {
            self.ended = Some((Instant::now(), error));
        }
        self
    }

    async fn write_on(&mut self, client: &Client, common: &Common) -> Result<(), Gone> {
        // More than a server does before it is killed.
        for _ in 0..1_000_000 {
            match self.dice.below(100) {
                0..8 => self.stream(client).await?,
                8..18 => self.publish_common(client, common).await?,
                _ => self.one(client).await?,
            }
            if !self.found.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// One of the writer's skills, now and then a new one.
    fn pick(&mut self) -> usize {
        let owned = self.owned.len();
        if owned == 0 || (owned < SKILLS && self.dice.percent(15)) {
            let id = format!("local/global/writer-{}-skill-{owned}", self.name);
            self.owned.push(Owned {
                skill: Skill::new(id),
                pending: Vec::new(),
            });
            return owned;
        }
        self.dice.index(owned)
    }

    fn draft(&mut self, at: usize) -> Draft {
        let declared = self
            .dice
            .percent(10)
            .then(|| Version::new(1 + self.dice.below(5), self.dice.below(3), 0));
        draft(
            &mut self.dice,
            &self.owned[at].skill.id,
            MOST_BYTES,
            declared,
        )
    }

    fn op(&mut self, at: usize) -> Op {
        let sort = self.dice.below(100);
        let any = self.dice.next();
        let state = self.owned[at].skill.state.as_ref();
        let version = state
            .and_then(|state| {
                state
                    .versions
                    .keys()
                    .nth(usize::try_from(any).unwrap_or(0) % state.versions.len())
            })
            // A version that is not there is refused.
            .map_or(1, |number| {
                if any.is_multiple_of(29) {
                    number + 1000
                } else {
                    *number
                }
            });
        match (state, sort) {
            (Some(state), 40..45) => {
                let kept = state
                    .versions
                    .values()
                    .next()
                    .expect("a skill has a version");
                let files = Arc::clone(&kept.files);
                let digest = kept.digest.clone();
                Op::Publish(Draft {
                    files,
                    digest,
                    declared: None,
                    activate: true,
                    summary: "once more".to_owned(),
                })
            }
            (None, 0..90) | (Some(_), 0..40) => Op::Publish(self.draft(at)),
            (_, 45..65) => Op::Activate(version),
            (_, 65..80) => Op::Yank(version, format!("reason {any}")),
            (_, 80..95) => Op::Unyank(version),
            _ => Op::Delete,
        }
    }

    async fn one(&mut self, client: &Client) -> Result<(), Gone> {
        let at = self.pick();
        let op = self.op(at);
        let key = if self.dice.percent(35) {
            self.key()
        } else {
            String::new()
        };
        let id = self.owned[at].skill.id.clone();
        self.owned[at].pending.push(Pending {
            op: op.clone(),
            key: key.clone(),
        });
        // Sometimes the caller goes away at once and asks again under its key.
        if !key.is_empty() && self.dice.percent(30) {
            let patience = Duration::from_micros(self.dice.below(6_000));
            let _first = tokio::time::timeout(patience, client.write(&id, &op, &key)).await;
        }
        let answer = client.write(&id, &op, &key).await?;
        self.owned[at].pending.pop();
        self.answered(at, op, key, answer);
        Ok(())
    }

    /// Takes an answer into the model.
    fn answered(&mut self, at: usize, op: Op, key: String, answer: Answer) {
        let owned = &mut self.owned[at];
        let expected = owned.skill.apply(&op);
        if answer != expected {
            let id = &owned.skill.id;
            self.found.push(Found(
                Sort::Wrong,
                format!("'{id}' answered {answer:?} instead of {expected:?} to {op:?}"),
            ));
            return;
        }
        if matches!(answer, Answer::Refused(_)) {
            self.refused += 1;
            return;
        }
        self.acknowledged += 1;
        if !key.is_empty() {
            self.named.push(Named {
                at,
                op,
                key,
                answer,
            });
        }
    }

    async fn publish_common(&mut self, client: &Client, common: &Common) -> Result<(), Gone> {
        let draft = draft(&mut self.dice, COMMON, 20_000, None);
        let digest = draft.digest.clone();
        let wanted = Wanted {
            draft: draft.clone(),
            answer: None,
        };
        common
            .lock()
            .expect("a lock")
            .insert(digest.clone(), wanted);
        let answer = client.write(COMMON, &Op::Publish(draft), "").await?;
        self.acknowledged += 1;
        common
            .lock()
            .expect("a lock")
            .get_mut(&digest)
            .expect("it is wanted")
            .answer = Some(answer);
        Ok(())
    }

    /// Publishes several versions over one stream.
    async fn stream(&mut self, client: &Client) -> Result<(), Gone> {
        let count = 2 + self.dice.index(14);
        let mut items = Vec::with_capacity(count);
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            let at = self.pick();
            let draft = self.draft(at);
            let key = if self.dice.percent(35) {
                self.key()
            } else {
                String::new()
            };
            let owned = &mut self.owned[at];
            let skill = Some(publication(&owned.skill.id, &draft, &key));
            requests.push(v1::PublishSkillsRequest { skill });
            owned.pending.push(Pending {
                op: Op::Publish(draft),
                key,
            });
            items.push(at);
        }
        let answers = client
            .registry
            .clone()
            .publish_skills(tokio_stream::iter(requests))
            .await;
        let mut answers = answers.map_err(Gone)?.into_inner();
        for (index, at) in (0..).zip(items) {
            let Some(answer) = answers.message().await.map_err(Gone)? else {
                return Err(Gone(tonic::Status::unknown(
                    "a stream of answers ended early",
                )));
            };
            if answer.index != index {
                self.found.push(Found(
                    Sort::Wrong,
                    format!("item {index} was answered as {}", answer.index),
                ));
            }
            let answer = match answer.result.expect("an answer has a result") {
                v1::publish_skills_response::Result::Published(answer) => published(answer),
                v1::publish_skills_response::Result::Refused(refusal) => {
                    Answer::Refused(refusal.code)
                }
            };
            let Pending { op, key } = self.owned[at].pending.remove(0);
            self.answered(at, op, key, answer);
        }
        Ok(())
    }

    /// Compares the writer's skills with what a fresh server shows, and finds out
    /// what became of the writes without an answer; those under a key are asked
    /// again.
    async fn compare(
        &mut self,
        client: &Client,
        everything: &Everything,
        tally: &mut Tally,
    ) -> Result<(), Gone> {
        let mut again = Vec::new();
        for (at, owned) in self.owned.iter_mut().enumerate() {
            let Owned { skill, pending } = owned;
            let seen = happened(everything, &skill.id);
            let known = skill.log.len().min(seen.len());
            if seen.len() < skill.log.len() {
                tally.find(
                    Sort::Lost,
                    format!("'{}': the log lacks {:?}", skill.id, &skill.log[known..]),
                );
                continue;
            }
            if seen[..known] != skill.log {
                tally.find(
                    Sort::Wrong,
                    format!("'{}': the log says {seen:?}, not {:?}", skill.id, skill.log),
                );
                continue;
            }
            for Pending { op, key } in pending.drain(..) {
                tally.unanswered += 1;
                let mut after = skill.clone();
                let answer = after.apply(&op);
                let there = match after.log.get(skill.log.len()) {
                    None => true,
                    Some(event) => seen.get(skill.log.len()) == Some(event),
                };
                if there {
                    tally.unanswered_there += u64::from(after.log.len() > skill.log.len());
                    *skill = after;
                }
                if !key.is_empty() {
                    again.push((at, op, key, there.then_some(answer)));
                }
            }
            if seen.len() > skill.log.len() {
                let more = &seen[skill.log.len()..];
                tally.find(
                    Sort::Wrong,
                    format!("'{}': nobody asked for {more:?}", skill.id),
                );
            }
            let shown = everything.skills.get(&skill.id).cloned().flatten();
            if shown != skill.state {
                let (shown, state) = (brief(shown.as_ref()), brief(skill.state.as_ref()));
                tally.find(
                    Sort::Half,
                    format!("'{}' is {shown}, while its log makes it {state}", skill.id),
                );
            }
        }
        for (at, op, key, answer) in again {
            if !tally.found.is_empty() || self.dice.percent(50) {
                continue;
            }
            let id = self.owned[at].skill.id.clone();
            let given = client.write(&id, &op, &key).await?;
            match answer {
                None => self.answered(at, op, key, given),
                Some(answer) => self.expect_again(tally, &key, &given, &answer),
            }
        }
        for _ in 0..4.min(self.named.len()) {
            let Named {
                at,
                op,
                key,
                answer,
            } = self.named[self.dice.index(self.named.len())].clone();
            let skill = &self.owned[at].skill;
            let number = match &answer {
                Answer::Published { number, .. }
                | Answer::Activated { number, .. }
                | Answer::Withdrawn { number, .. } => *number,
                Answer::Deleted { .. } | Answer::Refused(_) => 0,
            };
            // The answer to a write shows the version; one that was deleted since
            // has none to show.
            let shows = skill
                .state
                .as_ref()
                .is_some_and(|state| state.versions.contains_key(&number));
            if (number == 0 || shows) && tally.found.is_empty() {
                let given = client.write(&skill.id.clone(), &op, &key).await?;
                self.expect_again(tally, &key, &given, &answer);
            }
        }
        tally.acknowledged += std::mem::take(&mut self.acknowledged);
        tally.refused += std::mem::take(&mut self.refused);
        tally.repeated += std::mem::take(&mut self.repeated);
        tally.found.append(&mut self.found);
        Ok(())
    }

    fn expect_again(&mut self, tally: &mut Tally, key: &str, given: &Answer, before: &Answer) {
        self.repeated += 1;
        if given != before && !matches!(before, Answer::Refused(_)) {
            tally.find(
                Sort::Wrong,
                format!("the key '{key}' answered {before:?}, and then {given:?}"),
            );
        }
    }
}

fn happened(everything: &Everything, id: &str) -> Vec<Happened> {
    everything
        .events
        .iter()
        .filter(|event| event.skill_id == id)
        .map(Into::into)
        .collect()
}

/// A state without its bytes.
fn brief(state: Option<&State>) -> String {
    let Some(state) = state else {
        return "not there".to_owned();
    };
    let versions = state.versions.iter().map(|(number, kept)| {
        let yanked = if kept.yanked.is_some() {
            " withdrawn"
        } else {
            ""
        };
        format!(
            "{number} = {} {}{yanked}",
            kept.semantic,
            &kept.digest[..14]
        )
    });
    format!(
        "[{}], active {}",
        versions.collect::<Vec<_>>().join(", "),
        state.active
    )
}

/// Compacts the directory of a server that serves, again and again.
struct Compacting {
    /// The server is killed: a command may fail.
    killed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(usize, usize, Vec<String>)>,
}

impl Compacting {
    fn of(data: &Path) -> Self {
        let data = data.to_owned();
        let (killed, stop) = (Arc::default(), Arc::default());
        let (failing, stopped) = (Arc::clone(&killed), Arc::<AtomicBool>::clone(&stop));
        let thread = std::thread::spawn(move || {
            let (mut begun, mut done, mut found) = (0, 0, Vec::new());
            while !stopped.load(Ordering::SeqCst) {
                begun += 1;
                let mut child = repertoire(&["compact"], &data)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("the program starts");
                let ended = loop {
                    let ended = child.try_wait().expect("a child");
                    if ended.is_some() || stopped.load(Ordering::SeqCst) {
                        break ended;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                // Without its server it would go on with the directory.
                let _ended = child.kill();
                let ran = child.wait_with_output().expect("the child ends");
                match ended {
                    Some(status) if status.success() => done += 1,
                    _ if AtomicBool::load(&failing, Ordering::SeqCst) => {}
                    _ => found.push(String::from_utf8_lossy(&ran.stderr).into_owned()),
                }
            }
            (begun, done, found)
        });
        Self {
            killed,
            stop,
            thread,
        }
    }

    /// After the server is gone.
    fn end(self, tally: &mut Tally) {
        self.stop.store(true, Ordering::SeqCst);
        let (begun, done, found) = self.thread.join().expect("a thread");
        tally.served += begun;
        tally.served_whole += done;
        for stderr in found {
            tally.find(Sort::Wrong, format!("a compaction ended with {stderr}"));
        }
    }
}

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

    /// Kills a server while it starts.
    fn kill_starting(&mut self, tally: &mut Tally) {
        let mut server = Server::spawn(&self.data());
        let window = u64::try_from(self.start.as_micros()).expect("a short time");
        std::thread::sleep(Duration::from_micros(self.dice.below(window * 5 / 4)));
        tally.kills += 1;
        tally.starting += 1;
        no_panic(tally, &server.kill());
    }

    /// Kills something that works on the stopped directory.
    fn kill_at_rest(&mut self, tally: &mut Tally) {
        let there = self.data().join("FORMAT").exists();
        match self.dice.below(12) {
            4..6 if there => self.kill_compacting(tally),
            6..8 if there => self.kill_backing_up(tally),
            8..10 if there => self.kill_restoring(tally),
            10..12 if there => self.kill_salvaging(tally),
            _ => self.kill_starting(tally),
        }
    }

    /// Runs a command and kills it at some moment; it may have ended before, and then
    /// ends well.
    fn kill_command(&mut self, which: usize, mut command: Command, tally: &mut Tally) {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let began = Instant::now();
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let window = u64::try_from(self.commands[which].as_micros()).expect("a short time");
        let until = Duration::from_micros(self.dice.below(window * 5 / 4));
        let ended = loop {
            let ended = child.try_wait().expect("a child");
            if ended.is_some() || began.elapsed() >= until {
                break ended;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        match ended {
            Some(_) => self.commands[which] = began.elapsed(),
            // The next one is given more time, until one ends by itself.
            None => self.commands[which] = self.commands[which].max(until * 9 / 8),
        }
        let _ended = child.kill();
        let ran = child.wait_with_output().expect("the child ends");
        let stderr = String::from_utf8_lossy(&ran.stderr);
        if ended.is_some_and(|status| !status.success()) {
            tally.find(Sort::Wrong, format!("{command:?} ended with {stderr}"));
        }
        no_panic(tally, &stderr);
        tally.kills += 1;
        tally.commands[which] += 1;
    }

    fn kill_compacting(&mut self, tally: &mut Tally) {
        self.kill_command(0, repertoire(&["compact"], &self.data()), tally);
    }

    /// A backup is whole or not there.
    fn kill_backing_up(&mut self, tally: &mut Tally) {
        let (file, copy) = (
            self.folder.path().join("backup"),
            self.folder.path().join("copy"),
        );
        let _none = fs::remove_file(&file);
        let name = file.to_str().expect("a name");
        self.kill_command(1, repertoire(&["backup", name], &self.data()), tally);
        if file.exists() {
            let ran = run(repertoire(&["restore", name], &copy), VERIFY_LIMIT);
            if ran.code() != Some(0) {
                tally.find(
                    Sort::Half,
                    format!("a backup is there and not whole: {}", ran.stderr),
                );
            }
            fs::remove_dir_all(&copy).expect("a folder");
        }
    }

    /// What a killed restore leaves is whole, or says that it was cut short and can be
    /// restored into again.
    fn kill_restoring(&mut self, tally: &mut Tally) {
        let (file, copy) = (
            self.folder.path().join("backup"),
            self.folder.path().join("copy"),
        );
        let name = file.to_str().expect("a name");
        let ran = run(
            repertoire(&["backup", "--force", name], &self.data()),
            VERIFY_LIMIT,
        );
        if ran.code() != Some(0) {
            return tally.find(Sort::Wrong, format!("backup: {}", ran.stderr));
        }
        self.kill_command(2, repertoire(&["restore", name], &copy), tally);
        let verify = |data: &Path| run(repertoire(&["verify", "--json"], data), VERIFY_LIMIT);
        // Until it has a folder to restore into, nothing is there that could be taken for
        // a directory.
        if copy.join("store.restoring").exists() {
            let ran = verify(&copy);
            if ran.code() != Some(1) || !ran.stderr.contains("was cut short; run it again") {
                tally.find(
                    Sort::Wrong,
                    format!("half a restore: {} {}", ran.stdout, ran.stderr),
                );
            }
        }
        if !copy.join("store").exists() {
            let ran = run(repertoire(&["restore", name], &copy), VERIFY_LIMIT);
            if ran.code() != Some(0) {
                tally.find(Sort::Lost, format!("a second restore: {}", ran.stderr));
            }
        }
        let (ran, expected) = (verify(&copy), verify(&self.data()));
        if ran.code() != Some(0)
            || without_records(&ran.stdout) != without_records(&expected.stdout)
        {
            tally.find(
                Sort::Lost,
                format!(
                    "restored: {} {}, instead of {}",
                    ran.stdout, ran.stderr, expected.stdout
                ),
            );
        }
        fs::remove_dir_all(&copy).expect("a folder");
    }

    /// What a killed salvage of a damaged directory leaves is mended, or says that it was
    /// cut short and can be salvaged into again.
    fn kill_salvaging(&mut self, tally: &mut Tally) {
        let (damaged, saved) = (
            self.folder.path().join("damaged"),
            self.folder.path().join("saved"),
        );
        fs::create_dir_all(damaged.join("store")).expect("a folder");
        for name in ["FORMAT", "store/db"] {
            fs::copy(self.data().join(name), damaged.join(name)).expect("a copy");
        }
        // Some pages, so that versions lack a content and heads a version.
        let file = File::options()
            .write(true)
            .open(damaged.join("store/db"))
            .expect("a file");
        let size = file.metadata().expect("a file").len();
        for _ in 0..8 {
            let at = self.dice.below(size);
            file.write_all_at(&[0x55; 64], at).expect("written");
        }
        let name = saved.to_str().expect("a name");
        let salvage = || repertoire(&["salvage", name], &damaged);
        self.kill_command(3, salvage(), tally);
        let verify = || run(repertoire(&["verify"], &saved), VERIFY_LIMIT);
        if !saved.join("store").exists() {
            if saved.join("store.restoring").exists() {
                let ran = verify();
                if ran.code() != Some(1) || !ran.stderr.contains("was cut short; run it again") {
                    tally.find(
                        Sort::Wrong,
                        format!("half a salvage: {} {}", ran.stdout, ran.stderr),
                    );
                }
            }
            let ran = run(salvage(), VERIFY_LIMIT);
            if ran.code() != Some(0) {
                tally.find(Sort::Lost, format!("a second salvage: {}", ran.stderr));
            }
        }
        let ran = verify();
        if ran.code() != Some(0) {
            tally.find(
                Sort::Half,
                format!("salvaged: {} {}", ran.stdout, ran.stderr),
            );
        }
        fs::remove_dir_all(&saved).expect("a folder");
        fs::remove_dir_all(&damaged).expect("a folder");
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

/// What `verify` found, but for the number of records: each opening may add some of its own.
fn without_records(verified: &str) -> serde_json::Value {
    let mut found: serde_json::Value = serde_json::from_str(verified).unwrap_or_default();
    if let Some(found) = found.as_object_mut() {
        found.remove("records");
    }
    found
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
    let kills = usize::try_from(setting("REPERTOIRE_KILLS", 25)).expect("a number of kills");
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
