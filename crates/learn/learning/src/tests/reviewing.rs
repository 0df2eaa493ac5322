//! Solutions that a person grades, and watching.

use super::*;
use crate::record::{ACTIVITIES, LEARNERS};
use store::Batch;

fn world() -> World {
    let path = Path::chain("path-a", &["one"])
        .with_manual("talk")
        .earning("talker", "exercise_completed: talk");
    World::new(&[path])
}

fn review(id: &model::Digest, reviewer: &str, passed: bool) -> Review {
    Review {
        submission_id: id.to_string(),
        reviewer: Reviewer::of(&Principal::anonymous(), reviewer).expect("a reviewer"),
        passed,
        comment: "Well said.".to_owned(),
        score: None,
    }
}

fn queue(world: &World) -> Vec<String> {
    let (waiting, next) = world.learning.waiting("", 100, "").expect("a list");
    assert_eq!(next, None);
    waiting.into_iter().map(|it| it.id.to_string()).collect()
}

#[tokio::test]
async fn a_solution_waits_for_a_reviewer_and_is_completed_by_one() {
    let world = world();
    let sent = world.submit("talk", "I listen.").await;
    assert_eq!(sent.verdict, courses::Verdict::Pending);
    let id = sent.id.expect("a submission");
    let (waiting, _) = world.learning.waiting("path-a", 10, "").expect("a list");
    let one = waiting.first().expect("a submission");
    assert_eq!(
        (one.id, one.learner.as_str(), one.exercise.as_str()),
        (id, "ann", "talk")
    );
    assert_eq!(one.checklist, ["it is kind"]);
    assert_eq!(one.files.values().collect::<Vec<_>>(), ["I listen."]);
    assert_eq!(world.progress().overall.completed, 0);
    let reviewed = world
        .learning
        .review(&review(&id, "bob", true))
        .await
        .expect("reviewed");
    assert_eq!(reviewed.earned.len(), 1);
    assert_eq!(world.progress().overall.completed, 1);
    assert!(queue(&world).is_empty());
    let again = world.submit("talk", "I listen.").await;
    assert_eq!(
        (again.id, again.verdict),
        (Some(id), courses::Verdict::Pass)
    );
    assert_eq!(again.feedback.summary, "bob reviewed it: Well said.");
}

#[tokio::test]
async fn a_review_is_recorded_once() {
    let world = world();
    let id = world
        .submit("talk", "I shout.")
        .await
        .id
        .expect("a submission");
    let own = world.learning.review(&review(&id, "ann", true)).await;
    assert_eq!(code(own.expect_err("one's own")), Code::InvalidParameter);
    world
        .learning
        .review(&review(&id, "bob", false))
        .await
        .expect("reviewed");
    let history = world.history();
    let same = world
        .learning
        .review(&review(&id, "eve", false))
        .await
        .expect("the same");
    assert_eq!(same.verdict, courses::Verdict::Fail);
    let other = world.learning.review(&review(&id, "eve", true)).await;
    let error = other.expect_err("another verdict");
    assert_eq!(
        error.to_string(),
        format!("submission '{id}' was reviewed by 'bob' with another verdict")
    );
    assert_eq!(code(error), Code::SubmissionReviewed);
    assert_eq!(
        (world.history(), world.progress().overall.completed),
        (history, 0)
    );
    let passed = world
        .submit("one", "good-one")
        .await
        .id
        .expect("a submission");
    for unknown in ["", "no digest", &model::Digest::of(b"x").to_string()] {
        let unknown = Review {
            submission_id: unknown.to_owned(),
            ..review(&passed, "bob", true)
        };
        let refused = world.learning.review(&unknown).await;
        assert_eq!(code(refused.expect_err("none")), Code::SubmissionNotFound);
    }
    let refused = world.learning.review(&review(&passed, "bob", false)).await;
    assert_eq!(
        code(refused.expect_err("not for reviewers")),
        Code::SubmissionNotFound
    );
}

#[tokio::test]
async fn a_review_of_what_was_reset_since_completes_nothing() {
    let world = world();
    let id = world
        .submit("talk", "I listen.")
        .await
        .id
        .expect("a submission");
    world.wait(1);
    world
        .learning
        .reset("path-a", &world.ann, true)
        .await
        .expect("reset");
    world
        .learning
        .review(&review(&id, "bob", true))
        .await
        .expect("reviewed");
    assert_eq!(world.progress().overall.completed, 0);
}

#[tokio::test]
async fn the_queue_has_pages_the_oldest_first() {
    let world = world();
    let mut sent = Vec::new();
    for n in 0..7 {
        let id = world.submit("talk", &format!("Talk {n}.")).await.id;
        sent.push(id.expect("a submission").to_string());
        world.wait(1);
    }
    assert_eq!(queue(&world), sent);
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let (page, next) = world.learning.waiting("path-a", 3, &token).expect("a page");
        pages.push(page.len());
        assert!(
            page.iter()
                .map(|it| it.id.to_string())
                .eq(sent.drain(..page.len()))
        );
        let Some(next) = next else { break };
        token = next;
    }
    assert_eq!(pages, [3, 3, 1]);
    let none = world.learning.waiting("no", 3, "").map(|_| ());
    assert_eq!(code(none.expect_err("no path")), Code::PathNotFound);
    let forged = world.learning.waiting("", 3, "x").map(|_| ());
    assert_eq!(code(forged.expect_err("no token")), Code::PageTokenInvalid);
}

#[tokio::test]
async fn a_watcher_sees_every_activity_once_and_in_order_from_where_it_was() {
    let world = world();
    world.submit("one", "good-one").await;
    let mut all = world.learning.watch(&world.ann, Some(0)).expect("a watch");
    let mut new = world.learning.watch(&world.ann, None).expect("a watch");
    assert_eq!(
        all.next().await.expect("an activity").details,
        "Started 'Path path-a'"
    );
    assert_eq!(all.next().await.expect("an activity").number, 2);
    let talk = world
        .submit("talk", "I listen.")
        .await
        .id
        .expect("a submission");
    let (details, _) = tokio::join!(
        async {
            let mut details = Vec::new();
            for _ in 0..4 {
                details.push(new.next().await.expect("an activity").details);
            }
            details
        },
        async {
            world
                .learning
                .review(&review(&talk, "bob", true))
                .await
                .expect("reviewed")
        },
    );
    assert_eq!(
        details,
        [
            "bob reviewed 'Do talk', which passes: Well said.",
            "Completed 'Do talk'",
            "Completed the path 'Path path-a'",
            "Earned 'talker'"
        ]
    );
    let mut again = world.learning.watch(&world.ann, Some(5)).expect("a watch");
    assert_eq!(
        again.next().await.expect("an activity").details,
        "Earned 'talker'"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_what_another_of_the_same_store_wrote_without_asking_again() {
    let world = world();
    let other = World {
        learning: Learning::new(
            world.learning.store().clone(),
            Arc::new(world.clock.clone()),
            {
                let catalog = world.learning.catalog();
                move || Catalog::clone(&catalog)
            },
            world.learning.graders().clone(),
        ),
        clock: world.clock.clone(),
        ann: world.ann.clone(),
    };
    let mut watch = world.learning.watch(&world.ann, None).expect("a watch");
    let began = tokio::time::Instant::now();
    let (activity, _) = tokio::join!(watch.next(), other.submit("one", "good-one"));
    assert_eq!(activity.expect("an activity").number, 1);
    // The clock stands still but for those who sleep.
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
}

#[tokio::test]
async fn a_watcher_goes_past_activities_that_are_lost_however_many() {
    let world = world();
    world.submit("one", "good-one").await;
    let mut batch = Batch::new();
    let profile = world.learning.store().get(&LEARNERS, world.ann.as_str());
    let mut profile = profile.expect("readable").expect("a profile").value;
    // As after a salvage that saved the last of 301 activities alone.
    let key = |number: u64| (world.ann.as_str().to_owned(), number);
    let last = world.learning.store().get(&ACTIVITIES, &key(1));
    let mut last = last.expect("readable").expect("an activity").value;
    for number in 1..=profile.activities {
        batch.delete(&ACTIVITIES, &key(number));
    }
    (last.number, profile.activities) = (301, 301);
    batch.put(&ACTIVITIES, &key(301), &last);
    batch.put(&LEARNERS, world.ann.as_str(), &profile);
    world.learning.store().commit(batch).await.expect("written");
    let mut all = world.learning.watch(&world.ann, Some(0)).expect("a watch");
    assert_eq!(all.next().await.expect("an activity").number, 301);
}

/// A manual exercise that was completed and is due again.
async fn due() -> World {
    let world = World::new(&[Path::chain("path-a", &["one"]).with_manual("talk")]);
    let id = world
        .submit("talk", "I listen.")
        .await
        .id
        .expect("a submission");
    let passed = world.learning.review(&review(&id, "bob", true)).await;
    passed.expect("reviewed");
    world.wait(24 * 40);
    world
}

#[tokio::test]
async fn the_same_submission_twice_is_one_row_when_it_is_due_as_well() {
    let world = due().await;
    let first = world.submit("talk", "I listen.").await;
    assert_eq!(first.verdict, courses::Verdict::Pending);
    for _ in 0..3 {
        world.wait(1);
        let again = world.submit("talk", "I listen.").await;
        assert_eq!((again.id, again.verdict), (first.id, first.verdict));
    }
    assert_eq!(queue(&world), [first.id.expect("a submission").to_string()]);
    // Another one is another row, of the same round.
    let other = world.submit("talk", "I nod.").await;
    assert_eq!(queue(&world).len(), 2);
    let reviewed = world
        .learning
        .review(&review(&first.id.expect("one"), "bob", true))
        .await;
    reviewed.expect("reviewed");
    assert_eq!(world.submit("talk", "I nod.").await.id, other.id);
    assert_eq!(world.submit("talk", "I listen.").await.id, first.id);
    // It is due anew after that.
    world.wait(24 * 400);
    assert_ne!(world.submit("talk", "I listen.").await.id, first.id);
}

#[tokio::test]
async fn what_waits_for_a_reviewer_is_not_what_comes_next() {
    let world = World::new(&[Path::chain("path-a", &["one"]).with_manual("talk")]);
    let talk = world
        .submit("talk", "I listen.")
        .await
        .id
        .expect("a submission");
    assert_eq!(world.next().await, ("one".to_owned(), Reason::New));
    world.submit("one", "good-one").await;
    let over = world.learning.next("path-a", &world.ann).await;
    let over = over.expect_err("nothing is left");
    assert_eq!(
        over.to_string(),
        "'Do talk' waits for a reviewer, and nothing else is left in 'Path path-a'"
    );
    assert_eq!(path_of(over), "path-a");
    let failed = world.learning.review(&review(&talk, "bob", false)).await;
    failed.expect("reviewed");
    assert_eq!(world.next().await, ("talk".to_owned(), Reason::Continue));
    // Nor is what is due and waits.
    let world = due().await;
    world.submit("one", "good-one").await;
    assert_eq!(world.next().await, ("talk".to_owned(), Reason::Review));
    world.submit("talk", "I listen.").await;
    let over = world.learning.next("path-a", &world.ann).await;
    assert_eq!(
        code(over.expect_err("it waits")),
        Code::NoExercisesRemaining
    );
}

#[tokio::test]
async fn a_review_that_fails_is_told_and_what_was_due_was_forgotten() {
    let world = due().await;
    let sent = world
        .submit("talk", "I shout.")
        .await
        .id
        .expect("a submission");
    let said = Review {
        comment: "Listen first.".to_owned(),
        score: Some(0.4),
        ..review(&sent, "bob", false)
    };
    world.learning.review(&said).await.expect("reviewed");
    let progress = world.progress();
    let activity = progress.activities.first().expect("one");
    assert_eq!(
        (activity.kind, activity.details.as_str(), activity.score),
        (
            ActivityKind::SubmissionReviewed,
            "bob reviewed 'Do talk', which does not pass yet: Listen first.",
            Some(0.4)
        )
    );
    let opened = world.learning.open("talk", &world.ann, false).await;
    assert_eq!(
        opened.expect("open").review,
        Some(LastReview {
            reviewer: "bob".to_owned(),
            passed: false,
            comment: "Listen first.".to_owned(),
            time: activity.time,
        })
    );
    let state = world.learning.state(&world.ann).expect("state");
    let memory = state.attempt("talk").memory.expect("completed before");
    assert_eq!((memory.lapses, memory.is_due(state.now)), (1, false));
}

#[tokio::test]
async fn a_caller_that_signed_in_reviews_as_itself_and_nothing_of_its_own() {
    let mut world = world();
    let rev = Principal::token("rev");
    let of = |caller: &Principal, stated: &str| Reviewer::of(caller, stated).expect("a reviewer");
    for (learner_name, stated, expected) in [
        ("token:rev", "The Headmaster", Err(Code::InvalidParameter)),
        (
            "token:rev/child",
            "The Headmaster",
            Err(Code::InvalidParameter),
        ),
        (
            "token:revolver",
            "The Headmaster",
            Ok("token:rev reviewed it: Well said."),
        ),
        (
            "ann",
            "The Headmaster",
            Ok("token:rev reviewed it: Well said."),
        ),
        ("bob", "", Ok("token:rev reviewed it: Well said.")),
    ] {
        world.ann = learner(learner_name);
        let sent = world.submit("talk", "I listen.").await;
        let said = Review {
            reviewer: of(&rev, stated),
            ..review(&sent.id.expect("a submission"), "", true)
        };
        let outcome = match world.learning.review(&said).await {
            Ok(_) => Ok(world.submit("talk", "I listen.").await.feedback.summary),
            Err(error) => Err(code(error)),
        };
        assert_eq!(outcome, expected.map(str::to_owned), "{learner_name}");
    }
    for forged in ["token:rev", "oidc:corp/ada", "certificate:ci"] {
        let refused = Reviewer::of(&Principal::anonymous(), forged);
        assert_eq!(code(refused.expect_err("forged")), Code::InvalidParameter);
    }
}
