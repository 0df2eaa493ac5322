//! The risks of an update that the version before did not have.

use super::{Capability, Finding, Report, Severity};

/// One new risk. An update with any of them is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A host that was not named before.
    Host(String),
    /// A capability that it did not have.
    Capability(Capability),
    /// A new finding of high severity or worse.
    Finding(Finding),
}

/// Returns what is new in `now`; a finding that moved to another line is not. Both reports have to
/// be by the same rules: what only newer rules see is not new, so scan the previous version again
/// first.
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
            // Without the line: an edit above a finding must not hold an update.
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
