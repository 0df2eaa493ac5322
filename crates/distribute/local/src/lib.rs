//! Skills that lie around an agent: in the folders of its project and of its user's home, as
//! they are now, for whoever calls from there.
//!
//! Rules:
//!
//! * Nothing of them is stored. What a caller sees are the skills of the store with these in
//!   front ([`registry::Registry::with_local`]), and nobody else sees them.
//! * One place is looked at once, however many call from it, and for as long as somebody does.
//! * A folder is looked at again whenever something happens in it, and read where it is not as
//!   it was. It is read once it has been quiet for a moment, and taken if it is after the
//!   reading as it was before: so no skill is ever half of what an editor writes.
//! * What is wrong with one folder is told, and stops no other.
//! * All of it is bounded: places, skills of a place, their bytes, the folders and files that
//!   are looked at. Of a skill there is one version, so that thousands of saves take no memory.
//!   Contents are held of what is shown alone: a look takes the skills of before, those of now
//!   and one that is being read.
//! * A system that tells nothing, or that has no watches left, is asked at intervals.
//!
//! | file | what it says |
//! |---|---|
//! | `agent_folders` | where an agent's skills are: the folders of a project and of a home |
//! | `find` | which folders there hold a skill |
//! | `folder_scanner` | what has changed there, and what it comes to |
//! | `selection` | which of the skills are shown, and held |
//! | `watches` | being told that something happens |
//! | `overlay` | one place, kept in step |
//! | `overlays` | all of them |
//! | `folder_watcher` | a folder that somebody works in, read anew after each save |
//!
//! Not here: how these skills are put in front of the store's (`registry`, `search`), what is
//! read of a folder (`folders`), who calls from where (the server).

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
