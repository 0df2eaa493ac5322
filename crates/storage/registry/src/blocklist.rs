//! The blocklist: skills that this server hands out to nobody.
//!
//! * What is blocked is a skill, with all its versions, those that are yet to come too: an
//!   entry has a record of its own, which outlives the skill.
//! * The list is in memory with the catalog, which shows a blocked skill without an active
//!   version. So whatever asks for skills by what is active (names, lists, search, prompts,
//!   recommendations) has none of it, and [`Registry::version`], which everything else comes
//!   through, refuses: sessions that loaded it, and calls of its tools, as well.
//! * Nothing is lost by it: taken off the list, the skill is as it was, with what was written
//!   to it meanwhile.
//!
//! Not here: what puts a skill there by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use super::outcome::skill_event;
use super::{Caller, Error, Plan, Registry};
use model::{Block, EventKind, Principal, SkillId, SkillKey, open_token, seal_token};
use store::{Batch, Table, TableId};

pub(super) const BLOCKS: Table<SkillKey, Block> = Table::new(TableId::Blocks);

/// Entries of a feed that are written at once, so that they share their flushes.
const WRITE_CONCURRENCY: usize = 64;
/// What pages of the list are called in their tokens.
const PAGE: &str = "blocklist";

/// A change of the blocklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The skill.
    pub id: SkillId,
    /// How many skills are on the list since.
    pub size: usize,
    /// Some of the skills that required it, where it was put on the list.
    #[serde(default)]
    pub dependents: Vec<SkillId>,
}

/// The blocklist follows a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refreshed {
    /// Skills that are blocked since.
    pub added: usize,
    /// Skills that the feed does not name any more.
    pub removed: usize,
    /// How many skills are on the list.
    pub size: usize,
}

/// A page of the blocklist, by id.
#[derive(Debug, Clone)]
pub struct BlockPage {
    /// The entries.
    pub blocks: Vec<Arc<Block>>,
    /// How many there are in all.
    pub size: usize,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
}

impl Registry {
    /// A page of the blocklist.
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

    /// Blocks a skill. What an entry says that is there already, it says anew.
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
        let dependents = self.catalog().told_dependents(&id);
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

    /// Has the list say what a feed says, beside what people put there. Each entry is written
    /// by itself: what was written stays where a later one fails, and another call goes on.
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
                // Somebody else did.
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
                // What people put there is not the feed's to change.
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

    /// Nothing is published to a blocked skill, and none of its versions made the active one.
    /// It would be handed out to nobody; who writes is told instead of left to wonder. The
    /// server itself puts its own skills in place all the same.
    pub(super) fn refuse_blocked(&self, key: &SkillKey, caller: &Caller) -> Result<(), Error> {
        match self.catalog().block(key) {
            Some(block) if caller.principal != Principal::system() => Err(Error::blocked(block)),
            _ => Ok(()),
        }
    }
}
