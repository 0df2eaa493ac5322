//! What is written stays: kills, power cuts, disks that fail or are full, damaged files, and
//! many processes on one data directory.

mod harness;
#[path = "../support/mod.rs"]
mod support;

mod damage;
mod failing_disk;
mod kill_loop;
mod power_cut;
mod processes;
mod space;
mod windows;
