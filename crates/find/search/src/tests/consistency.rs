//! Whatever happened to skills and to the index, it is the one that would be made
//! from nothing; and so is what somebody sees of it who does not see all.

use proptest::prelude::*;

use super::*;
use registry::{Sees, View};

/// Sees every other skill.
#[derive(Debug)]
struct EveryOther;

impl Sees for EveryOther {
    fn sees(&self, id: &SkillId) -> bool {
        id.slug().ends_with(['0', '2', '4', '6'])
    }
}

/// What is seen of an index. It moves on with each search.
fn seen(world: &World, index: &SearchIndex) -> SearchIndex {
    let view = Arc::new(View::new(Arc::new(EveryOther)));
    index.with_view(&world.registry.with_view(view))
}

#[derive(Debug, Clone)]
enum Step {
    Publish(usize, usize),
    Yank(usize),
    Delete(usize),
    Restart,
    /// The index is stopped in the middle, and misses what comes next.
    Sleep,
    /// The index goes on with the files that were there at some moment.
    Kill(usize),
    /// All queries are asked.
    Ask,
}

const TEXTS: [&str; 6] = [
    "name: deploy\ndescription: Deploys services to kubernetes.",
    "name: review\ndescription: Reviews pull requests for quality.",
    "name: tests\ndescription: Writes unit tests with pytest.",
    "name: deploy tests\ndescription: Tests deployments before a release.",
    "name: slides\ndescription: Makes slides for a talk.\ntags: [talk, design]",
    "name: sql\ndescription: Queries databases in SQL.\ntechnologies: [postgres]",
];
const QUERIES: [&str; 7] = [
    "deploy",
    "review code",
    "tests",
    "postgres query",
    "kuberntes",
    "presentation for a conference",
    "release",
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..8_usize, 0..TEXTS.len()).prop_map(|(skill, text)| Step::Publish(skill, text)),
        2 => (0..8_usize).prop_map(Step::Yank),
        2 => (0..8_usize).prop_map(Step::Delete),
        1 => Just(Step::Restart),
        1 => Just(Step::Sleep),
        2 => (0..48_usize).prop_map(Step::Kill),
        3 => Just(Step::Ask),
    ]
}

/// All that an index answers.
fn answers(index: &SearchIndex) -> Vec<String> {
    QUERIES
        .iter()
        .map(|text| {
            let query = SearchQuery {
                text: (*text).to_owned(),
                limit: 50,
                facets: true,
                ..SearchQuery::default()
            };
            let found = index.search(&query, &Stop::never()).expect("an answer");
            let hits = found.hits.iter();
            let hits: Vec<_> = hits
                .map(|hit| (hit.head.id.to_string(), &hit.why))
                .collect();
            format!("{:?}", (hits, found.total, &found.analysis, &found.facets))
        })
        .collect()
}

async fn history(steps: Vec<Step>) {
    let mut world = World::new();
    let mut view = seen(&world, &world.index);
    for step in steps {
        let skill = |n: usize| id(&format!("a/b/skill-{n}"));
        match step {
            Step::Publish(n, text) => {
                let text = format!("---\n{}\n---\nBody {n}.\n", TEXTS[text]);
                let path = skill(n).to_string();
                publish(&world.registry, &path, &[("SKILL.md", text.as_bytes())]).await;
            }
            Step::Yank(n) => {
                let head = world.registry.head(&skill(n));
                if let Some(active) = head.ok().and_then(|head| head.active) {
                    let yanked = world.registry.yank(&skill(n), active, "", &caller()).await;
                    yanked.expect("yanked");
                }
            }
            Step::Delete(n) => {
                if world.registry.head(&skill(n)).is_ok() {
                    let deleted = world.registry.delete(&skill(n), &caller()).await;
                    deleted.expect("deleted");
                }
            }
            Step::Restart => {
                world = world.restarted().await;
                view = seen(&world, &world.index);
            }
            Step::Sleep => {
                world.stop.cancel();
            }
            Step::Kill(looks) => {
                world = world.killed(looks).await;
                view = seen(&world, &world.index);
            }
            Step::Ask => {
                if !world.stop.is_cancelled() {
                    world.index.complete().await;
                }
                // What a search keeps for the next one must be right for that, too.
                answers(&world.index);
                answers(&view);
            }
        }
    }
    if world.stop.is_cancelled() {
        world = world.restarted().await;
        view = seen(&world, &world.index);
    }
    world.index.complete().await;
    let other = TempDir::new().expect("a folder");
    let fresh = index(&world.registry, other.path());
    let stop = CancellationToken::new();
    let following = tokio::spawn({
        let (fresh, stop) = (fresh.clone(), stop.clone());
        async move { fresh.follow(stop).await }
    });
    fresh.complete().await;
    assert_eq!(answers(&world.index), answers(&fresh));
    assert_eq!(answers(&view), answers(&seen(&world, &fresh)));
    let live = world.registry.catalog().live();
    assert_eq!(fresh.progress().indexed, live);
    assert_eq!(world.index.progress().indexed, live);
    for stop in [stop, world.stop] {
        stop.cancel();
    }
    following.await.expect("it stops");
    world.following.await.expect("it stops");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn after_any_history_the_index_equals_one_made_from_nothing(
        steps in prop::collection::vec(step(), 1..24),
    ) {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(history(steps));
    }
}
