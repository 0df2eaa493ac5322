//! Comparing results with what is expected. It never matters which of two comes first.

mod rows;
mod text;
mod values;

pub(crate) use rows::same_rows;
pub(crate) use text::{Comparator, same_json, same_output};
pub(crate) use values::same_value;
