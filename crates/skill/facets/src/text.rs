//! Words of a text, and the parts of a skill that show what it is about.

use std::sync::LazyLock;

use super::phrases::Phrases;
use model::Skill;

/// The most words of a skill's instructions that are read.
const MAX_BODY_WORDS: usize = 250;

/// The most words of a label, such as "Framework (OSS)." before a description.
const MAX_LABEL_WORDS: usize = 3;

/// The strongest separator between a word and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Before {
    /// Nothing that parts them.
    Blank,
    /// A comma or a dash.
    Comma,
    /// The end of brackets.
    Close,
    /// The beginning of brackets.
    Open,
    /// The end of a sentence, or nothing at all.
    End,
}

/// A word in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// In lower case.
    pub(super) text: String,
    /// It begins with a capital, or with no letter at all.
    pub(super) capital: bool,
    /// It is the first of a sentence or a label, where capitals say nothing.
    pub(super) first: bool,
    /// The separator before it.
    pub(super) before: Before,
}

impl AsRef<str> for Word {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// The role of a piece of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// What it is.
    Matter,
    /// When it should be used.
    Use,
    /// Examples of something else.
    Example,
}

/// The parts of a skill, as words.
#[derive(Debug)]
pub(super) struct Parts {
    /// Its name.
    pub(super) name: Vec<Word>,
    /// Its description in pieces, without what it excludes.
    pub(super) description: Vec<(Role, Vec<Word>)>,
    /// The tags by its author.
    pub(super) tags: Vec<Vec<Word>>,
    /// The first heading of its instructions.
    pub(super) title: Vec<Word>,
    /// The beginning of its instructions, what is excluded left out.
    pub(super) body: Vec<Vec<Word>>,
    /// Languages of blocks of code in that.
    pub(super) fences: Vec<String>,
}

impl Parts {
    pub(super) fn of(skill: &Skill) -> Self {
        let mut parts = Self {
            name: words(&skill.name),
            description: pieces(&skill.description),
            tags: skill.tags.iter().map(|tag| words(tag)).collect(),
            title: Vec::new(),
            body: Vec::new(),
            fences: Vec::new(),
        };
        parts.read_body(&skill.excerpt);
        parts
    }

    /// The index of the piece of the description that says what the skill is: the first that is
    /// more than a label.
    pub(super) fn first(&self) -> usize {
        let sentence = |(_, words): &(Role, Vec<Word>)| words.len() > MAX_LABEL_WORDS;
        self.description
            .iter()
            .position(sentence)
            .unwrap_or_default()
    }

    fn read_body(&mut self, text: &str) {
        let mut fenced = false;
        let mut count = 0;
        for line in text.lines() {
            let line = line.trim();
            if let Some(language) = line.strip_prefix("```").or(line.strip_prefix("~~~")) {
                fenced = !fenced;
                if fenced && !language.is_empty() {
                    self.fences.push(language.to_lowercase());
                }
                continue;
            }
            if fenced || count > MAX_BODY_WORDS {
                continue;
            }
            if self.title.is_empty()
                && let Some(title) = line.strip_prefix("# ")
            {
                self.title = words(title);
                continue;
            }
            for (role, piece) in pieces(line) {
                count += piece.len();
                if role != Role::Example {
                    self.body.push(piece);
                }
            }
        }
    }
}

/// Phrases that begin an exclusion. Behind one nothing counts, to the end of the
/// sentence.
const EXCLUDES: &[&str] = &[
    "not for",
    "not use",
    "not trigger",
    "not invoke",
    "not activate",
    "not to be used",
    "not intended for",
    "not when",
    "not about",
    "not cover",
    "don't use",
    "don't trigger",
    "doesn't cover",
    "never use",
    "skip when",
    "skip this",
    "no longer",
    "without needing",
    "works with any",
];
const EXCLUDES_UNSPACED: &[&str] = &["不适用", "不触发", "不要"];

/// The same, to the next comma.
const INSTEAD: &[&str] = &[
    "instead of",
    "rather than",
    "unlike",
    "as opposed to",
    "alternative to",
    "replaces",
    "other than",
    "independent of",
];

/// Phrases that begin examples.
const EXAMPLES: &[&str] = &["e.g", "such as", "for example", "for instance"];

/// Phrases that begin a sentence about when to use the skill.
const USES: &[&str] = &[
    "use when",
    "use this",
    "use for",
    "use it",
    "use only",
    "use whenever",
    "use if",
    "when the user",
    "when users",
    "triggers",
    "trigger",
    "also use",
    "activate",
    "activates",
];
const USES_UNSPACED: &[&str] = &["使用", "適用", "适用"];

/// The effect of a phrase on the words behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Excludes,
    Instead,
    Examples,
    Use,
}

fn signs() -> &'static Phrases<Sign> {
    static SIGNS: LazyLock<Phrases<Sign>> = LazyLock::new(|| {
        let mut signs = Phrases::default();
        for (sign, phrases) in [
            (Sign::Excludes, EXCLUDES),
            (Sign::Instead, INSTEAD),
            (Sign::Examples, EXAMPLES),
            (Sign::Use, USES),
        ] {
            for phrase in phrases {
                let words = words(phrase).into_iter().map(|word| word.text);
                signs.add(words.collect(), sign);
            }
        }
        signs
    });
    &SIGNS
}

/// The pieces of a text, sentence by sentence.
pub(super) fn pieces(text: &str) -> Vec<(Role, Vec<Word>)> {
    let mut found = Vec::new();
    let mut words = words(text);
    let mut role = Role::Matter;
    let mut is_first = true;
    while !words.is_empty() {
        let mut behind = words.iter().skip(1);
        let end = behind.position(|word| word.before == Before::End);
        let rest = words.split_off(end.map_or(words.len(), |end| end + 1));
        if !is_first && begins_use(&words) {
            role = Role::Use;
        }
        is_first = false;
        sentence(words, role, &mut found);
        words = rest;
    }
    found
}

/// Tells whether a sentence says when to use the skill.
pub(super) fn begins_use(sentence: &[Word]) -> bool {
    let Some(first) = sentence.first() else {
        return false;
    };
    if USES_UNSPACED.iter().any(|part| first.text.contains(part)) {
        return true;
    }
    let mut begins = false;
    let opening = sentence.get(..sentence.len().min(3)).unwrap_or_default();
    signs().find(opening, |sign| {
        begins |= sign.from == 0 && *sign.value == Sign::Use;
        true
    });
    begins
}

/// The pieces of a sentence: what is excluded is in none.
fn sentence(words: Vec<Word>, role: Role, found: &mut Vec<(Role, Vec<Word>)>) {
    let mut marks: Vec<(usize, Sign)> = Vec::new();
    signs().find(&words, |sign| {
        marks.push((sign.from, *sign.value));
        true
    });
    let mut marks = marks.into_iter().peekable();
    // `None`: these words do not count.
    let mut now = Some(role);
    let mut until: Option<Before> = None;
    let mut piece: Vec<Word> = Vec::new();
    for (at, word) in words.into_iter().enumerate() {
        let before = now;
        if until.is_some_and(|until| word.before >= until) {
            (now, until) = (Some(role), None);
        }
        match marks.next_if(|(from, _)| *from == at) {
            Some((_, Sign::Excludes)) => (now, until) = (None, Some(Before::End)),
            Some((_, Sign::Instead)) if now.is_some() => {
                (now, until) = (None, Some(Before::Comma));
            }
            Some((_, Sign::Examples)) if now.is_some() => {
                let end = if word.before == Before::Open {
                    Before::Close
                } else {
                    Before::End
                };
                (now, until) = (Some(Role::Example), Some(end));
            }
            _ => {}
        }
        let is_unspaced = !word.text.is_ascii();
        if is_unspaced
            && EXCLUDES_UNSPACED
                .iter()
                .any(|part| word.text.contains(part))
        {
            (now, until) = (None, Some(Before::End));
        }
        if now != before
            && let Some(role) = before
            && !piece.is_empty()
        {
            found.push((role, std::mem::take(&mut piece)));
        }
        if now.is_some() {
            piece.push(word);
        }
    }
    if let Some(role) = now.filter(|_| !piece.is_empty()) {
        found.push((role, piece));
    }
}

/// The kind of word that a character belongs to: letters of scripts without
/// blanks between words are no part of an English word next to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Plain,
    Other,
}

fn script(c: char) -> Option<Script> {
    match c {
        c if c.is_ascii_alphanumeric() => Some(Script::Plain),
        // Letters with marks, Greek, Cyrillic.
        '\u{00c0}'..='\u{052f}' => Some(Script::Plain),
        c if c.is_alphanumeric() => Some(Script::Other),
        _ => None,
    }
}

/// The separation by a character between two words.
fn parts(c: char) -> Before {
    match c {
        ',' | '—' | '–' | '、' | '，' => Before::Comma,
        ')' | ']' | '）' => Before::Close,
        '(' | '[' | '（' => Before::Open,
        '\n' | '。' | '！' | '？' => Before::End,
        _ => Before::Blank,
    }
}

/// The words of a text. `c++`, `c#`, `.net` and `next.js` are words.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut chars = text.chars().peekable();
    let (mut before, mut first) = (Before::End, true);
    let mut last = None;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        // `.net` begins with its point, if no word is right before it.
        let is_point = c == '.' && next.and_then(script) == Some(Script::Plain);
        let begins = script(c).or((is_point && last.is_none()).then_some(Script::Plain));
        let Some(kind) = begins else {
            let ends = matches!(c, '.' | '!' | '?' | ';') && next.is_none_or(char::is_whitespace);
            let ends = ends && !(c == '.' && found.last().is_some_and(|word| is_short(&word.text)));
            before = before.max(if ends { Before::End } else { parts(c) });
            first |= matches!(c, ':' | '|' | '"');
            last = None;
            continue;
        };
        let mut word = String::with_capacity(16);
        word.push(c);
        while let Some(next) = chars.peek().copied() {
            let belongs = match next {
                '+' | '#' => kind == Script::Plain,
                '.' => {
                    let mut ahead = chars.clone();
                    ahead.next();
                    kind == Script::Plain && ahead.next().and_then(script) == Some(Script::Plain)
                }
                next => script(next) == Some(kind),
            };
            if !belongs {
                break;
            }
            word.push(next);
            chars.next();
        }
        last = Some(kind);
        found.push(Word {
            capital: !c.is_lowercase(),
            text: lower(word),
            first: first || before == Before::End,
            before,
        });
        (before, first) = (Before::Blank, false);
    }
    found
}

/// Lowers a word in place where it is ASCII, as most are.
fn lower(mut word: String) -> String {
    if word.is_ascii() {
        word.make_ascii_lowercase();
        return word;
    }
    word.to_lowercase()
}

/// Tells whether a word is an abbreviation: a point behind it ends no sentence.
fn is_short(word: &str) -> bool {
    matches!(word, "e.g" | "i.e" | "vs" | "etc")
}

/// A word without the ends that grammar gives it: `debugging` and `debugs` are `debug`.
/// Both a rule and a text go through this, so it need not be a word.
pub(super) fn stem(word: &str) -> &str {
    let plain = word.len() > 3 && word.is_ascii();
    if !plain {
        return word;
    }
    let cut = |end: &str| {
        let rest = word.strip_suffix(end)?;
        (rest.len() >= 3).then_some(rest)
    };
    // `process` and `status` end in no plural.
    let rest = if word.ends_with("ss") || word.ends_with("us") {
        word
    } else {
        cut("ing")
            .or_else(|| cut("ed"))
            .or_else(|| cut("es"))
            .or_else(|| cut("s"))
            .unwrap_or(word)
    };
    let rest = match rest.strip_suffix('e') {
        Some(shorter) if shorter.len() >= 3 => shorter,
        _ => rest,
    };
    let mut last = rest.bytes().rev();
    match (last.next(), last.next()) {
        (Some(a), Some(b))
            // `debugging` without its ending has one letter too many; `process` and `install`
            // keep their double letters.
            if a == b && !matches!(a, b's' | b'l') && rest.len() > 3 && rest != word =>
        {
            rest.get(..rest.len() - 1).unwrap_or(rest)
        }
        _ => rest,
    }
}
