//! Finds signals in lines.
//!
//! A signal has expressions, and each of them needles: words without which it cannot match.
//! One pass finds the needles, and only where there are some an expression is run, over a
//! line or over a window of a long one. So time grows with the text, and rules cost little
//! where they do not apply.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};

use super::Capability;
use super::lines::{Line, LineScope};

/// Number of a signal.
pub(crate) type SignalId = u16;

/// Longer lines are searched in windows around needles.
const MAX_WHOLE_LINE_BYTES: usize = 4 * 1024;
const WINDOW_BEFORE_BYTES: usize = 512;
const WINDOW_AFTER_BYTES: usize = 2 * 1024;

/// Signals that no expression finds: they come from `hosts`, `lines`, `manifest` and `flow`.
const OTHERS: &[&str] = &[
    "host",
    "host-known",
    "host-other",
    "host-risky",
    "host-address",
    "host-paste",
    "host-short",
    "host-catcher",
    "host-free",
    "host-lookalike",
    "host-plain",
    "host-example",
    "host-strange",
    "is-hidden",
    "is-decoded",
    "is-layered",
    "private-host",
    "runs-unasked",
    "secret-flow",
];

#[derive(Debug)]
struct Signal {
    name: &'static str,
    /// The capabilities of a skill with this signal in code.
    capabilities: Vec<Capability>,
    /// The capabilities hold in prose, too.
    in_prose: bool,
    /// Only for [`Signals::says`]: `find` skips it.
    is_asked: bool,
}

#[derive(Debug)]
struct Pattern {
    signal: SignalId,
    regex: Regex,
}

/// An occurrence of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) signal: SignalId,
    /// Index of the line.
    pub(crate) line: usize,
    /// Bytes of the line.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Hit {
    /// A signal of a line as a whole.
    pub(crate) fn of_line(signal: SignalId, line: usize) -> Self {
        Self {
            signal,
            line,
            start: 0,
            end: 0,
        }
    }
}

/// The bytes between two checks for cancellation: some milliseconds.
const CANCEL_CHECK_BYTES: usize = 64 * 1024;

/// The work that a scan may still do. Expressions run over a text once, or a few times; a text that
/// costs more was made to.
pub(crate) struct Budget<'a> {
    pub(crate) bytes: usize,
    pub(crate) is_spent: bool,
    /// Tells whether the caller has left.
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
    /// The work since the last check for cancellation.
    pub(crate) unasked: usize,
}

impl Budget<'_> {
    /// Takes some of the budget; false where it is spent, or the caller has left.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.unasked = self.unasked.saturating_add(bytes);
        if self.unasked >= CANCEL_CHECK_BYTES {
            self.unasked = 0;
            if (self.is_stopped)() {
                self.bytes = 0;
                self.is_spent = true;
            }
        }
        let left = self.bytes.checked_sub(bytes);
        self.is_spent |= left.is_none();
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }
}

/// All signals.
#[derive(Debug)]
pub(crate) struct Signals {
    all: Vec<Signal>,
    patterns: Vec<Pattern>,
    needles: Option<AhoCorasick>,
    /// The patterns that a needle is of.
    of_needle: Vec<Vec<usize>>,
}

impl Signals {
    /// Reads `signals.txt`; its head says how it is written.
    pub(crate) fn read(text: &'static str, unread: &mut Vec<String>) -> Self {
        let mut signals: Vec<Signal> = Vec::new();
        let plain = |name| Signal {
            name,
            capabilities: Vec::new(),
            in_prose: false,
            is_asked: false,
        };
        signals.extend(OTHERS.iter().copied().map(plain));
        let mut patterns = Vec::new();
        let mut needles: Vec<&str> = Vec::new();
        let mut of_needle: Vec<Vec<usize>> = Vec::new();
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']'))
            {
                let mut signal = plain(name);
                for word in rest.split_whitespace() {
                    let capability = Capability::ALL.iter().find(|known| known.name() == word);
                    match capability {
                        Some(capability) => signal.capabilities.push(*capability),
                        None if word == "prose" => signal.in_prose = true,
                        None if word == "says" => signal.is_asked = true,
                        None => unread.push(line.to_owned()),
                    }
                }
                signals.push(signal);
                continue;
            }
            let signal = SignalId::try_from(signals.len().saturating_sub(1)).unwrap_or_default();
            let parts = line.split_once(" :: ");
            let built = parts.map(|(words, regex)| (words, built(regex.trim())));
            let Some((words, Ok(regex))) = built else {
                unread.push(line.to_owned());
                continue;
            };
            patterns.push(Pattern { signal, regex });
            if signals.last().is_some_and(|signal| signal.is_asked) {
                continue;
            }
            for word in words.split(',').map(str::trim) {
                let at = needles.iter().position(|needle| *needle == word);
                let at = at.unwrap_or_else(|| {
                    needles.push(word);
                    of_needle.push(Vec::new());
                    needles.len() - 1
                });
                if let Some(of) = of_needle.get_mut(at) {
                    of.push(patterns.len() - 1);
                }
            }
        }
        let needles = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            // Twice as fast where matches overlap, for a mebibyte or two.
            .kind(Some(AhoCorasickKind::DFA))
            .build(needles);
        if let Err(error) = &needles {
            unread.push(error.to_string());
        }
        Self {
            all: signals,
            patterns,
            needles: needles.ok(),
            of_needle,
        }
    }

    /// Number of the signal of a name.
    pub(crate) fn id(&self, name: &str) -> Option<SignalId> {
        let at = self.all.iter().position(|signal| signal.name == name)?;
        SignalId::try_from(at).ok()
    }

    /// The number of signals.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The capabilities that the signal shows in a scope.
    pub(crate) fn capabilities(&self, id: SignalId, scope: LineScope) -> &[Capability] {
        match self.all.get(usize::from(id)) {
            Some(signal) if signal.in_prose || !LineScope::SAID.has(scope) => &signal.capabilities,
            _ => &[],
        }
    }

    /// Tells whether a short text has the signal.
    pub(crate) fn says(&self, name: &str, text: &str) -> bool {
        if text.is_empty() {
            return false;
        }
        let id = self.id(name);
        id.is_some()
            && self.patterns.iter().any(|pattern| {
                Some(pattern.signal) == id && pattern.regex.is_match(text.as_bytes())
            })
    }

    /// Finds the signals of lines.
    pub(crate) fn find(&self, lines: &[Line<'_>], budget: &mut Budget<'_>) -> Vec<Hit> {
        let mut hits = Vec::new();
        let Some(needles) = &self.needles else {
            return hits;
        };
        // For each pattern the line and the byte up to which it was run.
        let mut done: Vec<(usize, usize)> = vec![(usize::MAX, 0); self.patterns.len()];
        for (number, line) in lines.iter().enumerate() {
            let text = line.text.as_bytes();
            let is_long = text.len() > MAX_WHOLE_LINE_BYTES;
            for found in needles.find_overlapping_iter(text) {
                let of = self.of_needle.get(found.pattern().as_usize());
                for at in of.into_iter().flatten() {
                    let (Some(pattern), Some(done)) = (self.patterns.get(*at), done.get_mut(*at))
                    else {
                        continue;
                    };
                    if done.0 != number {
                        *done = (number, 0);
                    }
                    // The window of an earlier needle covers this one.
                    if found.start() < done.1 {
                        continue;
                    }
                    let (from, to) = if is_long {
                        let from = found
                            .start()
                            .saturating_sub(WINDOW_BEFORE_BYTES)
                            .max(done.1.saturating_sub(WINDOW_BEFORE_BYTES));
                        (from, text.len().min(found.end() + WINDOW_AFTER_BYTES))
                    } else {
                        (0, text.len())
                    };
                    // A needle near the end of this window gets a window of its own: a match there
                    // may go on behind it.
                    done.1 = if is_long {
                        found.end() + WINDOW_AFTER_BYTES - WINDOW_BEFORE_BYTES
                    } else {
                        usize::MAX
                    };
                    if !budget.take(to - from) {
                        return hits;
                    }
                    let window = text.get(from..to).unwrap_or_default();
                    if let Some(found) = pattern.regex.find(window) {
                        hits.push(Hit {
                            signal: pattern.signal,
                            line: number,
                            start: from + found.start(),
                            end: from + found.end(),
                        });
                    }
                }
            }
        }
        hits
    }
}

fn built(regex: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(regex)
        .case_insensitive(true)
        // Texts are normalized before. Without Unicode classes the automata stay small and fast.
        .unicode(false)
        .build()
}
