//! Power cuts, replayed: see `power_cut`.

#![allow(
    unreachable_pub,
    clippy::pedantic,
    reason = "of the test binary that has this module"
)]

pub mod disk;
pub mod trace;
