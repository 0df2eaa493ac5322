//! What a caller may see: all other skills are not there for it.
//!
//! * A view is a catalog without what is not seen, so whatever is asked of it, names, facets,
//!   counts and suggestions among them, answers as if the others had never been published.
//! * It shares its trees with the catalog of everybody, and follows it by what differs. A view
//!   costs what it leaves out once, and what was written since each time that it is asked.
//! * What it shows is decided by ids alone, so nothing of a skill has to be read.
//!
//! Not here: who sees what (the crate `namespaces`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use imbl::ordmap::DiffItem;

use super::{Catalog, Registry};
use model::SkillId;

/// Decides which skills a caller sees.
pub trait Sees: Send + Sync + fmt::Debug {
    /// The caller sees the skill, or would if there were one.
    fn sees(&self, id: &SkillId) -> bool;
}

/// Tells who else sees what.
pub trait Audience: Send + Sync + fmt::Debug {
    /// Whoever sees the one skill sees the other one as well.
    fn also_sees(&self, one: &SkillId, other: &SkillId) -> bool;
}

/// The skills that some callers see.
#[derive(Debug)]
pub struct View {
    sees: Arc<dyn Sees>,
    /// The catalog that was looked at last, and what is seen of it.
    seen: Mutex<Option<(Arc<Catalog>, Arc<Catalog>)>>,
}

impl View {
    /// What `sees` shows, which has to answer the same for as long as the view is used.
    #[must_use]
    pub fn new(sees: Arc<dyn Sees>) -> Self {
        Self {
            sees,
            seen: Mutex::default(),
        }
    }

    /// A skill is seen.
    #[must_use]
    pub fn sees(&self, id: &SkillId) -> bool {
        self.sees.sees(id)
    }

    /// What is seen of a catalog.
    pub(super) fn of(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen().clone();
        // Not under the lock: who else comes now does the same work, and waits for nobody.
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
    /// The catalog without what is not seen.
    fn without_unseen(&self, view: &View) -> Self {
        let unseen: Vec<_> = self
            .heads
            .iter()
            .filter(|(_, head)| !view.sees(&head.id))
            .map(|(key, _)| key.clone())
            .collect();
        let mut seen = if unseen.len() < self.heads.len() / 2 {
            let mut seen = self.clone();
            for key in &unseen {
                seen.remove(key);
            }
            seen
        } else {
            let mut seen = self.empty();
            let heads = self.heads.values().filter(|head| view.sees(&head.id));
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

    /// This view of `before` as one of `now`.
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
        for change in before.heads.diff(&now.heads) {
            let (key, head) = match change {
                DiffItem::Remove(key, _) => (key, None),
                DiffItem::Add(key, head)
                | DiffItem::Update {
                    new: (key, head), ..
                } => (key, Some(head)),
            };
            seen.remove(key);
            if let Some(head) = head.filter(|head| view.sees(&head.id)) {
                seen.index(Arc::clone(head));
            }
        }
        seen
    }
}

impl Registry {
    /// The same for callers who see these skills alone. What is written goes where it went
    /// before.
    #[must_use]
    pub fn with_view(&self, view: Arc<View>) -> Self {
        Self {
            view: Some(view),
            ..self.clone()
        }
    }

    /// What its callers see; none: everything.
    #[must_use]
    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref()
    }
}
