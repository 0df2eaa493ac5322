//! Skills in folders on the caller's machine: created, scanned, fixed, and given ids.
//!
//! Rules:
//!
//! * A file that is no part of a skill stays on the machine, and is reported.
//! * No folder takes the id of another.
//!
//! Not here: how folders are found and read (`skill_folder`), requests (`cli`), the contents of
//! a `SKILL.md` (`skill_md`), folders that skills are installed to (`install`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod draft;
mod fix;
mod ids;
mod scan;
mod template;
#[cfg(test)]
mod tests;

pub use draft::{Draft, ReportedProblems, drafts};
pub use fix::{FixError, fix};
pub use ids::{Claim, Ids};
pub use scan::{outermost, scan};
pub use skill_folder::{
    Inode, LEFT_OUT, SkillFiles, SkillFolders, Stamp, TooMany, absolute, find, inode, name, read,
    read_local, stamp,
};
pub use template::{NewError, NewSkill, new_skill};
