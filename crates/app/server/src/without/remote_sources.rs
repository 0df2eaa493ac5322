//! Fetchers for sources that are folders: this build leaves out all others.

#![expect(
    clippy::unnecessary_wraps,
    reason = "it is called as what it stands for"
)]

use std::sync::Arc;

use super::Feature;
use ::sync::{Fetchers, Source, SourceKind};
use secrecy::SecretString;
use sources::{Directory, Error, Fetch};

/// Opens sources in folders.
#[derive(Debug, Clone)]
pub(super) struct Places;

impl Places {
    /// Networks are refused before: see `features`.
    pub(super) fn new(_networks: &[String]) -> Result<Self, String> {
        Ok(Self)
    }
}

impl Fetchers for Places {
    fn open(&self, source: &Source, _: Option<&SecretString>) -> Result<Arc<dyn Fetch>, Error> {
        match source.kind {
            SourceKind::Directory => Ok(Arc::new(Directory::new(&source.location)?)),
            _ => Err(Error::NotBuilt(Feature::RemoteSources.name())),
        }
    }
}
