//! Scans of versions.
//!
//! * Every version is scanned before it is published, with all its files (known bytes are not
//!   scanned a second time); the report is a record of its own, since other rules find other
//!   things in bytes that do not change.
//! * A version that was published before there were scans, or was scanned by other rules, is
//!   scanned again in the background: see [`Registry::rescan`]. Until then its status stays.
//!
//! Not here: the rules (`trust`); the consequences of findings (`holds`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trust::quality::{self, Facts, Part};
use trust::{Change, Input, KnownNames, Report, Scanner, Verdict};

use super::{Audience, Catalog, Error, Head, Hold, Registry, Review, Upload};
use executor::{Kind, Stop};
use model::{
    FilePath, Skill, SkillId, SkillKey, TrustTier, Version, VersionNumber, VersionSelector,
};
use store::{Newer, Stored, Table, TableId};

// Not in the version, which never changes: newer rules find other things in the same bytes.
pub(super) const SCANS: Table<(SkillKey, VersionNumber), Scan> = Table::new(TableId::Scans);

/// The scan of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// The findings.
    pub report: Report,
    /// The quality of the version, in the parts that depend on it alone.
    pub quality: Vec<Part>,
    /// The time of the scan.
    pub time: Timestamp,
    /// The review that approved it although it was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

impl Scan {
    /// Returns the share of the version in the quality of its skill.
    #[must_use]
    pub fn base(&self) -> f64 {
        quality::base(&self.quality)
    }

    /// Returns what lists show of it.
    #[must_use]
    pub fn facts(&self) -> ScanFacts {
        ScanFacts {
            quality: self.base(),
            verdict: self.report.verdict,
        }
    }
}

/// The facts of a scan that lists show, of the active version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanFacts {
    /// The share of the version in the quality of its skill.
    pub quality: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// A decoded scan in the cache, and the commit that wrote it.
type KeptScan = Stored<Arc<Scan>>;

/// The approximate bytes of a scan in memory.
#[derive(Debug, Clone)]
pub(super) struct ScanWeight;

impl quick_cache::Weighter<(SkillKey, VersionNumber), KeptScan> for ScanWeight {
    fn weight(&self, _key: &(SkillKey, VersionNumber), kept: &KeptScan) -> u64 {
        let Report {
            findings, hosts, ..
        } = &kept.value.report;
        (1_000 + 600 * findings.len() + 60 * hosts.len()) as u64
    }
}

pub(super) type ScanCache =
    quick_cache::sync::Cache<(SkillKey, VersionNumber), KeptScan, ScanWeight>;

/// Bytes of decoded scans that are cached in memory.
const SCAN_CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// Makes an empty cache.
pub(super) fn scan_cache() -> ScanCache {
    ScanCache::with_weighter(10_000, SCAN_CACHE_BYTES, ScanWeight)
}

/// The scan of a version, with the version's state.
#[derive(Debug, Clone)]
pub struct Scanned {
    /// The skill.
    pub head: Arc<Head>,
    /// The version.
    pub number: VersionNumber,
    /// What the scanner says.
    pub scan: Arc<Scan>,
    /// The changes since the version before it; none: no earlier version was scanned.
    pub changes: Option<(VersionNumber, Vec<Change>)>,
    /// Its hold.
    pub hold: Option<Hold>,
}

/// Maximum number of versions that are skipped in the search for an earlier one that is available.
const MAX_SKIPPED_VERSIONS: usize = 1_000;

/// The other skills that a scan compares with.
#[derive(Debug, Clone)]
pub(super) struct OtherSkills {
    catalog: Arc<Catalog>,
    audience: Option<Arc<dyn Audience>>,
}

/// Names worth imitating: of trusted skills of other owners, as far as every reader of the
/// findings may see them.
struct Trusted<'a> {
    others: &'a OtherSkills,
    id: &'a SkillId,
}

impl KnownNames for Trusted<'_> {
    fn is_known(&self, name: &str) -> bool {
        let OtherSkills { catalog, audience } = self.others;
        let may_tell = |other: &SkillId| {
            let audience = audience.as_ref();
            audience.is_none_or(|audience| audience.also_sees(self.id, other))
        };
        catalog.named(name).any(|head| {
            head.trust_tier() <= TrustTier::Verified
                && !head
                    .id
                    .namespace()
                    .eq_ignore_ascii_case(self.id.namespace())
                && may_tell(&head.id)
        })
    }
}

/// Scans the files of a skill. Blocks.
pub(super) fn scan(
    id: &SkillId,
    skill: &Skill,
    files: &BTreeMap<FilePath, Bytes>,
    others: &OtherSkills,
    time: Timestamp,
    stop: &Stop,
) -> Result<Scan, Error> {
    let contents: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_ref()))
        .collect();
    let input = Input {
        files: &contents,
        name: &skill.name,
        allowed_tools: &skill.allowed_tools,
        known_names: &Trusted { others, id },
    };
    let report = Scanner::bundled().scan_until(&input, &|| stop.is_set());
    let Some(report) = report else {
        stop.check()?;
        return Err(Error::Internal(
            "a scan ended before its work was stopped".to_owned(),
        ));
    };
    let skill_md = files.get(&skill.entry).map(Bytes::as_ref);
    let text = String::from_utf8_lossy(skill_md.unwrap_or_default());
    let paths: Vec<&str> = contents.iter().map(|(path, _)| *path).collect();
    let quality = quality::parts(&Facts {
        skill,
        body: skill_md::body(&text),
        files: &paths,
        report: Some(&report),
    });
    Ok(Scan {
        report,
        quality,
        time,
        review: None,
    })
}

impl Registry {
    /// Returns the skills that a scan compares with.
    pub(super) fn others(&self) -> OtherSkills {
        OtherSkills {
            catalog: self.catalog(),
            audience: self.inner.policy.audience.clone(),
        }
    }

    /// Returns the scan of a version; none where it was not scanned yet.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn scan_of(&self, head: &Head, number: VersionNumber) -> Result<Option<Arc<Scan>>, Error> {
        if let Some(local) = &head.local {
            return Ok((local.version.number == number).then(|| Arc::new(local.scan.clone())));
        }
        let (key, scans) = ((head.id.key(), number), &self.inner.scans);
        let known = scans.get(&key);
        // Unlike a version, a scan may be rewritten, so the cache asks for the revision of the
        // record.
        let revision = known.as_ref().map(|known| known.revision);
        Ok(match self.inner.store.newer(&SCANS, &key, revision)? {
            Newer::Gone => None,
            Newer::Same => known.map(|known| known.value),
            Newer::Other(Stored { revision, value }) => {
                let value = Arc::new(value);
                let kept = Arc::clone(&value);
                scans.insert(
                    key,
                    Stored {
                        revision,
                        value: kept,
                    },
                );
                Some(value)
            }
        })
    }

    /// Returns the verdict on a version; none where it was not scanned yet. Of the active one it
    /// reads no record.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn verdict_of(&self, head: &Head, number: VersionNumber) -> Result<Option<Verdict>, Error> {
        if head.active == Some(number) {
            return Ok(head.verdict());
        }
        let scan = self.scan_of(head, number)?;
        Ok(scan.map(|scan| scan.report.verdict))
    }

    /// Returns the scan of a version by the current rules, held or not, with the changes since
    /// the version before it. A version that was not scanned yet is scanned now.
    ///
    /// # Errors
    /// There is no such version, or a file of it is damaged; the skill is blocked.
    pub async fn scan_version(
        &self,
        id: &SkillId,
        selector: &VersionSelector,
    ) -> Result<Scanned, Error> {
        let head = self.head(id)?;
        if let Some(block) = &head.blocked {
            return Err(Error::blocked(block));
        }
        let number = self.number(&head, selector)?;
        let mut scan = self.scan_of(&head, number)?;
        if scan.as_ref().is_none_or(|scan| !scan.report.is_current()) {
            self.rescan_version(id, number).await?;
            scan = self.scan_of(&head, number)?;
        }
        let scan = scan.ok_or(Error::Contention)?;
        let before = (head.first_number.get()..number.get()).rev();
        let before = before.filter_map(VersionNumber::new);
        let before = before
            .take(MAX_SKIPPED_VERSIONS)
            .find(|number| !head.is_withdrawn(*number) && !head.is_held(*number));
        let changes = match before {
            None => None,
            Some(before) => self.scan_of(&head, before)?.map(|found| {
                let new = trust::changes(&found.report, &scan.report);
                (before, new)
            }),
        };
        let head = self.head(id)?;
        Ok(Scanned {
            hold: self.hold_of(&head, number)?,
            head,
            number,
            scan,
            changes,
        })
    }

    /// Scans files that are not published.
    ///
    /// # Errors
    /// They do not make a skill, or the reference to it leads nowhere.
    pub async fn scan_upload(&self, upload: Upload) -> Result<Scan, Error> {
        let bundle = self.bundle(upload)?;
        let (others, now) = (self.others(), self.inner.clock.now());
        let read = move |stop: &Stop| {
            let (id, skill, ..) = bundle.read().accepted()?;
            scan(&id, &skill, &bundle.files, &others, now, stop)
        };
        self.executor().run_fallible(Kind::Publish, read).await
    }

    /// Scans a version that is stored. Blocks.
    pub(super) fn scan_stored(
        &self,
        id: &SkillId,
        version: &Version,
        stop: &Stop,
    ) -> Result<Scan, Error> {
        let mut files = BTreeMap::new();
        for file in &version.files {
            stop.check()?;
            files.insert(file.path.clone(), self.content(file)?);
        }
        let (others, now) = (self.others(), self.inner.clock.now());
        scan(id, &version.skill, &files, &others, now, stop)
    }
}
