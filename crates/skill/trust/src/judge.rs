//! Turns signals that occur together into findings.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};

use super::lines::{Line, LineScope, Lines};
use super::rules::{Rule, Rules, When, Within};
use super::signals::{Hit, SignalId};
use super::text::evidence;
use super::{Confidence, Finding, Severity};

/// The most findings of one rule in one file; more say nothing new.
const MAX_IN_FILE: usize = 4;
/// The most hits of one rule in a file, and the most hits of a signal that one hit is compared
/// with.
const MAX_FOUND: usize = 128;
const MAX_TRIED: usize = 128;
/// The most candidates of a file for one rule; a file with more is held.
const MAX_CANDIDATES: usize = 6_000;
/// The most bytes between signals of one long line.
const MAX_DISTANCE_BYTES: usize = 1_000;

/// A file with its lines and hits, to judge.
pub(crate) struct Case<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) path: &'a str,
    pub(crate) lines: &'a Lines<'a>,
    pub(crate) hits: &'a [Hit],
    /// The skill is about attacks: it quotes them.
    pub(crate) is_about_attacks: bool,
    /// Caches which notes warn of the lines below them.
    pub(crate) warns: RefCell<FxHashMap<usize, bool>>,
    /// It had too many candidates.
    pub(crate) is_spent: Cell<bool>,
}

/// A finding of a rule.
pub(crate) fn finding(rule: &'static Rule, path: &str, line: u32, evidence_of: &str) -> Finding {
    Finding {
        rule: Cow::Borrowed(&rule.id),
        category: rule.category,
        severity: rule.severity,
        confidence: rule.confidence,
        path: path.to_owned(),
        line,
        title: Cow::Borrowed(&rule.title),
        description: Cow::Borrowed(&rule.description),
        evidence: evidence(evidence_of),
        fix: Cow::Borrowed(&rule.fix),
        owasp: Cow::Borrowed(&rule.owasp),
    }
}

/// The hits of a further signal of a rule.
struct Part<'a> {
    hits: Vec<&'a [Hit]>,
    keys: FxHashSet<usize>,
}

impl Case<'_> {
    /// Returns the findings of a file, and the number of those left out.
    pub(crate) fn judge(&self) -> (Vec<Finding>, u32) {
        let mut by_signal: Vec<Vec<Hit>> = vec![Vec::new(); self.rules.signals.len()];
        for hit in self.hits {
            if let Some(of) = by_signal.get_mut(usize::from(hit.signal)) {
                of.push(*hit);
            }
        }
        for of in &mut by_signal {
            of.sort_unstable_by_key(|hit| (self.number(hit), *hit));
            of.dedup();
        }
        let mut findings: Vec<Finding> = Vec::new();
        let mut left_out = 0;
        for when in &self.rules.whens {
            for hit in self.found(when, &by_signal) {
                let same = || findings.iter().filter(|other| other.rule == when.rule.id);
                let is_listed = |severity, confidence| {
                    same().any(|other| other.severity >= severity && other.confidence >= confidence)
                };
                // A file full of mild findings must not keep a grave one out of the list.
                let is_full = same().count() >= MAX_IN_FILE;
                // Making a finding costs a look at its context. One that cannot be worse than the
                // listed ones is skipped.
                if is_full && is_listed(raised(when.severity), when.confidence) {
                    left_out += 1;
                    continue;
                }
                let found = self.finding(when, hit);
                let is_worse = !is_listed(found.severity, found.confidence);
                let mut others = findings.iter_mut();
                let other =
                    others.find(|other| other.rule == found.rule && other.line == found.line);
                if let Some(other) = other {
                    if (found.severity, found.confidence) > (other.severity, other.confidence) {
                        *other = found;
                    }
                } else if !is_full || (is_worse && found.severity >= Severity::High) {
                    findings.push(found);
                } else {
                    left_out += 1;
                }
            }
        }
        (findings, left_out)
    }

    fn hits_of<'b>(signals: &[SignalId], by_signal: &'b [Vec<Hit>]) -> Vec<&'b [Hit]> {
        let of = signals
            .iter()
            .filter_map(|signal| by_signal.get(usize::from(*signal)));
        of.map(Vec::as_slice)
            .filter(|hits| !hits.is_empty())
            .collect()
    }

    fn line(&self, hit: &Hit) -> Option<&Line<'_>> {
        self.lines.lines.get(hit.line)
    }

    fn is_in(&self, hit: &Hit, when: &When) -> bool {
        self.line(hit)
            .is_some_and(|line| when.scopes.has(line.scope))
    }

    fn number(&self, hit: &Hit) -> u32 {
        self.line(hit).map_or(0, |line| line.number)
    }

    /// The key that hits of one block, section or file share; none where distance decides.
    fn key(&self, hit: &Hit, within: Within) -> Option<usize> {
        let line = self.line(hit)?;
        match within {
            Within::Line | Within::Near => None,
            Within::Block => usize::try_from(line.block).ok(),
            Within::Section => Some(line.heading),
            Within::File => Some(0),
        }
    }

    /// Returns the hits of the first signal that all others are near.
    fn found(&self, when: &When, by_signal: &[Vec<Hit>]) -> Vec<Hit> {
        let mut parts = when
            .all
            .iter()
            .map(|signals| Self::hits_of(signals, by_signal));
        let first = parts.next().unwrap_or_default();
        let others: Vec<Part<'_>> = parts
            .map(|hits| {
                let all = hits.iter().flat_map(|hits| hits.iter());
                let here = all.filter(|hit| self.is_in(hit, when));
                let keys = here.filter_map(|hit| self.key(hit, when.within)).collect();
                Part { hits, keys }
            })
            .collect();
        if first.is_empty() || others.iter().any(|part| part.hits.is_empty()) {
            return Vec::new();
        }
        let unless = Self::hits_of(&when.unless, by_signal);
        let is_together = |hit: &&Hit| {
            let all = others.iter().all(|part| self.has_near(hit, part, when));
            let is_except = || {
                let in_line = |hits: &&[Hit]| {
                    self.nearby(hit, hits, 0)
                        .any(|other| other.line == hit.line)
                };
                unless.iter().any(in_line)
            };
            all && !is_except()
        };
        let candidates = first.iter().flat_map(|hits| hits.iter());
        let candidates = candidates.filter(|hit| self.is_in(hit, when));
        let mut candidates_tried = 0;
        candidates
            .take_while(|_| {
                candidates_tried += 1;
                self.is_spent
                    .set(self.is_spent.get() || candidates_tried > MAX_CANDIDATES);
                candidates_tried <= MAX_CANDIDATES
            })
            .filter(is_together)
            .take(MAX_FOUND)
            .copied()
            .collect()
    }

    /// Returns the hits at most a number of lines away.
    fn nearby<'b>(&self, hit: &Hit, hits: &'b [Hit], lines: u32) -> impl Iterator<Item = &'b Hit> {
        let number = self.number(hit);
        // The hits are sorted by line, so a file full of one signal costs a search and not a pass
        // for each hit of another.
        let from = hits.partition_point(|other| self.number(other) < number.saturating_sub(lines));
        let to = hits.partition_point(|other| self.number(other) <= number.saturating_add(lines));
        hits.get(from..to)
            .unwrap_or_default()
            .iter()
            .take(MAX_TRIED)
    }

    /// Tells whether one of the hits is near enough.
    fn has_near(&self, hit: &Hit, part: &Part<'_>, when: &When) -> bool {
        if let Some(key) = self.key(hit, when.within) {
            return part.keys.contains(&key);
        }
        let lines = if when.within == Within::Line {
            0
        } else {
            when.lines
        };
        let is_near = |other: &Hit| {
            let apart = other.start.abs_diff(hit.start);
            let is_near = match when.within {
                Within::Line => other.line == hit.line && apart <= MAX_DISTANCE_BYTES,
                _ => other.line != hit.line || apart <= 4 * MAX_DISTANCE_BYTES,
            };
            is_near && self.is_in(other, when)
        };
        let mut hits = part.hits.iter();
        hits.any(|hits| self.nearby(hit, hits, lines).any(is_near))
    }

    fn finding(&self, when: &When, hit: Hit) -> Finding {
        let line = self.lines.lines.get(hit.line);
        let number = line.map_or(0, |line| line.number_at(hit.start));
        let text = line.map_or("", |line| line.text.as_ref());
        let from = hit
            .start
            .saturating_sub(if text.len() > 200 { 40 } else { hit.start });
        let from = (from..=hit.start)
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        let mut found = finding(
            when.rule,
            self.path,
            number,
            text.get(from..).unwrap_or_default(),
        );
        found.severity = when.severity;
        found.confidence = when.confidence;
        let scope = line.map_or(LineScope::DATA, |line| line.scope);
        let is_hidden = LineScope::HIDDEN.has(scope);
        // Not for hidden text: an attacker could hide the words that warn of it as well.
        if !is_hidden && self.is_quoted(hit) {
            found.severity = lowered(found.severity);
            found.confidence = Confidence::Low;
        } else if (is_hidden || LineScope::DECODED.has(scope)) && found.severity >= Severity::Medium
        {
            found.severity = raised(found.severity);
        }
        let is_shown = line.is_some_and(|line| !LineScope::SCRIPT.has(line.origin)) && !is_hidden;
        if self.is_about_attacks && is_shown && found.severity == Severity::Critical {
            // A skill about attacks shows them. It is held for a review, and not blocked.
            found.severity = Severity::High;
        }
        found
    }

    /// Tells whether a hit is quoted and not meant: the words around it warn of it, or a scanner
    /// searches for it.
    fn is_quoted(&self, hit: Hit) -> bool {
        let Some(line) = self.lines.lines.get(hit.line) else {
            return false;
        };
        let signals = &self.rules.signals;
        let around = around(&line.text, hit);
        if LineScope::SCRIPT.has(line.origin) {
            return LineScope::SCRIPT.has(line.scope) && signals.says("detector", around);
        }
        if LineScope::DATA.has(line.origin) && !is_markdown(self.path) {
            let path = self.path.to_ascii_lowercase();
            return ["eval", "test", "fixture", "sample"]
                .iter()
                .any(|word| path.contains(word));
        }
        let note = |at: usize| self.lines.notes.get(at).map_or("", |note| note.as_ref());
        let warns = |at: usize| {
            let mut known = self.warns.borrow_mut();
            *known
                .entry(at)
                .or_insert_with(|| signals.says("quoting", note(at)))
        };
        let is_said = LineScope::SAID.has(line.scope);
        let is_example = is_said && self.is_about_attacks && is_in_quotes(around, &line.text, hit);
        is_example
            || warns(line.lead)
            || warns(line.heading)
            || (is_said || line.text.contains('#') || line.text.contains("//"))
                && signals.says("quoting", around)
    }
}

fn is_markdown(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ending.eq_ignore_ascii_case("md")
}

/// Returns the words around a hit.
fn around(text: &str, hit: Hit) -> &str {
    const MAX_EXCERPT_CHARS: usize = 240;
    let from = hit.start.saturating_sub(MAX_EXCERPT_CHARS);
    let from = (from..=hit.start).find(|at| text.is_char_boundary(*at));
    let to = hit.end.saturating_add(MAX_EXCERPT_CHARS).min(text.len());
    let to = (to..=text.len()).find(|at| text.is_char_boundary(*at));
    text.get(from.unwrap_or(0)..to.unwrap_or(text.len()))
        .unwrap_or_default()
}

/// Tells whether a hit is between quotes, or in a row of a table or list.
fn is_in_quotes(around: &str, text: &str, hit: Hit) -> bool {
    let before = text.get(..hit.start).unwrap_or_default();
    text.trim_start().starts_with(['|', '-', '*'])
        || around.contains(['"', '`', '\u{201c}']) && before.contains(['"', '`', '\u{201c}'])
}

fn raised(severity: Severity) -> Severity {
    let mut worse = Severity::ALL.iter().filter(|other| **other > severity);
    worse.next().copied().unwrap_or(severity)
}

fn lowered(severity: Severity) -> Severity {
    let mut milder = Severity::ALL.iter().filter(|other| **other < severity);
    milder.next_back().copied().unwrap_or(severity)
}
