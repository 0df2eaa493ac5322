//! What is found, in which order, and why.

mod filters;
mod order;

use std::ops::Range;

use super::*;

async fn some_skills() -> World {
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
    let world = some_skills().await;
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
    let world = some_skills()
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
    let world = some_skills().await;
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
    let world = some_skills().await;
    assert_eq!(world.slugs("reservations").await[0], "reservations");
    assert_eq!(world.slugs("RÉSERVATIONS").await[0], "reservations");
    assert_eq!(world.slugs("予約").await[0], "reservations");
    assert_eq!(world.slugs("管理").await[0], "reservations");
}

#[tokio::test]
async fn what_is_withdrawn_is_found_no_more_and_what_changes_is_found_as_it_is() {
    let world = some_skills().await;
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
    let world = some_skills().await;
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
    let world = some_skills().await;
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
async fn of_a_query_in_another_language_three_words_are_mended_and_the_others_left() {
    let world = some_skills().await;
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
async fn hostile_queries_are_answered() {
    let world = some_skills().await;
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
