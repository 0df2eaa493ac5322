//! Learners, with paths whose exercises want a word, so that nothing has to be run.

mod doing;
mod reviewing;
mod schedule;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use courses::{Catalog, Graders, LearningPath};
use jiff::{Timestamp, ToSpan as _};
use model::{Clock, Code, Failure, Principal};
use sandbox::Sandbox;
use store::{Options, Store};

use super::*;

/// A clock that stands still until it is set.
#[derive(Debug, Clone)]
struct Hand(Arc<Mutex<Timestamp>>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("a time")
    }
}

/// Learning with a clock, and a learner.
struct World {
    learning: Learning,
    clock: Hand,
    ann: Learner,
}

impl World {
    fn new(paths: &[Path]) -> Self {
        let clock = Hand(Arc::new(Mutex::new(at("2026-03-02T10:00:00Z"))));
        let paths = paths.iter().map(|path| Arc::new(path.read())).collect();
        // Nothing is run, so nothing needs to be there.
        let sandbox = Sandbox::new(PathBuf::from("/"), vec![OsString::new()]);
        let store = Store::in_memory(&Options::default());
        let hand: Arc<dyn Clock> = Arc::new(clock.clone());
        let learning = Learning::new(store, hand, || Catalog::new(paths), Graders::new(sandbox));
        Self {
            learning,
            clock,
            ann: learner("ann"),
        }
    }

    fn set(&self, time: &str) {
        *self.clock.0.lock().expect("a time") = at(time);
    }

    fn wait(&self, hours: i64) {
        let mut now = self.clock.0.lock().expect("a time");
        *now = now.checked_add(hours.hours()).expect("a time");
    }

    async fn try_submit(&self, exercise: &str, text: &str) -> Result<Submitted, Error> {
        let submit = Submit {
            exercise_id: exercise.to_owned(),
            text: text.to_owned(),
            ..Submit::default()
        };
        self.learning.submit(submit, &self.ann).await
    }

    async fn submit(&self, exercise: &str, text: &str) -> Submitted {
        self.try_submit(exercise, text).await.expect("an answer")
    }

    async fn submit_owned(&self, exercise: &str, text: String) -> Submitted {
        self.submit(exercise, &text).await
    }

    /// What is next in the path `a`: its id, and why.
    async fn next(&self) -> (String, Reason) {
        let next = self
            .learning
            .next("path-a", &self.ann)
            .await
            .expect("an exercise");
        (next.opened.exercise.id.clone(), next.reason)
    }

    fn progress(&self) -> Progress {
        let progress = self.learning.progress(&self.ann, "", Some(200), "");
        progress.expect("progress")
    }

    /// What the learner did, the first first.
    fn history(&self) -> Vec<String> {
        let mut activities = self.progress().activities;
        activities.reverse();
        activities.into_iter().map(|it| it.details).collect()
    }
}

fn at(time: &str) -> Timestamp {
    time.parse().expect("a time")
}

fn learner(name: &str) -> Learner {
    Learner::new(name).expect("a name")
}

fn code(error: Error) -> Code {
    Failure::from(error).code
}

/// The path that has no more exercises, as its error names it.
fn path_of(error: Error) -> String {
    let failure = Failure::from(error);
    assert_eq!(failure.code, Code::NoExercisesRemaining);
    failure.details["path_id"].clone()
}

/// A path to make: exercises that want `good-ID`, in a chain unless said otherwise.
struct Path {
    id: &'static str,
    exercises: Vec<(String, String)>,
    achievements: String,
}

impl Path {
    /// A path of exercises, each of which builds on the one before.
    fn chain(id: &'static str, exercises: &[&str]) -> Self {
        let mut path = Self {
            id,
            exercises: Vec::new(),
            achievements: String::new(),
        };
        let mut before: Option<&str> = None;
        for exercise in exercises {
            path = path.with(exercise, &before.into_iter().collect::<Vec<_>>());
            before = Some(exercise);
        }
        path
    }

    /// And one more, that builds on others.
    fn with(mut self, id: &str, on: &[&str]) -> Self {
        let wants = format!(
            "type: pattern\n  cases: [{{must_match: good-{id}, description: says the word}}]"
        );
        self.exercises
            .push((id.to_owned(), exercise(id, on, &wants)));
        self
    }

    /// And one more, that a person grades.
    fn with_manual(mut self, id: &str) -> Self {
        let wants = "type: manual\n  checklist: [it is kind]";
        self.exercises
            .push((id.to_owned(), exercise(id, &[], wants)));
        self
    }

    fn earning(mut self, id: &str, when: &str) -> Self {
        writeln!(
            self.achievements,
            "  - {{id: {id}, name: {id}, description: Earned, icon: star, when: {{{when}}}}}"
        )
        .expect("text");
        self
    }

    fn read(&self) -> LearningPath {
        let mut about = format!(
            "---\nname: Path {}\ndescription: A path.\ncategory: testing\ndifficulty: beginner\nestimated_hours: 1\nskills_covered: [s]\nobjectives: [know it]\n",
            self.id
        );
        if !self.achievements.is_empty() {
            about += "achievements:\n";
            about += &self.achievements;
        }
        about += "---\nHello.\n";
        let mut files = BTreeMap::from([("PATH.md".to_owned(), Bytes::from(about))]);
        for (number, (id, text)) in self.exercises.iter().enumerate() {
            let folder = format!("exercises/{:02}-{id}", number + 1);
            let mut put = |name: &str, text: String| {
                files.insert(format!("{folder}/{name}"), Bytes::from(text));
            };
            put("EXERCISE.md", text.clone());
            put("starter.txt", "bad\n".to_owned());
            put("solution.txt", format!("good-{id}\n"));
        }
        let (path, problems) = courses::read(self.id, &files);
        path.unwrap_or_else(|| panic!("{problems:?}"))
    }
}

fn exercise(id: &str, on: &[&str], validation: &str) -> String {
    format!(
        "---\ntitle: Do {id}\ntype: practice\ndifficulty: easy\nestimated_minutes: 20\nteaches: [c-{id}]\nrequires: [{}]\nskills_practiced: [s]\nhints: [look, 'say good-{id}']\nvalidation:\n  {validation}\n---\nSay it.\n",
        on.iter()
            .map(|on| format!("c-{on}"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}
