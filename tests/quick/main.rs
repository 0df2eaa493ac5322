//! What `make quick` tests of the text that people and clients rely on: golden files, pages
//! that the program renders, and rules on the sources themselves. No server is started.

#[path = "../support/mod.rs"]
mod support;

mod additions;
mod golden;
mod words;
mod workspace;
mod writers;
