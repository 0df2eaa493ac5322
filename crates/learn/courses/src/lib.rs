//! Learning paths: reading and checking their folders, and grading solutions.
//!
//! Not here: the progress of learners (`learning`), the process that runs a solution
//! (`sandbox`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod catalog;
mod comments;
mod compare;
mod content;
mod cross_check;
mod feedback;
mod gate;
mod graded;
mod graders;
mod grading;
mod limits;
mod reading;
mod render;
mod shell;

pub use catalog::Catalog;
pub use content::{
    Achievement, Condition, Difficulty, Exercise, ExerciseDifficulty, ExerciseKind, Hints,
    LearningPath, ShownCase, Solution, ValidationKind,
};
pub use cross_check::check_together;
pub use graded::{CaseResult, Feedback, Graded, Verdict};
pub use graders::{Busy, Documents, Graders, Turn, Worker};
pub(crate) use grading::Grading;
pub use reading::read;
