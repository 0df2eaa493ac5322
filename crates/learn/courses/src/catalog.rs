//! All paths and exercises by id.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::{Exercise, LearningPath};

/// Paths and exercises by id. It never changes; another one replaces it.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    paths: Vec<Arc<LearningPath>>,
    by_id: HashMap<String, Arc<Exercise>>,
}

impl Catalog {
    /// The catalog of paths that [`check_together`](crate::check_together) accepts: no id is there
    /// twice.
    #[must_use]
    pub fn new(mut paths: Vec<Arc<LearningPath>>) -> Self {
        paths.sort_by(|a, b| a.id.cmp(&b.id));
        let exercises = paths.iter().flat_map(|path| &path.exercises);
        let by_id = exercises.map(|it| (it.id.clone(), Arc::clone(it)));
        Self {
            by_id: by_id.collect(),
            paths,
        }
    }

    /// All paths, in the order of their ids.
    #[must_use]
    pub fn paths(&self) -> &[Arc<LearningPath>] {
        &self.paths
    }

    /// The exercises of all paths, path by path.
    pub fn exercises(&self) -> impl Iterator<Item = &Arc<Exercise>> {
        self.paths.iter().flat_map(|path| &path.exercises)
    }

    /// The categories that paths have, in order, each once.
    #[must_use]
    pub fn categories(&self) -> Vec<&str> {
        let categories = self.paths.iter().map(|path| path.category.as_str());
        Vec::from_iter(categories.collect::<BTreeSet<&str>>())
    }

    /// The path of an id.
    #[must_use]
    pub fn path(&self, id: &str) -> Option<&Arc<LearningPath>> {
        self.paths.iter().find(|path| path.id == id)
    }

    /// The exercise of an id.
    #[must_use]
    pub fn exercise(&self, id: &str) -> Option<&Arc<Exercise>> {
        self.by_id.get(id)
    }
}
