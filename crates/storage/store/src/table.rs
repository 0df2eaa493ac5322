//! Typed tables over one ordered key space.
//!
//! One sled tree holds all tables, distinguished by the first byte of a key, since a batch is
//! atomic within one tree.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;
use model::{Digest, SkillKey, VersionNumber};

macro_rules! tables {
    ($($(#[$doc:meta])* $variant:ident = $byte:literal, $name:literal;)*) => {
        /// The tables of a data directory. A byte is never used for another.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TableId { $($(#[$doc])* $variant,)* }

        impl TableId {
            /// First byte of its keys.
            #[must_use]
            pub const fn byte(self) -> u8 {
                match self { $(Self::$variant => $byte,)* }
            }

            /// Returns its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the table of a key.
            #[must_use]
            pub fn of(key: &[u8]) -> Option<Self> {
                match key.first()? { $($byte => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

tables! {
    /// Facts of the directory itself.
    Meta = 1, "meta";
    /// The event log, by sequence.
    Events = 2, "events";
    /// Contents, by digest and chunk.
    Contents = 3, "contents";
    /// Chunks of records that are too large for one, by key and number.
    Chunks = 4, "chunks";
    /// The head of each skill.
    Heads = 10, "heads";
    /// Versions, by skill and number.
    Versions = 11, "versions";
    /// Numbers by skill and semantic version.
    Semantics = 12, "semantics";
    /// Numbers by skill and digest.
    Digests = 13, "digests";
    /// Withdrawals, by skill and number.
    Yanks = 14, "yanks";
    /// The blocklist, by skill.
    Blocks = 15, "blocks";
    /// Scans, by skill and number.
    Scans = 16, "scans";
    /// Versions that are not handed out until somebody approves them, by skill and number.
    Holds = 17, "holds";
    /// Claims to short names, by skill and digest of the name.
    NameClaims = 18, "name_claims";
    /// Answers to writes with an idempotency key.
    Answers = 20, "answers";
    /// Idempotency keys by the time at which they are forgotten.
    AnswerTimes = 21, "answer_times";
    /// Usage counts, by skill.
    Usage = 30, "usage";
    /// Calls of tools, by number.
    ToolCalls = 41, "tool_calls";
    /// Sessions of agents, some to a page, by number.
    Sessions = 43, "sessions";
    /// Calls of tools that named no session there is, by number.
    StrayCalls = 44, "stray_calls";
    /// Learners.
    Learners = 50, "learners";
    /// Progress in exercises, by learner and exercise.
    LearnerExercises = 51, "learner_exercises";
    /// Solutions that were handed in, by their digest.
    Submissions = 52, "submissions";
    /// Activities of learners, by learner and number.
    Activities = 53, "activities";
    /// Submissions that wait for a reviewer, by time.
    WaitingSubmissions = 54, "waiting_submissions";
    /// Sources that were added, by id.
    Sources = 60, "sources";
    /// The state of the last sync of a source, and the outcomes of those before it, by id.
    SourceStates = 61, "source_states";
    /// Items of a source, by id and path.
    SourceItems = 62, "source_items";
    /// The source that a skill comes from, by skill.
    SourceClaims = 63, "source_claims";
    /// Syncs that have ended, by number.
    Syncs = 64, "syncs";
    /// Tokens, by name.
    Tokens = 70, "tokens";
    /// Settings of namespaces, by name in lower case.
    Namespaces = 71, "namespaces";
    /// Names of tokens that were revoked.
    UsedTokenNames = 72, "used_token_names";
    /// The audit trail, by number: a chain.
    Audit = 80, "audit";
    /// Facts about the audit trail as a whole.
    AuditState = 81, "audit_state";
}

/// Part of a key, written so that keys sort as their parts do.
pub trait Key {
    /// Appends the part.
    fn write(&self, to: &mut Vec<u8>);
}

impl Key for str {
    /// Text, ended by NUL; text with a NUL in it is not a key of ours.
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
        to.push(0);
    }
}

impl Key for String {
    fn write(&self, to: &mut Vec<u8>) {
        self.as_str().write(to);
    }
}

impl Key for SkillKey {
    fn write(&self, to: &mut Vec<u8>) {
        self.as_str().write(to);
    }
}

impl Key for VersionNumber {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.get().to_be_bytes());
    }
}

impl Key for u64 {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_be_bytes());
    }
}

impl Key for u16 {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_be_bytes());
    }
}

impl Key for Digest {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
        self.2.write(to);
    }
}

/// A table with keys and values of its own.
///
/// Values are JSON: a later version may add a field with a default, and a person
/// can read a record.
#[derive(Debug)]
pub struct Table<K: ?Sized, V> {
    id: TableId,
    types: PhantomData<fn(&K) -> V>,
}

impl<K: Key + ?Sized, V> Table<K, V> {
    /// The table of an id. The crate that owns the table names its types once.
    #[must_use]
    pub const fn new(id: TableId) -> Self {
        Self {
            id,
            types: PhantomData,
        }
    }

    pub(super) fn id(&self) -> TableId {
        self.id
    }

    pub(super) fn key(&self, key: &K) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.push(self.id.byte());
        key.write(&mut bytes);
        bytes
    }

    pub(super) fn raw(&self, prefix: &[u8]) -> Vec<u8> {
        [&[self.id.byte()], prefix].concat()
    }

    pub(super) fn encode(value: &V) -> Vec<u8>
    where
        V: Serialize,
    {
        #[expect(
            clippy::expect_used,
            reason = "records have text keys and finite numbers"
        )]
        serde_json::to_vec(value).expect("a record is JSON")
    }

    pub(super) fn decode(key: &[u8], payload: &[u8]) -> Result<V, StoreError>
    where
        V: DeserializeOwned,
    {
        serde_json::from_slice(payload).map_err(|error| StoreError::damaged(key, error))
    }
}

/// Returns the bytes of a key part alone, for prefixes.
#[must_use]
pub fn prefix<K: Key + ?Sized>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_parts_do() {
        let table: Table<(String, (VersionNumber, u64, u16)), ()> = Table::new(TableId::Heads);
        let key = |name: &str, number, n, m| {
            let number = VersionNumber::new(number).expect("a number");
            table.key(&(name.to_owned(), (number, n, m)))
        };
        let parts = [b'a', 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 4];
        assert_eq!(key("a", 1, 2, 260)[1..], parts);
        let sorted = [
            key("a", 1, 2, 3),
            key("a", 1, 2, 300),
            key("a", 1, 300, 2),
            key("a", 300, 1, 1),
            key("aa", 1, 1, 1),
            key("b", 1, 1, 1),
        ];
        assert!(sorted.is_sorted_by(|a, b| a < b), "{sorted:?}");
    }
}
