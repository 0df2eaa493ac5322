//! Lists: what else they filter by, where they are made, and what they are bound to.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn skills_whose_files_have_warnings_are_listed() {
    let text = "---\nname: dead\ndescription: x\n---\n[a](a.md)\n";
    let world = some_skills().await;
    let world = world
        .with_files("github/acme/dead", &[("SKILL.md", text.as_bytes())])
        .await;
    let query = ListQuery {
        with_problems: true,
        ..ListQuery::default()
    };
    assert_eq!(world.list(&query, 5), [["dead"]]);
}

#[tokio::test]
async fn a_page_token_serves_its_source_and_its_author_alone() {
    let world = some_skills().await;
    let of = |source: &str, author: &str| ListQuery {
        source: source.to_owned(),
        author: author.to_owned(),
        ..ListQuery::default()
    };
    let acme = of("github", "acme");
    let page = world.lookup.list(&acme, 1, "").expect("a page");
    let token = page.next.expect("more");
    for other in [
        of("github", "acme-labs"),
        of("github", ""),
        of("local", "acme"),
        ListQuery::default(),
    ] {
        let refused = world.lookup.list(&other, 1, &token).map(|_| ());
        let refused = refused.expect_err("another list");
        assert_eq!(code(refused), Code::PageTokenInvalid, "{other:?}");
    }
    // Written otherwise it is the same.
    let page = world.lookup.list(&of("GitHub", "ACME"), 1, &token);
    let page = page.expect("a page");
    assert_eq!((page.heads[0].id.slug(), page.next), ("b", None));
}

#[tokio::test]
async fn a_list_that_may_look_at_many_is_work_of_the_executor() {
    let world = some_skills().await;
    let query = |category: &str, requires: &str| ListQuery {
        category: category.to_owned(),
        requires: requires.to_owned(),
        ..ListQuery::default()
    };
    let listed = async |query: ListQuery| {
        let page = world.lookup.page(query, 2, String::new()).await;
        page.map(|page| page.heads.len())
    };
    assert_eq!(listed(query("data", "")).await.expect("a page"), 2);
    assert_eq!(listed(query("", "a")).await.expect("a page"), 0);
    world.registry.executor().stop(Duration::ZERO).await;
    for many in [query("data", ""), query("", "a")] {
        let refused = listed(many).await.expect_err("it takes on no work");
        assert!(matches!(refused, Error::Work(_)), "{refused}");
    }
    assert_eq!(listed(query("", "")).await.expect("a page"), 2);
}

#[tokio::test]
async fn what_requires_a_skill_is_found_by_its_id() {
    let mut world = some_skills().await;
    for id in ["u/v/x", "u/v/y"] {
        let rule = "compatibility_rules: [{type: requires, skill: github/acme/a}]";
        world = world.with(id, rule).await;
    }
    let dependents = async |id: &str| {
        let found = world.lookup.dependents(&id.parse().expect("an id")).await;
        let found = found.expect("a list").into_iter();
        found.map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(dependents("github/acme/a").await, ["u/v/x", "u/v/y"]);
    assert_eq!(dependents("github/acme/b").await, [] as [String; 0]);
}

#[tokio::test]
async fn whoever_watches_from_a_list_on_misses_nothing() {
    let world = some_skills().await;
    let page = world.lookup.list(&ListQuery::default(), 2, "");
    let page = page.expect("a page");
    assert_eq!(page.resume, world.registry.resume_token());
    let world = world.with("github/acme/new", "name: new").await;
    assert_ne!(page.resume, world.registry.resume_token());
}
