//! Names of a statement that only the server can resolve.

use std::collections::{BTreeMap, BTreeSet};

/// Names of a statement to be compared with the catalog of the server, in the same
/// transaction and before the statement is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Names behind a dot, which may be columns or functions of one argument.
    pub(super) attributes: BTreeMap<String, Attribute>,
    /// Types that are not built in: a name, or a schema and a name.
    pub(super) types: BTreeSet<String>,
    /// Operators, as they are written.
    pub(super) operators: BTreeSet<String>,
}

/// A name behind a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attribute {
    /// Its first position: a line and a column, from 1.
    pub(super) position: (u64, u64),
    /// The list of functions has it.
    pub(super) listed: bool,
    /// Each time, what is before the dot is a row of a table or of a subquery.
    pub(super) of_row: bool,
}

impl Names {
    /// Whether there is nothing to ask.
    pub(super) fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.types.is_empty() && self.operators.is_empty()
    }
}
