//! Views: the skills that a caller may see. All others do not exist for it.
//!
//! * A view is a catalog without the hidden skills, so its names, facets, counts and suggestions
//!   are those of a server on which the others were never published.
//! * It shares its trees with the full catalog, and follows it by their difference. A view costs
//!   as much as it leaves out once, and as much as was written since at each use.
//! * Ids alone decide what it shows, so no record of a skill has to be read.
//!
//! Not here: the rules of visibility (the crate `namespaces`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use imbl::ordmap::DiffItem;

use super::{Catalog, Registry};
use model::SkillId;

/// Decides the skills that a caller sees.
pub trait Sees: Send + Sync + fmt::Debug {
    /// Returns whether the caller sees the skill, or would if there were one.
    fn sees(&self, id: &SkillId) -> bool;
}

/// Compares the audiences of skills.
pub trait Audience: Send + Sync + fmt::Debug {
    /// Returns whether every caller that sees the one skill sees the other one as well.
    fn also_sees(&self, one: &SkillId, other: &SkillId) -> bool;
}

/// The skills that some callers see.
#[derive(Debug)]
pub struct View {
    sees: Arc<dyn Sees>,
    /// The last catalog, and the visible part of it.
    seen: Mutex<Option<(Arc<Catalog>, Arc<Catalog>)>>,
}

impl View {
    /// Makes the view of `sees`, whose answers must not change while the view is used.
    #[must_use]
    pub fn new(sees: Arc<dyn Sees>) -> Self {
        Self {
            sees,
            seen: Mutex::default(),
        }
    }

    /// Returns whether a skill is visible.
    #[must_use]
    pub fn sees(&self, id: &SkillId) -> bool {
        self.sees.sees(id)
    }

    /// Returns the visible part of a catalog.
    pub(super) fn of(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen().clone();
        // Not under the lock: a concurrent caller does the same work, and does not wait.
        let now = match before {
            Some((of, seen)) if Arc::ptr_eq(&of, &catalog) => return seen,
            Some((of, seen)) => seen.moved_on(&of, &catalog, self),
            None => catalog.without_unseen(self),
        };
        let now = Arc::new(now);
        *seen() = Some((catalog, Arc::clone(&now)));
        now
    }
}

impl Catalog {
    /// Returns the catalog without hidden skills.
    fn without_unseen(&self, view: &View) -> Self {
        let unseen: Vec<_> = self
            .all()
            .filter(|head| !view.sees(&head.id))
            .map(|head| head.id.key())
            .collect();
        // Whichever touches fewer skills: to remove the hidden ones, or to add the visible ones.
        let mut seen = if unseen.len() < self.heads.len() / 2 {
            let mut seen = self.clone();
            for key in &unseen {
                seen.remove(key);
            }
            seen
        } else {
            let mut seen = self.empty();
            let heads = self.all().filter(|head| view.sees(&head.id));
            heads.for_each(|head| seen.index(Arc::clone(head)));
            seen
        };
        seen.blocks = self.blocks.clone();
        let unseen = self.blocks.iter();
        let unseen = unseen.filter(|(_, block)| !view.sees(&block.skill));
        for (key, _) in unseen {
            seen.blocks.remove(key);
        }
        seen
    }

    /// Turns this view of `before` into one of `now`.
    fn moved_on(&self, before: &Self, now: &Self, view: &View) -> Self {
        let mut seen = self.clone();
        for change in before.blocks.diff(&now.blocks) {
            match change {
                DiffItem::Remove(key, _) => {
                    seen.blocks.remove(key);
                }
                DiffItem::Add(key, block)
                | DiffItem::Update {
                    new: (key, block), ..
                } => {
                    if view.sees(&block.skill) {
                        seen.blocks.insert(key.clone(), Arc::clone(block));
                    }
                }
            }
        }
        for (key, head) in now.changed_heads(before) {
            seen.remove(&key);
            if let Some(head) = head.filter(|head| view.sees(&head.id)) {
                seen.index(head);
            }
        }
        seen
    }
}

impl Registry {
    /// The same for callers that see only these skills. Writes go where they went before.
    #[must_use]
    pub fn with_view(&self, view: Arc<View>) -> Self {
        Self {
            view: Some(view),
            ..self.clone()
        }
    }

    /// Returns the view of its callers; none: they see everything.
    #[must_use]
    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref()
    }
}
