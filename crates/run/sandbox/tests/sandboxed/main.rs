//! What a child does with each kind of program, and what it may not do.

mod attacks;
mod common;
mod confinement;
mod scripts;
mod sql;
mod suites;
mod values;
