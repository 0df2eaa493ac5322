//! What a scan costs: `cargo test --release -p repertoire-trust --test scans speed:: -- --nocapture`
//! prints it. What fails here is far slower than what was measured.

use std::path::Path;
use std::time::{Duration, Instant};

use repertoire_trust::{Input, Scanner};

fn took(files: &[(&str, &[u8])]) -> Duration {
    let known: &[&str] = &[];
    let input = Input {
        files,
        name: "helper",
        allowed_tools: &[],
        known_names: &known,
    };
    // The first scan compiles the rules, and the expressions as far as they are met.
    let warm = Scanner::bundled().scan(&input);
    let started = Instant::now();
    let report = Scanner::bundled().scan(&input);
    assert_eq!(report, warm);
    started.elapsed()
}

#[test]
fn a_scan_takes_time_by_the_size_of_the_files() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let dense: String = std::fs::read_dir(cases)
        .expect("a folder")
        .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("a file"))
        .collect();
    let plain = include_str!("../../src/judge.rs");
    let large = if cfg!(debug_assertions) { 1 } else { 7 } * 1024 * 1024;
    for (what, text) in [("attacks", dense.as_str()), ("code", plain)] {
        for (size, limit) in [(100 * 1024, 50), (large, 1_400)] {
            let text = text.repeat(size / text.len() + 1);
            for path in ["SKILL.md", "a.py"] {
                let text = text.get(..size).unwrap_or(&text).as_bytes();
                let took = took(&[(path, text)]);
                println!("{size} bytes of {what} in {path}: {took:?}");
                // Debug builds, and machines that others use.
                assert!(
                    took < Duration::from_millis(limit * 40),
                    "{what} {path} {took:?}"
                );
            }
        }
    }
}
