//! Rows of databases.

use sandbox::Cell;

/// Two lists of rows are the same. Without an order each row must be in both equally often.
pub(crate) fn same_rows(a: &[Vec<Cell>], b: &[Vec<Cell>], ordered: bool) -> bool {
    let keys = |rows: &[Vec<Cell>]| -> Vec<Vec<Key>> {
        let mut keys: Vec<Vec<Key>> = rows
            .iter()
            .map(|row| row.iter().map(key).collect())
            .collect();
        // SQL without `ORDER BY` may return rows in any order.
        if !ordered {
            keys.sort();
        }
        keys
    };
    keys(a) == keys(b)
}

/// The value of a cell, whatever its type is: 1 and 1.0 are one number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Null,
    Whole(i64),
    Real(String),
    Text(String),
    Blob(String),
}

/// The largest float up to which every whole number has a float of its own: 2^53.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

fn key(cell: &Cell) -> Key {
    match cell {
        Cell::Null => Key::Null,
        Cell::Integer(number) => Key::Whole(*number),
        Cell::Real(number) => real(*number),
        Cell::Text(text) => Key::Text(text.clone()),
        Cell::Blob(digits) => Key::Blob(digits.to_ascii_lowercase()),
    }
}

/// A float by its first twelve digits.
fn real(number: f64) -> Key {
    // A sum of floats depends on the order of its terms, which SQL does not promise. The error is
    // in the last of some sixteen digits.
    if let Some(whole) = whole(number) {
        return Key::Whole(whole);
    }
    let rounded = format!("{number:.11e}");
    // Rounded it may be a whole number: 2.9999999999999996 is 3.
    match rounded.parse().ok().and_then(whole) {
        Some(whole) => Key::Whole(whole),
        None => Key::Real(rounded),
    }
}

fn whole(number: f64) -> Option<i64> {
    if number.fract() != 0.0 || number.abs() > MAX_EXACT_FLOAT {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
    Some(number as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell() -> impl Strategy<Value = Cell> {
        prop_oneof![
            Just(Cell::Null),
            (-3..3_i64).prop_map(Cell::Integer),
            (-3..3_i32).prop_map(|n| Cell::Real(f64::from(n))),
            any::<f64>()
                .prop_filter("finite", |n| n.is_finite())
                .prop_map(Cell::Real),
            "[a1]{0,2}".prop_map(Cell::Text),
            "[0-9a-f]{2}".prop_map(Cell::Blob),
        ]
    }

    fn rows() -> impl Strategy<Value = Vec<Vec<Cell>>> {
        prop::collection::vec(prop::collection::vec(cell(), 2), 0..6)
    }

    proptest! {
        #[test]
        fn a_bag_has_no_order_and_a_list_has(rows in rows(), at in any::<prop::sample::Index>()) {
            prop_assert!(same_rows(&rows, &rows, true));
            let mut turned = rows.clone();
            turned.rotate_left(at.index(rows.len().max(1)));
            prop_assert!(same_rows(&rows, &turned, false));
            let in_order = rows.iter().zip(&turned)
                .all(|(a, b)| same_rows(std::slice::from_ref(a), std::slice::from_ref(b), true));
            prop_assert_eq!(same_rows(&rows, &turned, true), in_order);
        }

        #[test]
        fn whichever_comes_first(a in rows(), b in rows(), ordered in any::<bool>()) {
            prop_assert_eq!(same_rows(&a, &b, ordered), same_rows(&b, &a, ordered));
        }

        #[test]
        fn a_row_more_is_another_bag(rows in rows(), more in cell()) {
            let mut longer = rows.clone();
            longer.push(vec![more.clone(), more]);
            prop_assert!(!same_rows(&rows, &longer, false));
        }
    }

    #[test]
    fn numbers_are_the_same_whatever_their_type_and_texts_are_no_numbers() {
        let same = |a: Cell, b: Cell| same_rows(&[vec![a]], &[vec![b]], true);
        let text = |text: &str| Cell::Text(text.to_owned());
        assert!(same(Cell::Integer(1), Cell::Real(1.0)));
        assert!(same(Cell::Integer(0), Cell::Real(-0.0)));
        assert!(same(Cell::Real(0.1 + 0.2), Cell::Real(0.3)));
        assert!(same(Cell::Integer(3), Cell::Real(2.999_999_999_999_999_6)));
        assert!(!same(Cell::Real(0.3), Cell::Real(0.300_000_1)));
        assert!(!same(Cell::Integer(1), text("1")));
        assert!(!same(Cell::Null, text("")));
        assert!(!same(Cell::Null, Cell::Integer(0)));
        assert!(!same(text("a"), text("A")));
        assert!(!same(text("61"), Cell::Blob("61".to_owned())));
        assert!(!same(Cell::Integer(i64::MAX), Cell::Integer(i64::MAX - 1)));
        assert!(!same(
            Cell::Real(1_234_567_890_123.0),
            Cell::Integer(1_234_567_890_124)
        ));
    }
}
