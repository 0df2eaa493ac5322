//! The progress of a sync.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::SyncRecord;

/// How much a sync reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What changed.
    Incremental,
    /// Everything.
    Full,
}

/// The step that a sync is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It waits, and reads its records.
    Preparing,
    /// It looks at the source.
    Fetching,
    /// It reads and scans what is new there.
    Processing,
    /// It withdraws what is gone, and writes the state of the source.
    Storing,
}

/// The progress of a sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The sync.
    pub id: String,
    /// How much it reads.
    pub kind: Kind,
    /// When it began.
    pub started_at: Timestamp,
    /// The step that it is at.
    pub phase: Phase,
    /// The source that it is at.
    pub source: Option<String>,
    /// Skills of that source that are done.
    pub done: u64,
    /// Skills of that source to do in all.
    pub total: u64,
    /// Its result; none: it is running.
    pub ended: Option<SyncRecord>,
}

impl Progress {
    /// The share that is done, 0 to 100.
    #[must_use]
    pub fn percent(&self) -> u32 {
        if self.ended.is_some() {
            return 100;
        }
        let share = (self.done * 100).checked_div(self.total).unwrap_or(0);
        u32::try_from(share.min(100)).unwrap_or(100)
    }
}
