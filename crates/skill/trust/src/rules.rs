//! Reads the rules: what is reported, and for which signals.

use std::sync::LazyLock;

use serde::Deserialize;

use super::hosts::Hosts;
use super::lines::LineScope;
use super::names::Names;
use super::signals::{SignalId, Signals};
use super::{Category, Confidence, Severity};

/// A rule: something that is reported.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its id, which never changes its meaning.
    pub id: String,
    /// What it is, in a few words.
    pub title: String,
    /// Its category.
    pub category: Category,
    /// How much harm it does, where nothing says otherwise.
    pub severity: Severity,
    /// How certain it is, where nothing says otherwise.
    #[serde(default = "high")]
    pub confidence: Confidence,
    /// Risk of the OWASP Agentic Skills Top 10.
    #[serde(default)]
    pub owasp: String,
    /// Why it matters.
    pub description: String,
    /// What its author can do.
    pub fix: String,
    /// Its conditions; a rule without any is applied by code.
    #[serde(default, rename = "when")]
    pub(crate) whens: Vec<RawWhen>,
}

/// Signals that make a finding where they occur together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWhen {
    /// All of these; `a|b` is one of two.
    all: Vec<String>,
    /// How near to the first of them the others have to be.
    #[serde(default)]
    within: Within,
    /// Lines, for `near`.
    #[serde(default = "near")]
    lines: u32,
    /// The scopes, between blanks. Empty: anywhere.
    #[serde(default, rename = "in")]
    scopes: String,
    /// None of these in the line of the first.
    #[serde(default)]
    unless: Vec<String>,
    severity: Option<Severity>,
    confidence: Option<Confidence>,
}

fn high() -> Confidence {
    Confidence::High
}

fn near() -> u32 {
    6
}

/// How near signals have to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Within {
    /// In one line.
    #[default]
    Line,
    /// A few lines apart.
    Near,
    /// In one fenced block, script, or section of prose.
    Block,
    /// Below one heading, fences included.
    Section,
    /// In one file.
    File,
}

/// The same, with names looked up.
#[derive(Debug)]
pub(crate) struct When {
    pub(crate) rule: &'static Rule,
    pub(crate) all: Vec<Vec<SignalId>>,
    pub(crate) unless: Vec<SignalId>,
    pub(crate) within: Within,
    pub(crate) lines: u32,
    pub(crate) scopes: LineScope,
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
}

/// All data of the scan.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) signals: Signals,
    pub(crate) hosts: Hosts,
    pub(crate) names: Names,
    pub(crate) whens: Vec<When>,
    /// Parts of the data that could not be used; a test checks that there are none.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by a test"))]
    pub(crate) unread: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "rule")]
    rules: Vec<Rule>,
}

static DATA: LazyLock<(Vec<Rule>, Vec<String>)> =
    LazyLock::new(
        || match toml::from_str::<File>(include_str!("rules.toml")) {
            Ok(file) => (file.rules, Vec::new()),
            Err(error) => (Vec::new(), vec![error.to_string()]),
        },
    );

/// All rules, in their order.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    DATA.0.iter()
}

/// Returns the rule of an id.
pub(crate) fn rule(id: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.id == id)
}

impl Rules {
    pub(crate) fn bundled() -> Self {
        let mut unread = DATA.1.clone();
        let signals = Signals::read(include_str!("signals.txt"), &mut unread);
        let mut whens = Vec::new();
        for rule in rules() {
            for raw in &rule.whens {
                let mut ids = |names: &str| -> Vec<SignalId> {
                    let of = |name: &str| {
                        let id = signals.id(name.trim());
                        if id.is_none() {
                            unread.push(format!("{}: no signal {name}", rule.id));
                        }
                        id
                    };
                    names.split('|').filter_map(of).collect()
                };
                let all = raw.all.iter().map(|names| ids(names)).collect();
                let unless = raw.unless.iter().flat_map(|names| ids(names)).collect();
                let scopes = LineScope::read(&raw.scopes).unwrap_or_else(|| {
                    unread.push(format!("{}: scopes {}", rule.id, raw.scopes));
                    LineScope::ANY
                });
                whens.push(When {
                    rule,
                    all,
                    unless,
                    within: raw.within,
                    lines: raw.lines,
                    scopes,
                    severity: raw.severity.unwrap_or(rule.severity),
                    confidence: raw.confidence.unwrap_or(rule.confidence),
                });
            }
        }
        Self {
            signals,
            hosts: Hosts::read(include_str!("hosts.txt"), &mut unread),
            names: Names::read(include_str!("packages.txt"), &mut unread),
            whens,
            unread,
        }
    }
}
