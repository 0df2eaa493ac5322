//! What the benchmarks share: bars, quick mode, the server as a child, numbers
//! of a process, skills to publish, the skill that calls ask for.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "each benchmark uses a part of this; figures are printed with three digits"
)]

pub mod corpus;
pub mod load;
pub mod process;
pub mod sample;
pub mod signed;

use std::time::Duration;

/// A smoke run: everything happens, the figures say little.
pub fn quick() -> bool {
    std::env::var_os("BENCH_QUICK").is_some_and(|value| value != "0")
}

/// What a figure is held against.
#[derive(Clone, Copy)]
pub enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

/// Prints a figure beside its bar.
pub fn against(what: &str, figure: f64, unit: &str, bar: Bar) {
    let (sign, bound, met) = match bar {
        Bar::AtMost(bound) => ("<=", bound, figure <= bound),
        Bar::AtLeast(bound) => (">=", bound, figure >= bound),
    };
    let verdict = if met { "ok" } else { "MISSED" };
    let quick = if quick() { " (quick run)" } else { "" };
    println!("{what:<44} {figure:>9.2} {unit:<5} bar {sign} {bound} {unit:<5} {verdict}{quick}");
}

/// Prints a figure that has no bar.
pub fn figure(what: &str, figure: f64, unit: &str) {
    println!("{what:<44} {figure:>9.2} {unit}");
}

/// The middle one.
pub fn median(figures: &[f64]) -> f64 {
    quantile(figures, 0.5)
}

/// The figure below which this part of them lies.
pub fn quantile(figures: &[f64], part: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (part * (sorted.len() as f64 - 1.0)).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Numbers that look random and are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
