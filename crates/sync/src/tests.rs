//! Syncs of sources that a test fills.

mod equal;
mod place;

use std::time::Duration;

use model::{Digest, Principal};
use registry::Registry;

use super::record::Skip;
use super::{Ending, Error, Kind, Overall, Request, SourceKind, SourceResult, Standing};
use place::{Here, skill, source};

/// What an id leads to: the semantic version that is active; none: there is none.
fn active(registry: &Registry, id: &str) -> Option<String> {
    let id: model::SkillId = id.parse().expect("an id");
    let catalog = registry.catalog();
    let head = catalog.get(&id.key())?;
    let version = registry
        .version(head, &model::VersionSelector::Active)
        .ok()?;
    Some(version.semantic.to_string())
}

/// The skills that are live, with the digests of their active versions.
fn live(registry: &Registry) -> Vec<(String, Digest)> {
    let catalog = registry.catalog();
    let heads = catalog.after("", None);
    let active = |head: &std::sync::Arc<registry::Head>| {
        let version = registry
            .version(head, &model::VersionSelector::Active)
            .ok()?;
        Some((head.id.to_string(), version.digest))
    };
    heads.filter_map(active).collect()
}

/// Added, updated, removed, held, skipped.
fn counts(result: &SourceResult) -> [u32; 5] {
    assert_eq!(result.error, None);
    let SourceResult {
        added,
        updated,
        removed,
        held,
        skipped,
        ..
    } = *result;
    [added, updated, removed, held, skipped]
}

#[tokio::test]
async fn what_changed_at_a_source_is_published_and_the_rest_is_left_alone() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("skills/a", &skill("a", "1.0.0", "Do a."));
    acme.put("skills/b", &skill("b", "", "Do b."));
    let first = here.sync().await;
    assert_eq!(counts(&first), [2, 0, 0, 0, 0]);
    assert_eq!(
        active(&here.registry, "github/acme/a").as_deref(),
        Some("1.0.0")
    );
    acme.put("skills/a", &skill("a", "1.1.0", "Do a well."));
    acme.put("skills/c", &skill("c", "", "Do c."));
    let reads = acme.reads();
    let second = here.sync().await;
    assert_eq!(counts(&second), [1, 1, 0, 0, 0]);
    assert_eq!(acme.reads() - reads, 2);
    assert_eq!(
        active(&here.registry, "github/acme/a").as_deref(),
        Some("1.1.0")
    );
    let third = here.sync().await;
    assert!(third.unchanged);
    assert_eq!((counts(&third), acme.reads() - reads), ([0; 5], 2));
    // Everything again comes to the same.
    let full = here.sync_as(Kind::Full).await;
    assert_eq!((counts(&full), acme.reads() - reads), ([0; 5], 5));
    let listed = here.engine.list().expect("a list");
    assert_eq!((listed[0].skills, listed[0].is_configured), (3, true));
    let version = here.version("github/acme/a");
    assert_eq!(version.created_by, Principal::source("acme"));
    assert!(
        version
            .change_summary
            .starts_with("From the source `acme` at "),
        "{}",
        version.change_summary
    );
}

#[tokio::test]
async fn a_bad_skill_is_skipped_with_its_reason_and_what_was_there_goes_on_serving() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("good", &skill("good", "", "Do it."));
    acme.put("bad", "no front matter");
    acme.put("broken", &skill("broken", "", "Do it."));
    let first = here.sync().await;
    assert_eq!(counts(&first), [2, 0, 0, 0, 1]);
    assert_eq!(first.skips[0].path, "bad");
    assert!(
        first.skips[0].reason.starts_with("SKILL.md"),
        "{}",
        first.skips[0].reason
    );
    acme.put("broken", "---\nname: broken\n");
    let reads = acme.reads();
    let second = here.sync().await;
    assert_eq!(counts(&second), [0, 0, 0, 0, 2]);
    // The one that was bad before is not read again.
    assert_eq!(acme.reads() - reads, 1);
    assert_eq!(
        active(&here.registry, "github/acme/broken").as_deref(),
        Some("1.0.0")
    );
    let listed = here.engine.list().expect("a list");
    let paths: Vec<_> = listed[0]
        .skips
        .iter()
        .map(|skip| skip.path.as_str())
        .collect();
    assert_eq!((listed[0].skills, paths), (2, vec!["bad", "broken"]));
}

#[tokio::test]
async fn a_skill_that_is_again_what_it_was_is_skipped_no_more_and_comes_back_where_it_is_deleted() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("one", &skill("one", "", "Do it."));
    acme.put("two", &skill("two", "", "Do it."));
    here.sync().await;
    acme.put("one", "nothing");
    assert_eq!(counts(&here.sync().await), [0, 0, 0, 0, 1]);
    acme.put("one", &skill("one", "", "Do it."));
    assert_eq!(counts(&here.sync().await), [0, 0, 0, 0, 0]);
    let id = "github/acme/one".parse().expect("an id");
    let deleted = here.registry.delete(&id, &testing::caller()).await;
    deleted.expect("it was there");
    assert_eq!(counts(&here.sync().await), [1, 0, 0, 0, 0]);
    assert!(active(&here.registry, "github/acme/one").is_some());
}

#[tokio::test]
async fn what_is_gone_is_withdrawn_and_put_back_when_it_returns() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "1.0.0", "One."));
    acme.put("stays", &skill("stays", "", "It stays."));
    here.sync().await;
    acme.put("a", &skill("a", "2.0.0", "Two."));
    here.sync().await;
    acme.remove("a");
    assert_eq!(counts(&here.sync().await), [0, 0, 1, 0, 0]);
    assert_eq!(active(&here.registry, "github/acme/a"), None);
    let numbers = here.version_numbers("github/acme/a");
    assert_eq!(numbers, [2, 1], "withdrawn, and there");
    // A version that was not there meanwhile.
    acme.put("moved/a", &skill("a", "2.0.0", "Two."));
    assert_eq!(counts(&here.sync().await), [1, 0, 0, 0, 0]);
    assert_eq!(
        active(&here.registry, "github/acme/a").as_deref(),
        Some("2.0.0")
    );
    // What a person withdrew stays so.
    let id = "github/acme/a".parse().expect("an id");
    let number = here.version("github/acme/a").number;
    let person = registry::Caller::new(Principal::local());
    here.registry
        .yank(&id, number, "harmful", &person)
        .await
        .expect("withdrawn");
    acme.remove("moved/a");
    here.sync().await;
    acme.put("a", &skill("a", "2.0.0", "Two."));
    assert_eq!(counts(&here.sync().await), [0, 0, 0, 0, 0]);
    assert_eq!(active(&here.registry, "github/acme/a"), None);
}

#[tokio::test]
async fn what_a_source_has_is_active_also_where_it_was_withdrawn_before() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("stays", &skill("stays", "", "It stays."));
    acme.put("a", &skill("a", "", "One."));
    here.sync().await;
    acme.remove("a");
    here.sync().await;
    acme.put("a", &skill("a", "", "Two."));
    here.sync().await;
    acme.put("a", &skill("a", "", "One."));
    assert_eq!(counts(&here.sync().await), [0, 1, 0, 0, 0]);
    let version = here.version("github/acme/a");
    assert_eq!(
        (version.number.get(), version.semantic.to_string()),
        (1, "1.0.0".to_owned())
    );
}

#[tokio::test]
async fn a_source_that_lost_all_its_skills_keeps_them_here_until_somebody_syncs_everything() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "", "Do a."));
    here.sync().await;
    acme.remove("a");
    let refused = here.sync().await;
    assert!(
        refused
            .error
            .expect("an error")
            .contains("no skills any more")
    );
    assert!(active(&here.registry, "github/acme/a").is_some());
    assert_eq!(counts(&here.sync_as(Kind::Full).await), [0, 0, 1, 0, 0]);
    assert_eq!(active(&here.registry, "github/acme/a"), None);
}

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

#[tokio::test(start_paused = true)]
async fn what_may_help_is_tried_again_and_what_fails_is_told_in_the_health() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "", "Do a."));
    acme.fail(2, sources::Error::Unavailable("no answer".to_owned()));
    assert_eq!(counts(&here.sync().await), [1, 0, 0, 0, 0]);
    let standing = |here: &Here| here.engine.health(Some("acme")).expect("health")[0].standing;
    assert_eq!(standing(&here), Standing::Healthy);
    let expected = [
        Standing::Degraded,
        Standing::Degraded,
        Standing::Unavailable,
    ];
    for expected in expected {
        acme.fail(3, sources::Error::Unavailable("no answer".to_owned()));
        let failed = here.sync().await;
        assert_eq!(failed.error.as_deref(), Some("no answer"));
        assert_eq!(standing(&here), expected);
    }
    // Nothing that trying again would change is tried again.
    acme.fail(1, sources::Error::Refused("no such repository".to_owned()));
    assert_eq!(
        here.sync().await.error.as_deref(),
        Some("no such repository")
    );
    let health = here.engine.health(None).expect("health");
    assert_eq!(Overall::of(&health), Overall::Critical);
    assert_eq!(
        (
            health[0].errors,
            health[0].last_error.as_deref(),
            health[0].skills
        ),
        (4, Some("no such repository"), 1)
    );
    here.sync().await;
    assert_eq!(standing(&here), Standing::Degraded);
    here.clock.pass(jiff::SignedDuration::from_hours(25));
    assert_eq!(standing(&here), Standing::Healthy);
    acme.fail(
        1,
        sources::Error::RateLimited {
            after: Duration::from_secs(60),
            limit: None,
        },
    );
    here.sync().await;
    assert_eq!(standing(&here), Standing::RateLimited);
    here.clock.pass(jiff::SignedDuration::from_secs(61));
    assert_eq!(standing(&here), Standing::Degraded);
}

#[tokio::test]
async fn a_sync_that_ended_half_way_is_completed_by_the_next() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    for at in 0..60 {
        acme.put(&format!("s{at}"), &skill(&format!("s{at}"), "", "Do it."));
    }
    acme.die_after(25);
    let first = here.sync().await;
    assert!(first.error.is_some(), "{first:?}");
    let some = live(&here.registry).len();
    assert!((1..60).contains(&some), "{some}");
    let second = here.sync().await;
    assert_eq!(counts(&second)[4], 0);
    assert_eq!(live(&here.registry).len(), 60);
}

#[tokio::test]
async fn what_cannot_be_read_is_taken_later_and_a_place_that_shows_nothing_is_given_up() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    for at in 0..40 {
        let name = format!("s{at:02}");
        acme.put(&name, &skill(&name, "", "Do it."));
    }
    acme.lock(Some("s1"));
    let first = here.sync().await;
    assert_eq!(counts(&first), [30, 0, 0, 0, 10]);
    assert_eq!(
        first.skips[0].reason,
        "it could not be read: nobody may read it"
    );
    acme.lock(None);
    assert_eq!(counts(&here.sync().await), [10, 0, 0, 0, 0]);
    for at in 0..40 {
        let name = format!("s{at:02}");
        acme.put(&name, &skill(&name, "", "Do it well."));
    }
    acme.lock(Some(""));
    let failed = here.sync().await;
    assert_eq!(failed.error.as_deref(), Some("nobody may read it"));
    // What was there goes on serving.
    assert_eq!(live(&here.registry).len(), 40);
    acme.lock(None);
    assert_eq!(counts(&here.sync().await), [0, 40, 0, 0, 0]);
}

#[tokio::test]
async fn what_a_repository_has_to_show_is_known_of_its_skills() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "", "Do a."));
    here.sync().await;
    let stars = |id: &str| {
        let id: model::SkillId = id.parse().expect("an id");
        let facts = here.engine.facts(&id.key()).expect("facts");
        facts.map(|facts| facts.stars)
    };
    assert_eq!(stars("github/acme/a"), Some(0));
    // They change without the skill.
    acme.star(7);
    let reads = acme.reads();
    assert_eq!(counts(&here.sync().await), [0; 5]);
    assert_eq!((stars("github/acme/a"), acme.reads()), (Some(7), reads));
    assert_eq!(stars("github/acme/b"), None);
}

#[tokio::test]
async fn more_than_is_listed_is_counted() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    for at in 0..120 {
        acme.put(&format!("s{at:03}"), "nothing");
    }
    let result = here.sync().await;
    assert_eq!((result.skipped, result.skips.len()), (120, 10));
    let listed = here.engine.list().expect("a list").remove(0);
    assert_eq!((listed.skips.len(), listed.skips_left_out), (100, 20));
    let paths: Vec<_> = listed.skips.iter().map(|skip| skip.path.clone()).collect();
    assert!(paths.is_sorted(), "{paths:?}");
}

#[tokio::test]
async fn a_hundred_syncs_are_remembered() {
    let here = Here::new(&[source("acme")]);
    here.place("acme").put("a", &skill("a", "", "Do a."));
    for _ in 0..103 {
        here.clock.pass(jiff::SignedDuration::from_secs(1));
        here.sync().await;
    }
    let history = here.engine.status(None).expect("a status").history;
    let ids = [&history[0].id, &history[99].id].map(String::as_str);
    assert_eq!(history.len(), 100);
    assert_eq!(ids, ["sync_19700101_000143", "sync_19700101_000004"]);
}

#[tokio::test]
async fn there_may_be_a_thousand_sources() {
    let many: Vec<_> = (0..1_000).map(|at| source(&format!("s{at}"))).collect();
    let here = Here::new(&many);
    let refused = here.engine.add(source("more")).await;
    assert!(matches!(refused, Err(Error::TooMany { max: 1_000 })));
}

#[tokio::test]
async fn one_sync_of_a_source_at_a_time_and_each_is_remembered() {
    let here = Here::new(&[source("acme"), source("other")]);
    here.place("acme").put("a", &skill("a", "", "Do a."));
    here.place("other").put("b", &skill("b", "", "Do b."));
    let gate = here.place("acme").wait();
    let request = |sources: &[&str]| Request {
        sources: sources.iter().map(|id| (*id).to_owned()).collect(),
        kind: Kind::Incremental,
        force_check: false,
    };
    let mut first = here.engine.begin(&request(&["acme"])).expect("begun");
    assert_eq!(first.id, "sync_19700101_000000");
    for refused in [request(&["acme"]), request(&[])] {
        let refused = here.engine.begin(&refused).map(|begun| begun.id);
        assert!(
            matches!(&refused, Err(Error::InProgress { sync, source_id })
            if *sync == first.id && source_id == "acme"),
            "{refused:?}"
        );
    }
    let status = here.engine.status(None).expect("a status");
    assert_eq!(status.current.expect("a sync").id, first.id);
    let mut second = here.engine.begin(&request(&["other"])).expect("begun");
    assert_eq!(second.id, "sync_19700101_000000_2");
    let patience = Duration::from_secs(60);
    second.wait(patience).await.expect("ended");
    gate.notify_one();
    let record = first.wait(patience).await.expect("ended");
    assert_eq!((record.ending, record.changed()), (Ending::Success, 1));
    let status = here.engine.status(Some(&first.id)).expect("a status");
    assert_eq!((status.current, status.last), (None, Some(record)));
    assert_eq!(status.history.len(), 2);
    assert!(matches!(
        here.engine.status(Some("sync_1")),
        Err(Error::SyncNotFound { .. })
    ));
    assert!(matches!(
        here.engine.begin(&request(&["none"])),
        Err(Error::SourceNotFound { .. })
    ));
}

#[tokio::test]
async fn a_source_goes_on_where_it_was_after_a_restart() {
    let here = Here::new(&[source("acme")]);
    here.place("acme").put("a", &skill("a", "", "Do a."));
    here.sync().await;
    let again = here.engine_again(&[source("acme")]);
    let mut begun = again
        .begin(&Request {
            sources: Vec::new(),
            kind: Kind::Incremental,
            force_check: false,
        })
        .expect("begun");
    let record = begun.wait(Duration::from_secs(60)).await.expect("ended");
    assert!(record.sources[0].unchanged);
}

#[tokio::test]
async fn a_source_is_added_and_removed() {
    let here = Here::new(&[source("fixed")]);
    here.engine.add(source("new")).await.expect("added");
    assert!(matches!(
        here.engine.add(source("new")).await,
        Err(Error::SourceExists { .. })
    ));
    assert!(matches!(
        here.engine.add(source("fixed")).await,
        Err(Error::Configured { .. })
    ));
    here.place("new").put("a", &skill("a", "", "Do a."));
    here.place("new").put("b", &skill("b", "", "Do b."));
    here.sync_all().await;
    // Another process finds it.
    let ids: Vec<_> = here
        .engine_again(&[source("fixed")])
        .sources()
        .into_iter()
        .map(|source| source.id)
        .collect();
    assert_eq!(ids, ["fixed", "new"]);
    assert!(matches!(
        here.engine.remove("fixed", false).await,
        Err(Error::Configured { .. })
    ));
    let removed = here.engine.remove("new", true).await.expect("removed");
    assert_eq!((removed.withdrawn, removed.kept), (2, 0));
    assert_eq!(live(&here.registry), []);
    assert!(matches!(
        here.engine.source("new"),
        Err(Error::SourceNotFound { .. })
    ));
    // Its skills are free for another one.
    here.place("fixed").put("a", &skill("a", "", "Do a."));
    assert_eq!(counts(&here.sync().await)[4], 0);
}

#[tokio::test]
async fn a_source_is_refused_by_what_names_it() {
    for (change, word) in [
        (
            Box::new(|s: &mut super::Source| s.id = "A b".to_owned())
                as Box<dyn Fn(&mut super::Source)>,
            "no id",
        ),
        (Box::new(|s| s.location = String::new()), "address"),
        (
            Box::new(|s| s.location = "--upload-pack=x".to_owned()),
            "option",
        ),
        (
            Box::new(|s| s.location = "https://me:s3cret@example.com/x".to_owned()),
            "secret",
        ),
        (
            Box::new(|s| s.location = "nonsense".to_owned()),
            "no address",
        ),
        (Box::new(|s| s.interval_seconds = Some(1)), "at least 10"),
        (Box::new(|s| s.reference = "a\nb".to_owned()), "control"),
        (Box::new(|s| s.path = "x".repeat(5_000)), "2048 bytes"),
        (
            Box::new(|s| s.select = vec![String::new(); 1_001]),
            "more than 1000",
        ),
        (
            Box::new(|s| {
                s.kind = SourceKind::Directory;
                s.location = "skills".to_owned();
            }),
            "absolute",
        ),
        (Box::new(|s| s.kind = SourceKind::Github), "repositories"),
    ] {
        let mut source = source("acme");
        change(&mut source);
        let error = source.check().expect_err("a refusal").to_string();
        assert!(error.contains(word) && !error.contains("s3cret"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn sources_are_synced_when_they_are_due_and_when_something_happened_there() {
    let mut rarely = source("acme");
    rarely.interval_seconds = Some(100);
    let here = Here::new(&[rarely]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "", "Do a."));
    let keeping = tokio::spawn({
        let engine = here.engine.clone();
        async move { engine.keep().await }
    });
    here.until_looks("acme", 1).await;
    here.clock.pass(jiff::SignedDuration::from_secs(50));
    here.engine.nudge("acme").expect("a source");
    here.until_looks("acme", 2).await;
    here.clock.pass(jiff::SignedDuration::from_secs(120));
    here.until_looks("acme", 3).await;
    here.engine.close().await;
    keeping.await.expect("it ends");
}
