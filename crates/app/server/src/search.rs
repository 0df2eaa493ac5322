//! Settings of the search, and of what may be analyzed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::SettingError;
use embed::{CombinedEmbedder, Embedder, Table};
use registry::Registry;
use search::SearchIndex;

/// The weight of the built-in table next to a transformer: it knows more languages, the
/// transformer more of each sentence. Found on judged queries.
const TABLE_WEIGHT: f32 = 0.6;

/// The source of the vectors that a search compares.
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
    /// The source of the vectors that it compares.
    pub meaning: Meaning,
    /// Folder of a sentence transformer that adds its opinion; none: it is not asked.
    pub embedder: Option<PathBuf>,
}

fn wrong(message: impl std::fmt::Display) -> SettingError {
    SettingError::new("search.embedder", message)
}

#[cfg(feature = "transformer")]
fn transformer(folder: &Path) -> Result<Arc<dyn Embedder>, SettingError> {
    Ok(Arc::new(embed::Transformer::open(folder).map_err(wrong)?))
}

#[cfg(not(feature = "transformer"))]
fn transformer(_folder: &Path) -> Result<Arc<dyn Embedder>, SettingError> {
    Err(wrong(super::Feature::Transformer.missing().message))
}

impl SearchConfig {
    /// Reads a model where one is named: some hundred MiB. Blocks.
    pub(super) fn open(&self) -> Result<Option<Arc<dyn Embedder>>, SettingError> {
        let table: Option<Arc<dyn Embedder>> = match self.meaning {
            Meaning::Builtin => Some(Arc::new(Table)),
            Meaning::None => None,
        };
        let Some(folder) = &self.embedder else {
            return Ok(table);
        };
        let transformer = transformer(folder)?;
        Ok(Some(match table {
            None => transformer,
            Some(table) => {
                let both = CombinedEmbedder::new(table, transformer, TABLE_WEIGHT);
                Arc::new(both.map_err(wrong)?)
            }
        }))
    }

    /// The index of a data directory. Blocks.
    pub(super) fn index(
        &self,
        data: &Path,
        registry: Registry,
    ) -> Result<SearchIndex, SettingError> {
        let folder = data.join("search");
        Ok(SearchIndex::new(registry, folder, self.open()?))
    }
}

/// Which codebases may be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnalysisConfig {
    /// Directories below which `AnalyzeCodebase` may read; empty: it may read nothing.
    pub roots: Vec<PathBuf>,
}
