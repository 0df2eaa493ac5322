//! Filters and facets, and what they count.

use super::*;
use model::{Code, Failure, TrustTier};

#[tokio::test]
async fn filters_apply_before_anything_is_counted_or_cut() {
    let mut world = World::new();
    for n in 0..30 {
        let category = if n % 3 == 0 { "kept" } else { "dropped" };
        let text = format!("name: tool {n}\ndescription: A tool.\ncategory: {category}");
        world = world.with(&format!("a/b/tool-{n}"), &text, "x").await;
    }
    let filters = Filters {
        categories: vec!["KEPT".to_owned()],
        ..Filters::default()
    };
    let page = |offset, limit| SearchQuery {
        text: "tool".to_owned(),
        filters: filters.clone(),
        offset,
        limit,
        ..SearchQuery::default()
    };
    let first = world.ask(page(0, 4)).await;
    assert_eq!((first.total, first.hits.len()), (10, 4));
    let mut all = slugs(&first);
    all.extend(slugs(&world.ask(page(4, 4)).await));
    all.extend(slugs(&world.ask(page(8, 4)).await));
    assert_eq!(all.len(), 10);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 10, "no skill is on two pages");
    let none = Filters {
        namespaces: vec!["a/c".to_owned()],
        ..Filters::default()
    };
    let found = world
        .ask(SearchQuery {
            filters: none,
            ..page(0, 10)
        })
        .await;
    assert_eq!(found.total, 0);
    assert_eq!(
        found.suggestions,
        ["Relax the filters `namespaces`: 30 skills match without them"]
    );
    for (filters, total) in [
        (
            Filters {
                trust_tiers: vec![TrustTier::Official],
                ..Filters::default()
            },
            0,
        ),
        (
            Filters {
                sources: vec!["a".to_owned()],
                ..Filters::default()
            },
            30,
        ),
        (
            Filters {
                has_tests: Some(false),
                ..Filters::default()
            },
            30,
        ),
        (
            Filters {
                min_score: 0.1,
                ..Filters::default()
            },
            30,
        ),
        (
            Filters {
                min_score: 0.99,
                ..Filters::default()
            },
            0,
        ),
    ] {
        let found = world
            .ask(SearchQuery {
                filters,
                ..page(0, 1)
            })
            .await;
        assert_eq!(found.total, total);
    }
}

#[tokio::test]
async fn categories_and_technologies_are_found_by_what_they_mean() {
    let world = World::new()
        .with(
            "a/b/stated",
            "name: stated\ndescription: A tool.\ncategory: tdd\ntechnologies: [Postgres]",
            "x",
        )
        .await
        .with(
            "a/b/inferred",
            "name: inferred-tests\ndescription: Tool for unit tests of PostgreSQL functions.",
            "x",
        )
        .await
        .with(
            "a/b/own",
            "name: own\ndescription: A tool.\ncategory: Sheds",
            "x",
        )
        .await;
    let ask = |categories: &[&str], technologies: &[&str]| SearchQuery {
        text: "tool".to_owned(),
        filters: Filters {
            categories: categories.iter().map(|word| (*word).to_owned()).collect(),
            technologies: technologies.iter().map(|word| (*word).to_owned()).collect(),
            ..Filters::default()
        },
        facets: true,
        limit: 50,
        ..SearchQuery::default()
    };
    for (categories, technologies, found) in [
        (&["testing"][..], &[][..], &["inferred", "stated"][..]),
        (&["QA"], &["postgresql"], &["inferred", "stated"]),
        (&["sheds"], &[], &["own"]),
        (&["finance"], &[], &[]),
        (&["finance", "sheds"], &[], &["own"]),
    ] {
        let results = world.ask(ask(categories, technologies)).await;
        let mut slugs = slugs(&results);
        slugs.sort();
        assert_eq!(slugs, found, "{categories:?} {technologies:?}");
    }
    let all = world.ask(ask(&[], &[])).await;
    let facet = |field| all.facets.iter().find(|facet| facet.field == field);
    let technology = facet("technology").expect("technologies");
    assert_eq!(technology.values, [("postgresql".to_owned(), 2)]);
}

#[tokio::test]
async fn a_category_that_nothing_is_called_is_refused_with_the_nearest() {
    let world = World::new()
        .with("a/b/c", "name: c\ndescription: A tool.", "x")
        .await;
    let ask = |filters| SearchQuery {
        text: "tool".to_owned(),
        filters,
        ..SearchQuery::default()
    };
    let wrong = Filters {
        categories: vec!["tesing".to_owned()],
        ..Filters::default()
    };
    let refused = world
        .index
        .search(&ask(wrong), &Stop::never())
        .expect_err("refused");
    let failure = Failure::from(refused);
    assert_eq!(failure.code, Code::InvalidParameter);
    assert_eq!(failure.message, "'tesing' is not a known category");
    assert_eq!(
        failure.fields.first().map(|field| field.field.as_str()),
        Some("filters.categories")
    );
    assert!(
        failure.suggestions[0].starts_with("Did you mean `testing`"),
        "{failure:?}"
    );
    let wrong = Filters {
        technologies: vec!["postgress".to_owned()],
        ..Filters::default()
    };
    let refused = world
        .index
        .search(&ask(wrong), &Stop::never())
        .expect_err("refused");
    let failure = Failure::from(refused);
    assert!(
        failure.suggestions[0].starts_with("Did you mean `postgresql`"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn facets_and_refinements_count_what_was_found() {
    let world = some_skills().await;
    let found = world
        .ask(SearchQuery {
            text: "test".to_owned(),
            limit: 1,
            facets: true,
            words_only: true,
            ..SearchQuery::default()
        })
        .await;
    let facet = |field| found.facets.iter().find(|facet| facet.field == field);
    let category = facet("category").expect("categories");
    assert_eq!(category.values, [("testing".to_owned(), 2)]);
    assert_eq!(
        facet("source").expect("sources").values,
        [("github".to_owned(), 2)]
    );
    assert_eq!(found.analysis.intent, "testing");
}
