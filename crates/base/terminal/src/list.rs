//! Lists: tables of things of one kind.

use crate::Table;

/// A column: its name, and the text of a thing in it.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// The columns of things of one kind. The first is whole at any width; in the others a
/// text that is too wide is cut, or goes on below.
#[derive(Debug)]
pub struct List<T: 'static> {
    columns: &'static [Column<T>],
    wraps: bool,
}

impl<T> List<T> {
    /// A list in which a text that is too wide is cut, so that a row is a line.
    #[must_use]
    pub const fn new(columns: &'static [Column<T>]) -> Self {
        Self {
            columns,
            wraps: false,
        }
    }

    /// A list in which it goes on below, between its words.
    #[must_use]
    pub const fn wrapped(columns: &'static [Column<T>]) -> Self {
        Self {
            columns,
            wraps: true,
        }
    }

    /// A row for each of these things.
    pub fn table<'a>(&self, things: impl IntoIterator<Item = &'a T>) -> Table {
        let header: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let mut table = Table::new(&header);
        if self.wraps {
            table = table.wrapped();
        }
        for thing in things {
            table.add_row(self.columns.iter().map(|(_, text)| text(thing)));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_row_for_each_thing_and_a_text_for_each_column() {
        const COLUMNS: &[Column<u32>] = &[
            ("number", |number| number.to_string()),
            ("in words", |number| {
                vec!["one after another"; *number as usize].join(" ")
            }),
        ];
        let things = [1, 2];
        let cut = List::new(COLUMNS).table(&things);
        assert_eq!(
            cut.tsv(),
            "1\tone after another\n2\tone after another one after another"
        );
        assert_eq!(
            cut.render(Some(26), false),
            "number  in words\n1       one after another\n2       one after another…"
        );
        assert_eq!(
            List::wrapped(COLUMNS)
                .table(&things)
                .render(Some(26), false),
            "number  in words\n1       one after another\n2       one after another\n        one after another"
        );
    }
}
