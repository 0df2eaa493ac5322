//! The actions that a caller may be allowed, and the roles that group them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Actions;

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $by_skill:literal;)*) => {
        /// An action that a caller may be allowed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Action { $($(#[$doc])* $variant,)* }

        impl Action {
            /// All of them, as the contract lists them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name, such as `read`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// It is done to a skill, or about one, so a grant may be limited to some skills.
            #[must_use]
            pub const fn is_by_skill(self) -> bool {
                match self { $(Self::$variant => $by_skill,)* }
            }

            /// It takes access to the server's machine where nobody signs in.
            #[must_use]
            pub const fn is_operators(self) -> bool {
                matches!(self, Self::Review | Self::Operate | Self::Administer)
            }
        }
    };
}

actions! {
    /// List, search, compare and compose skills.
    Read = "read", false;
    /// Get the texts and files of skills, and load skills into a session.
    Load = "load", false;
    /// Call the tools of loaded skills.
    Call = "call", false;
    /// Follow learning paths, and hand in solutions.
    Learn = "learn", false;
    /// Review what learners handed in.
    Grade = "grade", false;
    /// Publish versions of skills.
    Publish = "publish", true;
    /// Choose the version that is handed out; withdraw versions and put them back.
    Activate = "activate", true;
    /// Delete skills.
    Delete = "delete", true;
    /// Put skills on the blocklist.
    Block = "block", true;
    /// Have sources synced now.
    Sync = "sync", false;
    /// Approve and reject held versions, and take skills off the blocklist.
    Review = "review", true;
    /// Read the audit trail.
    Audit = "audit", true;
    /// Run the tools of skills, as a worker.
    Serve = "serve", false;
    /// Operate the server.
    Operate = "operate", false;
    /// Grant and revoke rights.
    Administer = "administer", false;
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        all.find(|action| action.name() == text).ok_or_else(|| {
            let names = names(Self::ALL, Self::name);
            format!("`{text}` is not an action; use {names}")
        })
    }
}

/// Actions under a name that people use. A token holds the actions, so a role that changes
/// changes no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Finds and reads skills.
    Reader,
    /// An agent: loads skills and calls their tools; learns.
    Agent,
    /// Publishes skills, and chooses which version is handed out.
    Publisher,
    /// Decides on held versions, blocks skills, and reads the audit trail.
    Reviewer,
    /// Operates the server.
    Operator,
    /// May do everything.
    Administrator,
}

impl Role {
    /// All of them, by what they may do.
    pub const ALL: &'static [Self] = &[
        Self::Reader,
        Self::Agent,
        Self::Publisher,
        Self::Reviewer,
        Self::Operator,
        Self::Administrator,
    ];

    /// Its name, such as `reader`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Agent => "agent",
            Self::Publisher => "publisher",
            Self::Reviewer => "reviewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    /// Its actions.
    #[must_use]
    pub fn actions(self) -> Actions {
        use Action::{
            Activate, Audit, Block, Call, Delete, Grade, Learn, Load, Operate, Publish, Read,
            Review, Sync,
        };
        let actions: &[Action] = match self {
            Self::Reader => &[Read, Load],
            Self::Agent => &[Read, Load, Call, Learn],
            Self::Publisher => &[Read, Load, Call, Learn, Publish, Activate, Delete],
            Self::Reviewer => &[Read, Load, Learn, Grade, Block, Review, Audit],
            Self::Operator => &[Read, Load, Block, Sync, Review, Audit, Operate],
            Self::Administrator => Action::ALL,
        };
        actions.iter().copied().collect()
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        all.find(|role| role.name() == text).ok_or_else(|| {
            let names = names(Self::ALL, Self::name);
            format!("`{text}` is not a role; use {names}")
        })
    }
}

/// A list of names for a message.
pub(crate) fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
    let names: Vec<_> = all.iter().map(|it| name(*it)).collect();
    names.join(", ")
}
