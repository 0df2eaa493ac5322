//! Deleting a skill with all its versions.

use serde::{Deserialize, Serialize};

use super::outcome::skill_event;
use super::usage::USAGE;
use super::{Caller, DIGESTS, Error, Plan, Registry, VERSIONS, numbers};
use model::{EventKind, SkillId};
use store::{Batch, TableId, prefix};

/// The deletion of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// The skill that was.
    pub id: SkillId,
    /// The number of versions that went with it.
    pub versions: u32,
    /// Skills that required it, 100 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<SkillId>,
}

impl Registry {
    /// Deletes a skill. Its numbers and its semantic versions are never given to
    /// other bytes; contents that nothing else uses go when the directory is
    /// compacted.
    ///
    /// # Errors
    /// There is no such skill, or it comes with the server.
    pub async fn delete(&self, id: &SkillId, caller: &Caller) -> Result<Deleted, Error> {
        let key = id.key();
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let now = self.inner.clock.now();
            let mut batch = Batch::new();
            let mut versions = 0;
            for entry in self.inner.store.scan(&VERSIONS, &prefix(&key)) {
                let version = entry?.1.value;
                batch.delete(&VERSIONS, &(key.clone(), version.number));
                batch.delete(&DIGESTS, &(key.clone(), version.digest));
                versions += 1;
            }
            batch.delete(&USAGE, &key);
            for table in [TableId::Yanks, TableId::Scans, TableId::Holds] {
                numbers::forget(&self.inner.store, &mut batch, table, &key)?;
            }
            let event = skill_event(EventKind::Deleted, &head.id, now, caller);
            let deleted = Deleted {
                id: head.id.clone(),
                versions,
                dependents: self.catalog().some_dependents(&head.id),
            };
            // The head and the semantic versions stay: without them a number or a version could
            // be given to other bytes, and a client that pinned it would get those.
            head.deleted = true;
            head.active = None;
            head.summary = None;
            head.inline.clear();
            head.bytes = Some(0);
            head.updated_at = now;
            self.put_head(&mut batch, Some(revision), head)?;
            Ok(Plan::Write(batch, event, deleted))
        })
        .await
        // After the commit: counts that still waited would be written for a skill that is gone.
        .inspect(|deleted| self.inner.usage.forget(&deleted.id.key()))
    }
}
