//! What is not taken from a source without a person.

use super::*;

#[tokio::test]
async fn what_a_person_or_another_source_has_is_not_taken() {
    let mut other = source("other");
    other.namespace = Some("github/acme".parse().expect("a namespace"));
    let here = Here::new(&[source("acme"), other]);
    let id = "github/acme/mine";
    testing::publish(
        &here.registry,
        id,
        &[("SKILL.md", skill("mine", "", "Mine.").as_bytes())],
        true,
    )
    .await;
    here.place("acme")
        .put("mine", &skill("mine", "", "Theirs."));
    here.place("acme")
        .put("shared", &skill("shared", "", "First."));
    here.place("other")
        .put("shared", &skill("shared", "", "Second."));
    let results = here.sync_all().await;
    assert_eq!(
        [counts(&results[0]), counts(&results[1])],
        [[1, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    );
    let reasons = [&results[0].skips[0].reason, &results[1].skips[0].reason];
    assert!(
        reasons[0].contains("published by somebody else"),
        "{reasons:?}"
    );
    assert!(reasons[1].contains("source `acme`"), "{reasons:?}");
    // Once it is free, it is taken, though nothing changed there.
    let id = id.parse().expect("an id");
    let person = registry::Caller::new(Principal::system());
    here.registry.delete(&id, &person).await.expect("deleted");
    let again = here.sync().await;
    assert_eq!(counts(&again), [1, 0, 0, 0, 0]);
    assert!(!again.unchanged);
}

#[tokio::test]
async fn the_shortest_path_has_an_id_and_leaves_it_to_the_next() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("x/y/a", &skill("a", "", "Long."));
    assert_eq!(counts(&here.sync().await), [1, 0, 0, 0, 0]);
    acme.put("x/a", &skill("a", "", "Short."));
    acme.put("copy/of/a", &skill("a", "", "Short."));
    let second = here.sync().await;
    assert_eq!(counts(&second), [0, 1, 0, 0, 2]);
    let reason = |skips: &[Skip], path: &str| {
        let skip = skips.iter().find(|skip| skip.path == path);
        skip.expect("a skip").reason.clone()
    };
    assert_eq!(reason(&second.skips, "copy/of/a"), "it is a copy of `x/a`");
    assert!(reason(&second.skips, "x/y/a").contains("less deep"));
    assert_eq!(here.instructions("github/acme/a").await, "Short.\n");
    acme.remove("x/a");
    acme.remove("copy/of/a");
    assert_eq!(counts(&here.sync().await), [0, 1, 0, 0, 0]);
    assert_eq!(here.instructions("github/acme/a").await, "Long.\n");
}

#[tokio::test]
async fn what_does_not_follow_from_what_was_there_waits_for_a_person() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "2.0.0", "Two."));
    acme.put("b", &skill("b", "1.0.0", "One."));
    here.sync().await;
    // A lower version.
    acme.put("a", &skill("a", "1.9.0", "Older."));
    assert_eq!(counts(&here.sync().await), [0, 0, 0, 1, 0]);
    assert_eq!(
        active(&here.registry, "github/acme/a").as_deref(),
        Some("2.0.0")
    );
    let held = here.registry.list_held(10, "").expect("a list").versions;
    let why = held[0]
        .described
        .hold
        .as_ref()
        .expect("held")
        .reason
        .clone();
    assert_eq!(
        why,
        "its version is 1.9.0, and 2.0.0 is active here: it would go back"
    );
    // A rewritten history, with a version that is higher.
    acme.put("b", &skill("b", "3.0.0", "Three."));
    acme.rewrite("the history of main was rewritten");
    assert_eq!(counts(&here.sync().await), [0, 0, 0, 1, 0]);
    assert_eq!(
        active(&here.registry, "github/acme/b").as_deref(),
        Some("1.0.0")
    );
    let person = registry::Caller::new(Principal::local());
    let id = "github/acme/b".parse().expect("an id");
    let number = model::VersionNumber::new(2).expect("a number");
    here.registry
        .approve(&id, number, "looked at", &person)
        .await
        .expect("approved");
    assert_eq!(
        active(&here.registry, "github/acme/b").as_deref(),
        Some("3.0.0")
    );
    // Back to bytes that were handed out before: nothing becomes active by itself, later neither.
    acme.put("b", &skill("b", "1.0.0", "One."));
    for _ in 0..2 {
        let back = here.sync().await;
        assert_eq!(counts(&back), [0, 0, 0, 0, 1]);
        assert!(
            back.skips[0].reason.contains("would go back"),
            "{:?}",
            back.skips
        );
        assert_eq!(
            active(&here.registry, "github/acme/b").as_deref(),
            Some("3.0.0")
        );
    }
}

#[tokio::test]
async fn other_bytes_of_the_same_version_are_told_apart_by_their_digest() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "1.0.0", "One."));
    here.sync().await;
    acme.put("a", &skill("a", "1.0.0", "Another one."));
    assert_eq!(counts(&here.sync().await), [0, 1, 0, 0, 0]);
    let version = here.version("github/acme/a");
    let expected = format!("1.0.0+{}", &version.digest.hex()[..12]);
    assert_eq!(version.semantic.to_string(), expected);
}
