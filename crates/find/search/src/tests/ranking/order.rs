//! The order of what is found.

use super::*;
use registry::UsageKind;

#[tokio::test]
async fn a_name_that_looks_like_another_stays_behind_it_until_somebody_loads_it() {
    let world = World::new()
        .with(
            "github/acme/payments",
            "name: payments\ndescription: Takes money.",
            "x",
        )
        .await
        .with(
            "github/zz-squatter/payments",
            "name: p\u{430}yments\ndescription: Takes money from zebras.",
            "payments payments payments",
        )
        .await;
    let ids = |found: &SearchResults| -> Vec<String> {
        found
            .hits
            .iter()
            .map(|hit| hit.head.id.author().to_owned())
            .collect()
    };
    for text in ["payments", "p\u{430}yments", "money from zebras"] {
        assert_eq!(
            ids(&world.found(text).await),
            ["acme", "zz-squatter"],
            "{text}"
        );
    }
    let head = world
        .registry
        .head(&id("github/zz-squatter/payments"))
        .expect("a head");
    let first = VersionNumber::FIRST;
    world
        .registry
        .count(&head, first, UsageKind::Load, "session");
    let found = world.found("money from zebras").await;
    assert_eq!(
        ids(&found)[0],
        "zz-squatter",
        "what is used has earned its place"
    );
}

#[tokio::test]
async fn skills_that_look_like_another_are_in_one_order_however_they_came_into_the_index() {
    let front = "name: tests\ndescription: Writes unit tests.";
    let mut orders = Vec::new();
    for later in [["b", "c", "d"], ["d", "b", "c"], ["c", "d", "b"]] {
        let mut world = World::new().with("a/b/first", front, "Body.").await;
        for name in later {
            world = world.with(&format!("a/b/{name}"), front, "Body.").await;
            world.index.complete().await;
        }
        orders.push(world.slugs("tests").await);
    }
    assert_eq!(orders[0][0], "first");
    assert_eq!(orders[1], orders[0]);
    assert_eq!(orders[2], orders[0]);
}

#[tokio::test]
async fn pages_are_cut_out_of_one_order_however_little_of_it_is_kept() {
    let mut world = World::new();
    for at in 0..150 {
        let body = format!("{} and more.", "A zebra. ".repeat(1 + at * 7 % 30));
        let front = format!("name: animal-{at}\ndescription: Feeds animals.");
        world = world
            .with(&format!("github/zoo/animal-{at}"), &front, &body)
            .await;
    }
    // Its body says least of zebras; a name that looks like its own is the best.
    world = world
        .with(
            "github/zoo/stripes",
            "name: stripes\ndescription: Keeps animals.",
            "Once a zebra.",
        )
        .await;
    let squatter = "name: str\u{456}pes\ndescription: All of a zebra, zebra, zebra.";
    world = world.with("github/zz/stripes", squatter, "zebra").await;
    let page = async |offset, facets| {
        let query = SearchQuery {
            text: "zebra".to_owned(),
            offset,
            limit: 10,
            facets,
            words_only: true,
            ..SearchQuery::default()
        };
        let found = world.ask(query).await;
        let ids = found.hits.iter().map(|hit| hit.head.id.to_string());
        (found.total, ids.collect::<Vec<_>>())
    };
    let mut all = Vec::new();
    for offset in (0..152).step_by(10) {
        let kept = page(offset, false).await;
        // With facets everything is kept.
        assert_eq!(kept, page(offset, true).await, "from {offset}");
        assert_eq!(kept.0, 152);
        all.extend(kept.1);
    }
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (152, 152));
    let place = |id: &str| all.iter().position(|one| one == id).expect("found");
    let original = place("github/zoo/stripes");
    assert_eq!(place("github/zz/stripes"), original + 1);
    assert!(original > 100, "{original}");
}

#[tokio::test]
async fn an_order_that_no_skill_has_is_told_to_be_none() {
    let world = World::new()
        .with("a/b/tool", "name: tool\ndescription: A tool.", "x")
        .await;
    let told = async |by: SortBy| {
        let query = SearchQuery {
            text: "tool".to_owned(),
            sort: Sort {
                by,
                ascending: false,
            },
            ..SearchQuery::default()
        };
        let found = world.ask(query).await;
        (found.total, found.suggestions)
    };
    for by in [SortBy::Relevance, SortBy::Updated, SortBy::Score] {
        assert_eq!(told(by).await, (1, Vec::new()));
    }
    let sentence = "The order is by relevance: search does not know the stars of skills, so leave out `sort` or sort by `score` or `updated`";
    assert_eq!(told(SortBy::Stars).await, (1, vec![sentence.to_owned()]));
}

#[tokio::test]
async fn the_better_skill_comes_first_where_quality_is_asked_for() {
    let good = format!(
        "# Tool\n\n## Steps\n\n```\nrun\n```\n\nFor example: {}\n",
        "say what it does. ".repeat(30)
    );
    let world = World::new()
        .with("a/b/poor-tool", "name: poor-tool\ndescription: A tool.", "x")
        .await
        .with(
            "a/b/good-tool",
            "name: good-tool\ndescription: A tool. Use when a tool is what is needed for it.\nlicense: MIT",
            &good,
        )
        .await;
    let found = async |ascending: bool| {
        let sort = Sort {
            by: SortBy::Score,
            ascending,
        };
        let query = SearchQuery {
            text: "tool".to_owned(),
            sort,
            limit: 10,
            ..SearchQuery::default()
        };
        let hits = world.ask(query).await.hits.into_iter();
        hits.map(|hit| hit.head.id.slug().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(false).await, ["good-tool", "poor-tool"]);
    assert_eq!(found(true).await, ["poor-tool", "good-tool"]);
}
