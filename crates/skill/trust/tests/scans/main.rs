//! Scans of whole skills: hostile and benign ones, public ones, and what they cost.

mod bytes;
mod corpus;
mod held_back;
mod labelled;
mod speed;
mod tokens;
