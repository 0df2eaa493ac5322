//! Skills as folders in which agents find them: how they get there, and whether they are
//! still what was installed.
//!
//! Rules:
//!
//! * A folder of skills ([`Directory`]) holds a skill as a whole, or not at all. What is
//!   to come is written beside it, is on disk, and is noted before the first rename; the
//!   next call finishes what a kill left half done, or clears it away.
//! * What we did not install is never overwritten and never removed. What we did install,
//!   and somebody changed, only by force. What others put into the folder of a skill stays
//!   with it.
//! * One process at a time changes a directory: it holds a lock on it.
//! * Nothing that is read from a record becomes a path, but the paths of files, which are
//!   checked: a folder is called by the slug of its id. So the record of a repository that
//!   somebody else wrote leads nowhere.
//! * Files are compared with their digests before they are written, and whenever somebody
//!   asks for their health.
//!
//! | file | what it does |
//! |---|---|
//! | `agent` | where the agents that people use look for skills |
//! | `directory`, `state`, `disk` | a directory of skills, its record, and every step on the disk |
//! | `contents` | copies that links lead to, kept by their digests |
//! | `health` | what is on disk, compared with what was installed |
//! | `home` | all directories of a machine together, and the order of their skills |
//! | `priority` | places of skills: who makes way for whom |
//! | `archive` | the archive of a version, unpacked within limits |
//! | `lock_file`, `npx` | `skills.lock`, and the lock of `npx skills` |
//!
//! Not here: whether a skill may be installed (`preflight`), where its files come from, what
//! is told of it.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

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

pub use agent::{AGENTS, Agent, Scope, below};
pub use archive::unpack;
pub use directory::{Directory, Installing, Removed, hold};
pub use error::Error;
pub use health::{Health, Status};
pub use home::{Home, Placed};
pub use lock_file::{LOCK_FILE, Locked, SkillsLock};
pub use npx::{NPX_LOCK_FILE, NpxLock, NpxSkill};
pub use priority::{Moved, Order, PriorityEntry};
pub use record::{Method, Record};
pub use state::list;

/// Skills that a directory may have.
pub const MAX_SKILLS: usize = 4_096;
