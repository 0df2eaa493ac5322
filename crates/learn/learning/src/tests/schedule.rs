//! What comes next as time goes by, streaks, hours, achievements.

use super::*;

#[tokio::test]
async fn what_is_about_to_be_forgotten_comes_back_and_moves_further_away() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    let first = world.submit("one", "good-one").await;
    assert!(world.learning.next("path-a", &world.ann).await.is_err());
    world.wait(24 * 15);
    assert_eq!(world.progress().overall.reviews_due, 1);
    assert_eq!(world.next().await, ("one".to_owned(), Reason::Review));
    // The same text is another submission now: it is a review.
    let second = world.submit("one", "good-one").await;
    assert_ne!(second.id, first.id);
    assert_eq!(world.submit("one", "good-one").await.id, second.id);
    assert_eq!(world.progress().overall.reviews_due, 0);
    world.wait(24 * 16);
    assert_eq!(
        world.progress().overall.reviews_due,
        0,
        "it is due later than the first time"
    );
}

#[tokio::test]
async fn a_review_that_fails_keeps_the_exercise_completed_and_makes_it_due_soon() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    world.submit("one", "good-one").await;
    world.wait(24 * 15);
    let failed = world.submit("one", "forgotten").await;
    assert_eq!(failed.verdict, courses::Verdict::Fail);
    let progress = world.progress();
    assert_eq!(
        (progress.overall.completed, progress.overall.reviews_due),
        (1, 0)
    );
    // What went badly is practised: `two` builds on it.
    assert_eq!(world.next().await, ("two".to_owned(), Reason::Weak));
    world.submit("two", "good-two").await;
    world.wait(24 * 8);
    assert_eq!(world.next().await, ("one".to_owned(), Reason::Review));
}

#[tokio::test]
async fn what_is_nearly_forgotten_comes_before_what_is_new() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    world.submit("one", "good-one").await;
    world.wait(24 * 16);
    assert_eq!(
        world.next().await,
        ("two".to_owned(), Reason::New),
        "it is due, and known well"
    );
    world.wait(24 * 40);
    assert_eq!(world.next().await, ("one".to_owned(), Reason::Review));
}

#[tokio::test]
async fn who_is_stuck_is_shown_something_else() {
    let path = Path::chain("path-a", &["one"]).with("other", &[]);
    let world = World::new(&[path]);
    for n in 0..3 {
        assert_eq!(world.next().await.0, "one");
        world.submit("one", &format!("bad {n}")).await;
    }
    assert_eq!(world.next().await, ("other".to_owned(), Reason::New));
    world.submit("other", "good-other").await;
    assert_eq!(world.next().await, ("one".to_owned(), Reason::Continue));
}

#[tokio::test]
async fn the_same_history_gives_the_same_next_exercise() {
    let run = || async {
        let path = Path::chain("path-a", &["one", "two"])
            .with("six", &[])
            .with("ten", &["one", "six"]);
        let world = World::new(&[path]);
        let mut seen = Vec::new();
        for step in 0..12 {
            if let Ok(next) = world.learning.next("path-a", &world.ann).await {
                let id = next.opened.exercise.id.clone();
                let text = if step % 3 == 0 {
                    "bad".to_owned()
                } else {
                    format!("good-{id} {step}")
                };
                world.submit(&id, &text).await;
                seen.push((id, next.reason, next.why));
            }
            world.wait(24 * 5);
        }
        seen
    };
    assert_eq!(run().await, run().await);
}

async fn on(world: &World, time: &str, zone: &str) {
    world.set(time);
    let submit = Submit {
        exercise_id: "one".to_owned(),
        text: format!("good-one at {time}"),
        time_zone: zone.to_owned(),
        ..Submit::default()
    };
    world
        .learning
        .submit(submit, &world.ann)
        .await
        .expect("graded");
}

fn streak(world: &World) -> (u32, u32, String) {
    let progress = world.progress();
    let last = progress.last_day.expect("a day");
    (
        progress.current_streak,
        progress.longest_streak,
        last.to_string(),
    )
}

#[tokio::test]
async fn a_day_ends_at_the_learners_own_midnight() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    // 23:30 and 00:30 in Tokyo: two days; in UTC one.
    on(&world, "2026-03-02T14:30:00Z", "Asia/Tokyo").await;
    on(&world, "2026-03-02T15:30:00Z", "").await;
    assert_eq!(streak(&world), (2, 2, "2026-03-03".to_owned()));
    let other = World::new(&[Path::chain("path-a", &["one"])]);
    on(&other, "2026-03-02T14:30:00Z", "").await;
    on(&other, "2026-03-02T15:30:00Z", "").await;
    assert_eq!(streak(&other), (1, 1, "2026-03-02".to_owned()));
}

#[tokio::test]
async fn days_of_23_and_25_hours_are_days() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    // In Paris 2026-03-29 has 23 hours, 2026-10-25 has 25.
    for time in [
        "2026-03-28T22:30:00Z",
        "2026-03-29T21:30:00Z",
        "2026-03-29T22:30:00Z",
    ] {
        on(&world, time, "Europe/Paris").await;
    }
    assert_eq!(streak(&world), (3, 3, "2026-03-30".to_owned()));
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    for time in [
        "2026-10-24T21:30:00Z",
        "2026-10-24T22:30:00Z",
        "2026-10-25T22:30:00Z",
    ] {
        on(&world, time, "Europe/Paris").await;
    }
    assert_eq!(streak(&world), (2, 2, "2026-10-25".to_owned()));
}

#[tokio::test]
async fn a_streak_ends_when_a_day_is_missed_and_the_longest_stays() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    for day in ["2026-03-02", "2026-03-03", "2026-03-05"] {
        on(&world, &format!("{day}T10:00:00Z"), "").await;
    }
    assert_eq!(streak(&world), (1, 2, "2026-03-05".to_owned()));
    world.set("2026-03-06T23:59:00Z");
    assert_eq!(streak(&world).0, 1, "today is not over");
    world.set("2026-03-07T00:00:00Z");
    assert_eq!(streak(&world).0, 0);
}

#[tokio::test]
async fn a_clock_that_jumps_costs_no_day_and_no_order() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    on(&world, "2026-03-02T10:00:00Z", "").await;
    on(&world, "2030-01-01T10:00:00Z", "").await;
    on(&world, "2026-03-03T10:00:00Z", "").await;
    assert_eq!(streak(&world).0, 2);
    let hours = world.progress().overall.hours();
    assert!(hours < 1.0, "a pause of years is no work: {hours}");
    assert_eq!(world.history().len(), 3);
}

#[tokio::test]
async fn hours_are_those_between_steps_and_a_pause_counts_as_the_estimate() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    world.next().await;
    world
        .clock
        .0
        .lock()
        .map(|mut now| *now += 10.minutes())
        .expect("a time");
    world.submit("one", "good-one").await;
    assert_eq!(world.progress().overall.seconds, 600);
    world.wait(24);
    world.next().await;
    assert_eq!(
        world.progress().overall.seconds,
        600,
        "nobody worked all day"
    );
    world.wait(2);
    world.submit("two", "good-two").await;
    assert_eq!(world.progress().overall.seconds, 600 + 20 * 60);
}

#[tokio::test]
async fn achievements_are_rules_of_what_was_done() {
    let path = Path::chain("path-a", &["one", "two"])
        .with("other", &[])
        .earning("both", "exercise_completed: two, first_tries: 2")
        .earning("path", "path_completed: path-a")
        .earning("concept", "concept_learned: c-two")
        .earning("alone", "without_hints: 2")
        .earning("days", "streak_days: 2");
    let world = World::new(&[path]);
    let ids = |submitted: &Submitted| -> Vec<String> {
        submitted.earned.iter().map(|it| it.id.clone()).collect()
    };
    world
        .learning
        .reveal_hint("other", 0, &world.ann, false)
        .await
        .expect("a hint");
    assert_eq!(ids(&world.submit("other", "good-other").await), [""; 0]);
    world.submit("one", "bad").await;
    assert_eq!(ids(&world.submit("one", "good-one").await), [""; 0]);
    world.wait(24);
    let last = world.submit("two", "good-two").await;
    assert_eq!(ids(&last), ["both", "path", "concept", "alone", "days"]);
    assert_eq!(world.progress().overall.skills_mastered, ["s"]);
}
