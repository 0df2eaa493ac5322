//! Syncs of sources that a test fills.

mod claims;
mod equal;
mod failures;
mod place;
mod source_list;

use std::time::Duration;

use model::{Digest, Principal};
use registry::Registry;

use super::record::Skip;
use super::{Error, HealthStatus, Kind, Overall, Request, SourceKind, SourceResult, SyncOutcome};
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
