//! The words of the domain: identifiers, skills, versions, problems, failures.
//!
//! Rules:
//!
//! * A name that can be wrong is a type that cannot be: [`SkillId`],
//!   [`FilePath`], [`Digest`], [`SkillUri`] are checked once, when they are
//!   made, and say which character was wrong.
//! * Nothing here knows a wire format, a store or a clock. [`Clock`] is passed
//!   in.
//! * Stores hold these types, through serde. So a field may be added with a
//!   default, and never renamed.
//!
//! Not here: reading `SKILL.md` (`skill_md`), storage (`store`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod clock;
mod credential;
mod digest;
mod event;
mod failure;
mod file_path;
mod invisible;
mod list;
mod number;
mod panics;
mod principal;
mod problem;
mod reference;
mod skeleton;
mod skill;
mod skill_id;
mod skill_pattern;
mod slug;
#[cfg(test)]
mod tests;
mod text;
mod token;
mod tool_name;
mod uri;
mod version;

pub use clock::{Clock, SystemClock};
pub use credential::{Credential, credentials, is_placeholder, redacted};
pub use digest::{Digest, DigestError, bundle_digest};
pub use event::{Event, EventKind};
pub use failure::{Code, Failure, FieldProblem, Kind, one_of};
pub use file_path::{FilePath, FilePathError, is_device};
pub use invisible::{Invisible, invisible, is_ignorable};
pub use list::listed;
pub use number::{MAX_EXACT, NOT_EXACT, inexact, is_inexact, whole};
pub use panics::{caught, panic_words, quiet_panics};
pub use principal::Principal;
pub use problem::{Problem, Severity};
pub use reference::{Reference, VersionSelector, VersionWish, VersionedReference};
pub use skeleton::skeleton;
pub use skill::{
    CompatibilityRule, CompatibilityRuleType, ComposabilityRule, ComposabilityRuleType,
    OutputContract, ResourceConfig, Skill, ToolArgument, ToolConfig,
};
pub use skill_id::{HOSTS, Location, SkillId, SkillIdError, SkillKey};
pub use skill_pattern::{PatternError, SkillPattern};
pub use slug::{MAX_SLUG_CHARS, MAX_STANDARD_DESCRIPTION_CHARS, is_standard_name, slugify};
pub use text::{
    beginning, beginning_in_tokens, cut, inert, inert_line, printable, printable_lines, shown,
    shown_lines, tokens,
};
pub use token::{open_token, seal_token};
pub use tool_name::{ToolName, find_tool, fold_tool};
pub use uri::{SkillUri, SkillUriError};
pub use version::{
    Block, FileEntry, MAX_VERSION_PART, StatedVersionError, TrustTier, Version, VersionNumber,
    Yank, is_test, stated_version,
};

/// Files a skill may have. The largest of 37,000 public ones has 1,225, and a vendor's own
/// 702. Each costs a record and some 120 bytes with its version. The cost of reading, hashing
/// and storing a skill is bounded by its bytes.
pub const MAX_FILES: usize = 2_048;

/// Files a skill may have to be offered over the MCP Skills extension ("Limits").
pub const MAX_OFFERED_FILES: usize = 512;

/// Bytes of all files of a skill (MCP Skills extension, "Limits").
pub const MAX_SKILL_BYTES: u64 = 16 * 1024 * 1024;
