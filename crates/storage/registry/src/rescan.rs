//! Scans stored versions by the current rules.

use serde::Deserialize;

use super::holds::{HOLDS, Hold, objection};
use super::numbers::{VERSION_KEYS, number_of};
use super::scans::{SCANS, Scan};
use super::{Caller, Error, HEADS, HoldPolicy, Plan, Registry};
use executor::{Kind, Stop};
use model::{EventKind, Principal, SkillId, SkillKey, VersionNumber};
use store::{Batch, Table, TableId, prefix};

/// Skills that are checked together.
const SKILLS_PER_BATCH: usize = 256;

/// The rules of a scan, without its findings.
#[derive(Deserialize)]
struct Rules {
    report: RulesOf,
}

#[derive(Deserialize)]
struct RulesOf {
    rules: u32,
}

const RULES: Table<(SkillKey, VersionNumber), Rules> = Table::new(TableId::Scans);

/// The result of a rescan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rescanned {
    /// The number of versions that were scanned.
    pub scanned: usize,
    /// The number of versions that were held.
    pub held: usize,
}

impl Registry {
    /// Scans every version that was never scanned, or by other rules. A version that fails the
    /// current rules is held, unless a reviewer approved it with this verdict; where it was
    /// active, the highest other version replaces it. A version that cannot be read is skipped;
    /// its next reader gets the error. For the background: its work is of the kind of imports.
    ///
    /// # Errors
    /// The store cannot be read or written; the server stops.
    pub async fn rescan(&self) -> Result<Rescanned, Error> {
        let catalog = self.catalog();
        let mut done = Rescanned::default();
        let mut heads = catalog.after("", None).map(|head| head.id.clone());
        loop {
            let ids: Vec<SkillId> = heads.by_ref().take(SKILLS_PER_BATCH).collect();
            if ids.is_empty() {
                return Ok(done);
            }
            let this = self.clone();
            let stale = move |stop: &Stop| this.stale(&ids, stop);
            let stale = self.executor().run_fallible(Kind::Import, stale).await?;
            for (id, number) in stale {
                match self.rescan_version(&id, number).await {
                    Ok(held) => {
                        done.scanned += 1;
                        done.held += usize::from(held);
                    }
                    Err(error @ Error::Work(_)) => return Err(error),
                    Err(error) => {
                        tracing::warn!(skill = %id, version = number.get(), %error, "not scanned");
                    }
                }
            }
        }
    }

    /// Returns the versions of skills that were not scanned by the current rules.
    fn stale(&self, ids: &[SkillId], stop: &Stop) -> Result<Vec<(SkillId, VersionNumber)>, Error> {
        let store = &self.inner.store;
        let mut stale = Vec::new();
        for id in ids {
            stop.check()?;
            let prefix = prefix(&id.key());
            let mut scanned = store.scan(&RULES, &prefix).peekable();
            for entry in store.scan(&VERSION_KEYS, &prefix) {
                let Some(number) = number_of(&entry?.0) else {
                    continue;
                };
                let mut rules = None;
                // Both go up by number.
                while let Some(entry) = scanned.next_if(|entry| {
                    let of = entry.as_ref().ok().and_then(|(key, _)| number_of(key));
                    of.is_none_or(|of| of <= number)
                }) {
                    let (key, found) = entry?;
                    if number_of(&key) == Some(number) {
                        rules = Some(found.value.report.rules);
                    }
                }
                if rules != Some(trust::RULES_VERSION) {
                    stale.push((id.clone(), number));
                }
            }
        }
        Ok(stale)
    }

    /// Scans a version by the current rules; returns whether that held it.
    ///
    /// # Errors
    /// There is no such version, or a file of it is damaged.
    pub async fn rescan_version(&self, id: &SkillId, number: VersionNumber) -> Result<bool, Error> {
        let head = self.head(id)?;
        let version = self.any_version(&head, number)?;
        let (this, of) = (self.clone(), head.id.clone());
        let read = move |stop: &Stop| this.scan_stored(&of, &version, stop);
        // Before the lock: a scan takes long, and a version does not change meanwhile.
        let found = self.executor().run_fallible(Kind::Import, read).await?;
        // The stricter policies hold new versions; this one was published before.
        let policy = self.inner.policy.hold.of_what_is_served();
        let policy = policy.min(HoldPolicy::Warning);
        let tier = head.trust_tier();
        let objection = objection(policy, tier, &found.report, || Ok(None))?;
        let system = Caller::new(Principal::system());
        let key = head.id.key();
        let _queue = self.lock(&key).await;
        self.write(&system, || {
            let stored = self.stored_head(&key)?.filter(|head| !head.value.deleted);
            let not_found = || self.catalog().not_found(id.as_str());
            let stored = stored.ok_or_else(not_found)?;
            let (mut head, revision) = (stored.value, stored.revision);
            let version = self.any_version(&head, number)?;
            let before = self.scan_of(&head, number)?;
            let review = before.as_ref().and_then(|before| before.review.clone());
            let is_approved = review
                .as_ref()
                .is_some_and(|review| review.verdict >= Some(found.report.verdict));
            let at = (key.clone(), number);
            let hold = self.stored_hold(&key, number)?;
            let reason = objection
                .clone()
                .filter(|_| hold.is_none() && !is_approved && !head.id.is_builtin());
            let is_active = head.active == Some(number);
            let is_news = before.as_ref().is_none_or(|before| {
                before.report.verdict != found.report.verdict || before.quality != found.quality
            }) || head.verdict() != Some(found.report.verdict);
            let scan = Scan {
                review,
                ..found.clone()
            };
            let mut batch = Batch::new();
            batch.expect(&HEADS, &key, Some(revision).into());
            batch.put(&SCANS, &at, &scan);
            if let Some(reason) = reason {
                let hold = Hold {
                    reason,
                    time: scan.time,
                    activate: is_active,
                    rejected: None,
                };
                head.held.insert(number);
                if is_active {
                    head.active = self.stored_available(&mut head)?;
                    let next = head.active.map(|next| self.summary_of(&head, next));
                    head.summary = next.transpose()?;
                }
                let (mut edit, event) =
                    self.edit(revision, head, EventKind::Held, &version, &system)?;
                edit.put(&HOLDS, &at, &hold);
                edit.put(&SCANS, &at, &scan);
                return Ok(Plan::Write(edit, event, true));
            }
            if !is_active || !is_news {
                return Ok(Plan::Quiet(batch, false));
            }
            // Lists and searches read the verdict and the quality from the head.
            if let Some(summary) = &mut head.summary {
                summary.set_scan(scan.facts());
            }
            let (mut edit, event) =
                self.record(revision, head, EventKind::Scanned, &version, &system)?;
            edit.put(&SCANS, &at, &scan);
            Ok(Plan::Write(edit, event, false))
        })
        .await
    }
}
