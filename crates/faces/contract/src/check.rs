//! Checks of requests, called by the code that the build writes from the
//! validation rules.

use super::access::allowed;
use ::access::Authorize;
use model::Failure;

/// A message that knows its validation rules.
pub trait Checked {
    /// It is a request: it is checked where it is decoded.
    const REQUEST: bool;

    /// Adds every rule that the message breaks.
    fn check(&self, out: &mut Vec<Violation>);

    /// Asks whether the action of its rpc may be done to the skill that it names.
    ///
    /// # Errors
    /// It may not.
    fn authorize(&self, _: &dyn Authorize) -> Result<(), Failure> {
        // It names none.
        Ok(())
    }

    /// Adds what it says that its call is done to. False: it says nothing of that.
    fn names<'a>(&'a self, _: &mut Vec<&'a str>) -> bool {
        false
    }

    /// It answers one message of a stream: the code of a refusal.
    fn item(&self) -> Option<Option<&str>> {
        None
    }
}

/// A rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, such as `files[2].path`.
    pub field: String,
    /// The rule, such as `string.max_len`.
    pub rule: &'static str,
    /// What is wrong, as a sentence.
    pub message: String,
    /// What to do next; empty where the contract says nothing.
    pub hint: &'static str,
}

impl Violation {
    fn required(field: &str, sentence: &str) -> Self {
        Self {
            field: field.to_owned(),
            rule: "required",
            message: sentence.to_owned(),
            hint: "",
        }
    }
}

fn push(
    out: &mut Vec<Violation>,
    path: impl FnOnce() -> String,
    rule: &'static str,
    message: String,
) {
    out.push(Violation {
        field: path(),
        rule,
        message,
        hint: "",
    });
}

/// Gives what was found of a field since `start` the field's hint.
fn hint(out: &mut [Violation], start: usize, hint: &'static str) {
    for violation in out.iter_mut().skip(start) {
        violation.hint = hint;
    }
}

fn max_chars(value: &str, max: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    // No more characters than bytes: most values are decided without a count.
    if value.len() > max {
        let count = value.chars().count();
        if count > max {
            push(
                out,
                path,
                "string.max_len",
                format!("must have at most {max} characters, has {count}"),
            );
        }
    }
}

fn min_chars(value: &str, min: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if value.chars().take(min).count() < min {
        push(
            out,
            path,
            "string.min_len",
            format!("must have at least {min} characters"),
        );
    }
}

fn max_bytes(value: &[u8], max: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if value.len() > max {
        push(
            out,
            path,
            "bytes.max_len",
            format!("must have at most {max} bytes, has {}", value.len()),
        );
    }
}

fn max_items(count: usize, max: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if count > max {
        push(
            out,
            path,
            "repeated.max_items",
            format!("must have at most {max} items, has {count}"),
        );
    }
}

fn min_items(count: usize, min: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if count < min {
        push(
            out,
            path,
            "repeated.min_items",
            format!("must have at least {min} items, has {count}"),
        );
    }
}

fn at_most<T: Copy + PartialOrd + std::fmt::Display>(
    value: T,
    max: T,
    path: impl FnOnce() -> String,
    out: &mut Vec<Violation>,
) {
    // What is no number is within no bounds.
    if value
        .partial_cmp(&max)
        .is_none_or(std::cmp::Ordering::is_gt)
    {
        push(
            out,
            path,
            "number.lte",
            format!("must be at most {max}, is {value}"),
        );
    }
}

fn at_least<T: Copy + PartialOrd + std::fmt::Display>(
    value: T,
    min: T,
    path: impl FnOnce() -> String,
    out: &mut Vec<Violation>,
) {
    if value
        .partial_cmp(&min)
        .is_none_or(std::cmp::Ordering::is_lt)
    {
        push(
            out,
            path,
            "number.gte",
            format!("must be at least {min}, is {value}"),
        );
    }
}

fn known(known: bool, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if !known {
        push(
            out,
            path,
            "enum.defined_only",
            "must be a value that the enum names".to_owned(),
        );
    }
}

fn inside(
    out: &mut Vec<Violation>,
    check: impl FnOnce(&mut Vec<Violation>),
    prefix: impl FnOnce() -> String,
) {
    let start = out.len();
    check(out);
    if out.len() > start {
        let prefix = prefix();
        for violation in out.iter_mut().skip(start) {
            violation.field.insert_str(0, &prefix);
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/checks.rs"));
