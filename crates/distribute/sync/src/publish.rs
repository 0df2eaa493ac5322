//! Publishing the skills that were read of a source.

use semver::BuildMetadata;

use super::apply::of_another;
use super::record::{CLAIMS, Claim, ItemRecord, Skipped};
use super::source_sync::{Fault, SourceSync};
use super::{items, withdraw};
use executor::Kind as WorkKind;
use model::{Digest, Failure, Kind as FailureKind, Problem, Severity, SkillId};
use registry::{Bundle, Outcome, Prepared};
use sources::Item;
use store::Batch;

pub(crate) struct ReadSkill {
    pub(crate) bundle: Bundle,
    pub(crate) slug: String,
    pub(crate) digest: Digest,
    /// Its version, as the place has it.
    pub(crate) version: Option<String>,
}

/// The effect of an item on the registry.
pub(crate) enum Effect {
    /// It is as it was.
    Unchanged,
    Added,
    Updated,
    /// A version of it waits for approval.
    Held,
    Skipped,
}

impl SourceSync<'_> {
    pub(crate) async fn store_item(&self, record: &ItemRecord) -> Result<(), Fault> {
        let mut batch = Batch::new();
        items::put(&mut batch, &self.source.id, record);
        self.commit(batch).await?;
        Ok(())
    }

    /// Records that an item was skipped, and what stays of it.
    pub(crate) async fn skip(
        &self,
        item: Item,
        skipped: Skipped,
        stays: Option<&ItemRecord>,
        old: Option<&ItemRecord>,
    ) -> Result<(ItemRecord, Effect), Fault> {
        let record = ItemRecord {
            item,
            skill: stays.and_then(|stays| stays.skill.clone()),
            digest: stays.and_then(|stays| stays.digest),
            version: stays.and_then(|stays| stays.version),
            skipped: Some(skipped),
        };
        // A source may have thousands of skills that are skipped at every sync.
        if old != Some(&record) {
            self.store_item(&record).await?;
        }
        Ok((record, Effect::Skipped))
    }

    /// Publishes what was read, and records the result for the item.
    pub(crate) async fn publish(
        &self,
        item: Item,
        id: SkillId,
        read: ReadSkill,
        old: Option<&ItemRecord>,
        revision: &str,
        break_in_history: Option<&str>,
    ) -> Result<(ItemRecord, Effect), Fault> {
        let inner = &self.engine.0;
        let key = id.key();
        let old = old.filter(|old| old.skill.as_ref().is_some_and(|skill| skill.key() == key));
        if let Some(old) = old
            && old.digest == Some(read.digest)
            && self.is_here(old)
        {
            // It may have been skipped since: kept, the reason would be reported at every sync,
            // and the item not read again after somebody deletes the skill.
            let record = ItemRecord {
                item,
                skipped: None,
                ..old.clone()
            };
            if record != *old {
                self.store_item(&record).await?;
            }
            return Ok((record, Effect::Unchanged));
        }
        let claim = Claim {
            source: self.source.id.clone(),
            path: item.path.clone(),
        };
        let known = items::claim(&inner.store, &key)?;
        if known.as_ref().map(|known| &known.value) != Some(&claim) {
            // Another sync may have claimed it since its id was decided.
            if let Some(known) = known
                .as_ref()
                .filter(|known| self.is_of_another(&known.value))
            {
                return self
                    .skip(item, of_another(&id, &known.value), None, old)
                    .await;
            }
            // Before the skill is there, so that a kill leaves none that nobody follows.
            let mut batch = Batch::new();
            batch.expect(&CLAIMS, &key, known.map(|known| known.revision).into());
            batch.put(&CLAIMS, &key, &claim);
            self.commit(batch).await?;
        }
        let digest = read.digest;
        // A break in history is seen by one look alone. The objection to these bytes holds until
        // they change, or the next full sync would publish them without a review.
        let before = old.filter(|old| old.item.fingerprint == item.fingerprint);
        let objection = match before.and_then(|before| before.skipped.as_ref()) {
            Some(Skipped::Review(why)) => Some(why.as_str()),
            _ => break_in_history,
        };
        let published = self.hand_over(&id, read, revision, objection).await;
        let (version, effect) = match published {
            Ok(published) => published,
            Err(Refusal::Skip(skipped)) => {
                // A claim without a skill would keep the id from every other source.
                if inner.registry.catalog().get(&key).is_none() {
                    let mut batch = Batch::new();
                    batch.delete(&CLAIMS, &key);
                    self.commit(batch).await?;
                }
                // An earlier version that is here stays the item's own. `None` has the record
                // written even if it is as before.
                return self.skip(item, skipped, old, None).await;
            }
            Err(Refusal::Fault(fault)) => return Err(fault),
        };
        let record = ItemRecord {
            item,
            skill: Some(id),
            digest: Some(digest),
            version: Some(version),
            skipped: None,
        };
        self.store_item(&record).await?;
        Ok((record, effect))
    }

    async fn hand_over(
        &self,
        id: &SkillId,
        read: ReadSkill,
        revision: &str,
        objection: Option<&str>,
    ) -> Result<(model::VersionNumber, Effect), Refusal> {
        let registry = &self.engine.0.registry;
        let caller = self.caller();
        let head = registry.catalog().get(&id.key()).cloned();
        let active = head.as_ref().and_then(|head| head.active);
        let ReadSkill {
            bundle,
            version: named,
            digest,
            ..
        } = read;
        let bundle = Bundle {
            id: Some(id.clone()),
            ..bundle
        };
        let mut prepared = registry.prepare_as(WorkKind::Import, bundle).await?;
        // Repositories change skills without raising their versions, so the same version with
        // other bytes gets a part of its digest as build metadata.
        let build = BuildMetadata::new(&digest.hex().chars().take(12).collect::<String>());
        if let Ok(build) = build {
            prepared.distinguish_by(build);
        }
        let objection = objection
            .map(str::to_owned)
            .or_else(|| self.downgrade(&prepared, named.as_deref(), head.as_deref()));
        // Bytes that are known cannot be held: they were handed out before. They are not made
        // active, which is what a person would do.
        let activate = objection.is_none() || !prepared.is_known();
        if let Some(why) = &objection {
            prepared.hold_because(why);
        }
        let summary = match revision {
            "" => format!("From the source `{}`", self.source.id),
            revision => format!(
                "From the source `{}` at {}",
                self.source.id,
                model::shown(revision, 100)
            ),
        };
        let published = registry
            .publish(prepared, &summary, activate, &caller)
            .await?;
        let number = published.version.number;
        if let Some(why) = objection.filter(|_| !activate && !published.version.active) {
            return Err(Refusal::Skip(Skipped::Review(why)));
        }
        if published.version.held.is_some() {
            return Ok((number, Effect::Held));
        }
        let is_back = published.version.withdrawn.is_some()
            && withdraw::put_back(registry, id, number, &caller).await?;
        if is_back && active.is_some() {
            // Putting a version back makes it active only where no other is. Without this the
            // newer one would stay active for good, though the source went back.
            registry.activate(id, number, &caller).await?;
        }
        let effect = match (active, published.outcome) {
            (None, _) if is_back || published.version.active => Effect::Added,
            (Some(active), Outcome::Unchanged) if active == number => Effect::Unchanged,
            _ if is_back || published.version.active => Effect::Updated,
            _ => Effect::Unchanged,
        };
        Ok((number, effect))
    }

    /// The objection to a version that is lower than the active one.
    fn downgrade(
        &self,
        prepared: &Prepared,
        called: Option<&str>,
        head: Option<&registry::Head>,
    ) -> Option<String> {
        if self.source.kind.is_registry() {
            return None;
        }
        let registry = &self.engine.0.registry;
        let active = registry.version(head?, &model::VersionSelector::Active);
        let active = active.ok()?;
        // A version that the server gave is no sign of a downgrade: it counts up by itself.
        let stated = prepared.stated_version();
        let stated = stated.or_else(|| called?.parse().ok())?;
        // Without build metadata, which is a part of a digest and of no order.
        let precedes = stated.cmp_precedence(&active.semantic).is_lt();
        precedes.then(|| {
            format!(
                "its version is {stated}, and {} is active here: it would go back",
                active.semantic
            )
        })
    }
}

/// Why the registry did not publish.
enum Refusal {
    /// The skill, or another one here: the next item may fare better.
    Skip(Skipped),
    /// The server: no other item would fare better.
    Fault(Fault),
}

impl From<super::Error> for Refusal {
    fn from(error: super::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<registry::Error> for Refusal {
    fn from(error: registry::Error) -> Self {
        if let registry::Error::Invalid { problems } = &error {
            let reason = refusal(problems).map_or_else(|| error.to_string(), describe);
            return Self::Skip(Skipped::Bytes(reason));
        }
        let message = error.to_string();
        let failure = Failure::from(error);
        match failure.code.kind() {
            FailureKind::Invalid
            | FailureKind::NotFound
            | FailureKind::Unauthenticated
            | FailureKind::Denied
            | FailureKind::State => Self::Skip(Skipped::State(failure.message)),
            _ => Self::Fault(Fault::Here(super::Error::Here { message })),
        }
    }
}

/// The problem that refuses a skill, if one does.
pub(crate) fn refusal(problems: &[Problem]) -> Option<&Problem> {
    let mut problems = problems.iter();
    problems.find(|problem| problem.severity == Severity::Error)
}

/// A problem as a sentence, with file and line.
pub(crate) fn describe(problem: &Problem) -> String {
    match (problem.file.as_str(), problem.line) {
        ("", _) => format!("{} ({})", problem.message, problem.rule),
        (file, 0) => format!("{file}: {} ({})", problem.message, problem.rule),
        (file, line) => format!("{file}:{line}: {} ({})", problem.message, problem.rule),
    }
}
