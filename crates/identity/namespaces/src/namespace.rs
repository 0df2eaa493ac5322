//! The record of a namespace, its settings, and its changes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use model::Principal;

/// The visibility of a namespace's skills, from the widest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Every caller that may read.
    #[default]
    Public,
    /// Every caller that signed in.
    Internal,
    /// Those whose rights name them, owners, and those who may change them.
    Private,
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Private => "private",
        })
    }
}

/// The effect of the first publish in a namespace without owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirstPublish {
    /// The namespace stays without owners.
    #[default]
    Open,
    /// The publisher owns it from then on.
    Claims,
    /// It is refused: an administrator names the owners before.
    Refused,
}

/// The settings for namespaces without a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamespacesConfig {
    /// The visibility of their skills.
    pub visibility: Visibility,
    /// The effect of the first publish in one.
    pub first_publish: FirstPublish,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// `source/author`.
    pub name: String,
    /// The visibility of its skills; none: that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Its owners, by their names as callers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Principal>,
    /// When the record last changed.
    pub updated_at: Timestamp,
    /// The caller that changed it.
    pub updated_by: Principal,
}

impl Namespace {
    /// Tells whether a caller owns it.
    #[must_use]
    pub fn is_of(&self, caller: &Principal) -> bool {
        self.owners.contains(caller)
    }

    /// Tells whether the record says nothing that the settings do not say.
    pub(crate) fn is_empty(&self) -> bool {
        self.visibility.is_none() && self.owners.is_empty()
    }
}

/// A change of who sees the skills of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewVisibility {
    /// Stays as it is.
    #[default]
    Unchanged,
    /// As the settings have it.
    BySettings,
    /// This one.
    Set(Visibility),
}

/// A change of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The new visibility of its skills.
    pub visibility: NewVisibility,
    /// Owners to add.
    pub add_owners: Vec<String>,
    /// Owners to remove.
    pub remove_owners: Vec<String>,
}
