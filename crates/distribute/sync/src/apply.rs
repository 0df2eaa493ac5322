//! Applies a listing of a source: reads, decides ids, publishes, withdraws.
//!
//! Files are read some ahead, in the order of the listing; ids are decided in that order, so
//! that the shortest path gets an id whichever is read sooner; publishing is concurrent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::stream::{self, FuturesUnordered, StreamExt as _};
use tokio_util::task::AbortOnDropHandle;

use super::engine::RECORDS_PER_BATCH;
use super::plan::{Plan, plan};
use super::publish::{Effect, ReadSkill, describe, refusal};
use super::record::{Claim, ItemRecord, Skipped, State};
use super::source_sync::{Fault, SourceSync, blocking, ends};
use super::{Kind, Phase, SourceResult, items, namespace, withdraw};
use executor::Kind as WorkKind;
use model::{Digest, Principal, SkillId, SkillKey};
use registry::{Bundle, Caller};
use sources::Item;
use store::{Batch, CommitError, Revision};

/// Skills whose files are read ahead, each 16 MiB at most.
const READ_AHEAD_CONCURRENCY: usize = 8;
/// Skills that are published at once.
const PUBLISH_CONCURRENCY: usize = 32;
/// Skills of a source that may be unreadable before the rest is left for later: a place that
/// answers none of them would else be asked, with retries, for each of thousands.
const MAX_UNREADABLE: usize = 20;

/// The item that owns a skill of this source.
struct Owner {
    path: String,
    digest: Option<Digest>,
}

enum Decision {
    Publish(SkillId, ReadSkill),
    /// Skip it, and give up the skill that it was.
    Skip(Skipped),
    /// Skip it, and go on serving the version that is here.
    Stay(Skipped),
}

/// The state of a source while a listing is applied.
struct Applied {
    /// Positions of the items in the listing, by path.
    order: HashMap<String, usize>,
    /// The item that owns each skill of this source.
    owners: HashMap<SkillKey, Owner>,
    /// The old records of the items to read, by path.
    before: HashMap<String, ItemRecord>,
    /// The records as they are now, by path.
    records: HashMap<String, ItemRecord>,
    /// Items that could not be read.
    unreadable: usize,
}

impl Applied {
    fn new(listing: &[Item], known: &HashMap<String, ItemRecord>) -> Self {
        let order = listing.iter().enumerate();
        let owners = known.values().filter_map(|record| {
            let owner = Owner {
                path: record.item.path.clone(),
                digest: record.digest,
            };
            Some((record.skill.as_ref()?.key(), owner))
        });
        Self {
            order: order.map(|(at, item)| (item.path.clone(), at)).collect(),
            owners: owners.collect(),
            before: HashMap::new(),
            records: HashMap::new(),
            unreadable: 0,
        }
    }

    fn owns(&self, key: &SkillKey, path: &str) -> bool {
        self.owners.get(key).is_some_and(|owner| owner.path == path)
    }

    /// The skills that items are now.
    fn skills(&self) -> HashSet<SkillKey> {
        let skills = self.records.values().filter_map(|r| r.skill.as_ref());
        skills.map(SkillId::key).collect()
    }

    /// Adds the skips to the result, in the order of the listing.
    fn list_skips(&self, result: &mut SourceResult) {
        let records = self.records.values();
        let skipped =
            records.filter_map(|record| Some((&record.item.path, record.skipped.as_ref()?)));
        let mut skipped: Vec<_> = skipped.collect();
        skipped.sort_by_key(|(path, _)| self.order.get(*path));
        for (path, skipped) in skipped {
            result.skip(path, skipped.reason());
        }
    }
}

/// Why a skill is not this source's.
pub(crate) fn of_another(id: &SkillId, claim: &Claim) -> Skipped {
    Skipped::State(format!(
        "'{id}' is synced from the source `{}`",
        claim.source
    ))
}

impl SourceSync<'_> {
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(Principal::source(&self.source.id))
    }

    /// Brings the registry in step with a listing. Returns how many skills are the source's own.
    pub(crate) async fn apply(
        &self,
        listing: Vec<Item>,
        known: HashMap<String, ItemRecord>,
        at: (&str, Option<&str>),
        state: &mut State,
        result: &mut SourceResult,
    ) -> Result<u32, Fault> {
        let mut applied = Applied::new(&listing, &known);
        let is_full = self.request.kind == Kind::Full;
        let Plan {
            read,
            before,
            unchanged,
            gone,
        } = {
            let (inner, id) = (Arc::clone(&self.engine.0), self.source.id.clone());
            let is_here = move |record: &ItemRecord| items::is_here(&inner, &id, record);
            blocking(move || plan(listing, known, is_full, is_here)).await?
        };
        applied.before = before;
        let was_unfinished = state.is_unfinished;
        let writes = !read.is_empty() || !gone.is_empty();
        if writes && !was_unfinished {
            // Before anything else is written: a sync that is killed leaves this mark, and only
            // the next one then compares the claims of all sources with what this one has.
            state.is_unfinished = true;
            let mut batch = Batch::new();
            state.put(&mut batch, &self.source.id);
            state.read_at = Some(self.commit(batch).await?);
        }
        self.phase(Phase::Processing, read.len());
        self.renew(unchanged, &mut applied.records).await?;
        // Nothing is withdrawn before all is published: a skill that moved in the source has
        // its new item by then, and is not away in between.
        self.read_and_publish(read, at, &mut applied, result)
            .await?;
        self.displace(&mut applied).await?;
        self.withdraw_gone(&gone, &applied, result).await?;
        if was_unfinished {
            self.withdraw_strays(&applied, result).await?;
        }
        state.is_unfinished = false;
        applied.list_skips(result);
        let records = applied.records.values();
        let skills = records.filter(|record| record.skill.is_some()).count();
        Ok(u32::try_from(skills).unwrap_or(u32::MAX))
    }

    /// Reads items in their order, and publishes them concurrently.
    async fn read_and_publish(
        &self,
        read: Vec<Item>,
        (revision, break_in_history): (&str, Option<&str>),
        applied: &mut Applied,
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
                        Ok(done) => self.count(done, applied, result),
                        // Publishes that began run to their end, and are recorded: the next sync
                        // does not read these again.
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
            let old = applied.before.get(&item.path).cloned();
            // Here and not in the futures below: the claims change in the order of the listing.
            match self.choose(&item, read, old.as_ref(), applied) {
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
                // Items that were read before are published all the same.
                Err(fault) => (more, failed) = (false, Some(fault)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Decides what to do with an item that was read, or could not be.
    fn choose(
        &self,
        item: &Item,
        read: Result<Result<ReadSkill, Skipped>, Fault>,
        old: Option<&ItemRecord>,
        applied: &mut Applied,
    ) -> Result<Decision, Fault> {
        let skill = old.and_then(|old| old.skill.as_ref());
        if let Some(skill) = skill
            && applied.owns(&skill.key(), &item.path)
        {
            // It may have another id now, and a later item may want this one.
            applied.owners.remove(&skill.key());
        }
        let skipped = match read {
            Ok(Ok(read)) => {
                let id = self.decide(item, &read, applied);
                return Ok(id.map_or_else(Decision::Skip, |id| Decision::Publish(id, read)));
            }
            Ok(Err(skipped)) => skipped,
            Err(Fault::Place(error)) if applied.unreadable < MAX_UNREADABLE && !ends(&error) => {
                applied.unreadable += 1;
                Skipped::State(format!("it could not be read: {error}"))
            }
            Err(fault) => return Err(fault),
        };
        // A skill that cannot be read any more keeps its id and its version here: it may be a
        // fault of the moment.
        if let Some((old, skill)) = old.zip(skill) {
            applied.owners.entry(skill.key()).or_insert_with(|| Owner {
                path: item.path.clone(),
                digest: old.digest,
            });
        }
        Ok(Decision::Stay(skipped))
    }

    /// Takes skills from items that lost their ids to one that goes before them.
    async fn displace(&self, applied: &mut Applied) -> Result<(), Fault> {
        let displaced: Vec<ItemRecord> = applied
            .records
            .values()
            .filter(|record| {
                let key = record.skill.as_ref().map(SkillId::key);
                key.is_some_and(|key| !applied.owns(&key, &record.item.path))
            })
            .cloned()
            .collect();
        for mut record in displaced {
            let reason = "its id is taken by a skill of this source that is less deep, or goes before it by name";
            record.skill = None;
            record.skipped = Some(Skipped::State(reason.to_owned()));
            self.store_item(&record).await?;
            applied.records.insert(record.item.path.clone(), record);
        }
        Ok(())
    }

    /// The record still holds: the skill exists, and its item of this source owns it.
    pub(crate) fn is_here(&self, record: &ItemRecord) -> bool {
        items::is_here(&self.engine.0, &self.source.id, record)
    }

    /// Stores what changed about items whose files did not, such as the stars of a repository.
    async fn renew(
        &self,
        unchanged: Vec<(ItemRecord, Item)>,
        records: &mut HashMap<String, ItemRecord>,
    ) -> Result<(), Fault> {
        let mut changed = Vec::new();
        for (mut record, item) in unchanged {
            if record.item != item {
                record.item = item;
                changed.push(record.item.path.clone());
            }
            records.insert(record.item.path.clone(), record);
        }
        for paths in changed.chunks(RECORDS_PER_BATCH) {
            let mut batch = Batch::new();
            for record in paths.iter().filter_map(|path| records.get(path)) {
                items::put(&mut batch, &self.source.id, record);
            }
            self.commit(batch).await?;
        }
        Ok(())
    }

    async fn read(&self, item: &Item) -> Result<Result<ReadSkill, Skipped>, Fault> {
        let files = match self.retry(|| self.fetch.read(item, &self.work)).await {
            Ok(files) => files,
            // The place has it so. It is not read again before its fingerprint changes.
            Err(error @ (sources::Error::Invalid(_) | sources::Error::TooLarge(_))) => {
                return Ok(Err(Skipped::Bytes(error.to_string())));
            }
            Err(error) => return Err(Fault::Place(error)),
        };
        if let Some(problem) = refusal(&files.problems) {
            return Ok(Err(Skipped::Bytes(describe(problem))));
        }
        let folder = item.path.rsplit('/').next().unwrap_or_default().to_owned();
        let bundle = Bundle {
            id: None,
            files: files.files,
            folder,
            strict: false,
        };
        let executor = self.engine.0.registry.executor().clone();
        // A task: reads ahead are not polled while as many are published as may be, and must not
        // hold a permit of the executor then, which those wait for.
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
        match (&candidate.id, refusal(&candidate.problems)) {
            (Some(id), None) => Ok(Ok(ReadSkill {
                slug: id.slug().to_owned(),
                digest: candidate.digest,
                version: files.version,
                bundle,
            })),
            (_, Some(problem)) => Ok(Err(Skipped::Bytes(describe(problem)))),
            (None, None) => Ok(Err(Skipped::Bytes(
                "it has no name that makes an id".to_owned(),
            ))),
        }
    }

    /// The id that an item gets, unless another one has it.
    fn decide(&self, item: &Item, read: &ReadSkill, all: &mut Applied) -> Result<SkillId, Skipped> {
        let id = namespace::id(self.source, item, &read.slug)
            .map_err(|error| Skipped::Bytes(error.to_string()))?;
        let key = id.key();
        if let Some(other) = all.owners.get(&key) {
            let at = |path: &String| all.order.get(path).copied();
            // An item that is no longer listed has no position, and gives its id up.
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
            Some(claim) if self.is_of_another(&claim.value) => {
                return Err(of_another(&id, &claim.value));
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
        all.owners.insert(key, owner);
        Ok(id)
    }

    /// Writes for the source, where it is still what it was.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Revision, CommitError> {
        self.engine.commit(self.source, batch).await
    }

    /// A claim binds this source. That of a source that is no longer set up binds nobody.
    pub(crate) fn is_of_another(&self, claim: &Claim) -> bool {
        claim.source != self.source.id && self.engine.source(&claim.source).is_ok()
    }

    /// The skill exists, and no source published its last version.
    fn is_a_persons(&self, id: &SkillId) -> bool {
        let registry = &self.engine.0.registry;
        if registry.catalog().get(&id.key()).is_none() {
            return false;
        }
        let page = registry.list_versions(id, 1, "");
        let last = page.ok().and_then(|page| page.versions.into_iter().next());
        // Where it is not known, the skill is left alone.
        last.is_none_or(|last| !last.version.created_by.is_source())
    }

    fn count(
        &self,
        (record, effect): (ItemRecord, Effect),
        applied: &mut Applied,
        result: &mut SourceResult,
    ) {
        self.step();
        match effect {
            Effect::Unchanged | Effect::Skipped => {}
            Effect::Added => result.added += 1,
            Effect::Updated => result.updated += 1,
            Effect::Held => result.held += 1,
        }
        applied.records.insert(record.item.path.clone(), record);
    }

    /// Withdraws skills that are this source's, and no item's: their items became other skills
    /// in a sync that did not finish.
    async fn withdraw_strays(
        &self,
        applied: &Applied,
        result: &mut SourceResult,
    ) -> Result<(), Fault> {
        let current = applied.skills();
        for (key, _) in self.engine.claimed(&self.source.id)? {
            let registry = &self.engine.0.registry;
            let head = registry.catalog().get(&key).cloned();
            if let Some(head) = head.filter(|_| !current.contains(&key)) {
                result.removed += u32::from(self.withdraw(&head.id).await?);
            }
        }
        Ok(())
    }

    /// Withdraws a skill that the source no longer has. Returns whether there was one.
    async fn withdraw(&self, skill: &SkillId) -> Result<bool, Fault> {
        let reason = format!("the source `{}` has it no more", self.source.id);
        // The claim stays: the skill comes back when its source has it again, and no other
        // source gets its id meanwhile.
        let (registry, caller) = (&self.engine.0.registry, self.caller());
        Ok(withdraw::withdraw(registry, skill, &reason, &caller).await?)
    }

    /// Withdraws skills whose items are gone, or became other skills, and forgets the items.
    async fn withdraw_gone(
        &self,
        gone: &[ItemRecord],
        applied: &Applied,
        result: &mut SourceResult,
    ) -> Result<(), Fault> {
        let current = applied.skills();
        let renamed = applied.before.values();
        let renamed = renamed.filter(|record| applied.records.contains_key(&record.item.path));
        self.phase(Phase::Storing, gone.len());
        let gone = gone.iter().map(|record| (record, true));
        for (record, is_gone) in gone.chain(renamed.map(|record| (record, false))) {
            let orphan = record.skill.as_ref().filter(|skill| {
                let key = skill.key();
                !current.contains(&key)
                    && (!applied.owners.contains_key(&key) || applied.owns(&key, &record.item.path))
            });
            if let Some(skill) = orphan {
                result.removed += u32::from(self.withdraw(skill).await?);
            }
            if is_gone {
                // After the skill: a kill in between leaves the record, and the next sync
                // withdraws what is left to withdraw.
                let mut batch = Batch::new();
                items::remove(&mut batch, &self.source.id, &record.item.path);
                self.step();
                self.commit(batch).await?;
            }
        }
        Ok(())
    }
}
