//! Skills in folders on the caller's machine: found, read as bundles, mended, and given ids.
//!
//! Rules:
//!
//! * What is no part of a skill stays on the machine, and is told.
//! * No folder takes the id of another.
//!
//! Not here: what is sent where (`cli`), what a `SKILL.md` says (`skill_md`), folders that
//! skills are installed to (`install`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod fix;
mod folder;
mod ids;
mod scan;
mod stamp;

pub use fix::{FixError, fix};
pub use folder::{LEFT_OUT, SkillFiles, SkillFolders, absolute, find, name, read, read_local};
pub use ids::{Claim, Ids};
pub use scan::{outermost, scan};
pub use stamp::{Stamp, TooMany, stamp};
