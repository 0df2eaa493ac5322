//! Fuzzing: random changes of seeds, for a time.
//!
//! `tests/fuzz/TARGET` holds seeds, also those that once broke something. Each
//! target runs for `REPERTOIRE_FUZZ_SECONDS` (1 by default), so that
//!
//! ```sh
//! REPERTOIRE_FUZZ_SECONDS=600 REPERTOIRE_FUZZ_SEED=$RANDOM cargo test --workspace --lib fuzz_ -- --nocapture --test-threads 1
//! ```
//!
//! takes about an hour. What breaks something is written to `target/fuzz`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

/// Bytes of an input.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// Changes of changes, before it goes on from a seed again.
const MAX_GENERATIONS: usize = 32;

/// Pseudo-random numbers: xorshift, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound.max(1)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).expect("a byte")
    }
}

fn number(variable: &str, default: u64) -> u64 {
    match env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}")),
        Err(_) => default,
    }
}

/// Runs a target on each of its seeds, and then on changes of them. `words` are
/// what its language is made of.
///
/// # Panics
/// The target does; the message names the file with the input.
pub fn fuzz(target: &str, words: &[&str], run: impl Fn(&[u8])) {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = root.join("tests/fuzz").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let seeds: Vec<_> = paths
        .iter()
        .map(|path| fs::read(path).expect("a seed"))
        .collect();
    assert!(!seeds.is_empty(), "{} has no seeds", folder.display());
    let mut slowest = (Duration::ZERO, String::new());
    let mut runs = 0_u64;
    let mut tried = |input: &[u8]| {
        let started = Instant::now();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
            let file = kept(root, target, input);
            eprintln!("fuzz {target}: broken by {file}; put it into tests/fuzz/{target}");
            resume_unwind(panic);
        }
        let took = started.elapsed();
        if took > slowest.0 {
            slowest = (took, kept(root, &format!("{target}-slowest"), input));
        }
        runs += 1;
    };
    for seed in &seeds {
        tried(seed);
    }
    let end = Instant::now() + Duration::from_secs(number("REPERTOIRE_FUZZ_SECONDS", 1));
    let mut random = Random(number("REPERTOIRE_FUZZ_SEED", 1).max(1) << 16 | 0x5EED);
    while Instant::now() < end {
        let mut input = random.one_of(&seeds).clone();
        for _ in 0..random.below(MAX_GENERATIONS) {
            change(&mut input, &mut random, &seeds, words);
            tried(&input);
        }
    }
    println!(
        "fuzz {target}: {runs} inputs, the slowest took {:?} ({})",
        slowest.0, slowest.1
    );
}

/// A name for an input, the same in every run.
fn hash(input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Writes an input to a file of its own.
fn kept(root: &Path, target: &str, input: &[u8]) -> String {
    let slowest = target.ends_with("-slowest");
    let name = if slowest {
        target.to_owned()
    } else {
        format!("{target}-{}", hash(input))
    };
    let folder = root.join("target/fuzz");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    fs::write(&path, input).expect("a file");
    path.display().to_string()
}

/// One random change.
fn change(input: &mut Vec<u8>, random: &mut Random, seeds: &[Vec<u8>], words: &[&str]) {
    let at = random.below(input.len() + 1);
    let length = 1 + random.below(8.min(input.len().max(1)));
    let part = at..(at + length).min(input.len());
    match random.below(10) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.byte(),
        2 => insert(input, at, &[random.byte()]),
        3 => drop(input.drain(part)),
        4 => {
            let copy = input[part].to_vec();
            let to = random.below(input.len() + 1);
            insert(input, to, &copy);
        }
        // The end of one and the beginning of another.
        5 => {
            let other = random.one_of(seeds);
            let from = random.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        6 => input.truncate(at),
        // Much of the same: what is deep, or long.
        7 if random.below(8) == 0 => {
            let copy = input[part].repeat(1 + random.below(2000));
            insert(input, at, &copy);
        }
        8 => {
            let unusual = [
                "\0",
                "\u{feff}",
                "\u{202e}",
                "\u{e0041}",
                "é",
                "\r\n",
                "-1",
                "1e400",
                "0x7f",
                "9007199254740993",
                "18446744073709551616",
                "\u{1b}[0m",
                "💥",
                "..",
                "//",
                "%00",
            ];
            insert(input, at, random.one_of(&unusual).as_bytes());
        }
        _ if !words.is_empty() => insert(input, at, random.one_of(words).as_bytes()),
        _ => {}
    }
    input.truncate(MAX_INPUT_BYTES);
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}
