//! Comparing what programs print.

use serde_json::Value;

/// How output is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Comparator {
    /// To the letter.
    Exact,
    /// Except for spaces at the ends of lines, and blank lines at the beginning and the end.
    Trimmed,
    /// Word by word: one space is as good as five, or as a new line.
    Whitespace,
    /// As JSON: spaces and the order of keys say nothing.
    Json,
    /// Line by line, in any order; blank lines say nothing.
    UnorderedLines,
    /// Word by word; numbers may be off by this much.
    Float(f64),
}

/// The output is as expected.
pub(crate) fn same_output(comparator: Comparator, expected: &str, actual: &str) -> bool {
    match comparator {
        Comparator::Exact => expected == actual,
        Comparator::Trimmed => trimmed(expected) == trimmed(actual),
        Comparator::Whitespace => expected.split_whitespace().eq(actual.split_whitespace()),
        Comparator::Json => {
            let read = |text: &str| serde_json::from_str::<Value>(text);
            match (read(expected), read(actual)) {
                (Ok(expected), Ok(actual)) => same_json(&expected, &actual),
                _ => false,
            }
        }
        Comparator::UnorderedLines => lines(expected) == lines(actual),
        Comparator::Float(tolerance) => {
            let (expected, actual) = (words(expected), words(actual));
            let mut pairs = expected.iter().zip(&actual);
            expected.len() == actual.len() && pairs.all(|(a, b)| same_word(a, b, tolerance))
        }
    }
}

fn trimmed(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines.drain(..blank);
    lines
}

fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_end);
    let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn same_word(a: &str, b: &str, tolerance: f64) -> bool {
    // `NaN` and `inf` are words: no difference of theirs is below a tolerance, not even to
    // themselves.
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) if a.is_finite() && b.is_finite() => (a - b).abs() <= tolerance,
        _ => a == b,
    }
}

/// Two values of JSON are the same: 1 and 1.0 are one number, the order of keys says
/// nothing.
pub(crate) fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64().is_some_and(|a| Some(a) == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a)| b.get(key).is_some_and(|b| same_json(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Comparator; 6] = [
        Comparator::Exact,
        Comparator::Trimmed,
        Comparator::Whitespace,
        Comparator::Json,
        Comparator::UnorderedLines,
        Comparator::Float(0.25),
    ];

    proptest! {
        #[test]
        fn whichever_comes_first(a in "[a1 .\n]{0,12}", b in "[a1 .\n]{0,12}") {
            for comparator in ALL {
                prop_assert_eq!(
                    same_output(comparator, &a, &b),
                    same_output(comparator, &b, &a),
                    "{:?}", comparator
                );
                if comparator != Comparator::Json {
                    prop_assert!(same_output(comparator, &a, &a), "{:?}", comparator);
                }
            }
        }

        #[test]
        fn what_is_the_same_to_a_strict_one_is_the_same_to_a_milder_one(
            a in "[ab \n]{0,10}", b in "[ab \n]{0,10}"
        ) {
            let same = |comparator| same_output(comparator, &a, &b);
            prop_assert!(!same(Comparator::Exact) || same(Comparator::Trimmed));
            prop_assert!(!same(Comparator::Trimmed) || same(Comparator::Whitespace));
            prop_assert!(!same(Comparator::Trimmed) || same(Comparator::UnorderedLines));
            prop_assert!(!same(Comparator::Whitespace) || same(Comparator::Float(0.0)));
        }

        #[test]
        fn lines_may_stand_in_any_order(lines in prop::collection::vec("[ab]{1,3}", 0..6)) {
            let turned: Vec<&str> = lines.iter().rev().map(String::as_str).collect();
            prop_assert!(same_output(
                Comparator::UnorderedLines, &lines.join("\n"), &turned.join("\n")
            ));
        }

        #[test]
        fn a_number_may_be_off_by_the_tolerance(number in -1e6..1e6_f64, off in 0.0..1.0_f64) {
            // At the tolerance itself the sum may be rounded to either side of it.
            prop_assume!((off - 0.25).abs() > 1e-6);
            let (a, b) = (number.to_string(), (number + off).to_string());
            prop_assert_eq!(same_output(Comparator::Float(0.25), &a, &b), off < 0.25);
        }
    }

    #[test]
    fn each_comparator_forgives_what_it_says_and_no_more() {
        let same = |comparator, a, b| same_output(comparator, a, b);
        assert!(!same(Comparator::Exact, "a", "a\n"));
        assert!(same(Comparator::Trimmed, "a\nb", "\na  \r\nb\n\n"));
        assert!(!same(Comparator::Trimmed, "a\nb", "a\n\nb"));
        assert!(!same(Comparator::Trimmed, "  a", "a"));
        assert!(same(Comparator::Whitespace, "a b", "a\n   b"));
        assert!(!same(Comparator::Whitespace, "ab", "a b"));
        assert!(same(Comparator::UnorderedLines, "a\nb", "b\na"));
        assert!(!same(Comparator::UnorderedLines, "a\nb", "a\nb\nb"));
        assert!(same(
            Comparator::Json,
            r#"{"a":1,"b":[2]}"#,
            r#"{ "b":[2.0],"a":1 }"#
        ));
        assert!(!same(Comparator::Json, "[1,2]", "[2,1]"));
        assert!(!same(Comparator::Json, "{", "{"));
        assert!(same(Comparator::Float(0.01), "x 3.14", "x 3.141"));
        assert!(!same(Comparator::Float(0.01), "x 3.14", "x 3.2"));
        assert!(!same(Comparator::Float(0.01), "1", "1 1"));
        assert!(!same(Comparator::Float(0.01), "NaN", "1"));
        assert!(same(Comparator::Float(0.01), "NaN inf", "NaN inf"));
    }
}
