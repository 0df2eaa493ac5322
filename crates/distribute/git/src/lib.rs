//! Git repositories, fetched bare and shallow; skills are read from the tree.
//!
//! A [`Repository`] is a folder on this machine with the commits that were fetched of one
//! [`Remote`]. It is brought up to date by [`Repository::update`], searched for skills by
//! [`Repository::find`], and gives the files of one by [`Repository::read`]. All of them
//! block.
//!
//! Rules:
//!
//! * Nothing is checked out. No hook, filter, submodule or credential helper runs, and no
//!   configuration of the machine is read.
//! * An address is called only where the caller permits it: one that the URL spells out, one
//!   that a name resolves to, and those of every redirect.
//! * Bytes, objects, time, silence and redirects have limits ([`Limits`]). One object is
//!   refused by the size that it states, before it is inflated.
//! * Names in trees are text of strangers: a name that is no path of a skill refuses that
//!   skill, and no other.
//! * The folder is a cache: it may be deleted at any time, and is replaced where it is broken.
//! * No secret is in an error.
//!
//! Programs: `ssh` for addresses of that kind, `git` for folders of this machine.
//!
//! Not here: schedules, publishing, Large File Storage (its pointers are reported), and
//! repacking: after some fifty fetches the repository is cloned again.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod address;
mod conversation;
mod error;
mod exchange;
mod guard;
mod http;
mod process;
mod pull;
mod read;
mod remote;
mod repository;
mod tree;

pub use error::Error;
pub use guard::Limits;
pub use remote::{Credential, Remote, RemoteOptions};
pub use repository::{Earlier, Repository, Tip, Update};
pub use skill_folder::SkillFiles;
pub use tree::{CommitSkills, FoundSkill};
