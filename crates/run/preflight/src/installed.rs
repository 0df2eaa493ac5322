//! Skills that are installed on this machine, with what the server knows of them now.

use std::collections::HashSet;

use jiff::Timestamp;

use super::{Error, Installer, budget, worse};
use executor::{Kind, Stop};
use install::{Placed, Status};
use model::{SkillKey, VersionSelector, shown};
use registry::Head;

/// An installed skill as it is now.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The installed copy.
    pub placed: Placed,
    /// Whether it can be used as it is; unknown where nobody asked.
    pub status: Status,
    /// Problems; none: there are none.
    pub details: Option<String>,
    /// How often it was loaded here.
    pub loads: u64,
    /// When it was last loaded or read here.
    pub last_used_at: Option<Timestamp>,
    /// A newer version; none: there is none, or nobody asked.
    pub update: Option<Update>,
}

/// A newer version of an installed skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Its semantic version.
    pub semantic: semver::Version,
    /// It may break what worked.
    pub is_breaking: bool,
}

/// Whether two versions may be incompatible: the first number that is not 0 differs.
fn is_breaking(from: &semver::Version, to: &semver::Version) -> bool {
    let main = |version: &semver::Version| match (version.major, version.minor) {
        (0, 0) => (0, 0, version.patch),
        (0, minor) => (0, minor, 0),
        (major, _) => (major, 0, 0),
    };
    main(from) != main(to)
}

/// The version that a skill's name leads to, where that is newer.
fn update(placed: &Placed, head: &Head) -> Option<Update> {
    let summary = head.active.and(head.summary.as_ref())?;
    let (here, there) = (&placed.record.semantic, &summary.semantic);
    (there > here).then(|| Update {
        semantic: there.clone(),
        is_breaking: is_breaking(here, there),
    })
}

impl Installer {
    /// The skills that are installed on this machine, each once.
    ///
    /// # Errors
    /// A record cannot be read.
    pub async fn installed_keys(&self) -> Result<HashSet<SkillKey>, Error> {
        let this = self.clone();
        let read = move |_: &Stop| {
            let placed = this.placed()?.into_iter();
            Ok(placed.map(|placed| placed.record.id.key()).collect())
        };
        // Before a search or a read of a skill: not in the queue of archives and installs.
        let executor = self.registry.executor();
        executor.run_fallible(Kind::Read, read).await
    }

    /// Lists installed skills by id; with their health, and with newer versions, on request.
    ///
    /// # Errors
    /// A record cannot be read.
    pub async fn list(&self, health: bool, updates: bool) -> Result<Vec<Listed>, Error> {
        self.run(move |this, stop| {
            let listed = this.home.list()?.into_iter().map(|placed| {
                stop.check()?;
                this.listed(placed, health, updates)
            });
            listed.collect()
        })
        .await
    }

    fn listed(&self, placed: Placed, health: bool, updates: bool) -> Result<Listed, Error> {
        let catalog = self.registry.catalog();
        let key = placed.record.id.key();
        let head = catalog.get(&key);
        let (mut loads, mut last_used_at) = (0, None);
        if let Some(head) = head {
            for (_, counts) in self.registry.usage(head)? {
                loads += counts.loads;
                last_used_at = last_used_at.max(counts.last_used_at);
            }
        }
        let (mut status, mut details) = (Status::Unknown, None);
        if health {
            let found = placed.health();
            (status, details) = (found.status(), found.details());
            let known = match (catalog.block(&key), head) {
                (Some(block), _) => {
                    let reason = shown(&block.reason, 200);
                    Some((Status::Error, format!("blocked on this server: {reason}")))
                }
                (None, Some(head)) => self.objection(&placed, head)?,
                (None, None) => None,
            };
            if let Some((known, why)) = known {
                status = worse(status, known);
                details = Some(details.map_or(why.clone(), |details| format!("{why}; {details}")));
            }
        }
        let update = head
            .filter(|_| updates)
            .and_then(|head| update(&placed, head));
        Ok(Listed {
            placed,
            status,
            details,
            loads,
            last_used_at,
            update,
        })
    }

    /// Returns what is now known against the version that is installed, if it is one of the
    /// registry's own.
    fn objection(&self, placed: &Placed, head: &Head) -> Result<Option<(Status, String)>, Error> {
        let (number, digest) = (placed.record.number, placed.record.digest);
        if let Some(hold) = self.registry.hold_of_copy(head, number, digest)? {
            let why = shown(&hold.words(), 200);
            let why = format!("held for review on this server: {why}");
            return Ok(Some((Status::Error, why)));
        }
        let version = self
            .registry
            .version(head, &VersionSelector::Number(number));
        // The copy came from another server, or from a history of this one that is gone. What is
        // known here is about other bytes.
        if version.is_err() || version.is_ok_and(|version| version.digest != digest) {
            return Ok(None);
        }
        let yank = self.registry.yank_of(head, number)?;
        Ok(yank.map(|yank| {
            let reason = shown(&yank.reason, 200);
            (
                Status::Warning,
                format!("its version was withdrawn: {reason}"),
            )
        }))
    }

    /// Characters of skills that are installed, each once.
    #[must_use]
    pub fn used_chars(listed: &[Listed]) -> u64 {
        let placed: Vec<Placed> = listed.iter().map(|one| one.placed.clone()).collect();
        budget::used(&placed, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_that_is_not_0_says_what_may_break() {
        let version = |text: &str| text.parse::<semver::Version>().expect("a version");
        for (from, to, breaking) in [
            ("1.2.0", "1.3.0", false),
            ("1.2.0", "2.0.0", true),
            ("0.2.0", "0.2.9", false),
            ("0.2.0", "0.3.0", true),
            ("0.0.1", "0.0.2", true),
            ("0.9.0", "1.0.0", true),
        ] {
            assert_eq!(
                is_breaking(&version(from), &version(to)),
                breaking,
                "{from} to {to}"
            );
        }
    }
}
