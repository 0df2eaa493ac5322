//! What is said of a namespace.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use model::Principal;

/// Who sees the skills of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Whoever may read.
    #[default]
    Public,
    /// Whoever signed in.
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

/// What the first publish in a namespace of nobody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirstPublish {
    /// The namespace stays nobody's.
    #[default]
    Open,
    /// Whoever publishes owns it from then on.
    Claims,
    /// It is refused: an administrator names the owners before.
    Refused,
}

/// What holds of namespaces of which nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamespacesConfig {
    /// Who sees their skills.
    pub visibility: Visibility,
    /// What the first publish in one does.
    pub first_publish: FirstPublish,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// `source/author`.
    pub name: String,
    /// Who sees its skills; none: what the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Who owns it, by their names as callers; none: nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Principal>,
    /// When something was last said of it.
    pub updated_at: Timestamp,
    /// Who said it.
    pub updated_by: Principal,
}

impl Namespace {
    /// A caller owns it.
    #[must_use]
    pub fn is_of(&self, caller: &Principal) -> bool {
        self.owners.contains(caller)
    }

    /// It says what is so without it, too.
    pub(crate) fn is_empty(&self) -> bool {
        self.visibility.is_none() && self.owners.is_empty()
    }
}

/// Who is to see the skills of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewVisibility {
    /// Who sees them now.
    #[default]
    Unchanged,
    /// Who the settings say.
    BySettings,
    /// These.
    Set(Visibility),
}

/// What is to be said of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Who is to see its skills.
    pub visibility: NewVisibility,
    /// Who is to own it as well.
    pub add_owners: Vec<String>,
    /// Who is not to own it any more.
    pub remove_owners: Vec<String>,
}
