//! Settings of learning.

use std::path::PathBuf;

use serde::Deserialize;

/// How people learn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearningConfig {
    /// Folders of learning paths, or of such folders, in addition to the paths that come with
    /// the server.
    pub paths: Vec<PathBuf>,
    /// Grade nothing that runs unless the kernel confines it wholly.
    pub require_confinement: bool,
}
