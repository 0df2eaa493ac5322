//! The courses that come with the server: each passes its gate, and each solution of the
//! corpus gets the verdict that stands beside it, in whatever order they are graded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::stream::{self, StreamExt as _};
use repertoire_courses::{
    Exercise, Graded, Graders, LearningPath, Solution, Verdict, check_together, read,
};
use sandbox::Sandbox;

use crate::support;

/// Solutions that the corpus has at least for an exercise, and in all.
const FEWEST: usize = 5;
const IN_ALL: usize = 250;
/// How often all of them are graded, each time in another order. Where it is not said, one is
/// graded for each verdict that an exercise can give.
const ROUNDS: &str = "REPERTOIRE_GRADING_ROUNDS";
/// The order of the first round; told where a verdict is wrong.
const SEED: &str = "REPERTOIRE_GRADING_SEED";

fn graders() -> Graders {
    let child = env!("CARGO_BIN_EXE_courses-sandbox-child");
    Graders::new(Sandbox::new(child.into(), Vec::new()))
}

fn paths() -> Vec<Arc<LearningPath>> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folders = support::folders(&top.join("skills/paths"));
    assert!(!folders.is_empty(), "there are no paths");
    let paths = folders.iter().map(|folder| {
        let (path, problems) = read(&support::name(folder), &support::files(folder));
        assert_eq!(problems, Vec::new(), "{}", folder.display());
        Arc::new(path.expect("a path"))
    });
    paths.collect()
}

#[tokio::test]
async fn every_path_passes_its_gate_and_goes_with_the_others() {
    let (paths, graders) = (paths(), graders());
    assert_eq!(check_together(&paths), Vec::new());
    for path in &paths {
        let problems = graders.check(path).await;
        // What the server reads for exercises about its config is tested with the server.
        let problems = problems
            .iter()
            .filter(|problem| !needs_server(path, &problem.file));
        let problems: Vec<_> = problems.collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", path.id);
    }
}

fn needs_server(path: &LearningPath, file: &str) -> bool {
    let exercises = path.exercises.iter();
    let mut exercises = exercises.filter(|exercise| exercise.is_about_configs());
    exercises.any(|exercise| file.contains(&format!("-{}/", exercise.id)))
}

/// Random enough for an order (`splitmix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn shuffle<T>(things: &mut [T], state: &mut u64) {
    for at in (1..things.len()).rev() {
        let other = usize::try_from(next(state) % (at as u64 + 1)).expect("an index");
        things.swap(at, other);
    }
}

struct Expected {
    exercise: Arc<Exercise>,
    name: String,
    solution: Solution,
    verdict: Verdict,
}

fn corpus(paths: &[Arc<LearningPath>]) -> Vec<Expected> {
    let mut corpus = Vec::new();
    for exercise in paths.iter().flat_map(|path| &path.exercises) {
        let known = support::known(exercise);
        let few = known.len() < FEWEST;
        assert!(!few, "{} has {} solutions only", exercise.id, known.len());
        for known in known {
            corpus.push(Expected {
                exercise: Arc::clone(exercise),
                name: format!("{}/{}", exercise.id, known.name),
                solution: known.solution,
                verdict: known.verdict,
            });
        }
    }
    corpus
}

#[tokio::test]
async fn every_solution_gets_its_verdict_in_whatever_order() {
    let (paths, graders) = (paths(), &graders());
    let mut corpus = corpus(&paths);
    assert!(corpus.len() >= IN_ALL, "{} solutions in all", corpus.len());
    // Files of exercises that are gone.
    for id in testing::exercises_with_solutions() {
        let is_known = corpus.iter().any(|known| known.exercise.id == id);
        assert!(is_known, "there is no exercise {id}");
    }
    corpus.retain(|known| !known.exercise.is_about_configs());
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    #[expect(clippy::disallowed_methods, reason = "an order that nobody chose")]
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let rounds = number(ROUNDS).or(testing::at_night(None, Some(3)));
    if rounds.is_none() {
        let mut taken = BTreeSet::new();
        corpus.retain(|known| {
            taken.insert((known.exercise.id.clone(), format!("{:?}", known.verdict)))
        });
    }
    // A child that gets less than a fifth of a processor is ended by the clock.
    let concurrency = std::thread::available_parallelism().map_or(1, usize::from);
    let seed = number(SEED).unwrap_or(now.as_secs());
    let mut state = seed;
    let mut first: BTreeMap<String, Graded> = BTreeMap::new();
    for round in 0..rounds.unwrap_or(1) {
        shuffle(&mut corpus, &mut state);
        let graded = corpus.iter().map(|known| async move {
            let graded = graders.grade(&known.exercise, &known.solution).await;
            (known, graded)
        });
        let mut wrong: Vec<String> = Vec::new();
        let graded = stream::iter(graded)
            .buffer_unordered(concurrency)
            .collect::<Vec<_>>();
        for (known, graded) in graded.await {
            // Not the verdict alone: the same is said each time. But for errors, where it
            // is the machine that says how far it came.
            let before = first.entry(known.name.clone());
            let before = before.or_insert_with(|| graded.clone());
            let is_same = *before == graded || known.verdict == Verdict::Error;
            if graded.verdict != known.verdict || !is_same {
                wrong.push(format!("{}: {graded:?}", known.name));
            }
        }
        assert!(wrong.is_empty(), "{SEED}={seed}, round {round}: {wrong:#?}");
    }
}
