//! Tests that cannot run, since something is missing.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::thread;

/// Says that this test, or a part of it, is left out, past the capture of its output. With
/// `CI=true` it fails instead. What is missing is told with how to get it.
///
/// `make test` ends with the sum of what stands in the file of `REPERTOIRE_SKIPPED`
/// (`tests/skipped`): a line each, of the test, a tab, and what is missing.
pub fn skip(missing: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    writeln!(io::stderr(), "*** {test}: {missing}: SKIPPED ***").expect("stderr");
    if let Some(file) = env::var_os("REPERTOIRE_SKIPPED") {
        let words: Vec<&str> = missing.split_whitespace().collect();
        let line = format!("{test}\t{}\n", words.join(" "));
        let mut open = OpenOptions::new();
        let mut file = open.create(true).append(true).open(file).expect("a file");
        // At once: other tests write to it, too.
        file.write_all(line.as_bytes()).expect("a line");
    }
}
