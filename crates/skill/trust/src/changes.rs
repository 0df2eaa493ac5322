//! What an update brings that the version before did not have.

use super::{Capability, Finding, Report, Severity};

/// One thing that is new. An update that has any is to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A host that was not named before.
    Host(String),
    /// A power that it did not have.
    Capability(Capability),
    /// A finding of high severity, or worse, that was not there.
    Finding(Finding),
}

/// What is new in `now`: findings that moved to other lines are not. Reports of different rules are not compared finding by finding:
/// what new rules see was there before; scan the previous version anew for that.
#[must_use]
pub fn changes(previous: &Report, now: &Report) -> Vec<Change> {
    let hosts = now.hosts.difference(&previous.hosts).cloned();
    let powers = now
        .capabilities
        .0
        .difference(&previous.capabilities.0)
        .copied();
    let is_known = |found: &Finding| {
        let mut before = previous.findings.iter();
        before.any(|old| {
            (&old.rule, &old.path, &old.evidence) == (&found.rule, &found.path, &found.evidence)
                && old.severity >= found.severity
        })
    };
    let findings = now.findings.iter();
    let findings = findings.filter(|found| found.severity >= Severity::High && !is_known(found));
    hosts
        .map(Change::Host)
        .chain(powers.map(Change::Capability))
        .chain(findings.cloned().map(Change::Finding))
        .collect()
}
