//! Words that a reader searches for: a constant ends in what it is.

use crate::workspace::{files, packages};

/// What the name of a number or a time says of it: a bound, a unit, or a kind.
const KINDS: &[&str] = &[
    "ATTEMPTS",
    "BACKOFF",
    "BITS",
    "BYTE",
    "BYTES",
    "CAPACITY",
    "CHARS",
    "CODE",
    "CONCURRENCY",
    "CONFIDENCE",
    "COUNT",
    "DAYS",
    "DEADLINE",
    "DEFAULT",
    "DELAY",
    "DEPTH",
    "EXPONENT",
    "FACTOR",
    "FORMAT",
    "HOURS",
    "ID",
    "INTERVAL",
    "KIB",
    "LENGTH",
    "LEVEL",
    "LIFETIME",
    "LIMIT",
    "LINES",
    "MARGIN",
    "MASK",
    "MAX",
    "MILLIS",
    "MIN",
    "MINUTES",
    "OFFSET",
    "PER",
    "PERCENT",
    "PROBABILITY",
    "RATE",
    "RATIO",
    "RETRIES",
    "SCORE",
    "SECOND",
    "SECONDS",
    "SEED",
    "SHARE",
    "SIZE",
    "STATE",
    "TAG",
    "THRESHOLD",
    "TIMEOUT",
    "TTL",
    "VERSION",
    "WEIGHT",
    "WIDTH",
];

const TYPES: &[&str] = &[
    "Duration", "f32", "f64", "i32", "i64", "u16", "u32", "u64", "u8", "usize",
];

/// The name of the constant that a line defines, where it is a number or a time.
fn constant(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("const ")?;
    let before = before.trim();
    let (name, rest) = rest.split_once(": ")?;
    let (kind, _) = rest.split_once(' ')?;
    let is_one = (before.is_empty() || before.starts_with("pub")) && TYPES.contains(&kind);
    is_one.then_some(name)
}

#[test]
fn a_constant_ends_in_what_it_is() {
    let mut found = Vec::new();
    for package in packages().values() {
        for (path, text) in files(package) {
            let names = text.lines().filter_map(constant);
            let nameless = names.filter(|name| !name.split('_').any(|word| KINDS.contains(&word)));
            found.extend(nameless.map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(
        found.is_empty(),
        "these constants have no unit, bound or kind in their names; a constant is `MAX_…`, \
         `…_TIMEOUT`, `…_INTERVAL`, `…_BYTES`:\n{}",
        found.join("\n")
    );
}
