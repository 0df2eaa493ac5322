//! What is found, in which order, and why.

use std::ops::Range;

use super::*;
use model::{Code, Failure, TrustTier};
use registry::UsageKind;

async fn shelf() -> World {
    World::new()
        .with(
            "github/acme/react-testing",
            "name: react-testing\ndescription: Tests React components with Jest.\ncategory: testing\ntechnologies: [react]",
            "# Setup\nUse `screen.findByRole` for queries.",
        )
        .await
        .with(
            "github/acme/testing",
            "name: testing\ndescription: General advice on tests.\ncategory: testing",
            "Write a failing test first.",
        )
        .await
        .with(
            "github/other/kubernetes-deploy",
            "name: kubernetes-deploy\ndescription: Rolls out services with manifests.\ntags: [ops]",
            "## Rollback\nRun `kubectl rollout undo`.",
        )
        .await
        .with(
            "github/other/slides",
            "name: slides\ndescription: Makes presentations with pictures.",
            "One idea a slide.",
        )
        .await
        .with(
            "github/other/reservations",
            "name: Réservations\ndescription: 予約を管理するスキルです。",
            "Tables.",
        )
        .await
}

/// What is highlighted of a snippet.
fn highlighted(snippet: &Snippet) -> Vec<String> {
    let part = |range: &Range<usize>| snippet.text.chars().skip(range.start).take(range.len());
    snippet
        .highlights
        .iter()
        .map(|range| part(range).collect())
        .collect()
}

#[tokio::test]
async fn the_whole_name_comes_first_then_names_with_every_word() {
    let world = shelf().await;
    let found = world.found("Testing").await;
    assert_eq!(slugs(&found)[..2], ["testing", "react-testing"]);
    let tiers: Vec<Tier> = found.hits.iter().map(|hit| hit.why.tier).collect();
    assert_eq!(tiers[..2], [Tier::Name, Tier::NameWords]);
    assert_eq!(found.analysis.intent, "skill_name");
    for text in [
        "react testing",
        "REACT_testing",
        "github/acme/react-testing",
    ] {
        let found = world.found(text).await;
        assert_eq!(found.hits[0].why.tier, Tier::Name, "{text}");
        assert_eq!(found.hits[0].head.id.slug(), "react-testing", "{text}");
    }
}

#[tokio::test]
async fn what_only_a_body_or_a_file_says_is_found_and_shown() {
    let world = shelf()
        .await
        .with_files(
            "a/b/with-files",
            &[
                (
                    "SKILL.md",
                    b"---\nname: with-files\ndescription: Holds references.\n---\nSee files.\n",
                ),
                (
                    "references/limits.md",
                    b"The xyzzyflag doubles the quota.\n",
                ),
                ("data.bin", b"\xff\xfe plughword"),
            ],
        )
        .await;
    let found = world.found("kubectl rollout undo").await;
    assert_eq!(slugs(&found)[0], "kubernetes-deploy");
    assert_eq!(found.hits[0].why.matched, ["kubectl", "rollout", "undo"]);
    assert!(found.hits[0].why.parts.contains(&Part::Body));
    let snippet = world.found("undo").await.hits.remove(0).why.snippet;
    assert!(snippet.text.contains("rollout undo"), "{snippet:?}");
    assert_eq!(highlighted(&snippet), ["undo"]);
    let found = world.found("xyzzyflag").await;
    assert_eq!(slugs(&found)[0], "with-files");
    assert_eq!(found.hits[0].why.parts, [Part::Files]);
    assert_eq!(
        world.found("plughword").await.analysis.unknown,
        ["plughword"]
    );
}

#[tokio::test]
async fn misspelled_words_are_mended_and_said() {
    let world = shelf().await;
    for (typed, read_as, first) in [
        ("kuberntes", "kubernetes", "kubernetes-deploy"),
        ("presentaitons", "presentations", "slides"),
        ("kubernetesdeploy", "kubernetes", "kubernetes-deploy"),
    ] {
        let found = world.found(typed).await;
        assert_eq!(slugs(&found)[0], first, "{typed}");
        assert_eq!(found.analysis.repairs[0].word, typed);
        assert_eq!(found.analysis.repairs[0].read_as[0], read_as);
    }
    assert!(world.found("slides").await.analysis.repairs.is_empty());
}

#[tokio::test]
async fn marks_case_and_scripts_without_spaces_are_read() {
    let world = shelf().await;
    assert_eq!(world.slugs("reservations").await[0], "reservations");
    assert_eq!(world.slugs("RÉSERVATIONS").await[0], "reservations");
    assert_eq!(world.slugs("予約").await[0], "reservations");
    assert_eq!(world.slugs("管理").await[0], "reservations");
}

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
async fn what_is_withdrawn_is_found_no_more_and_what_changes_is_found_as_it_is() {
    let world = shelf().await;
    assert_eq!(world.slugs("slides").await[0], "slides");
    let slides = id("github/other/slides");
    let (first, caller) = (VersionNumber::FIRST, caller());
    let yanked = world.registry.yank(&slides, first, "", &caller);
    yanked.await.expect("yanked");
    assert!(!world.slugs("slides").await.contains(&"slides".to_owned()));
    let world = world
        .with(
            "github/other/slides",
            "name: slides\ndescription: Now about zebras.",
            "x",
        )
        .await;
    let found = world.found("zebras").await;
    assert_eq!(slugs(&found)[0], "slides");
}

#[tokio::test]
async fn what_is_deleted_from_among_others_counts_no_more() {
    let mut world = World::new();
    for name in ["one", "two", "three", "four", "five"] {
        let front_matter = format!("name: {name}\ndescription: Talks of zebras.");
        let id = format!("a/b/{name}");
        world = world.with(&id, &front_matter, "x").await;
    }
    let zebras = SearchQuery {
        text: "zebras".to_owned(),
        limit: 50,
        words_only: true,
        ..SearchQuery::default()
    };
    let before = world.ask(zebras.clone()).await;
    assert_eq!((before.hits.len(), before.total), (5, 5));
    let (two, caller) = (id("a/b/two"), caller());
    let deleted = world.registry.delete(&two, &caller).await;
    deleted.expect("deleted");
    let after = world.ask(zebras).await;
    assert_eq!((after.hits.len(), after.total), (4, 4));
}

#[tokio::test]
async fn meaning_finds_what_words_cannot_and_can_be_left_out() {
    let world = shelf().await;
    let found = world.found("powerpoint deck").await;
    assert_eq!(slugs(&found)[0], "slides");
    assert_eq!(found.hits[0].why.tier, Tier::Meaning);
    let found = world
        .ask(SearchQuery {
            text: "powerpoint deck".to_owned(),
            limit: 10,
            words_only: true,
            ..SearchQuery::default()
        })
        .await;
    assert_eq!(found.total, 0);
    assert_eq!(
        found.suggestions,
        [
            "No skill has 'powerpoint', 'deck', nor a word spelled like it: use other words",
            "Leave out `words_only`, so that meaning counts as well"
        ]
    );
}

#[tokio::test]
async fn what_is_no_word_of_any_language_finds_nothing_and_says_so() {
    let world = shelf().await;
    for text in ["zzzzqqqq", "xkcdqwpt", "0x8f3a9c"] {
        let found = world.found(text).await;
        let step = format!("No skill has '{text}', nor a word spelled like it: use other words");
        assert_eq!((found.total, found.suggestions), (0, vec![step]));
    }
    // Beside a word that skills have it does no harm.
    let found = world.found("slides zzzzqqqq").await;
    assert_eq!(slugs(&found)[0], "slides");
    // A language that no skill is written in is none of this.
    let found = world.found("Präsentation mit Bildern").await;
    assert_eq!(slugs(&found)[0], "slides");
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
    assert_eq!(
        failure.message,
        "'tesing' is no category that is known here"
    );
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
    let world = shelf().await;
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
async fn of_a_query_in_another_language_three_words_are_mended_and_the_others_left() {
    let world = shelf().await;
    let analysis = world.found("slidex slidez slidey slideq").await.analysis;
    let mended: Vec<_> = analysis.repairs.iter().map(|repair| &repair.word).collect();
    assert_eq!(mended, ["slidex", "slidez", "slidey"]);
    assert_eq!(analysis.unknown, ["slideq"]);
}

#[tokio::test]
async fn a_snippet_is_found_in_the_middle_of_a_body_and_not_looked_for_without_end() {
    let filler = |bytes: usize| "Something else, line by line.\n".repeat(bytes / 30);
    let front = |name: &str| format!("name: {name}\ndescription: D.");
    let early = format!(
        "A quokka.\n{}Feed the quokka a pretzel.\n{}",
        filler(5_000),
        filler(9_000)
    );
    let late = format!("A quokka.\n{}Late, a wallaby.\n", filler(40_000));
    let world = World::new()
        .with("a/b/early", &front("early"), &early)
        .await
        .with("a/b/late", &front("late"), &late)
        .await;
    let snippet = async |text: &str| world.found(text).await.hits.remove(0).why.snippet;
    let both = snippet("quokka pretzel").await;
    assert!(both.text.contains("Feed the quokka a pretzel."), "{both:?}");
    assert_eq!(highlighted(&both), ["quokka", "pretzel"]);
    let beginning = snippet("wallaby").await;
    assert!(
        beginning.text.starts_with("A quokka. Something else"),
        "{beginning:?}"
    );
    assert!(beginning.highlights.is_empty(), "{beginning:?}");
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
async fn hostile_queries_are_answered() {
    let world = shelf().await;
    let long = "testing ".repeat(60);
    for text in [
        "",
        " ",
        "!!!",
        "\0",
        "a",
        "the",
        "\u{202e}testing",
        long.as_str(),
        "\"",
        "name:x AND (",
        "*",
        "~2",
        "\u{1F600}",
        &"x".repeat(500),
        &"é".repeat(250),
        "０１２",
        "ﷺ",
    ] {
        let found = world.found(text).await;
        assert!(found.hits.len() <= 50, "{text:?}");
    }
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
