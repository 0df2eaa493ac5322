//! The blocklist: skills that this server does not hand out.
//!
//! * An entry blocks a skill, with all its versions, future ones too: it is a record of its own,
//!   which outlives the skill.
//! * The list is in memory with the catalog, which shows a blocked skill without an active
//!   version. So whatever finds skills by their active version (names, lists, search, prompts,
//!   recommendations) leaves it out, and [`Registry::version`], which everything else calls,
//!   refuses it: also to sessions that loaded it, and for calls of its tools.
//! * Nothing is lost: taken off the list, the skill is as it was, with what was written to it
//!   meanwhile.
//!
//! Not here: any rule that blocks a skill automatically.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use super::outcome::skill_event;
use super::{Caller, Error, Plan, Registry};
use model::{Block, EventKind, Principal, SkillId, SkillKey, open_token, seal_token};
use store::{Batch, Table, TableId};

pub(super) const BLOCKS: Table<SkillKey, Block> = Table::new(TableId::Blocks);

/// Entries of a feed that are written concurrently, so that they share their flushes.
const WRITE_CONCURRENCY: usize = 64;
/// The purpose of the list's page tokens.
const PAGE: &str = "blocklist";

/// A change of the blocklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The skill.
    pub id: SkillId,
    /// The number of skills on the list now.
    pub size: usize,
    /// Some of the skills that require it, where it was put on the list.
    #[serde(default)]
    pub dependents: Vec<SkillId>,
}

/// The changes of the blocklist by a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refreshed {
    /// The number of skills that were blocked.
    pub added: usize,
    /// The number of skills that the feed does not name any more.
    pub removed: usize,
    /// The number of skills on the list.
    pub size: usize,
}

/// A page of the blocklist, by id.
#[derive(Debug, Clone)]
pub struct BlockPage {
    /// The entries.
    pub blocks: Vec<Arc<Block>>,
    /// The total number.
    pub size: usize,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
}

impl Registry {
    /// Returns a page of the blocklist.
    ///
    /// # Errors
    /// The token is of another query.
    pub fn blocklist(&self, size: usize, token: &str) -> Result<BlockPage, Error> {
        let catalog = self.catalog();
        let after = match token {
            "" => None,
            token => Some(open_token(PAGE, "", token).ok_or(Error::PageToken)?),
        };
        let after = after.map(|key| SkillKey::from_stored(&key));
        let mut found = catalog.blocks_after(after.as_ref());
        let blocks: Vec<_> = found.by_ref().take(size).cloned().collect();
        let more = found.next().is_some();
        let next = blocks.last().filter(|_| more);
        let next = next.map(|last| seal_token(PAGE, "", last.skill.key().as_str()));
        Ok(BlockPage {
            size: catalog.blocked(),
            next,
            blocks,
        })
    }

    /// Blocks a skill, or replaces the entry that it has already.
    ///
    /// # Errors
    /// There is no such skill; it comes with the server, and the caller is elsewhere.
    pub async fn block(
        &self,
        id: &SkillId,
        reason: &str,
        caller: &Caller,
    ) -> Result<Blocked, Error> {
        let id = self.head(id)?.id.clone();
        if id.is_builtin() && caller.principal != Principal::local() {
            return Err(Error::ReadOnly { id });
        }
        let dependents = self.catalog().some_dependents(&id);
        self.put_block(&id, reason, false, caller).await?;
        Ok(Blocked {
            dependents,
            ..self.blocked(id)
        })
    }

    /// Takes a skill off the blocklist.
    ///
    /// # Errors
    /// It is not on it.
    pub async fn unblock(&self, id: &SkillId, caller: &Caller) -> Result<Blocked, Error> {
        self.delete_block(id, false, caller).await?;
        Ok(self.blocked(id.clone()))
    }

    fn blocked(&self, id: SkillId) -> Blocked {
        let size = self.catalog().blocked();
        Blocked {
            id,
            size,
            dependents: Vec::new(),
        }
    }

    /// Makes the list follow a feed, in addition to the entries of people. Each entry is written
    /// by itself: where one fails, those before it stay, and another call goes on.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn follow_feed(
        &self,
        feed: Vec<(SkillId, String)>,
        caller: &Caller,
    ) -> Result<Refreshed, Error> {
        let catalog = self.catalog();
        let feed: BTreeMap<SkillKey, (SkillId, String)> = feed
            .into_iter()
            .map(|(id, reason)| (id.key(), (id, reason)))
            .collect();
        let known = |key: &SkillKey| catalog.block(key);
        let stale: Vec<SkillId> = catalog
            .blocks_after(None)
            .filter(|block| block.from_feed && !feed.contains_key(&block.skill.key()))
            .map(|block| block.skill.clone())
            .collect();
        let new = feed.iter().filter(|(key, (_, reason))| {
            known(key).is_none_or(|block| block.from_feed && block.reason != *reason)
        });
        let new: Vec<_> = new.map(|(_, entry)| entry.clone()).collect();
        let (added, removed) = (new.len(), stale.len());
        let put = |(id, reason): (SkillId, String)| async move {
            self.put_block(&id, &reason, true, caller).await
        };
        let puts = futures_util::stream::iter(new).map(put);
        puts.buffer_unordered(WRITE_CONCURRENCY)
            .try_collect::<()>()
            .await?;
        let delete = |id: SkillId| async move {
            match self.delete_block(&id, true, caller).await {
                // Another caller removed it meanwhile.
                Err(Error::NotBlocked { .. }) => Ok(()),
                done => done,
            }
        };
        let deletes = futures_util::stream::iter(stale).map(delete);
        deletes
            .buffer_unordered(WRITE_CONCURRENCY)
            .try_collect::<()>()
            .await?;
        Ok(Refreshed {
            added,
            removed,
            size: self.catalog().blocked(),
        })
    }

    async fn put_block(
        &self,
        id: &SkillId,
        reason: &str,
        from_feed: bool,
        caller: &Caller,
    ) -> Result<(), Error> {
        let key = id.key();
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            let stored = self.inner.store.get(&BLOCKS, &key)?;
            let stays = |block: &Block| {
                // The feed must not change an entry of a person.
                let is_theirs = from_feed && !block.from_feed;
                is_theirs || (block.reason == reason && block.from_feed == from_feed)
            };
            if stored.as_ref().is_some_and(|stored| stays(&stored.value)) {
                return Ok(Plan::Done(()));
            }
            let block = Block {
                skill: id.clone(),
                reason: reason.to_owned(),
                time: self.inner.clock.now(),
                actor: caller.principal.clone(),
                from_feed,
            };
            let mut batch = Batch::new();
            batch.expect(&BLOCKS, &key, stored.map(|stored| stored.revision).into());
            batch.put(&BLOCKS, &key, &block);
            let event = skill_event(EventKind::Blocked, id, block.time, caller);
            Ok(Plan::Write(batch, event, ()))
        })
        .await
    }

    /// Deletes an entry; `by_feed`: unless people put it there.
    async fn delete_block(
        &self,
        id: &SkillId,
        by_feed: bool,
        caller: &Caller,
    ) -> Result<(), Error> {
        let key = id.key();
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            let stored = self.inner.store.get(&BLOCKS, &key)?;
            let stored = stored.ok_or_else(|| Error::NotBlocked { id: id.clone() })?;
            if by_feed && !stored.value.from_feed {
                return Ok(Plan::Done(()));
            }
            let mut batch = Batch::new();
            batch.expect(&BLOCKS, &key, Some(stored.revision).into());
            batch.delete(&BLOCKS, &key);
            let event = skill_event(EventKind::Unblocked, id, self.inner.clock.now(), caller);
            Ok(Plan::Write(batch, event, ()))
        })
        .await
    }

    /// Refuses to publish to a blocked skill, or to activate one of its versions. It would not
    /// be handed out; so the writer gets an error instead of a success without effect. The
    /// server itself installs its own skills all the same.
    pub(super) fn refuse_blocked(&self, key: &SkillKey, caller: &Caller) -> Result<(), Error> {
        match self.catalog().block(key) {
            Some(block) if caller.principal != Principal::system() => Err(Error::blocked(block)),
            _ => Ok(()),
        }
    }
}
