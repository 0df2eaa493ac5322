//! Styled text and tables as a terminal gets them.
//!
//! Rules:
//!
//! * Skills, servers and files are other people's, and a terminal acts on what it is
//!   sent: only a [`Style`] becomes an escape sequence; every other control or
//!   invisible character is shown as an escape.
//! * The first column of a [`Table`] is the name of a row, and is whole at any width, so
//!   that it can be copied.
//! * Widths are columns of a terminal, of grapheme clusters (UAX #11 and #29).
//!
//! Not here: writing to a terminal, and which format a command writes.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod list;
mod style;
mod table;

pub use list::{Column, List};
pub use style::{BAD, ERROR, FAINT, GOOD, HINT, Style, WARN, json_line, painted, painted_line};
pub use table::Table;
