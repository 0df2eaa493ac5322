//! What a record says.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Details;
use access::{Action, Origin};
use model::{Digest, Principal, shown};
use store::{Link, StoreError};

/// Things that one record names, and characters of each.
pub(crate) const MAX_NAMES: usize = 8;
const MAX_NAME: usize = 200;
/// The detail with the number of names that a record leaves out.
pub const LEFT_OUT: &str = "names_left_out";

macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident = $name:literal;)*) => {
        /// The kind of a record.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum EventKind { $($(#[$meta])* $variant,)* }

        impl EventKind {
            /// All of them, as the contract lists them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name, such as `call`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// A call, and how it ended.
    #[default]
    Call = "call";
    /// Refusals that have no record of their own, counted.
    Refusals = "refusals";
    /// Records that were lost because the queue was full, counted.
    Lost = "lost";
    /// A server started.
    Start = "start";
    /// A server stopped.
    Stop = "stop";
    /// The store was restored from a backup, or salvaged, since the record before.
    Restored = "restored";
    /// Old records were removed.
    Pruned = "pruned";
    /// A server has read its config file again.
    Reload = "reload";
}

/// The body of a record. Fields may be added, with a default that is not written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Event {
    /// The time at which it happened.
    pub at: Timestamp,
    /// Its kind.
    pub kind: EventKind,
    /// The caller: `token:NAME`, `local`, `anonymous`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// The face through which the call came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub face: String,
    /// The other end of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The client, as the proxy in front reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<IpAddr>,
    /// The rpc, such as `Registry.PublishSkill`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rpc: String,
    /// The action that its caller needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// The skills, tools, tokens or sources that it was done to, as the request or the write
    /// names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// `OK`, or the code of the failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The trace of the caller, in hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
    /// The number that it stands for, where it counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: u64,
    /// Other facts, by name.
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A record with its position in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub number: u64,
    /// The digest of all up to here.
    pub digest: Digest,
    /// Its body.
    pub event: Event,
}

impl Event {
    pub(crate) fn new(at: Timestamp, kind: EventKind) -> Self {
        Self {
            at,
            kind,
            ..Self::default()
        }
    }

    pub(crate) fn came_from(&mut self, principal: &Principal, origin: Origin) {
        principal.as_str().clone_into(&mut self.principal);
        origin.face.clone_into(&mut self.face);
        self.address = origin.address;
        self.forwarded = origin.forwarded;
    }

    /// The canonical encoding.
    pub(crate) fn encode(&self) -> Vec<u8> {
        #[expect(clippy::expect_used, reason = "a record has text keys and no floats")]
        serde_json::to_vec(self).expect("a record is JSON")
    }

    pub(crate) fn decode(link: &Link) -> Result<Self, StoreError> {
        serde_json::from_slice(&link.body).map_err(|error| StoreError::Damaged {
            key: format!("audit/{}", link.mark.number),
            reason: error.to_string(),
        })
    }
}

/// The prefix of a token of this server.
const TOKEN: &str = "rpt_";

/// Returns a name that a caller sent, as a record holds it: short, on one line, without
/// credentials.
pub(crate) fn name(text: &str) -> String {
    match text.split_once(TOKEN) {
        // A caller may paste a token where a name belongs; no real name has this prefix with so
        // much after it.
        Some((before, after)) if after.len() > 20 => shown(before, MAX_NAME) + TOKEN + "…",
        _ => shown(text, MAX_NAME),
    }
}
