//! The scan of a skill, file by file.

use std::collections::BTreeSet;

use model::{credentials, is_placeholder};

use super::decode::{Decoded, decoded};
use super::files::{Content, SIZE_CAP, content};
use super::flow::flows;
use super::hidden::hidden;
use super::hosts::{Host, HostKind};
use super::judge::{Case, finding};
use super::lines::{Kind, Line, LineScope, Lines, lines};
use super::manifest::{self, Registry};
use super::names::{self, List};
use super::rules::{Rules, rule};
use super::signals::{Budget, Hit};
use super::text::{self, plain};
use super::{Capability, Finding, Input, MAX_FINDINGS, MAX_HOSTS, RULES_VERSION, Report, Verdict};

/// How often decoded text is decoded again.
const DEPTH: usize = 3;
/// Work per byte of a skill, and for any skill. Public skills take 3 per byte.
const WORK_PER_BYTE: usize = 12;
const MIN_WORK: usize = 8 * 1024 * 1024;
/// The most texts of one file that are decoded.
const MAX_DECODED: usize = 2_000;
/// The most names of packages that are compared with known ones.
const MAX_PACKAGES: usize = 200;

/// A scan in progress.
struct Scan<'a> {
    rules: &'static Rules,
    input: &'a Input<'a>,
    budget: Budget<'a>,
    report: Report,
    is_about_attacks: bool,
    packages: BTreeSet<(Registry, String)>,
}

/// Scans a skill. Once stopped it ends soon, and its report is incomplete.
pub(crate) fn scan(
    rules: &'static Rules,
    input: &Input<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> Report {
    let bytes: usize = input.files.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut scan = Scan {
        rules,
        input,
        budget: Budget {
            // By size, never by time: the same files come to the same report.
            bytes: bytes.saturating_mul(WORK_PER_BYTE).saturating_add(MIN_WORK),
            is_spent: false,
            is_stopped,
            unasked: 0,
        },
        report: Report {
            rules: RULES_VERSION,
            verdict: Verdict::Passed,
            findings: Vec::new(),
            left_out: 0,
            capabilities: Default::default(),
            hosts: BTreeSet::new(),
        },
        is_about_attacks: false,
        packages: BTreeSet::new(),
    };
    scan.is_about_attacks = scan.says_attacks();
    for (path, bytes) in input.files {
        if is_stopped() {
            break;
        }
        scan.file(path, bytes);
    }
    scan.name();
    scan.permissions();
    scan.ended()
}

impl Scan<'_> {
    fn report(&mut self, id: &str, path: &str, line: u32, evidence: &str) {
        if let Some(rule) = rule(id) {
            self.report
                .findings
                .push(finding(rule, path, line, evidence));
        }
    }

    /// Tells whether the name or the front matter says that the skill is about attacks.
    fn says_attacks(&self) -> bool {
        let signals = &self.rules.signals;
        let entry = self
            .input
            .files
            .iter()
            .find(|(path, _)| path.eq_ignore_ascii_case("SKILL.md"));
        let start = entry.map_or(&[][..], |(_, bytes)| {
            bytes.get(..bytes.len().min(4_096)).unwrap_or_default()
        });
        let start = String::from_utf8_lossy(start);
        let front = start
            .strip_prefix("---")
            .and_then(|rest| rest.split_once("\n---"));
        signals.says("about-attacks", self.input.name)
            || front.is_some_and(|(front, _)| signals.says("about-attacks", front))
    }

    fn file(&mut self, path: &str, bytes: &[u8]) {
        let capped = bytes.get(..bytes.len().min(SIZE_CAP)).unwrap_or_default();
        let text = text::decoded(capped);
        let kind = match content(path, capped, text.is_some()) {
            Content::Media => return self.media(path, capped),
            Content::Opaque(what) => {
                self.report.capabilities.add(Capability::OpaqueFiles);
                return self.report("opaque-file", path, 0, what);
            }
            Content::Disguised(what) => {
                self.report.capabilities.add(Capability::OpaqueFiles);
                self.report("disguised-file", path, 0, what);
                Kind::Code
            }
            Content::Text(kind) => kind,
        };
        let Some(text) = text else { return };
        if bytes.len() > SIZE_CAP {
            let size = format!("{} bytes", bytes.len());
            self.report("file-too-large", path, 0, &size);
        }
        self.text(path, &text, kind);
    }

    /// Checks media. A picture may carry a text behind its end, but nobody runs that; a picture in
    /// text is scanned as what it is.
    fn media(&mut self, path: &str, bytes: &[u8]) {
        const SCRIPTS: [&[u8]; 4] = [b"#!/bin/", b"<?php", b"powershell -", b"import os"];
        let tail = bytes
            .get(bytes.len().saturating_sub(64 * 1024)..)
            .unwrap_or_default();
        let has = |needle: &[u8]| tail.windows(needle.len()).any(|window| window == needle);
        let ending = path.rsplit('.').next().unwrap_or_default();
        let is_document = matches!(ending, "pdf" | "db" | "sqlite");
        if !is_document && SCRIPTS.into_iter().any(has) {
            self.report("disguised-file", path, 0, "a script behind a picture");
        }
    }

    fn text(&mut self, path: &str, text: &str, kind: Kind) {
        let unseen = hidden(text, kind == Kind::Code);
        for (id, line, count) in &unseen.findings {
            let unseen_text = unseen.texts.iter().find(|(at, _)| at == line);
            let unseen_text =
                unseen_text.map_or(String::new(), |(_, unseen_text)| format!(": {unseen_text}"));
            self.report(id, path, *line, &format!("{count} characters{unseen_text}"));
        }
        let plain = plain(text);
        let mut all = lines(&plain, kind);
        let mut block = u32::MAX / 16;
        for (number, unseen_text) in &unseen.texts {
            // By the same rules as visible text, and marked as hidden.
            push(
                &mut all,
                unseen_text,
                &blank(*number, LineScope::HIDDEN, block),
            );
            block += 1;
        }
        // Commands that nobody asks for are judged as scripts of their own.
        for command in manifest::unasked(path, &plain) {
            let like = blank(command.line, command.scope, u32::MAX - command.line);
            push(&mut all, &command.text, &like);
        }
        if let Some(line) = self.decode(&mut all, block) {
            self.report(
                "layered-encoding",
                path,
                line,
                "still encoded after three times",
            );
        }
        let mut hits = self.rules.signals.find(&all.lines, &mut self.budget);
        self.hosts(&all, &mut hits);
        self.scopes(&all, &mut hits);
        let flows = flows(&all.lines, &hits, &self.rules.signals, &mut self.budget);
        hits.extend(flows);
        self.credentials(path, text);
        self.packages(path, &all);
        for hit in &hits {
            let scope = all
                .lines
                .get(hit.line)
                .map_or(LineScope::PROSE, |line| line.scope);
            for capability in self.rules.signals.capabilities(hit.signal, scope) {
                self.report.capabilities.add(*capability);
            }
        }
        let case = Case {
            rules: self.rules,
            path,
            lines: &all,
            hits: &hits,
            is_about_attacks: self.is_about_attacks,
            warns: Default::default(),
            is_spent: Default::default(),
        };
        let (findings, left_out) = case.judge();
        self.budget.is_spent |= case.is_spent.get();
        self.report.findings.extend(findings);
        self.report.left_out += left_out;
    }

    /// Adds the decoded texts of lines, and of those again. Returns the line of a text that
    /// is still encoded.
    fn decode(&mut self, all: &mut Lines<'_>, mut block: u32) -> Option<u32> {
        let mut from = 0;
        let mut count = 0;
        for depth in 0..DEPTH {
            let start = from;
            let found = decoded(all.lines.get(from..).unwrap_or_default());
            from = all.lines.len();
            for Decoded { text, line } in found {
                count += 1;
                // A spent budget is reported, and holds the skill: text that was not read does not
                // pass.
                if count > MAX_DECODED || !self.budget.take(text.len().saturating_mul(4)) {
                    self.budget.is_spent = true;
                    return None;
                }
                let Some(encoded) = all.lines.get(start + line) else {
                    continue;
                };
                block += 1;
                let like = Line {
                    text: "".into(),
                    number: encoded.number,
                    more: Vec::new(),
                    scope: LineScope::DECODED,
                    origin: encoded.origin,
                    // The low two bits are the depth, for `is-layered`.
                    block: block.wrapping_mul(4) + u32::try_from(depth).unwrap_or(0),
                    heading: encoded.heading,
                    lead: encoded.lead,
                };
                push(all, &plain(&text), &like);
            }
        }
        let last = all.lines.get(from..).unwrap_or_default();
        let still = decoded(last)
            .into_iter()
            .find(|found| found.text.len() >= 16)?;
        last.get(still.line).map(|line| line.number)
    }

    fn hosts(&mut self, all: &Lines<'_>, hits: &mut Vec<Hit>) {
        let signals = &self.rules.signals;
        for (at, line) in all.lines.iter().enumerate() {
            if !self.budget.take(line.text.len()) {
                return;
            }
            for Host {
                start,
                end,
                name,
                kind,
                is_plain,
            } in self.rules.hosts.find(&line.text)
            {
                let is_strange = !matches!(kind, HostKind::Known | HostKind::Private);
                let found = [
                    (true, "host"),
                    (true, kind.signal()),
                    (kind.is_risky(), "host-risky"),
                    (is_plain, "host-plain"),
                    (kind == HostKind::Example, "host-example"),
                    (is_strange, "host-strange"),
                ];
                let found = found.into_iter().filter(|(holds, _)| *holds);
                hits.extend(found.filter_map(|(_, signal)| {
                    Some(Hit {
                        signal: signals.id(signal)?,
                        line: at,
                        start,
                        end,
                    })
                }));
                if !kind.is_own() && self.report.hosts.len() < MAX_HOSTS {
                    self.report.hosts.insert(name);
                }
            }
        }
    }

    /// Adds the signals of scopes.
    fn scopes(&self, all: &Lines<'_>, hits: &mut Vec<Hit>) {
        for (at, line) in all.lines.iter().enumerate() {
            let is_decoded = LineScope::DECODED.has(line.scope);
            for (holds, signal) in [
                (LineScope::HIDDEN.has(line.scope), "is-hidden"),
                (is_decoded, "is-decoded"),
                (is_decoded && line.block % 4 > 0, "is-layered"),
                (line.scope.is(LineScope::INSTALL), "install-time"),
                (line.scope.is(LineScope::UNASKED), "runs-unasked"),
            ] {
                let signal = self.rules.signals.id(signal).filter(|_| holds);
                hits.extend(signal.map(|signal| Hit::of_line(signal, at)));
            }
        }
    }

    fn credentials(&mut self, path: &str, text: &str) {
        let mut count = 0;
        for found in credentials(text) {
            let credential = text.get(found.at..found.at + found.len).unwrap_or_default();
            if is_placeholder(credential) {
                continue;
            }
            count += 1;
            if count > 3 {
                self.report.left_out += 1;
                continue;
            }
            let before = text.get(..found.at).unwrap_or_default();
            let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
            self.report(
                "secret",
                path,
                u32::try_from(line).unwrap_or(u32::MAX),
                found.what,
            );
        }
    }

    fn packages(&mut self, path: &str, all: &Lines<'_>) {
        let mut named: Vec<(Registry, u32, String)> = Vec::new();
        for line in &all.lines {
            if LineScope::PROSE.has(line.scope) && !line.text.contains('`') {
                continue;
            }
            if line.text.len() <= 4_096 {
                let found = manifest::installed(&line.text).into_iter();
                named.extend(found.map(|(registry, name)| (registry, line.number, name)));
            }
        }
        if let Some((_, bytes)) = self.input.files.iter().find(|(other, _)| *other == path)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            named.extend(manifest::dependencies(path, text));
        }
        for (registry, line, name) in named {
            let is_new = self.packages.len() < MAX_PACKAGES
                && self.packages.insert((registry, name.clone()));
            let list = match registry {
                Registry::Python => List::Python,
                Registry::Node => List::Node,
            };
            if is_new && let Some(found) = self.rules.names.imitated(&name, list) {
                let evidence = format!("{name} {}", found.how);
                self.report("package-typosquat", path, line, &evidence);
            }
        }
    }

    fn name(&mut self) {
        let name = self.input.name;
        let known = names::imitated(name, self.input.known_names);
        if let Some(found) = known.or_else(|| self.rules.names.imitated(name, List::Product)) {
            self.report("name-typosquat", "", 0, &format!("{name} {}", found.how));
        }
    }

    /// Reports capabilities beyond the tools that the skill permits itself.
    fn permissions(&mut self) {
        const READERS: &str = "read grep glob ls search notebookread view todowrite";
        let reads = |tool: &String| {
            let name = tool.split(['(', ':']).next().unwrap_or_default().trim();
            model::listed(READERS).any(|reader| reader == name.to_lowercase())
        };
        let tools = self.input.allowed_tools;
        let only_reads = !tools.is_empty() && tools.iter().all(reads);
        let has = |capability| self.report.capabilities.has(capability);
        let beyond = if !only_reads {
            None
        } else if has(Capability::SendsOut) {
            Some("sends data out")
        } else if has(Capability::ExecutesDownloaded) {
            Some("runs what it downloads")
        } else {
            None
        };
        if let Some(beyond) = beyond {
            let evidence = format!(
                "permits {} and {beyond}",
                self.input.allowed_tools.join(", ")
            );
            self.report("beyond-its-tools", "SKILL.md", 0, &evidence);
        }
    }

    fn ended(mut self) -> Report {
        if self.budget.is_spent {
            self.report("not-fully-scanned", "", 0, "");
        }
        let mut report = self.report;
        report.findings.sort_by(|a, b| {
            let key = |found: &Finding| (found.verdict(), found.severity, found.confidence);
            key(b)
                .cmp(&key(a))
                .then_with(|| (&a.path, a.line, &a.rule).cmp(&(&b.path, b.line, &b.rule)))
        });
        report.verdict = report
            .findings
            .iter()
            .map(Finding::verdict)
            .max()
            .unwrap_or(Verdict::Passed);
        let more = report.findings.len().saturating_sub(MAX_FINDINGS);
        report.findings.truncate(MAX_FINDINGS);
        report.left_out += u32::try_from(more).unwrap_or(u32::MAX);
        report
    }
}

/// Adds the lines of a text that is in one line of the file, like `like`.
fn push(all: &mut Lines<'_>, text: &str, like: &Line<'_>) {
    let found = lines(text, Kind::Code);
    all.lines.extend(found.lines.into_iter().map(|line| Line {
        text: line.text.into_owned().into(),
        more: Vec::new(),
        ..like.clone()
    }));
}

/// Makes an empty line with a scope.
fn blank(number: u32, scope: LineScope, block: u32) -> Line<'static> {
    Line {
        text: "".into(),
        number,
        more: Vec::new(),
        scope,
        origin: scope,
        block,
        heading: 0,
        lead: 0,
    }
}
