//! The table of technologies, with the patterns that show each of them.
//!
//! It is data, in `technologies.txt`, of lines
//! `id | name | kind | facts | patterns`. Facts are names of [`Fact`] without
//! `has_`. A pattern is `where:what`:
//!
//! * `npm:`, `pypi:`, `cargo:`, `go:`, `maven:`, `composer:`, `gem:`, `nuget:`,
//!   `pub:`, `hex:`, `swift:`, `image:` – a dependency of this ecosystem. `*` at
//!   the end stands for any rest; of several patterns of one technology the longest
//!   counts. A go module is also meant with what follows behind `/`.
//! * `~` in front of the dependency: it is made for the technology, and not the
//!   technology itself, so its version says nothing and it is a little less
//!   certain.
//! * `ext:` – the end of file names, without the dot.
//! * `file:` – a file's name, or with `/` the end of its path; `*` is any part of a
//!   name.
//! * `tech:` – another technology that is not used without this one.
//!
//! Not here: what a codebase is made of (`codebase`), which words of a skill name a
//! technology (`facets`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod names;
mod table;
#[cfg(test)]
mod tests;

pub use names::{Fact, TechnologyKind};
pub use table::{Evidence, Table, Technology, file_name, is_at, table, technologies};
