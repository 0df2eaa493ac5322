//! The stored records of sources and syncs.
//!
//! A source's state is one record, written at the end of a sync. Its items are a record each,
//! so that a sync of ten thousand skills, of which one changed, writes one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Kind, Source};
use model::{Digest, SkillId, SkillKey, VersionNumber};
use sources::{Item, RateLimit};
use store::{Batch, Revision, Table, TableId};

/// By id.
pub(crate) const SOURCES: Table<str, Source> = Table::new(TableId::Sources);
/// By id.
pub(crate) const STATES: Table<str, State> = Table::new(TableId::SourceStates);
/// By the source's id and the path.
pub(crate) const ITEMS: Table<(String, String), ItemRecord> = Table::new(TableId::SourceItems);
/// By skill.
pub(crate) const CLAIMS: Table<SkillKey, Claim> = Table::new(TableId::SourceClaims);
/// By number, from 1.
pub(crate) const SYNCS: Table<u64, SyncRecord> = Table::new(TableId::Syncs);

/// Syncs that are remembered.
pub(crate) const MAX_HISTORY: u64 = 100;
/// Failures of a source that are remembered.
pub(crate) const MAX_FAILURES: usize = 100;
/// Skips that a source lists.
pub(crate) const MAX_SKIPS: usize = 100;
/// Skips that a result lists: a history reads a hundred results.
pub(crate) const MAX_RESULT_SKIPS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) time: Timestamp,
    pub(crate) message: String,
}

/// The state of a source after its last look, and the failures of those before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// The commit that wrote it, which the next write of it expects.
    #[serde(skip)]
    pub(crate) read_at: Option<Revision>,
    /// For the next look.
    pub(crate) mark: Option<String>,
    /// For people.
    pub(crate) revision: String,
    /// A sync began to write and was not finished.
    pub(crate) is_unfinished: bool,
    pub(crate) last_check: Option<Timestamp>,
    pub(crate) last_success: Option<Timestamp>,
    /// Milliseconds of the last look.
    pub(crate) response_ms: Option<u64>,
    /// Milliseconds of the last sync that read everything.
    pub(crate) full_ms: Option<u64>,
    pub(crate) rate_limit: Option<RateLimit>,
    /// The place takes no request before this time.
    pub(crate) not_before: Option<Timestamp>,
    /// The latest last.
    pub(crate) failures: Vec<Failed>,
    /// Failures since the last success.
    pub(crate) failed_in_row: u32,
    /// Skills that are its own here.
    pub(crate) skills: u32,
    /// Its skills that were skipped.
    pub(crate) skips: Vec<Skip>,
    pub(crate) skips_left_out: u32,
}

impl State {
    /// Adds the write of the state to a batch.
    pub(crate) fn put(&self, batch: &mut Batch, source: &str) {
        batch.expect(&STATES, source, self.read_at.into());
        batch.put(&STATES, source, self);
    }
}

/// A skill of a source that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    /// Its path in the source.
    pub path: String,
    /// Why, as a sentence.
    pub reason: String,
}

/// Why an item was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Skipped {
    /// Its files make no skill, until they change.
    Bytes(String),
    /// Something on this server is against it, which may change.
    State(String),
    /// A person has to decide: it was handed out before, and is not what is active.
    Review(String),
}

impl Skipped {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Bytes(reason) | Self::State(reason) | Self::Review(reason) => reason,
        }
    }
}

/// The stored result for one item of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ItemRecord {
    /// As the last look listed it.
    pub(crate) item: Item,
    /// The skill here; none: it was skipped.
    pub(crate) skill: Option<SkillId>,
    pub(crate) digest: Option<Digest>,
    pub(crate) version: Option<VersionNumber>,
    #[serde(default)]
    pub(crate) skipped: Option<Skipped>,
}

/// Which source a skill comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) source: String,
    pub(crate) path: String,
}

/// How a sync ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncOutcome {
    /// All of it was done.
    Success,
    /// Some sources failed, and some did not.
    Partial,
    /// Every source failed.
    Failed,
}

/// The result of a sync for one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceResult {
    /// The source.
    pub source: String,
    /// Its name for people.
    pub title: String,
    /// Nothing had changed there, so nothing was done.
    pub unchanged: bool,
    /// Why it failed; none: it did not.
    pub error: Option<String>,
    /// Skills that are new here, or back.
    pub added: u32,
    /// Skills that have another version.
    pub updated: u32,
    /// Skills that were withdrawn.
    pub removed: u32,
    /// Versions that wait for approval, among those above.
    pub held: u32,
    /// Skills that were skipped.
    pub skipped: u32,
    /// The first of them, with reasons; 10 at most, the source itself lists more.
    pub skips: Vec<Skip>,
    /// Milliseconds that it took.
    pub duration_ms: u64,
}

impl SourceResult {
    /// Skills that are other than they were.
    #[must_use]
    pub fn changed(&self) -> u32 {
        self.added + self.updated + self.removed
    }

    pub(crate) fn skip(&mut self, path: &str, reason: &str) {
        self.skipped += 1;
        if self.skips.len() < MAX_SKIPS {
            // Paths and reasons have a stranger's text in them, as long as it likes.
            self.skips.push(Skip {
                path: model::shown(path, 300),
                reason: model::shown(reason, 600),
            });
        }
    }
}

/// A sync that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRecord {
    /// Its id.
    pub id: String,
    /// How much was read.
    pub kind: Kind,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Timestamp,
    /// Milliseconds between.
    pub duration_ms: u64,
    /// How it ended.
    pub ending: SyncOutcome,
    /// The results, source by source.
    pub sources: Vec<SourceResult>,
}

impl SyncRecord {
    /// Skills that are other than they were.
    #[must_use]
    pub fn changed(&self) -> u32 {
        self.sources.iter().map(SourceResult::changed).sum()
    }
}
