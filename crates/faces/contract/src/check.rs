//! Checks of requests, called by the code that the build writes from the
//! validation rules.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::access::allowed;
use super::resources::{NamedResource, named, nested};
use ::access::{Authorize, EVERY_SKILL};
use model::Failure;

/// A message that knows its validation rules.
pub trait Checked {
    /// It is a request: it is checked where it is decoded.
    const REQUEST: bool;

    /// Adds every rule that the message breaks.
    fn check(&self, out: &mut Vec<Violation>);

    /// Checks whether the action of its rpc may be done to the skill that it names, or to every
    /// skill where it is done to all.
    ///
    /// # Errors
    /// It may not.
    fn authorize(&self, _: &dyn Authorize) -> Result<(), Failure> {
        // The default is for messages that are about no skill.
        Ok(())
    }

    /// Adds the names of what its call is done to. False: the message has no such field.
    fn names<'a>(&'a self, _: &mut Vec<Cow<'a, str>>) -> bool {
        false
    }

    /// Clears the fields of an answer that need one of these actions.
    fn withhold(&mut self, _lacked: &[&str]) {
        // The default is for messages without such a field.
    }

    /// Adds what it names of the server's resources.
    fn resources<'a>(&'a self, _: &mut Vec<NamedResource<'a>>) {
        // The default is for messages that name none.
    }

    /// Returns, for the answer to one message of a stream, the code of a refusal.
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
    /// The problem, as a sentence.
    pub message: String,
    /// The next step; empty where the contract says nothing.
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

/// Adds the hint of a field to its violations, those from `start` on.
fn hint(out: &mut [Violation], start: usize, hint: &'static str) {
    for violation in out.iter_mut().skip(start) {
        violation.hint = hint;
    }
}

fn max_chars(value: &str, max: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    // A text has no more characters than bytes, so most need no count.
    if value.len() > max {
        let count = value.chars().count();
        if count > max {
            let message = format!("must have at most {max} characters, has {count}");
            push(out, path, "string.max_len", message);
        }
    }
}

fn min_chars(value: &str, min: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if value.chars().take(min).count() < min {
        let message = format!("must have at least {min} characters");
        push(out, path, "string.min_len", message);
    }
}

fn max_bytes(value: &[u8], max: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if value.len() > max {
        let message = format!("must have at most {max} bytes, has {}", value.len());
        push(out, path, "bytes.max_len", message);
    }
}

fn max_items(count: usize, max: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if count > max {
        let message = format!("must have at most {max} items, has {count}");
        push(out, path, "repeated.max_items", message);
    }
}

fn min_items(count: usize, min: usize, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if count < min {
        let message = format!("must have at least {min} items, has {count}");
        push(out, path, "repeated.min_items", message);
    }
}

fn at_most<T: Copy + PartialOrd + std::fmt::Display>(
    value: T,
    max: T,
    path: impl FnOnce() -> String,
    out: &mut Vec<Violation>,
) {
    // NaN compares with nothing, so it breaks every bound.
    if value.partial_cmp(&max).is_none_or(Ordering::is_gt) {
        let message = format!("must be at most {max}, is {value}");
        push(out, path, "number.lte", message);
    }
}

fn at_least<T: Copy + PartialOrd + std::fmt::Display>(
    value: T,
    min: T,
    path: impl FnOnce() -> String,
    out: &mut Vec<Violation>,
) {
    if value.partial_cmp(&min).is_none_or(Ordering::is_lt) {
        let message = format!("must be at least {min}, is {value}");
        push(out, path, "number.gte", message);
    }
}

fn known(known: bool, path: impl FnOnce() -> String, out: &mut Vec<Violation>) {
    if !known {
        let message = "must be a value that the enum names".to_owned();
        push(out, path, "enum.defined_only", message);
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
