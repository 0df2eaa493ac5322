//! Finds credentials in a text: keys and tokens that have a form of their own.
//!
//! * Two tables, each searched by itself: forms that prove a credential, which is what
//!   [`credentials`] reports, and names that only suggest one, as in `password=…`. So a name
//!   never hides the token behind it.
//! * What is repeated to a caller ([`redacted`]) loses what either table finds.
//!
//! Random-looking text alone is not reported: nobody reads the findings of a check that
//! is often wrong.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, FindIter, Match, MatchKind};

/// A credential in a text, which its form proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential {
    /// The byte at which it begins.
    pub at: usize,
    /// Its bytes.
    pub len: usize,
    /// Its kind, for messages: `an AWS access key`.
    pub what: &'static str,
}

/// The characters that may follow a prefix.
#[derive(Debug, Clone, Copy)]
enum TokenFormat {
    /// At least this many letters and digits.
    Alphanumeric(usize),
    /// Exactly this many capital letters and digits.
    Capitals(usize),
    /// At least this many characters that need no escape in a URL.
    Token(usize),
    /// A token whose second part begins as its first does.
    Jwt,
    /// `… PRIVATE KEY-----`.
    PrivateKey,
    /// `USER:PASSWORD@`.
    UserInfo,
    /// A value after its name.
    Value,
}

/// A beginning of credentials, their kind, and what follows it.
type Form = (&'static str, &'static str, TokenFormat);

/// Forms that prove a credential.
const PROOFS: &[Form] = &[
    ("AKIA", "an AWS access key", TokenFormat::Capitals(16)),
    ("ASIA", "an AWS access key", TokenFormat::Capitals(16)),
    ("ghp_", "a GitHub token", TokenFormat::Alphanumeric(36)),
    ("gho_", "a GitHub token", TokenFormat::Alphanumeric(36)),
    ("ghu_", "a GitHub token", TokenFormat::Alphanumeric(36)),
    ("ghs_", "a GitHub token", TokenFormat::Alphanumeric(36)),
    ("ghr_", "a GitHub token", TokenFormat::Alphanumeric(36)),
    ("github_pat_", "a GitHub token", TokenFormat::Token(22)),
    ("glpat-", "a GitLab token", TokenFormat::Token(20)),
    ("xoxb-", "a Slack token", TokenFormat::Token(20)),
    ("xoxp-", "a Slack token", TokenFormat::Token(20)),
    ("xoxa-", "a Slack token", TokenFormat::Token(20)),
    ("xoxs-", "a Slack token", TokenFormat::Token(20)),
    ("xapp-", "a Slack token", TokenFormat::Token(20)),
    ("sk-ant-", "an Anthropic key", TokenFormat::Token(32)),
    ("sk-proj-", "an OpenAI key", TokenFormat::Token(32)),
    ("sk-", "an API key", TokenFormat::Alphanumeric(40)),
    ("AIza", "a Google API key", TokenFormat::Token(35)),
    ("ya29.", "a Google access token", TokenFormat::Token(50)),
    ("npm_", "an npm token", TokenFormat::Alphanumeric(36)),
    ("pypi-", "a PyPI token", TokenFormat::Token(50)),
    ("hf_", "a Hugging Face token", TokenFormat::Alphanumeric(30)),
    ("SG.", "a SendGrid key", TokenFormat::Token(60)),
    ("sk_live_", "a Stripe key", TokenFormat::Alphanumeric(20)),
    ("rk_live_", "a Stripe key", TokenFormat::Alphanumeric(20)),
    (
        "dop_v1_",
        "a DigitalOcean token",
        TokenFormat::Alphanumeric(60),
    ),
    ("shpat_", "a Shopify token", TokenFormat::Alphanumeric(32)),
    ("rpt_", "a token of Repertoire", TokenFormat::Token(43)),
    ("eyJ", "a signed token", TokenFormat::Jwt),
    ("-----BEGIN ", "a private key", TokenFormat::PrivateKey),
];

/// Names that suggest a credential. Examples are full of them.
const HINTS: &[Form] = &[
    ("://", "a password in an address", TokenFormat::UserInfo),
    ("Bearer ", "a token", TokenFormat::Value),
    ("bearer ", "a token", TokenFormat::Value),
    ("token=", "a token", TokenFormat::Value),
    ("password=", "a password", TokenFormat::Value),
    ("secret=", "a secret", TokenFormat::Value),
    ("api_key=", "a key", TokenFormat::Value),
    ("apikey=", "a key", TokenFormat::Value),
];

/// Forms, and the automaton of their prefixes.
#[derive(Debug)]
struct Forms {
    all: &'static [Form],
    prefixes: Option<AhoCorasick>,
    /// The forms prove a credential, which begins with their prefix.
    is_proof: bool,
}

impl Forms {
    fn new(forms: &'static [Form], is_proof: bool) -> Self {
        let prefixes = AhoCorasick::builder()
            // So that `sk-ant-…` is found as an Anthropic key and not as `sk-`, whatever the
            // order of the table.
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|(prefix, ..)| prefix));
        Self {
            all: forms,
            prefixes: prefixes.ok(),
            is_proof,
        }
    }
}

static PROVED: LazyLock<Forms> = LazyLock::new(|| Forms::new(PROOFS, true));
static HINTED: LazyLock<Forms> = LazyLock::new(|| Forms::new(HINTS, false));

/// Returns the credentials of a text, in their order.
pub fn credentials(text: &str) -> impl Iterator<Item = Credential> {
    Scan::new(text, &PROVED, false)
}

/// Finds the credentials of a text in time that grows as the text does.
///
/// Where prefixes are close together, one run of characters follows many of them. So each
/// run remembers its end, and no byte is scanned twice for the same question.
struct Scan<'a> {
    text: &'a str,
    forms: &'static Forms,
    found: Option<FindIter<'static, 'a>>,
    /// The text is the beginning of a longer one: a run up to its end may be the beginning
    /// of a credential, and counts as one.
    is_cut: bool,
    /// Where the last credential ended.
    end: usize,
    letters: Run,
    capitals: Run,
    token: Run,
    /// The parts of a token, between points.
    parts: [Run; 3],
    value: Run,
    /// Bytes that were scanned.
    #[cfg(test)]
    scanned: usize,
}

/// Characters of one kind that follow each other.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// Where they end.
    end: usize,
    /// The same without points at the end: one that ends a sentence is none of a
    /// token's.
    solid: usize,
}

fn is_token(byte: u8) -> bool {
    is_part(byte) || byte == b'.'
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

// A quote, a separator or a closing bracket ends a value in a shell, in JSON, in code and in a
// query string.
fn is_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"&\"'`,;<>)}]".contains(&byte)
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, forms: &'static Forms, is_cut: bool) -> Self {
        let prefixes = forms.prefixes.as_ref();
        Self {
            text,
            forms,
            found: prefixes.map(|prefixes| prefixes.find_iter(text)),
            is_cut,
            end: 0,
            letters: Run::default(),
            capitals: Run::default(),
            token: Run::default(),
            parts: Default::default(),
            value: Run::default(),
            #[cfg(test)]
            scanned: 0,
        }
    }

    /// The run of a kind that goes on at `from`. `from` is never before that of the
    /// last call, so a run that ends behind it is still the one.
    fn run(&mut self, run: fn(&mut Self) -> &mut Run, from: usize, takes: fn(u8) -> bool) -> Run {
        let known = *run(self);
        if from < known.end {
            return Run {
                solid: known.solid.max(from),
                ..known
            };
        }
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| takes(**byte)).count();
        let points = rest.get(..count).unwrap_or_default().iter().rev();
        let points = points.take_while(|byte| **byte == b'.').count();
        let new = Run {
            end: from + count,
            solid: from + count - points,
        };
        *run(self) = new;
        #[cfg(test)]
        {
            self.scanned += count + points + 1;
        }
        new
    }

    fn token(&mut self, from: usize) -> Run {
        self.run(|scan| &mut scan.token, from, is_token)
    }

    /// The run that begins at `from` may go on behind the end of the text.
    fn is_open(&self, from: usize, end: usize) -> bool {
        self.is_cut && from < end && end == self.text.len()
    }

    /// The end of the credential whose prefix ends at `from`; none where there is none.
    fn credential_end(&mut self, form: TokenFormat, from: usize) -> Option<usize> {
        match form {
            TokenFormat::Alphanumeric(min) => {
                let is_letter = |byte: u8| byte.is_ascii_alphanumeric();
                let Run { end, .. } = self.run(|scan| &mut scan.letters, from, is_letter);
                (end - from >= min || self.is_open(from, end)).then_some(end)
            }
            TokenFormat::Capitals(exactly) => {
                let Run { end, .. } = self.run(|scan| &mut scan.capitals, from, is_capital);
                let is_open = end - from < exactly && self.is_open(from, end);
                // An AWS id has exactly this length: a run that goes on, also in lower case, is
                // some other identifier.
                let is_one = end - from == exactly && self.token(from).solid == end;
                (is_open || is_one).then_some(end)
            }
            TokenFormat::Token(min) => {
                let Run { end, solid } = self.token(from);
                (solid - from >= min || self.is_open(from, end)).then_some(solid)
            }
            TokenFormat::Jwt => {
                let Run { end, solid } = self.token(from);
                if self.is_open(from, end) {
                    return Some(end);
                }
                let header = self.run(|scan| &mut scan.parts[0], from, is_part).end;
                self.byte(header).filter(|byte| *byte == b'.')?;
                let claims = self.run(|scan| &mut scan.parts[1], header + 1, is_part).end;
                self.byte(claims).filter(|byte| *byte == b'.')?;
                let signature = self.run(|scan| &mut scan.parts[2], claims + 1, is_part).end;
                // `eyJ` is `{"` in base64: the header and the claims of a JWT both begin with
                // it.
                let is_jwt = header - from >= 8
                    && self.text.get(header + 1..claims)?.starts_with("eyJ")
                    && signature - claims > 8
                    && signature == solid;
                is_jwt.then_some(solid)
            }
            TokenFormat::PrivateKey => {
                let rest = self.text.get(from..)?;
                let kind = |byte: &u8| byte.is_ascii_uppercase() || *byte == b' ';
                let kind = rest.bytes().take_while(kind).count();
                #[cfg(test)]
                {
                    self.scanned += kind;
                }
                let line = rest.get(..kind)?;
                let is_key =
                    line.ends_with("PRIVATE KEY") && rest.get(kind..)?.starts_with("-----");
                if !is_key {
                    return None;
                }
                // All of it, so that nothing of the key is left where it is cut out.
                let key = rest.find("-----END ").unwrap_or(rest.len());
                #[cfg(test)]
                {
                    self.scanned += key;
                }
                Some(from + key)
            }
            TokenFormat::UserInfo => {
                let rest = self.text.get(from..)?;
                // Among them is what the next `://` has, so none is looked at twice.
                let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'');
                let authority = rest.split(ends).next().unwrap_or_default();
                #[cfg(test)]
                {
                    self.scanned += authority.len();
                }
                if self.is_open(from, from + authority.len()) {
                    return Some(from + authority.len());
                }
                // At the last `@`: a password may hold one, and must not be shown from there on.
                let (user, _) = authority.rsplit_once('@')?;
                (!user.is_empty()).then_some(from + user.len())
            }
            TokenFormat::Value => {
                let Run { end, .. } = self.run(|scan| &mut scan.value, from, is_value);
                (end - from >= 8 || self.is_open(from, end)).then_some(end)
            }
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Returns whether a token cannot begin here: `task-…` holds no `sk-…`.
    fn is_inside(&self, at: usize) -> bool {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        match before {
            // Escapes of JSON and of addresses stand for a line break or a blank.
            [.., b'\\', b'n' | b'r' | b't'] => false,
            [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => false,
            _ => before.last().is_some_and(u8::is_ascii_alphanumeric),
        }
    }

    /// The credential that a prefix begins.
    fn credential(&mut self, found: Match) -> Option<Credential> {
        let (prefix, what, form) = self.forms.all.get(found.pattern().as_usize())?;
        let is_proof = self.forms.is_proof;
        if found.start() < self.end
            || (is_proof && *prefix != "-----BEGIN " && self.is_inside(found.start()))
        {
            return None;
        }
        // The name of a value is no secret, and helps a reader.
        let at = if is_proof { found.start() } else { found.end() };
        self.end = self.credential_end(*form, found.end())?;
        Some(Credential {
            at,
            len: self.end - at,
            what,
        })
    }
}

impl Iterator for Scan<'_> {
    type Item = Credential;

    fn next(&mut self) -> Option<Credential> {
        loop {
            let found = self.found.as_mut()?.next()?;
            if let Some(credential) = self.credential(found) {
                return Some(credential);
            }
        }
    }
}

/// The credential is a placeholder, as in documentation.
#[must_use]
pub fn is_placeholder(credential: &str) -> bool {
    let lower = credential.to_ascii_lowercase();
    let mut letters: Vec<u8> = lower.bytes().collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len() < 12
        || [
            "example",
            "xxxx",
            "your",
            "placeholder",
            "redacted",
            "123456789",
            "abcdefgh",
            "....",
            "dummy",
            "fake",
            "test",
            "sample",
        ]
        .iter()
        .any(|word| lower.contains(word))
}

/// Removes the credentials from a text that is repeated to a caller, and what may be one.
#[must_use]
pub fn redacted(text: &str) -> Cow<'_, str> {
    without(text, false)
}

/// Does the same for the beginning of a longer text: a run up to its end goes as well where
/// it may be the beginning of a credential.
pub(super) fn redacted_start(start: &str) -> Cow<'_, str> {
    without(start, true)
}

fn without(text: &str, is_cut: bool) -> Cow<'_, str> {
    let scan = |forms: &'static Forms| Scan::new(text, forms, is_cut);
    let mut found: Vec<Credential> = scan(&PROVED).chain(scan(&HINTED)).collect();
    found.sort_unstable_by_key(|found| found.at);
    let mut shown = String::new();
    let mut end = 0;
    for Credential { at, len, .. } in found {
        // One may begin in another, and end behind it.
        if end == 0 || at >= end {
            shown.push_str(text.get(end..at).unwrap_or_default());
            shown.push_str("[redacted]");
        }
        end = end.max(at + len);
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(shown)
}
