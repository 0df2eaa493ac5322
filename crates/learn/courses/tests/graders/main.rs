//! Exercises, graded by the child: what each kind of solution comes to, and all solutions
//! that are known.

mod corpus;
mod grading;
mod support;
