//! Beginning, hints, handing in, resetting.

use super::*;
use crate::learner::MAX_BYTES;

#[tokio::test]
async fn an_exercise_opens_when_what_it_builds_on_is_completed() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    assert_eq!(world.next().await, ("one".to_owned(), Reason::New));
    let locked = world.try_submit("two", "good-two").await;
    assert_eq!(code(locked.expect_err("locked")), Code::ExerciseLocked);
    let passed = world.submit("one", "good-one").await;
    let next = passed.next.expect("one more");
    assert_eq!((next.0.id.as_str(), next.1), ("two", Status::Available));
    assert_eq!(world.next().await, ("two".to_owned(), Reason::New));
    assert_eq!(world.next().await, ("two".to_owned(), Reason::Continue));
    world.submit("two", "good-two").await;
    let over = world.learning.next("path-a", &world.ann).await;
    let over = over.expect_err("nothing is left");
    assert_eq!(
        over.to_string(),
        "all 2 exercises of 'Path path-a' are completed; the first review is due in 16 days"
    );
    assert_eq!(path_of(over), "path-a");
    assert_eq!(
        world.history(),
        [
            "Started 'Path path-a'",
            "Completed 'Do one'",
            "Completed 'Do two'",
            "Completed the path 'Path path-a'"
        ]
    );
}

#[tokio::test]
async fn practice_opens_what_is_locked() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    let refused = world.learning.open("two", &world.ann, false).await;
    assert_eq!(code(refused.expect_err("locked")), Code::ExerciseLocked);
    let opened = world.learning.open("two", &world.ann, true).await;
    assert_eq!(opened.expect("open").status, Status::InProgress);
    let submit = Submit {
        exercise_id: "two".to_owned(),
        text: "good-two".to_owned(),
        practice: true,
        ..Submit::default()
    };
    let passed = world.learning.submit(submit, &world.ann).await;
    assert_eq!(passed.expect("graded").verdict, courses::Verdict::Pass);
}

#[tokio::test]
async fn the_same_submission_again_is_one_record_and_one_achievement() {
    let path = Path::chain("path-a", &["one", "two"]).earning("first", "exercise_completed: one");
    let world = World::new(&[path]);
    let first = world.submit("one", "good-one").await;
    assert_eq!(first.earned.len(), 1);
    let history = world.history();
    let again = world.submit("one", "good-one").await;
    assert_eq!((again.id, again.score), (first.id, first.score));
    assert_eq!(again.earned, first.earned, "the first answer comes back");
    assert_eq!(world.history(), history);
    assert_eq!(world.progress().achievements.len(), 1);
    let other = world.submit("one", "good-one, said otherwise").await;
    assert_ne!(other.id, first.id);
    assert_eq!(
        (other.earned.len(), world.progress().achievements.len()),
        (0, 1)
    );
}

#[tokio::test]
async fn twenty_at_once_are_one_submission_where_they_are_the_same() {
    let path = Path::chain("path-a", &["one"]).earning("first", "exercises_completed: 1");
    let world = World::new(&[path]);
    let all = (0..20).map(|_| world.submit("one", "good-one"));
    let all = futures_util::future::join_all(all).await;
    assert!(all.windows(2).all(|two| two[0].id == two[1].id));
    let expected = [
        "Started 'Path path-a'",
        "Completed 'Do one'",
        "Completed the path 'Path path-a'",
        "Earned 'first'",
    ];
    assert_eq!(world.history(), expected);
    let others = (0..20)
        .map(|n| world.try_submit("one", Box::leak(format!("good-one {n}").into_boxed_str())));
    let others = futures_util::future::join_all(others).await;
    assert!(others.iter().all(Result::is_ok), "none is lost to another");
}

#[tokio::test]
async fn a_hint_costs_and_one_that_was_seen_does_not() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    let hint = |number| world.learning.reveal_hint("one", number, &world.ann, false);
    let first = hint(0).await.expect("a hint");
    assert_eq!(
        (first.text.as_str(), first.number, first.remaining),
        ("look", 1, 1)
    );
    assert!((first.max_score - 0.95).abs() < 1e-9);
    assert_eq!(hint(1).await.expect("the same"), first);
    assert_eq!(world.next().await, ("one".to_owned(), Reason::Continue));
    let last = hint(2).await.expect("a hint");
    assert_eq!((last.text.as_str(), last.remaining), ("say good-one", 0));
    assert_eq!(
        code(hint(0).await.expect_err("no more")),
        Code::NoHintsRemaining
    );
    let passed = world.submit("one", "good-one").await;
    assert!((passed.score - 0.9).abs() < 1e-9, "{}", passed.score);
}

#[tokio::test]
async fn hints_come_in_their_order() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    let second = world
        .learning
        .reveal_hint("one", 2, &world.ann, false)
        .await;
    let error = second.expect_err("the first was not seen");
    assert_eq!(
        error.to_string(),
        "hint 2 comes after hint 1, which was not revealed yet"
    );
    assert_eq!(code(error), Code::InvalidParameter);
}

#[tokio::test]
async fn what_cannot_be_a_solution_is_refused_with_its_field() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    assert_eq!(
        code(world.try_submit("one", " \n").await.expect_err("empty")),
        Code::MissingParameter
    );
    assert_eq!(
        code(world.try_submit("no", "x").await.expect_err("none")),
        Code::ExerciseNotFound
    );
    let wrong = world.try_submit("onne", "x").await.expect_err("none");
    assert_eq!(Failure::from(wrong).suggestions[0], "Did you mean `one`?");
    let wrong = world.learning.waiting("path-b", 3, "").map(|_| ());
    assert_eq!(
        Failure::from(wrong.expect_err("no path")).suggestions[0],
        "Did you mean `path-a`?"
    );
    let long = "x".repeat(64 * 1024);
    assert_eq!(
        code(world.try_submit("one", &long).await.expect_err("long")),
        Code::InvalidParameter
    );
    let submit = |files: &[&str], zone: &str| Submit {
        exercise_id: "one".to_owned(),
        files: files
            .iter()
            .map(|path| ((*path).to_owned(), "good-one".to_owned()))
            .collect(),
        time_zone: zone.to_owned(),
        ..Submit::default()
    };
    for (wrong, field) in [
        (submit(&["a", "../up"], ""), "files[1].path"),
        (submit(&["a", "b", "a"], ""), "files[2].path"),
        (submit(&["a"], "Mars/Olympus"), "time_zone"),
    ] {
        let refused = world.learning.submit(wrong, &world.ann).await;
        let failure = model::Failure::from(refused.expect_err("a refusal"));
        let fields: Vec<_> = failure.fields.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(
            (failure.code, fields),
            (Code::InvalidParameter, vec![field])
        );
    }
    assert_eq!(world.history(), [""; 0]);
}

#[tokio::test]
async fn a_reset_without_confirmation_changes_nothing_and_says_what_it_would() {
    let path =
        Path::chain("path-a", &["one", "two", "three"]).earning("first", "exercise_completed: one");
    let world = World::new(&[path]);
    world.submit("one", "good-one").await;
    world.submit("two", "bad").await;
    let expected = Reset {
        exercises: 2,
        previous_percent: 33,
    };
    let preview = world.learning.reset("path-a", &world.ann, false).await;
    assert_eq!(preview.expect("a preview"), expected);
    assert_eq!(world.progress().overall.completed, 1);
    let reset = world.learning.reset("path-a", &world.ann, true).await;
    assert_eq!(reset.expect("reset"), expected);
    let progress = world.progress();
    assert_eq!(
        (progress.overall.completed, progress.achievements.len()),
        (0, 1)
    );
    assert_eq!(progress.paths[0].started, None);
    let again = world.learning.reset("path-a", &world.ann, true).await;
    assert_eq!(again.expect("nothing").exercises, 0);
    // The same solution counts anew, and earns nothing twice.
    let passed = world.submit("one", "good-one").await;
    assert!(passed.earned.is_empty());
    assert_eq!(world.progress().overall.completed, 1);
    assert_eq!(world.progress().achievements.len(), 1);
}

#[tokio::test]
async fn a_reset_beside_a_submission_comes_before_it_or_after() {
    for _ in 0..50 {
        let world = World::new(&[Path::chain("path-a", &["one"])]);
        world.submit("one", "bad").await;
        let (passed, reset) = tokio::join!(
            world.submit("one", "good-one"),
            world.learning.reset("path-a", &world.ann, true),
        );
        assert_eq!(passed.verdict, courses::Verdict::Pass);
        let after = (
            world.progress().overall.completed,
            reset.expect("reset").previous_percent,
        );
        assert!(after == (0, 100) || after == (1, 0), "{after:?}");
    }
}

#[tokio::test]
async fn learners_do_not_see_each_other() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    for n in 0..1_000 {
        let learner = learner(&format!("learner {n}"));
        let submit = Submit {
            exercise_id: "one".to_owned(),
            text: if n % 2 == 0 { "good-one" } else { "bad" }.to_owned(),
            ..Submit::default()
        };
        world
            .learning
            .submit(submit, &learner)
            .await
            .expect("graded");
    }
    for n in [0, 1, 998, 999] {
        let learner = learner(&format!("learner {n}"));
        let progress = world
            .learning
            .progress(&learner, "", None, "")
            .expect("progress");
        assert_eq!(progress.overall.completed, usize::from(n % 2 == 0));
    }
    assert_eq!(
        world.progress().overall.completed,
        0,
        "whose name is the beginning of theirs"
    );
}

#[tokio::test]
async fn paths_are_read_once_when_somebody_asks_for_them_and_on_no_thread_of_the_runtime() {
    let world = World::new(&[]);
    let (sender, reads) = std::sync::mpsc::channel();
    let read = move || {
        let thread = std::thread::current().id();
        sender.send(thread).expect("somebody counts");
        Catalog::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let graders = world.learning.graders().clone();
    let learning = Learning::new(Store::in_memory(&Options::default()), clock, read, graders);
    assert_eq!(reads.try_iter().count(), 0);
    learning.ready().await;
    learning.ready().await;
    assert!(Arc::ptr_eq(&learning.catalog(), &learning.catalog()));
    let reads: Vec<_> = reads.try_iter().collect();
    assert_eq!(reads.len(), 1);
    assert_ne!(reads[0], std::thread::current().id());
}

#[tokio::test]
async fn what_was_handed_in_is_there_after_the_store_was_opened_again() {
    let directory = tempfile::TempDir::new().expect("a folder");
    let options = Options {
        reserve_bytes: 0,
        ..Options::default()
    };
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    let over = |store: Store| {
        let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
        let graders = world.learning.graders().clone();
        let catalog = world.learning.catalog();
        Learning::new(store, clock, move || (*catalog).clone(), graders)
    };
    let store = Store::open(directory.path(), &options).expect("a store");
    let learning = over(store.clone());
    let submit = || Submit {
        exercise_id: "one".to_owned(),
        text: "good-one".to_owned(),
        ..Submit::default()
    };
    let first = learning.submit(submit(), &world.ann).await.expect("graded");
    drop(learning);
    store.close().await;
    drop(store);
    let store = Store::open(directory.path(), &options).expect("the store");
    let learning = over(store.clone());
    let again = learning.submit(submit(), &world.ann).await.expect("graded");
    assert_eq!(again.id, first.id);
    let progress = learning
        .progress(&world.ann, "path-a", Some(200), "")
        .expect("progress");
    assert_eq!(
        (progress.overall.completed, progress.activities.len()),
        (1, 2)
    );
    drop(learning);
    store.close().await;
}

#[test]
fn a_learner_has_a_name_without_control_characters() {
    assert_eq!(learner("").as_str(), Learner::DEFAULT);
    assert_eq!(learner("Ann Lee ✓").as_str(), "Ann Lee ✓");
    for wrong in ["a\0b", "a\nb", &"x".repeat(MAX_BYTES + 1)] {
        assert_eq!(
            code(Learner::new(wrong).expect_err("a refusal")),
            Code::InvalidParameter
        );
    }
}

#[tokio::test]
async fn the_longest_name_has_progress_like_any_other() {
    let mut world = World::new(&[Path::chain("path-a", &["one"])]);
    world.ann = learner(&"x".repeat(MAX_BYTES));
    let passed = world.submit("one", "good-one").await;
    assert_eq!(passed.verdict, courses::Verdict::Pass);
    assert_eq!(world.history().len(), 3);
}

#[tokio::test]
async fn who_hands_in_more_than_is_taken_is_told_when_to_come_back_and_loses_nothing() {
    let world = World::new(&[Path::chain("path-a", &["one"])]);
    let exercise = world.learning.catalog().exercise("one").cloned();
    let exercise = exercise.expect("an exercise");
    let turn = world.learning.graders().turn("", "ann", &exercise).await;
    let mut waiting: Vec<_> = (0..31)
        .map(|n| Box::pin(world.submit_owned("one", format!("bad {n}"))))
        .collect();
    for one in &mut waiting {
        assert!(futures_util::poll!(one).is_pending());
    }
    let refused = world.try_submit("one", "good-one").await;
    let failure = Failure::from(refused.expect_err("too much"));
    assert_eq!(
        (failure.code, failure.retry_after),
        (Code::Overloaded, Some(std::time::Duration::from_secs(5)))
    );
    assert_eq!(world.history(), Vec::<String>::new());
    drop(turn);
    for one in waiting {
        assert_eq!(one.await.verdict, courses::Verdict::Fail);
    }
    assert_eq!(
        world.submit("one", "good-one").await.verdict,
        courses::Verdict::Pass
    );
}

#[tokio::test]
async fn a_solution_that_is_graded_while_its_path_is_reset_counts_for_what_comes_after() {
    let world = World::new(&[Path::chain("path-a", &["one", "two"])]);
    world.submit("one", "good-one").await;
    world.submit("two", "bad").await;
    let exercise = world.learning.catalog().exercise("two").cloned();
    let exercise = exercise.expect("an exercise");
    // It was let in, and waits for its turn.
    let turn = world.learning.graders().turn("", "ann", &exercise).await;
    let mut sent = Box::pin(world.submit_owned("two", "good-two".to_owned()));
    assert!(futures_util::poll!(&mut sent).is_pending());
    world.wait(1);
    let reset = world.learning.reset("path-a", &world.ann, true).await;
    assert_eq!(reset.expect("reset").exercises, 2);
    drop(turn);
    let sent = sent.await;
    assert_eq!(sent.verdict, courses::Verdict::Pass);
    let state = world.learning.state(&world.ann).expect("state");
    let (one, two) = (state.attempt("one"), state.attempt("two"));
    assert_eq!(
        (one.completed, two.completed, two.attempts),
        (None, Some(state.now), 1)
    );
    let again = Submit {
        exercise_id: "two".to_owned(),
        text: "good-two".to_owned(),
        practice: true,
        ..Submit::default()
    };
    let again = world.learning.submit(again, &world.ann).await;
    assert_eq!(
        again.expect("graded").id,
        sent.id,
        "it is the same submission"
    );
}
