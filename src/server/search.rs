//! Settings of the search, and of what may be analyzed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::lookup::SearchIndex;
use crate::lookup::index::{Embedder, Table};
use crate::registry::Registry;

/// What a search takes for the meaning of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// The table that comes with the server.
    #[default]
    Builtin,
    /// Nothing: a search knows words only.
    None,
}

/// How skills are searched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchConfig {
    /// What it takes for the meaning of texts.
    pub meaning: Meaning,
}

impl SearchConfig {
    fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        match self.meaning {
            Meaning::Builtin => Some(Arc::new(Table::new())),
            Meaning::None => None,
        }
    }

    /// The index of a data directory.
    pub(super) fn index(&self, data: &Path, registry: Registry) -> SearchIndex {
        SearchIndex::new(registry, data.join("search"), self.embedder())
    }
}

/// Which codebases may be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnalysisConfig {
    /// Directories below which `AnalyzeCodebase` may read; none: none.
    pub roots: Vec<PathBuf>,
}
