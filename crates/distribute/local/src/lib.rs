//! The skills around an agent: in the folders of its project and of its user's home, as they are
//! now, for callers from there.
//!
//! Rules:
//!
//! * Nothing of them is stored. A caller sees the skills of the store with these in front
//!   ([`registry::Registry::with_local`]), and nobody else sees them.
//! * A place is scanned once for all of its callers, and for as long as there are some.
//! * A folder is scanned again whenever something happens in it, and read if it changed. It is
//!   read once it has been quiet for a moment, and the result counts if the folder is the same
//!   before and after the read: so no skill is ever half of what an editor writes.
//! * A problem with one folder is reported, and stops no other.
//! * All of it is bounded: places, skills of a place, their bytes, the folders and files that
//!   are visited. A skill has one version, so that thousands of saves take no memory. Contents
//!   are held of skills that are shown alone: a scan needs memory for the old skills, the new
//!   ones, and one that is being read.
//! * Where the system has no events, or no watches left, folders are polled.
//!
//! | file | holds |
//! |---|---|
//! | `agent_folders` | the folders of a project and of a home |
//! | `find` | which folders there hold a skill |
//! | `folder_scanner` | what changed there, and the skills that it leads to |
//! | `selection` | which of the skills are shown, and held |
//! | `watches` | events of folders |
//! | `overlay` | one place, kept in step |
//! | `overlays` | all of them |
//! | `folder_watcher` | a folder that an author works in, read anew after each save |
//!
//! Not here: how these skills are put in front of the store's (`registry`, `search`), how a folder
//! is read (`folders`), which place a caller is at (the server).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod agent_folders;
mod find;
mod folder_scanner;
mod folder_watcher;
mod overlay;
mod overlays;
mod selection;
#[cfg(test)]
mod tests;
mod watches;

pub use agent_folders::AgentFolders;
pub use folder_scanner::{Limits, Skipped};
pub use folder_watcher::FolderWatcher;
pub use overlay::{Change, Changes, OverlaySnapshot};
pub use overlays::{Options, Overlays};
