//! What those find who do not see all skills: the same as if the others were not there.

use super::*;
use registry::{Sees, View};

/// Sees what is not in `secret/`.
#[derive(Debug)]
struct NoSecrets;

impl Sees for NoSecrets {
    fn sees(&self, id: &SkillId) -> bool {
        id.source() != "secret"
    }
}

/// Skills that everybody sees.
const PUBLIC: [(&str, &str, &str); 4] = [
    (
        "a/b/deploy",
        "name: deploy\ndescription: Deploys to a cluster.\ntags: [cloud]",
        "Rolls out.",
    ),
    (
        "a/b/preact",
        "name: preact\ndescription: Small pages.\ncategory: web",
        "Pages.",
    ),
    (
        "a/c/tables",
        "name: tables\ndescription: Reads tables of databases.",
        "Reads deployments.",
    ),
    (
        "z/z/notes",
        "name: notes\ndescription: Keeps notes.",
        "Notes of zebras.",
    ),
];

/// Skills that not everybody sees: each has words that no other has, or is like another one.
const SECRET: [(&str, &str, &str); 4] = [
    (
        "secret/x/quokka",
        "name: quokka\ndescription: Deploys quokkas to a cluster.\ntags: [cloud, marsupial]",
        "Rolls out.",
    ),
    (
        "secret/x/react",
        "name: react\ndescription: Small pages.\ncategory: web",
        "Pages.",
    ),
    (
        "secret/y/zebroid",
        "name: zebroid\ndescription: Zebra tables.",
        "Zebras, zebras.",
    ),
    (
        "secret/y/deployer",
        "name: deployer\ndescription: Deploys deployments to clusters.",
        "Deploy.",
    ),
];

async fn world(skills: &[(&str, &str, &str)]) -> World {
    let mut world = World::new();
    for (id, front_matter, body) in skills {
        world = world.with(id, front_matter, body).await;
    }
    world.index.complete().await;
    world
}

fn seen(world: &World) -> SearchIndex {
    let view = Arc::new(View::new(Arc::new(NoSecrets)));
    let registry = world.registry.with_view(view);
    world.index.with_view(&registry)
}

fn answer(index: &SearchIndex, query: &SearchQuery) -> String {
    let found = index.search(query, &Stop::never()).expect("an answer");
    let SearchResults {
        hits,
        total,
        has_more,
        analysis,
        facets,
        suggestions,
    } = found;
    let hits: Vec<_> = hits
        .into_iter()
        .map(|hit| (hit.head.id.to_string(), hit.why))
        .collect();
    format!("{hits:#?} {total} {has_more} {analysis:#?} {facets:#?} {suggestions:#?}")
}

/// Words of one part and of the other, misspelled ones, beginnings, and words written apart and
/// together; names that look alike; a filter and all that is counted.
const QUERIES: [&str; 16] = [
    "deploy",
    "deploys to a cluster",
    "quokka",
    "quoka",
    "quok",
    "zebroid",
    "zebra",
    "zebras table",
    "marsupial cloud",
    "preact",
    "react",
    "deployer",
    "zeb roid",
    "notes",
    "secret/x/quokka",
    "small web pages",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_seen_changes_nothing_of_any_answer() {
    let mixed: Vec<_> = PUBLIC
        .iter()
        .zip(&SECRET)
        .flat_map(|(a, b)| [*b, *a])
        .collect();
    let (with, without) = (world(&mixed).await, world(&PUBLIC).await);
    let view = seen(&with);
    for text in QUERIES {
        for words_only in [false, true] {
            let query = SearchQuery {
                text: text.to_owned(),
                limit: 3,
                facets: true,
                words_only,
                ..SearchQuery::default()
            };
            assert_eq!(
                answer(&view, &query),
                answer(&without.index, &query),
                "{text}, words only: {words_only}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_an_index_follows_it() {
    let world = world(&PUBLIC[..1]).await;
    let view = seen(&world);
    let ask = |text: &str| SearchQuery {
        text: text.to_owned(),
        limit: 9,
        ..SearchQuery::default()
    };
    let ids = |found: SearchResults| slugs(&found);
    let find = |text: &str| ids(view.search(&ask(text), &Stop::never()).expect("an answer"));
    assert_eq!(find("cluster"), ["deploy"]);
    let world = world
        .with(SECRET[0].0, SECRET[0].1, SECRET[0].2)
        .await
        .with(
            "a/b/clusters",
            "name: clusters\ndescription: Lists a cluster.",
            "x",
        )
        .await;
    world.index.complete().await;
    let mut found = find("cluster");
    found.sort();
    assert_eq!(found, ["clusters", "deploy"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_not_seen_is_similar_to_nothing() {
    let text = "Deploys services to a cluster, step by step, and rolls back what fails.";
    let front = |name: &str| format!("name: {name}\ndescription: {text}");
    let (one, two) = (front("one"), front("two"));
    let skills = [
        ("a/b/one", one.as_str(), text),
        ("secret/x/two", two.as_str(), text),
    ];
    let world = world(&skills).await;
    let head = |registry: &Registry| registry.head(&id("a/b/one")).expect("a head");
    let ids = |index: &SearchIndex| {
        let found = index.similar(&head(&world.registry), 0.5, 9, &Stop::never());
        let found = found.expect("an answer");
        (found.total, found.skills.len())
    };
    assert_eq!((ids(&world.index), ids(&seen(&world))), ((1, 1), (0, 0)));
}
