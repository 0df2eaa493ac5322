//! Sessions are stored as they are, whatever happened to them.

use proptest::prelude::*;
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use super::*;
use crate::pages::MAX_ORPHANED_SESSIONS;
use store::{Options, Packed};
use testing::Hands;

struct World {
    folder: TempDir,
    clock: Arc<Hands>,
    sessions: Sessions,
}

const MAX: usize = 300;

impl World {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let clock = Hands::new();
        Self::over(folder, clock)
    }

    fn over(folder: TempDir, clock: Arc<Hands>) -> Self {
        let data = folder.path().join("data");
        let store = Store::open(&data, &testing::options()).expect("a store");
        let bounds = Bounds {
            idle: SignedDuration::from_hours(1),
            sessions: MAX,
            bytes: 1 << 30,
            share_percent: 50,
        };
        let sessions = Sessions::open(store, Arc::clone(&clock) as _, bounds).expect("sessions");
        Self {
            folder,
            clock,
            sessions,
        }
    }

    /// Starts again over what is stored, as after a kill.
    async fn killed(self) -> Self {
        let Self {
            folder,
            clock,
            sessions,
        } = self;
        sessions.store.close().await;
        drop(sessions);
        Self::over(folder, clock)
    }

    fn pass(&self, seconds: i64) {
        self.clock.pass(SignedDuration::from_secs(seconds));
    }

    /// Loads a skill into a session; without an id into a new one.
    fn load(&self, id: &str, skill: usize) -> Result<String, Error> {
        self.load_as(&Principal::local(), id, skill)
    }

    fn load_as(&self, caller: &Principal, id: &str, skill: usize) -> Result<String, Error> {
        let skill: SkillId = format!("a/b/skill-{skill}").parse().expect("an id");
        let changed = self.sessions.change(id, caller, |session| {
            let known = session.skills.iter_mut().find(|one| one.skill == skill);
            match known {
                Some(one) => one.count += 1,
                None => session.skills.push(Loaded {
                    digest: Digest::of(b"a version"),
                    number: VersionNumber::FIRST,
                    is_local: false,
                    short_name: String::new(),
                    count: 1,
                    loaded_at: Timestamp::UNIX_EPOCH,
                    context: Map::new(),
                    skill,
                }),
            }
            Ok(())
        });
        changed.map(|(id, _, ())| id)
    }

    fn all(&self) -> FxHashMap<Digest, Arc<Session>> {
        self.sessions.with(|state| {
            let all = state.sessions.iter();
            all.map(|(key, entry)| (*key, Arc::clone(&entry.session)))
                .collect()
        })
    }

    /// Of some sessions those that have not ended.
    fn alive(&self, all: &FxHashMap<Digest, Arc<Session>>) -> FxHashMap<Digest, Arc<Session>> {
        let limit = self.clock.now() - SignedDuration::from_hours(1);
        let alive = all.iter().filter(|(_, session)| session.used_at > limit);
        alive.map(|(key, one)| (*key, Arc::clone(one))).collect()
    }

    /// What is kept of sessions and pages fits together.
    fn check(&self) {
        self.sessions.with(|state| {
            let weights = state.sessions.values().map(|entry| entry.session.weight());
            assert_eq!(state.by_use.bytes, weights.sum::<usize>());
            assert_eq!(state.by_use.order.len(), state.sessions.len());
            let owned = state
                .sessions
                .values()
                .filter(|one| one.session.owner.is_some());
            let of_owners = state.of_owners.values().map(|owned| owned.order.len());
            assert_eq!(
                of_owners.sum::<usize>(),
                owned.count(),
                "no owner is left without any"
            );
            for (key, entry) in &state.sessions {
                assert!(entry.unwritten || entry.page.is_some(), "it is nowhere");
                let waits = state.unwritten.contains(key);
                assert_eq!(entry.unwritten, waits, "what differs waits to be written");
            }
        });
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Of one of three callers, one of whom nobody asked who it is.
    New(usize),
    Load {
        session: usize,
        skill: usize,
    },
    Pass(i64),
    Write,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Step::New),
        6 => (any::<usize>(), 0..5_usize).prop_map(|(session, skill)| Step::Load { session, skill }),
        1 => (0..2_000_i64).prop_map(Step::Pass),
        2 => Just(Step::Write),
        1 => Just(Step::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_written_is_there_after_a_kill(steps in prop::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            let callers = [Principal::local(), Principal::token("a"), Principal::token("b")];
            let mut ids: Vec<(&Principal, String)> = Vec::new();
            let mut written = FxHashMap::default();
            for step in steps {
                match step {
                    Step::New(caller) => {
                        let caller = &callers[caller];
                        ids.push((caller, world.load_as(caller, "", 0).expect("a session")));
                    }
                    Step::Load { session, skill } if !ids.is_empty() => {
                        let (caller, id) = &ids[session % ids.len()];
                        // One that has ended is refused, which is as it should be.
                        let _ended = world.load_as(caller, id, skill);
                    }
                    Step::Load { .. } => {}
                    Step::Pass(seconds) => world.pass(seconds),
                    Step::Write => {
                        world.sessions.write().await.expect("written");
                        written = world.all();
                    }
                    Step::Kill => {
                        world = world.killed().await;
                        written = world.alive(&written);
                        prop_assert_eq!(&world.all(), &written);
                    }
                }
                world.check();
            }
            world.sessions.write().await.expect("written");
            written = world.all();
            let world = world.killed().await;
            prop_assert_eq!(world.all(), written);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn pages_hold_no_more_than_what_there_is_needs() {
    let world = World::new();
    let mut ids = Vec::new();
    for _ in 0..MAX {
        ids.push(world.load("", 0).expect("a session"));
    }
    // Each time one in seven changes, so that all pages hold on to others.
    for round in 0..200 {
        for id in ids.iter().skip(round % 7).step_by(7) {
            world.load(id, round % 5).expect("loaded");
        }
        world.sessions.write().await.expect("written");
    }
    let stored = || {
        let pages = world.sessions.store.scan(&PAGES, b"");
        let pages = pages.map(|page| page.expect("a page").1.value);
        pages.map(|page| page.unpack::<OnPage>().expect("sessions").len())
    };
    let sessions = stored().sum::<usize>();
    // What was written last comes on top.
    let max = 2 * MAX + MAX_ORPHANED_SESSIONS + MAX;
    assert!(sessions <= max, "{sessions} sessions on pages");
    let before = world.all();
    let world = world.killed().await;
    assert_eq!(world.all(), before);
    world.pass(3_601);
    world.sessions.write().await.expect("written");
    // All of them have ended, and the pages are removed some at a time.
    for _ in 0..max / PAGES_PER_WRITE {
        world.sessions.write().await.expect("written");
    }
    assert_eq!(world.sessions.len(), 0);
    assert_eq!(
        world.sessions.store.scan(&PAGES, b"").count(),
        0,
        "nothing is left behind"
    );
}

#[tokio::test]
async fn sessions_that_are_gone_do_not_add_up_while_nothing_is_written() {
    let world = World::new();
    for _ in 0..10 * MAX {
        world.load("", 0).expect("a session");
    }
    world.check();
    world.sessions.with(|state| {
        assert!(state.unwritten.len() <= 2 * MAX + MAX_UNWRITTEN_SESSIONS);
    });
    world.sessions.write().await.expect("written");
    let before = world.all();
    let world = world.killed().await;
    assert_eq!(world.all(), before);
    assert_eq!(world.sessions.len(), MAX);
}

#[tokio::test]
async fn a_damaged_page_is_told_by_its_number() {
    let world = World::new();
    world.load("", 0).expect("a session");
    world.sessions.write().await.expect("written");
    let damaged = serde_json::from_str::<Packed>(r#""KLUv/QBYAQAA""#).expect("a page");
    let mut batch = Batch::new();
    batch.put(&PAGES, &1, &damaged);
    world.sessions.store.commit(batch).await.expect("written");
    let store = world.sessions.store.clone();
    let clock = Arc::clone(&world.clock) as _;
    let opened = Sessions::open(store, clock, world.sessions.bounds);
    let error = opened.expect_err("it is damaged").to_string();
    assert!(error.contains("`sessions 1`"), "{error}");
}

#[tokio::test]
async fn more_sessions_than_fit_are_cut_when_they_are_read() {
    let world = World::new();
    for _ in 0..2 * MAX {
        world.pass(1);
        world.load("", 0).expect("a session");
        if world.sessions.len().is_multiple_of(100) {
            world.sessions.write().await.expect("written");
        }
    }
    world.sessions.write().await.expect("written");
    let before = world.all();
    let world = world.killed().await;
    assert_eq!(world.sessions.len(), MAX);
    assert_eq!(world.all(), before, "the last ones are there");
}

#[tokio::test]
async fn a_caller_who_begins_many_ends_its_own_and_nobody_elses() {
    let world = World::new();
    let (quiet, greedy) = (Principal::token("quiet"), Principal::token("greedy"));
    let of_nobody = world.load("", 0).expect("a session");
    let kept = world.load_as(&quiet, "", 0).expect("a session");
    let mut ids = Vec::new();
    for _ in 0..2 * MAX {
        world.pass(1);
        ids.push(world.load_as(&greedy, "", 0).expect("a session"));
    }
    world.check();
    let is_alive = |caller: &Principal, id: &String| world.sessions.get(id, caller).is_ok();
    let of_greedy = ids.iter().filter(|id| is_alive(&greedy, id)).count();
    assert_eq!((world.sessions.len(), of_greedy), (MAX / 2 + 2, MAX / 2));
    assert!(is_alive(&quiet, &kept) && is_alive(&Principal::local(), &of_nobody));
    assert!(
        ids[ids.len() - MAX / 2..]
            .iter()
            .all(|id| is_alive(&greedy, id))
    );
    // The same holds of what is read when the server starts.
    world.sessions.write().await.expect("written");
    let world = world.killed().await;
    world.load_as(&greedy, "", 0).expect("a session");
    assert_eq!(world.sessions.len(), MAX / 2 + 2);
    world.check();
}

#[test]
fn what_sessions_hold_counts_towards_the_share_of_their_caller() {
    let bounds = Bounds {
        idle: SignedDuration::from_hours(1),
        sessions: MAX,
        bytes: 4 * MAX_CONTEXT_BYTES,
        share_percent: 50,
    };
    let store = Store::in_memory(&Options::default());
    let sessions = Sessions::open(store, Hands::new(), bounds).expect("sessions");
    let (quiet, greedy) = (Principal::token("quiet"), Principal::token("greedy"));
    let begin = |caller: &Principal, bytes: usize| {
        let changed = sessions.change("", caller, |session| {
            session.skills.push(Loaded {
                skill: "a/b/c".parse().expect("an id"),
                number: VersionNumber::FIRST,
                digest: Digest::of(b"a version"),
                is_local: false,
                short_name: String::new(),
                count: 1,
                loaded_at: Timestamp::UNIX_EPOCH,
                context: Map::from_iter([("text".to_owned(), "x".repeat(bytes).into())]),
            });
            Ok(())
        });
        changed.expect("a session").0
    };
    let kept = begin(&quiet, 10);
    for _ in 0..10 {
        begin(&greedy, MAX_CONTEXT_BYTES / 2);
    }
    sessions.get(&kept, &quiet).expect("it is there");
    assert_eq!(
        sessions.len(),
        1 + 3,
        "half of the bytes, with what else a session takes"
    );
}

#[tokio::test]
async fn what_another_writer_stored_is_not_written_over() {
    let store = Store::in_memory(&Options::default());
    let clock: Arc<dyn Clock> = Hands::new();
    let bounds = Bounds {
        idle: SignedDuration::from_hours(1),
        sessions: MAX,
        bytes: 1 << 30,
        share_percent: 50,
    };
    let open = || Sessions::open(store.clone(), Arc::clone(&clock), bounds).expect("sessions");
    let new = |sessions: &Sessions| {
        let (id, ..) = sessions
            .change("", &Principal::local(), |_| Ok(()))
            .expect("a session");
        id
    };
    let (one, other) = (open(), open());
    let mut ids = Vec::new();
    for sessions in [&one, &other, &other, &one] {
        for _ in 0..PAGES_PER_WRITE {
            ids.push(new(sessions));
            sessions.write().await.expect("written");
        }
    }
    let all = open();
    assert_eq!(all.len(), ids.len());
    for id in ids {
        all.get(&id, &Principal::local()).expect("it is there");
    }
}
