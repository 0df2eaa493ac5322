//! Whole numbers in JSON and in `google.protobuf.Struct`, whose numbers are
//! doubles: beyond 2^53 a double is another number than the one that was written.

use serde_json::Value;

/// The largest whole number below which a double holds all of them.
pub const MAX_EXACT: i64 = (1 << 53) - 1;

/// The message for a caller that sends a larger one.
pub const NOT_EXACT: &str = "Number is too large to be carried exactly; send it as a string";

/// From here on nobody writes a number in full, so that a larger one was meant as
/// a floating-point number.
const FLOAT_THRESHOLD: f64 = 1e21;

/// A double as the whole number that it holds exactly.
#[must_use]
pub fn whole(number: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "checked to be whole and in range"
    )]
    (number.fract() == 0.0 && number.abs() <= MAX_EXACT as f64).then_some(number as i64)
}

/// An integer that a double cannot be trusted to hold. A floating-point number
/// counts where it may have been one.
#[must_use]
pub fn is_inexact(number: &serde_json::Number) -> bool {
    if let Some(number) = number.as_i64() {
        return number.unsigned_abs() > MAX_EXACT.unsigned_abs();
    }
    // It is no `i64`, so it is far beyond what a double holds exactly.
    number.is_u64()
        || number.as_f64().is_some_and(|number| {
            number.fract() == 0.0 && number.abs() < FLOAT_THRESHOLD && whole(number).is_none()
        })
}

/// Path of the first integer that a double cannot be trusted to hold, such as
/// `rows[0].id`, below `path`.
#[must_use]
pub fn inexact(path: &str, json: &Value) -> Option<String> {
    match json {
        Value::Number(number) => is_inexact(number).then(|| path.to_owned()),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| inexact(&format!("{path}[{at}]"), item))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let name = super::shown(name, 80);
            inexact(&format!("{path}.{name}"), field)
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_beyond_what_doubles_hold_are_found_by_their_path() {
        for exact in [
            json!(9_007_199_254_740_991_i64),
            json!(-9_007_199_254_740_991_i64),
            json!(0.5),
            json!(1e300),
            json!("9007199254740993"),
            json!({"a": [1, {"b": null}]}),
        ] {
            assert_eq!(inexact("x", &exact), None, "{exact}");
        }
        for number in [
            json!(9_007_199_254_740_993_i64),
            json!(-9_007_199_254_740_992_i64),
            json!(u64::MAX),
            json!(9_007_199_254_740_992.0),
            json!(12_345_678_901_234_567_890_123.0 / 100.0),
        ] {
            let path = inexact("x", &json!({"rows": [1, {"id": number}]}));
            assert_eq!(path.as_deref(), Some("x.rows[1].id"), "{number}");
        }
        assert_eq!(whole(9_007_199_254_740_991.0), Some(MAX_EXACT));
        assert_eq!(whole(9_007_199_254_740_992.0), None);
        assert_eq!(whole(0.5), None);
    }
}
