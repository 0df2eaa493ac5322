//! Finding skills and handing them out: names, addresses, lists, search, files, and
//! the section of a prompt that names them.
//!
//! Rules:
//!
//! * A short name is compared without case, and where there is none with other characters
//!   between its words. It goes to project before user before global; of global skills, to the
//!   one that holds it (`registry`'s `short_names`). The answer always lists the other skills of
//!   the name, and a skill of the store whose id a folder's skill has too. A name that leads
//!   nowhere is answered with the nearest names.
//! * A write names its skill by its full id ([`Lookup::write`]).
//! * Filters apply before paging. A list walks from its position in the order of ids and, where
//!   a filter has an index, over that index only.
//! * Every way to a file gives the same bytes.
//! * The cost of completing a name or writing a prompt depends on the answer, not on the number
//!   of skills.
//!
//! Search is a crate of its own (`search`): it follows the registry and keeps files.
//!
//! Not here: writes (`registry`; only the skills that their words lead to are), sets of skills
//! (`composition`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod complete;
mod error;
mod list;
mod named;
mod prompt;
mod read;
mod task_prompt;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use complete::{Completion, NameForm};
pub use error::Error;
pub use list::{ListPage, ListQuery};
pub use prompt::Prompt;
pub use read::{FilePart, SkillText, is_address};
pub use task_prompt::{EXPLORATION_PERCENT, PromptTask};

use model::{Reference, SkillId, SkillKey, VersionSelector};
use registry::{Catalog, Described, Head, Registry};

/// Reads over a registry. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lookup {
    registry: Registry,
}

/// A skill that a reference led to, and those that lost to it.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The skill.
    pub head: Arc<Head>,
    /// Skills of the same short name that lost to it, in their order.
    pub shadowed: Vec<SkillId>,
}

/// A version that a reference led to, and the skills that lost to it.
#[derive(Debug, Clone)]
pub struct FoundSkill {
    /// The version.
    pub described: Described,
    /// Skills of the same short name that lost to it, in their order.
    pub shadowed: Vec<SkillId>,
}

/// Returns the skill of the store that a folder's skill of the same id hides.
fn hidden(catalog: &Catalog, key: &SkillKey) -> impl Iterator<Item = SkillId> {
    let hidden = catalog.hidden(key).filter(|head| head.active.is_some());
    hidden.map(|head| head.id.clone()).into_iter()
}

impl Lookup {
    /// Reads over a registry.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// The skill of an id, or the one that holds a short name, which may be withdrawn or blocked.
    ///
    /// # Errors
    /// There is no such skill.
    pub fn resolve(&self, reference: &Reference) -> Result<Resolved, Error> {
        Self::resolve_among(&self.registry.catalog(), reference)
    }

    /// The same among the skills of a snapshot, for callers that resolve more than once.
    ///
    /// # Errors
    /// There is no such skill; it says which names are near.
    pub fn resolve_among(catalog: &Catalog, reference: &Reference) -> Result<Resolved, Error> {
        let found = Self::find_among(catalog, reference);
        Ok(found.ok_or_else(|| catalog.not_found(&reference.to_string()))?)
    }

    /// The same, without an error where there is none.
    #[must_use]
    pub fn find_among(catalog: &Catalog, reference: &Reference) -> Option<Resolved> {
        let name = match reference {
            Reference::Id(id) => {
                let key = id.key();
                return Some(Resolved {
                    head: Arc::clone(catalog.get(&key)?),
                    shadowed: hidden(catalog, &key).collect(),
                });
            }
            Reference::Name(name) => name,
        };
        let name = catalog.spelled(name)?;
        let holder = catalog.holder(&name).filter(|head| !head.deleted);
        let head = Arc::clone(holder?);
        let others = catalog
            .named(&name)
            .filter(|other| other.active.is_some() && other.id != head.id)
            .map(|head| head.id.clone());
        let shadowed = hidden(catalog, &head.id.key()).chain(others).collect();
        Some(Resolved { head, shadowed })
    }

    /// A version of the skill that a reference leads to.
    ///
    /// # Errors
    /// There is no such skill or version.
    pub fn get(
        &self,
        reference: &Reference,
        selector: &VersionSelector,
    ) -> Result<FoundSkill, Error> {
        let Resolved { head, shadowed } = self.resolve(reference)?;
        let version = self.registry.version(&head, selector)?;
        Ok(FoundSkill {
            described: self.registry.described(head, version)?,
            shadowed,
        })
    }
}
