//! All paths together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::{Exercise, LearningPath};

/// Paths and exercises by id. It never changes; another takes its place.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    paths: Vec<Arc<LearningPath>>,
    exercises: HashMap<String, Arc<Exercise>>,
}

impl Catalog {
    /// Of paths that go together: no id twice.
    #[must_use]
    pub fn new(mut paths: Vec<Arc<LearningPath>>) -> Self {
        paths.sort_by(|a, b| a.id.cmp(&b.id));
        let exercises = paths.iter().flat_map(|path| &path.exercises);
        let exercises = exercises.map(|it| (it.id.clone(), Arc::clone(it)));
        Self {
            exercises: exercises.collect(),
            paths,
        }
    }

    /// All paths, in the order of their ids.
    #[must_use]
    pub fn paths(&self) -> &[Arc<LearningPath>] {
        &self.paths
    }

    /// The categories that paths have, in order, each once.
    #[must_use]
    pub fn categories(&self) -> Vec<&str> {
        let categories = self.paths.iter().map(|path| path.category.as_str());
        let categories: BTreeSet<&str> = categories.collect();
        categories.into_iter().collect()
    }

    /// The path of an id.
    #[must_use]
    pub fn path(&self, id: &str) -> Option<&Arc<LearningPath>> {
        self.paths.iter().find(|path| path.id == id)
    }

    /// The exercise of an id.
    #[must_use]
    pub fn exercise(&self, id: &str) -> Option<&Arc<Exercise>> {
        self.exercises.get(id)
    }
}
