//! Settings of the search, and of what may be analyzed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use embed::{CombinedEmbedder, Embedder, Table};
use registry::Registry;
use search::SearchIndex;

/// What the built-in table counts beside a transformer: it knows more languages, the
/// transformer more of each sentence. Found on judged queries.
const TABLE_WEIGHT: f32 = 0.6;

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
    /// Folder of a sentence transformer that adds its opinion; none: it is not asked.
    pub embedder: Option<PathBuf>,
}

/// The embedder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("search.embedder: {0}")]
pub struct EmbedderError(Box<dyn std::error::Error + Send + Sync>);

impl EmbedderError {
    /// The setting that it is about.
    pub(super) const KEY: &str = "search.embedder";

    pub(super) fn cause(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(feature = "transformer")]
fn transformer(folder: &Path) -> Result<Arc<dyn Embedder>, EmbedderError> {
    let transformer = embed::Transformer::open(folder);
    let transformer = transformer.map_err(|error| EmbedderError(error.into()))?;
    Ok(Arc::new(transformer))
}

#[cfg(not(feature = "transformer"))]
fn transformer(_folder: &Path) -> Result<Arc<dyn Embedder>, EmbedderError> {
    Err(EmbedderError(
        super::Feature::Transformer.missing().message.into(),
    ))
}

impl SearchConfig {
    /// Reads a model where one is named: some hundred MiB. Blocks.
    pub(super) fn open(&self) -> Result<Option<Arc<dyn Embedder>>, EmbedderError> {
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
                Arc::new(both.map_err(|error| EmbedderError(error.into()))?)
            }
        }))
    }

    /// The index of a data directory. Blocks.
    pub(super) fn index(
        &self,
        data: &Path,
        registry: Registry,
    ) -> Result<SearchIndex, EmbedderError> {
        Ok(SearchIndex::new(
            registry,
            data.join("search"),
            self.open()?,
        ))
    }
}

/// Which codebases may be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnalysisConfig {
    /// Directories below which `AnalyzeCodebase` may read; none: none.
    pub roots: Vec<PathBuf>,
}
