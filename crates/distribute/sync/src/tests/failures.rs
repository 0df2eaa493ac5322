//! Syncs that fail or end half way, and how they go on.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_may_help_is_tried_again_and_what_fails_is_told_in_the_health() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "", "Do a."));
    acme.fail(2, sources::Error::Unavailable("no answer".to_owned()));
    assert_eq!(counts(&here.sync().await), [1, 0, 0, 0, 0]);
    let standing = |here: &Here| here.engine.health(Some("acme")).expect("health")[0].standing;
    assert_eq!(standing(&here), HealthStatus::Healthy);
    let expected = [
        HealthStatus::Degraded,
        HealthStatus::Degraded,
        HealthStatus::Unavailable,
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
    assert_eq!(standing(&here), HealthStatus::Degraded);
    here.clock.pass(jiff::SignedDuration::from_hours(25));
    assert_eq!(standing(&here), HealthStatus::Healthy);
    acme.fail(
        1,
        sources::Error::RateLimited {
            after: Duration::from_secs(60),
            limit: None,
        },
    );
    here.sync().await;
    assert_eq!(standing(&here), HealthStatus::RateLimited);
    here.clock.pass(jiff::SignedDuration::from_secs(61));
    assert_eq!(standing(&here), HealthStatus::Degraded);
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
