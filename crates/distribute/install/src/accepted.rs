//! The versions whose warnings the user accepted, by the digest of their files: `accepted.json` in a
//! folder of the user's own, so that no repository accepts a risk for those who clone it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::state::{read_json, write_json};
use super::{Error, Home, directory};
use model::{Digest, SkillId};

/// Versions that are remembered: the user is asked again for another one.
const MAX_ACCEPTED: usize = 4_096;

/// The skill of each version.
type Accepted = BTreeMap<Digest, SkillId>;

impl Home {
    fn accepted_file(&self) -> PathBuf {
        self.path().join("accepted.json")
    }

    /// The user accepted the warnings of the version with these bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has_accepted(&self, digest: Digest) -> Result<bool, Error> {
        let all: Option<Accepted> = read_json(&self.accepted_file())?;
        Ok(all.is_some_and(|all| all.contains_key(&digest)))
    }

    /// Records that the user accepted the warnings of a version.
    ///
    /// # Errors
    /// The file cannot be read or written; another process has it for too long.
    pub fn accept(
        &self,
        id: &SkillId,
        digest: Digest,
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let _lock = directory::lock(self.path(), self.path(), give_up)?;
        let mut all: Accepted = read_json(&self.accepted_file())?.unwrap_or_default();
        if all.len() >= MAX_ACCEPTED {
            all.pop_first();
        }
        all.insert(digest, id.clone());
        write_json(&self.accepted_file(), &all)
    }
}
