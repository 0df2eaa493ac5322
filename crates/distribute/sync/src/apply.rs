//! Taking in what a source has: reading, deciding ids, publishing, withdrawing.
//!
//! Files are read some ahead, in the order of the listing; ids are decided in that order, so
//! that the shortest path has an id whatever is quicker; publishing goes on side by side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::stream::{self, FuturesUnordered, StreamExt as _};
use tokio_util::task::AbortOnDropHandle;

use super::plan::{Plan, plan};
use super::publish::{Effect, ReadSkill, words};
use super::record::{ItemRecord, STATES, Skipped, State};
use super::source_sync::{Fault, SourceSync, aside, ends};
use super::{Kind, Phase, SourceResult, items, namespace, withdraw};
use executor::Kind as WorkKind;
use model::{Digest, Principal, Severity, SkillId, SkillKey};
use registry::{Bundle, Caller};
use sources::Item;
use store::Batch;

/// Skills whose files are read ahead, each 16 MiB at most.
const READ_AHEAD_CONCURRENCY: usize = 8;
/// Skills that are published at once.
const PUBLISH_CONCURRENCY: usize = 32;
/// Skills of a source that cannot be read before the rest is left for later.
const MAX_UNREADABLE: usize = 20;
/// Records that one batch writes.
const RECORDS_PER_BATCH: usize = 256;

/// The item that a skill of this source is.
struct Owner {
    path: String,
    digest: Option<Digest>,
}

/// What is to become of an item.
enum Decision {
    Publish(SkillId, ReadSkill),
    Skip(Skipped),
    /// The same, and what is here of it goes on serving.
    Stay(Skipped),
}

/// What is known while a source is taken in.
struct Taking {
    /// Places of the items in the listing, by path.
    order: HashMap<String, usize>,
    /// The item of each skill of this source.
    claims: HashMap<SkillKey, Owner>,
    /// What was known before of the items to read, by path.
    before: HashMap<String, ItemRecord>,
    /// What is known now, by path.
    kept: HashMap<String, ItemRecord>,
    /// Items that could not be read.
    unreadable: usize,
}

impl Taking {
    fn new(listing: &[Item], known: &HashMap<String, ItemRecord>) -> Self {
        let order = listing.iter().enumerate();
        let claims = known.values().filter_map(|record| {
            let owner = Owner {
                path: record.item.path.clone(),
                digest: record.digest,
            };
            Some((record.skill.as_ref()?.key(), owner))
        });
        Self {
            order: order.map(|(at, item)| (item.path.clone(), at)).collect(),
            claims: claims.collect(),
            before: HashMap::new(),
            kept: HashMap::new(),
            unreadable: 0,
        }
    }

    fn owns(&self, key: &SkillKey, path: &str) -> bool {
        self.claims.get(key).is_some_and(|owner| owner.path == path)
    }

    /// Tells what was not taken, in the order of the listing.
    fn list_skips(&self, result: &mut SourceResult) {
        let mut skipped: Vec<_> = self
            .kept
            .values()
            .filter_map(|record| Some((&record.item.path, record.skipped.as_ref()?)))
            .collect();
        skipped.sort_by_key(|(path, _)| self.order.get(*path));
        for (path, skipped) in skipped {
            result.skip(path, skipped.reason());
        }
    }
}

impl SourceSync<'_> {
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(Principal::source(&self.source.id))
    }

    /// Has the registry hold what the source has. Answers how many skills are its own.
    pub(crate) async fn apply(
        &self,
        listing: Vec<Item>,
        known: HashMap<String, ItemRecord>,
        at: (&str, Option<&str>),
        state: &mut State,
        result: &mut SourceResult,
    ) -> Result<u32, Fault> {
        let mut taking = Taking::new(&listing, &known);
        let is_full = self.request.kind == Kind::Full;
        let Plan {
            read,
            before,
            unchanged,
            gone,
        } = {
            let (inner, id) = (Arc::clone(&self.engine.0), self.source.id.clone());
            let is_here = move |record: &ItemRecord| items::is_here(&inner, &id, record);
            aside(move || plan(listing, known, is_full, is_here)).await?
        };
        taking.before = before;
        let was_unfinished = state.is_unfinished;
        let writes = !read.is_empty() || !gone.is_empty();
        if writes && !was_unfinished {
            // Written before anything else: a sync that is killed leaves this, and the next
            // one compares claims with what the source has.
            state.is_unfinished = true;
            let mut batch = Batch::new();
            batch.put(&STATES, &self.source.id, state);
            self.engine.0.store.commit(batch).await?;
        }
        self.phase(Phase::Processing, read.len());
        self.renew(unchanged, &mut taking.kept).await?;
        self.read_and_publish(read, at, &mut taking, result).await?;
        self.displace(&mut taking).await?;
        self.withdraw_gone(&gone, &taking, result).await?;
        if was_unfinished {
            self.withdraw_strays(&taking.kept, result).await?;
        }
        state.is_unfinished = false;
        taking.list_skips(result);
        let skills = taking.kept.values();
        let skills = skills.filter(|record| record.skill.is_some()).count();
        Ok(u32::try_from(skills).unwrap_or(u32::MAX))
    }

    /// Reads items in their order, and publishes what was read, side by side.
    async fn read_and_publish(
        &self,
        read: Vec<Item>,
        (revision, break_in_history): (&str, Option<&str>),
        taking: &mut Taking,
        result: &mut SourceResult,
    ) -> Result<(), Fault> {
        let mut reading = stream::iter(read)
            .map(|item| async {
                let read = self.read(&item).await;
                (item, read)
            })
            // In order, so that which of two skills has an id does not depend on which was
            // read sooner.
            .buffered(READ_AHEAD_CONCURRENCY);
        let mut publishing = FuturesUnordered::new();
        let (mut more, mut failed) = (true, None);
        loop {
            let next = tokio::select! {
                Some(done) = publishing.next(), if !publishing.is_empty() => {
                    match done {
                        Ok(done) => self.count(done, &mut taking.kept, result),
                        Err(fault) => (more, failed) = (false, Some(fault)),
                    }
                    continue;
                }
                next = reading.next(), if more && publishing.len() < PUBLISH_CONCURRENCY => next,
                else => break,
            };
            let Some((item, read)) = next else {
                more = false;
                continue;
            };
            let old = taking.before.get(&item.path).cloned();
            match self.choose(&item, read, old.as_ref(), taking) {
                Ok(chosen) => publishing.push(async move {
                    let old = old.as_ref();
                    match chosen {
                        Decision::Publish(id, read) => {
                            self.publish(item, id, read, old, revision, break_in_history)
                                .await
                        }
                        Decision::Skip(skipped) => self.skip(item, skipped, None, old).await,
                        Decision::Stay(skipped) => self.skip(item, skipped, old, old).await,
                    }
                }),
                // What was read before is published all the same.
                Err(fault) => (more, failed) = (false, Some(fault)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What is to become of an item that was read, or could not be.
    fn choose(
        &self,
        item: &Item,
        read: Result<Result<ReadSkill, Skipped>, Fault>,
        old: Option<&ItemRecord>,
        taking: &mut Taking,
    ) -> Result<Decision, Fault> {
        let skill = old.and_then(|old| old.skill.as_ref());
        if let Some(skill) = skill
            && taking.owns(&skill.key(), &item.path)
        {
            // It may have another id now; whoever waited for this one may have it.
            taking.claims.remove(&skill.key());
        }
        let skipped = match read {
            Ok(Ok(read)) => {
                let id = self.decide(item, &read, taking);
                return Ok(match id {
                    Ok(id) => Decision::Publish(id, read),
                    Err(skipped) => Decision::Skip(skipped),
                });
            }
            Ok(Err(skipped)) => skipped,
            Err(Fault::Place(error)) if taking.unreadable < MAX_UNREADABLE && !ends(&error) => {
                taking.unreadable += 1;
                Skipped::State(format!("it could not be read: {error}"))
            }
            Err(fault) => return Err(fault),
        };
        // What is here of a skill that cannot be read any more goes on serving.
        if let Some((old, skill)) = old.zip(skill) {
            taking.claims.entry(skill.key()).or_insert_with(|| Owner {
                path: item.path.clone(),
                digest: old.digest,
            });
        }
        Ok(Decision::Stay(skipped))
    }

    /// Takes skills from items that lost their ids to one that goes before them.
    async fn displace(&self, taking: &mut Taking) -> Result<(), Fault> {
        let displaced: Vec<ItemRecord> = taking
            .kept
            .values()
            .filter(|record| {
                let key = record.skill.as_ref().map(SkillId::key);
                key.is_some_and(|key| !taking.owns(&key, &record.item.path))
            })
            .cloned()
            .collect();
        for mut record in displaced {
            let reason = "its id is taken by a skill of this source that is less deep, or goes before it by name";
            record.skill = None;
            record.skipped = Some(Skipped::State(reason.to_owned()));
            let mut batch = Batch::new();
            items::put(&mut batch, &self.source.id, &record);
            self.engine.0.store.commit(batch).await?;
            taking.kept.insert(record.item.path.clone(), record);
        }
        Ok(())
    }

    /// What a record says is so: the skill is there, and this source's.
    pub(crate) fn is_here(&self, record: &ItemRecord) -> bool {
        items::is_here(&self.engine.0, &self.source.id, record)
    }

    /// Notes what a place says anew of items that are as they were.
    async fn renew(
        &self,
        unchanged: Vec<(ItemRecord, Item)>,
        kept: &mut HashMap<String, ItemRecord>,
    ) -> Result<(), Fault> {
        let mut batch = Batch::new();
        let mut writes = 0;
        for (mut record, item) in unchanged {
            if record.item != item {
                record.item = item;
                items::put(&mut batch, &self.source.id, &record);
                writes += 1;
                if writes % RECORDS_PER_BATCH == 0 {
                    self.engine
                        .0
                        .store
                        .commit(std::mem::take(&mut batch))
                        .await?;
                }
            }
            kept.insert(record.item.path.clone(), record);
        }
        if writes % RECORDS_PER_BATCH != 0 {
            self.engine.0.store.commit(batch).await?;
        }
        Ok(())
    }

    /// Reads the files of an item.
    async fn read(&self, item: &Item) -> Result<Result<ReadSkill, Skipped>, Fault> {
        let files = match self.patiently(|| self.fetch.read(item, &self.work)).await {
            Ok(files) => files,
            // Nothing that is tried again changes that.
            Err(error @ (sources::Error::Invalid(_) | sources::Error::TooLarge(_))) => {
                return Ok(Err(Skipped::Bytes(error.to_string())));
            }
            Err(error) => return Err(Fault::Place(error)),
        };
        if let Some(problem) = files
            .problems
            .iter()
            .find(|problem| problem.severity == Severity::Error)
        {
            return Ok(Err(Skipped::Bytes(words(problem))));
        }
        let folder = item.path.rsplit('/').next().unwrap_or_default().to_owned();
        let bundle = Bundle {
            id: None,
            files: files.files,
            folder,
            strict: false,
        };
        let executor = self.engine.0.registry.executor().clone();
        // A task: what is read ahead is not always polled, and must not keep a permit then.
        let reading = tokio::spawn(async move {
            let read = executor.run(WorkKind::Import, move |_| {
                let candidate = bundle.read();
                (bundle, candidate)
            });
            read.await
        });
        let read = AbortOnDropHandle::new(reading).await;
        let read = read.map_err(|error| executor::Error::Failed(error.to_string()));
        let read = read.and_then(|read| read).map_err(registry::Error::from);
        let (bundle, candidate) = read?;
        let refused = candidate
            .problems
            .iter()
            .find(|problem| problem.severity == Severity::Error);
        match (&candidate.id, refused) {
            (Some(id), None) => Ok(Ok(ReadSkill {
                slug: id.slug().to_owned(),
                digest: candidate.digest,
                version: files.version,
                bundle,
            })),
            (_, Some(problem)) => Ok(Err(Skipped::Bytes(words(problem)))),
            (None, None) => Ok(Err(Skipped::Bytes(
                "it has no name that makes an id".to_owned(),
            ))),
        }
    }

    /// The id that an item gets, unless it is another's.
    fn decide(&self, item: &Item, read: &ReadSkill, all: &mut Taking) -> Result<SkillId, Skipped> {
        let id = namespace::id(self.source, item, &read.slug)
            .map_err(|error| Skipped::Bytes(error.to_string()))?;
        let key = id.key();
        if let Some(other) = all.claims.get(&key) {
            let at = |path: &String| all.order.get(path).copied();
            // What is no longer listed gives its id up.
            if at(&other.path).is_some_and(|other| Some(other) < at(&item.path)) {
                let Owner { path, digest } = other;
                return Err(Skipped::State(if *digest == Some(read.digest) {
                    format!("it is a copy of `{path}`")
                } else {
                    format!(
                        "'{id}' is taken by `{path}`, which is less deep or goes before it by name: rename the skill"
                    )
                }));
            }
        }
        let inner = &self.engine.0;
        let claim = items::claim(&inner.store, &key);
        match claim.map_err(|error| Skipped::State(error.to_string()))? {
            Some(claim)
                if claim.source != self.source.id && self.engine.source(&claim.source).is_ok() =>
            {
                return Err(Skipped::State(format!(
                    "'{id}' is synced from the source `{}`",
                    claim.source
                )));
            }
            None if self.is_a_persons(&id) => {
                return Err(Skipped::State(format!(
                    "'{id}' was published by somebody else: give this source a namespace of its own"
                )));
            }
            _ => {}
        }
        let owner = Owner {
            path: item.path.clone(),
            digest: Some(read.digest),
        };
        all.claims.insert(key, owner);
        Ok(id)
    }

    /// There is such a skill, and no source published its last version.
    fn is_a_persons(&self, id: &SkillId) -> bool {
        let registry = &self.engine.0.registry;
        if registry.catalog().get(&id.key()).is_none() {
            return false;
        }
        let page = registry.list_versions(id, 1, "");
        let last = page.ok().and_then(|page| page.versions.into_iter().next());
        last.is_none_or(|last| !last.version.created_by.is_source())
    }

    fn count(
        &self,
        (record, effect): (ItemRecord, Effect),
        kept: &mut HashMap<String, ItemRecord>,
        result: &mut SourceResult,
    ) {
        self.step();
        match effect {
            Effect::Unchanged | Effect::Skipped => {}
            Effect::Added => result.added += 1,
            Effect::Updated => result.updated += 1,
            Effect::Held => result.held += 1,
        }
        kept.insert(record.item.path.clone(), record);
    }

    /// Withdraws skills that are this source's, and no item's: their items became other skills
    /// in a sync that ended before its end.
    async fn withdraw_strays(
        &self,
        kept: &HashMap<String, ItemRecord>,
        result: &mut SourceResult,
    ) -> Result<(), Fault> {
        let current = skills_of(kept);
        for key in self.engine.claimed(&self.source.id)? {
            let registry = &self.engine.0.registry;
            let head = registry.catalog().get(&key).cloned();
            if let Some(head) = head.filter(|_| !current.contains(&key)) {
                result.removed += u32::from(self.withdraw(&head.id).await?);
            }
        }
        Ok(())
    }

    /// Withdraws a skill that the source has no more; whether there was one.
    async fn withdraw(&self, skill: &SkillId) -> Result<bool, Fault> {
        let reason = format!("the source `{}` has it no more", self.source.id);
        // The claim stays: the skill comes back when its source has it again.
        let (registry, caller) = (&self.engine.0.registry, self.caller());
        Ok(withdraw::withdraw(registry, skill, &reason, &caller).await?)
    }

    /// Withdraws skills whose items are gone, or became other skills, and forgets the items.
    async fn withdraw_gone(
        &self,
        gone: &[ItemRecord],
        taking: &Taking,
        result: &mut SourceResult,
    ) -> Result<(), Fault> {
        let inner = &self.engine.0;
        let current = skills_of(&taking.kept);
        let renamed = taking
            .before
            .values()
            .filter(|record| taking.kept.contains_key(&record.item.path));
        self.phase(Phase::Storing, gone.len());
        for (record, is_gone) in gone
            .iter()
            .map(|record| (record, true))
            .chain(renamed.map(|record| (record, false)))
        {
            let orphan = record.skill.as_ref().filter(|skill| {
                let key = skill.key();
                !current.contains(&key)
                    && (!taking.claims.contains_key(&key) || taking.owns(&key, &record.item.path))
            });
            if orphan.is_none() && !is_gone {
                continue;
            }
            let mut batch = Batch::new();
            if let Some(skill) = orphan {
                result.removed += u32::from(self.withdraw(skill).await?);
            }
            if is_gone {
                items::remove(&mut batch, &self.source.id, &record.item.path);
                self.step();
                inner.store.commit(batch).await?;
            }
        }
        Ok(())
    }
}

/// The skills that items are.
fn skills_of(kept: &HashMap<String, ItemRecord>) -> HashSet<SkillKey> {
    let skills = kept.values().filter_map(|record| record.skill.as_ref());
    skills.map(SkillId::key).collect()
}
