//! Values of JavaScript, compared deeply.

use sandbox::Value;

/// Two values are the same all the way down. `0` and `-0` are two, `NaN` is one, a property
/// that is `undefined` is not one that is missing; the order of properties, and of the
/// entries of a `Map` or a `Set`, does not count.
pub(crate) fn same_value(a: &Value, b: &Value) -> bool {
    canonical(a) == canonical(b)
}

/// A value, sorted where its order says nothing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Canonical<'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(u64),
    NotFinite(&'a str),
    BigInt(&'a str),
    Text(&'a str),
    Array(Vec<Self>),
    Object(Vec<(&'a str, Self)>),
    Map(Vec<(Self, Self)>),
    Set(Vec<Self>),
    Date(Option<u64>),
    Error(&'a str, &'a str),
    Function(&'a str),
    Symbol(&'a str),
    Cycle,
}

/// A number by its bits: -0 is not 0, as `Object.is` has it.
fn bits(number: f64) -> u64 {
    // The bits of a NaN differ from machine to machine, and say nothing.
    if number.is_nan() { f64::NAN } else { number }.to_bits()
}

// Recursive without a bound of its own, since the sandbox bounds how deep a value is.
fn canonical(value: &Value) -> Canonical<'_> {
    match value {
        Value::Undefined => Canonical::Undefined,
        Value::Null => Canonical::Null,
        Value::Bool(flag) => Canonical::Bool(*flag),
        Value::Number(number) => Canonical::Number(bits(*number)),
        Value::NotFinite(name) => Canonical::NotFinite(name),
        Value::BigInt(digits) => Canonical::BigInt(digits),
        Value::Text(text) => Canonical::Text(text),
        Value::Array(list) => Canonical::Array(list.iter().map(canonical).collect()),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.as_str(), canonical(value)));
            Canonical::Object(sorted(entries))
        }
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (canonical(key), canonical(value)));
            Canonical::Map(sorted(entries))
        }
        Value::Set(list) => Canonical::Set(sorted(list.iter().map(canonical))),
        Value::Date(time) => Canonical::Date(time.map(bits)),
        Value::Error(name, message) => Canonical::Error(name, message),
        Value::Function(name) => Canonical::Function(name),
        Value::Symbol(name) => Canonical::Symbol(name),
        Value::Cycle => Canonical::Cycle,
    }
}

fn sorted<T: Ord>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut things: Vec<T> = things.collect();
    things.sort();
    things
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Undefined),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            prop_oneof![Just(0.0), Just(-0.0), Just(1.0), any::<f64>()]
                .prop_filter("finite", |n| n.is_finite())
                .prop_map(Value::Number),
            Just(Value::NotFinite("NaN".to_owned())),
            "[01]{1,2}".prop_map(Value::BigInt),
            "[ab]{0,2}".prop_map(Value::Text),
            prop_oneof![Just(None), Just(Some(0.0))].prop_map(Value::Date),
            Just(Value::Error("E".to_owned(), "m".to_owned())),
            Just(Value::Cycle),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4);
            let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..4);
            let entries = prop::collection::btree_map("[abc]", inner, 0..4);
            prop_oneof![
                list.clone().prop_map(Value::Array),
                list.prop_map(Value::Set),
                pairs.prop_map(Value::Map),
                entries.prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    /// The same with everything the other way round whose order says nothing.
    fn turned(value: &Value) -> Value {
        match value {
            Value::Array(list) => Value::Array(list.iter().map(turned).collect()),
            Value::Set(list) => Value::Set(list.iter().rev().map(turned).collect()),
            Value::Map(entries) => {
                let entries = entries.iter().rev();
                Value::Map(entries.map(|(k, v)| (turned(k), turned(v))).collect())
            }
            Value::Object(entries) => {
                let entries = entries.iter().rev();
                Value::Object(entries.map(|(k, v)| (k.clone(), turned(v))).collect())
            }
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn order_says_nothing_where_there_is_none(value in value()) {
            prop_assert!(same_value(&value, &value));
            prop_assert!(same_value(&value, &turned(&value)));
        }

        #[test]
        fn whichever_comes_first_and_wherever_it_stands(a in value(), b in value()) {
            let same = same_value(&a, &b);
            prop_assert_eq!(same, same_value(&b, &a));
            let inside = |value: &Value| Value::Array(vec![Value::Null, value.clone()]);
            prop_assert_eq!(same, same_value(&inside(&a), &inside(&b)));
            let object = |value: &Value| Value::Object(vec![("k".to_owned(), value.clone())]);
            prop_assert_eq!(same, same_value(&object(&a), &object(&b)));
        }

        #[test]
        fn one_more_is_another(list in prop::collection::vec(value(), 0..4), more in value()) {
            let mut longer = list.clone();
            longer.push(more);
            prop_assert!(!same_value(&Value::Array(list.clone()), &Value::Array(longer.clone())));
            prop_assert!(!same_value(&Value::Set(list), &Value::Set(longer)));
        }
    }

    #[test]
    fn what_looks_alike_and_is_not_the_same() {
        let text = |text: &str| Value::Text(text.to_owned());
        let object = |entries: &[(&str, Value)]| {
            let entries = entries.iter();
            Value::Object(entries.map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
        };
        let all = [
            Value::Undefined,
            Value::Null,
            Value::Bool(false),
            Value::Number(0.0),
            Value::Number(-0.0),
            Value::Number(1.0),
            Value::BigInt("1".to_owned()),
            text("1"),
            text(""),
            Value::NotFinite("NaN".to_owned()),
            Value::NotFinite("Infinity".to_owned()),
            Value::Array(vec![]),
            Value::Array(vec![Value::Number(1.0), Value::Number(2.0)]),
            Value::Array(vec![Value::Number(2.0), Value::Number(1.0)]),
            Value::Set(vec![]),
            Value::Map(vec![]),
            object(&[]),
            object(&[("a", Value::Undefined)]),
            object(&[("a", Value::Null)]),
            object(&[("0", Value::Number(1.0)), ("1", Value::Number(2.0))]),
            Value::Date(None),
            Value::Date(Some(0.0)),
            Value::Error("Error".to_owned(), "x".to_owned()),
            Value::Error("RangeError".to_owned(), "x".to_owned()),
            Value::Cycle,
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(same_value(a, b), i == j, "{a:?} {b:?}");
            }
        }
    }
}
