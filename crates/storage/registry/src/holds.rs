//! Versions that are held for review: published, and not handed out.
//!
//! * What is held is a version. The active one before it goes on serving; a skill whose only
//!   version is held is not found by search, and its name leads to an error that says so.
//! * Whether a version is held is in memory with the head, so [`Registry::version`], which
//!   everything that hands out content calls, refuses it; the reason is a record of its own.
//!   Reviewers read it through `in_review`.
//! * A person on the server's machine approves it, and it becomes active if its publisher wanted
//!   that and no later version is active; or rejects it, and it stays held with the reviewer's
//!   reason. A later review may decide otherwise. A review is stored with the scan, and holds
//!   for its verdict: a scan by later rules with a worse verdict holds the version again.
//!
//! Not here: the rules of the scanner (`trust`); the blocklist, which is about skills
//! (`blocklist`); withdrawing (`yanks`).

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trust::{Change, Report, Verdict, changes};

use super::scans::{SCANS, Scan};
use super::{Caller, Described, Error, Head, HoldPolicy, Plan, Registry, VersionState};
use model::{
    Digest, EventKind, Principal, SkillId, SkillKey, TrustTier, Version, VersionNumber,
    VersionSelector, open_token, seal_token,
};
use store::{Table, TableId};

// Not in the head, which every write of the skill rewrites: so it does not grow with the number
// of holds.
pub(super) const HOLDS: Table<(SkillKey, VersionNumber), Hold> = Table::new(TableId::Holds);
/// The purpose of the list's page tokens.
const PAGE: &str = "held";

/// The hold of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The reason, as a clause: `the scan found a secret that is sent out (run.sh:3)`.
    pub reason: String,
    /// The time since when it is held.
    pub time: Timestamp,
    /// Whether its publisher wanted it to be the active version.
    pub activate: bool,
    /// The review that rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Review>,
}

/// The review of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The reason.
    pub reason: String,
    /// The time.
    pub time: Timestamp,
    /// The reviewer.
    pub actor: Principal,
    /// The scanner's verdict at that time.
    pub verdict: Option<Verdict>,
}

impl Hold {
    /// Returns the reason of the hold, or of the reviewer.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.rejected {
            Some(review) => format!("a reviewer rejected it: {}", review.reason),
            None => self.reason.clone(),
        }
    }
}

/// A version that is held, with the facts for its review.
#[derive(Debug, Clone)]
pub struct HeldVersion {
    /// The version, with its hold.
    pub described: Described,
    /// The scan; none where it was not scanned yet.
    pub scan: Option<Arc<Scan>>,
}

/// A page of the versions that are held, by skill and number.
#[derive(Debug, Clone)]
pub struct HeldPage {
    /// The versions.
    pub versions: Vec<HeldVersion>,
    /// The total number.
    pub size: usize,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
}

/// The approval or rejection of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewed {
    /// The skill.
    pub id: SkillId,
    /// The version.
    pub version: VersionState,
    /// The version that is active now.
    pub active: Option<VersionNumber>,
}

/// Returns the finding that a verdict is from, as a clause; none of a verdict that passed.
pub(super) fn cause(report: &Report) -> Option<String> {
    let mut findings = report.findings.iter();
    let finding = findings
        .find(|found| found.verdict() == report.verdict)
        .filter(|_| report.verdict != Verdict::Passed)?;
    let place = match (finding.path.as_str(), finding.line) {
        ("", _) => String::new(),
        (path, 0) => format!(" ({path})"),
        (path, line) => format!(" ({path}:{line})"),
    };
    Some(format!("the scan found: {}{place}", finding.title))
}

/// Returns the reason to hold what was scanned of a skill of this tier; none where policy lets it
/// pass. `before` is the report of the version before it.
pub(super) fn objection(
    policy: HoldPolicy,
    tier: TrustTier,
    report: &Report,
    before: impl FnOnce() -> Result<Option<Report>, Error>,
) -> Result<Option<String>, Error> {
    let reason = cause(report).filter(|_| policy.holds(report.verdict, tier));
    if reason.is_some() || policy < HoldPolicy::Changes {
        return Ok(reason);
    }
    // After the findings, so that the reason names these first.
    if policy == HoldPolicy::All {
        return Ok(Some("every new version waits for approval here".to_owned()));
    }
    let Some(before) = before()? else {
        return Ok(None);
    };
    let new = changes(&before, report).into_iter().next();
    Ok(new.map(|change| match change {
        Change::Host(host) => format!("the version before it did not name the host {host}"),
        Change::Capability(power) => {
            let power = power.name().replace('_', " ");
            format!("the version before it did not have the power `{power}`")
        }
        Change::Finding(finding) => format!("it is new that the scan found: {}", finding.title),
    }))
}

impl Registry {
    /// Returns the hold of a version; none where it is not held.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn hold_of(&self, head: &Head, number: VersionNumber) -> Result<Option<Hold>, Error> {
        if let Some(local) = &head.local {
            return Ok(local.hold.clone());
        }
        if head.is_held(number) {
            return self.stored_hold(&head.id.key(), number);
        }
        Ok(None)
    }

    /// The same of the version that has these bytes under a number: a copy of a version has
    /// both.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn hold_of_copy(
        &self,
        head: &Head,
        number: VersionNumber,
        digest: Digest,
    ) -> Result<Option<Hold>, Error> {
        let Some(hold) = self.hold_of(head, number)? else {
            return Ok(None);
        };
        let is_it = self.any_version(head, number)?.digest == digest;
        Ok(is_it.then_some(hold))
    }

    /// Reads the hold of a version.
    pub(super) fn stored_hold(
        &self,
        key: &SkillKey,
        number: VersionNumber,
    ) -> Result<Option<Hold>, Error> {
        let stored = self.inner.store.get(&HOLDS, &(key.clone(), number))?;
        Ok(stored.map(|stored| stored.value))
    }

    /// Returns the error for a version that is held.
    pub(super) fn held(&self, head: &Head, number: VersionNumber) -> Error {
        let hold = self.hold_of(head, number);
        hold.map_or_else(|error| error, |hold| Error::held(head, number, hold))
    }

    /// Returns a page of the versions that are held.
    ///
    /// # Errors
    /// The token is of another query; a record is damaged.
    pub fn list_held(&self, size: usize, token: &str) -> Result<HeldPage, Error> {
        let catalog = self.catalog();
        let after = match token {
            "" => None,
            token => {
                let place = open_token(PAGE, "", token).ok_or(Error::PageToken)?;
                let (number, key) = place.split_once(' ').ok_or(Error::PageToken)?;
                let number = number.parse().ok().and_then(VersionNumber::new);
                Some((SkillKey::from_stored(key), number.ok_or(Error::PageToken)?))
            }
        };
        let mut found = catalog.held_after(after.as_ref());
        let mut versions = Vec::new();
        let mut last = None;
        for (head, number) in found.by_ref().take(size) {
            let key = head.id.key();
            last = Some((key.clone(), number));
            // The catalog is a snapshot: what was approved or deleted since is left out.
            let (Some(hold), Ok(version)) = (
                self.stored_hold(&key, number)?,
                self.any_version(&head, number),
            ) else {
                continue;
            };
            let scan = self.scan_of(&head, number)?;
            let yank = self.yank_of(&head, number)?;
            let described = Described {
                head,
                version,
                yank,
                hold: Some(hold),
            };
            versions.push(HeldVersion { described, scan });
        }
        let more = found.next().is_some();
        let next = last.filter(|_| more);
        let next = next.map(|(key, number)| seal_token(PAGE, "", &format!("{number} {key}")));
        Ok(HeldPage {
            versions,
            size: catalog.held(),
            next,
        })
    }

    /// Approves a version that is held.
    ///
    /// # Errors
    /// There is no such version, or it is not held.
    pub async fn approve(
        &self,
        id: &SkillId,
        version: impl Into<VersionSelector>,
        reason: &str,
        caller: &Caller,
    ) -> Result<Reviewed, Error> {
        let selector = version.into();
        let key = id.key();
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let number = self.number(&head, &selector)?;
            let (version, hold) = self.records(&head, number)?;
            let scan = self.scan_of(&head, number)?;
            let yank = self.stored_yank(&head, number)?;
            head.held.remove(&number);
            // A later version may have become active while this one waited: a review must not
            // take the skill back.
            let is_newest = head.active.is_none_or(|active| active < number);
            if hold.activate && yank.is_none() && is_newest {
                head.active = Some(number);
                head.summary = Some(self.summary(&head.id, &version)?);
            }
            let reviewed = Reviewed {
                id: head.id.clone(),
                version: VersionState::new(&head, &version, yank.as_ref(), None),
                active: head.active,
            };
            let at = (key.clone(), number);
            let (mut batch, event) =
                self.edit(revision, head, EventKind::Approved, &version, caller)?;
            batch.delete(&HOLDS, &at);
            if let Some(scan) = scan {
                let review = Some(self.review(reason, Some(&scan), caller));
                let scan = Scan::clone(&scan);
                // Stored with the scan, since the hold is gone: the approval, and the verdict
                // that it is of, must outlive the hold.
                batch.put(&SCANS, &at, &Scan { review, ..scan });
            }
            Ok(Plan::Write(batch, event, reviewed))
        })
        .await
    }

    /// Rejects a version that is held, which stays held.
    ///
    /// # Errors
    /// There is no such version, or it is not held.
    pub async fn reject(
        &self,
        id: &SkillId,
        version: impl Into<VersionSelector>,
        reason: &str,
        caller: &Caller,
    ) -> Result<Reviewed, Error> {
        let selector = version.into();
        let key = id.key();
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            let (head, revision) = self.writable(id, caller)?;
            let number = self.number(&head, &selector)?;
            let (version, hold) = self.records(&head, number)?;
            let scan = self.scan_of(&head, number)?;
            let yank = self.stored_yank(&head, number)?;
            let rejected = Some(self.review(reason, scan.as_deref(), caller));
            let hold = Hold { rejected, ..hold };
            let reviewed = Reviewed {
                id: head.id.clone(),
                version: VersionState::new(&head, &version, yank.as_ref(), Some(&hold)),
                active: head.active,
            };
            let at = (key.clone(), number);
            let (mut batch, event) =
                self.edit(revision, head, EventKind::Rejected, &version, caller)?;
            batch.put(&HOLDS, &at, &hold);
            Ok(Plan::Write(batch, event, reviewed))
        })
        .await
    }

    fn review(&self, reason: &str, scan: Option<&Scan>, caller: &Caller) -> Review {
        Review {
            reason: reason.to_owned(),
            time: self.inner.clock.now(),
            actor: caller.principal.clone(),
            verdict: scan.map(|scan| scan.report.verdict),
        }
    }

    /// Reads the records of a version that is held.
    fn records(&self, head: &Head, number: VersionNumber) -> Result<(Arc<Version>, Hold), Error> {
        let version = self.any_version(head, number)?;
        let hold = self.stored_hold(&head.id.key(), number)?;
        let hold = hold.ok_or_else(|| Error::NotHeld {
            id: head.id.clone(),
            version: number,
        })?;
        Ok((version, hold))
    }
}
