//! Whether what came out is what should have come out. Each comparison is an equality: a
//! thing equals itself, and two things equal each other or not, whichever comes first.

mod rows;
mod text;
mod values;

pub(crate) use rows::same_rows;
pub(crate) use text::{Comparator, same_json, same_output};
pub(crate) use values::same_value;
