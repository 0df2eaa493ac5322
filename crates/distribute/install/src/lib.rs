//! Installs skills as folders in which agents find them, and checks whether they are still what
//! was installed.
//!
//! Rules:
//!
//! * A folder of skills ([`Directory`]) holds a skill as a whole, or not at all. The new files
//!   are written next to it, synced, and recorded before the first rename; the next call
//!   finishes a change that was cut off by a kill, or clears it away.
//! * What we did not install is never overwritten and never removed. What we did install,
//!   and somebody changed, only by force. Files that others put into the folder of a skill stay
//!   with it.
//! * One process at a time changes a directory: it holds a lock on it.
//! * Nothing that is read from a record becomes a path, but the paths of files, which are
//!   checked: the name of a folder is the slug of its id. No link is followed on the way to a file
//!   (`root_folder`), and a change is finished in the folder alone in which it began. So the
//!   record of a repository that somebody else wrote leads nowhere.
//! * A warning of the scan is accepted by a person, in a file of their own, for these bytes.
//! * Files are compared with their digests before they are written, and whenever their health
//!   is asked for.
//!
//! | file | what it does |
//! |---|---|
//! | `accepted` | versions whose warnings the user accepted |
//! | `agent` | the folders in which agents look for skills |
//! | `directory`, `state`, `disk` | a directory of skills, its record, and every step on the disk |
//! | `contents` | copies that links lead to, by their digests |
//! | `health` | the files on disk, compared with what was installed |
//! | `home` | all directories of a machine together, and the order of their skills |
//! | `priority` | the order of skills, and what moves when one is moved |
//! | `archive` | the archive of a version, unpacked within limits |
//! | `lock_file`, `npx` | `skills.lock`, and the lock of `npx skills` |
//!
//! Not here: whether a skill may be installed (`preflight`), where its files come from, output.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod accepted;
mod agent;
mod archive;
mod contents;
mod directory;
mod disk;
mod error;
mod health;
mod home;
mod lock_file;
mod npx;
mod priority;
mod record;
mod state;
#[cfg(test)]
mod tests;

pub use agent::{AGENTS, Agent, Scope, below, resolved};
pub use archive::unpack;
pub use directory::{Directory, Installing, Removed, hold};
pub use error::Error;
pub use health::{Health, Status};
pub use home::{Home, Placed, find};
pub use lock_file::{LOCK_FILE, Locked, SkillsLock};
pub use npx::{NPX_LOCK_FILE, NpxSkill};
pub use priority::{Moved, Order, PriorityEntry};
pub use record::{Method, Record, is_named};
pub use state::list;

/// Skills that a directory may have.
pub const MAX_SKILLS: usize = 4_096;
