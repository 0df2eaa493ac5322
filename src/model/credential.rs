//! Credentials in a text: keys and tokens that their makers gave a form of their
//! own, by which they are known.
//!
//! What only looks random is not looked for: a check that is wrong often is soon
//! read by nobody.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// A credential in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential {
    /// The byte at which it begins.
    pub at: usize,
    /// Its bytes.
    pub len: usize,
    /// What it is: `an AWS access key`.
    pub what: &'static str,
    /// It is one by its form. Otherwise only by what stands before it, as in
    /// `password=…`, which examples are full of.
    pub is_certain: bool,
}

/// What may follow a prefix.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// At least so many letters and digits.
    Alphanumeric(usize),
    /// Exactly so many capital letters and digits.
    Capitals(usize),
    /// At least so many of what a URL takes unescaped.
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

const FORMS: &[(&str, &str, Form)] = &[
    ("AKIA", "an AWS access key", Form::Capitals(16)),
    ("ASIA", "an AWS access key", Form::Capitals(16)),
    ("ghp_", "a GitHub token", Form::Alphanumeric(36)),
    ("gho_", "a GitHub token", Form::Alphanumeric(36)),
    ("ghu_", "a GitHub token", Form::Alphanumeric(36)),
    ("ghs_", "a GitHub token", Form::Alphanumeric(36)),
    ("ghr_", "a GitHub token", Form::Alphanumeric(36)),
    ("github_pat_", "a GitHub token", Form::Token(22)),
    ("glpat-", "a GitLab token", Form::Token(20)),
    ("xoxb-", "a Slack token", Form::Token(20)),
    ("xoxp-", "a Slack token", Form::Token(20)),
    ("xoxa-", "a Slack token", Form::Token(20)),
    ("xoxs-", "a Slack token", Form::Token(20)),
    ("xapp-", "a Slack token", Form::Token(20)),
    ("sk-ant-", "an Anthropic key", Form::Token(32)),
    ("sk-proj-", "an OpenAI key", Form::Token(32)),
    ("sk-", "an API key", Form::Alphanumeric(40)),
    ("AIza", "a Google API key", Form::Token(35)),
    ("ya29.", "a Google access token", Form::Token(50)),
    ("npm_", "an npm token", Form::Alphanumeric(36)),
    ("pypi-", "a PyPI token", Form::Token(50)),
    ("hf_", "a Hugging Face token", Form::Alphanumeric(30)),
    ("SG.", "a SendGrid key", Form::Token(60)),
    ("sk_live_", "a Stripe key", Form::Alphanumeric(20)),
    ("rk_live_", "a Stripe key", Form::Alphanumeric(20)),
    ("dop_v1_", "a DigitalOcean token", Form::Alphanumeric(60)),
    ("shpat_", "a Shopify token", Form::Alphanumeric(32)),
    ("eyJ", "a signed token", Form::Jwt),
    ("-----BEGIN ", "a private key", Form::PrivateKey),
    ("://", "a password in an address", Form::UserInfo),
    ("Bearer ", "a token", Form::Value),
    ("bearer ", "a token", Form::Value),
    ("token=", "a token", Form::Value),
    ("password=", "a password", Form::Value),
    ("secret=", "a secret", Form::Value),
    ("api_key=", "a key", Form::Value),
    ("apikey=", "a key", Form::Value),
];

static PREFIXES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(FORMS.iter().map(|(prefix, ..)| prefix))
        .ok()
});

/// The credentials of a text, in their order.
pub fn credentials(text: &str) -> impl Iterator<Item = Credential> {
    let prefixes = PREFIXES.as_ref().into_iter();
    let found = prefixes.flat_map(move |prefixes| prefixes.find_iter(text));
    let mut end = 0;
    found.filter_map(move |found| {
        let (prefix, what, form) = FORMS.get(found.pattern().as_usize())?;
        let rest = text.get(found.end()..)?;
        let before = text.get(..found.start())?.chars().next_back();
        let is_inside = before.is_some_and(|c| c.is_ascii_alphanumeric());
        let len = form.length(rest)?;
        let is_certain = !matches!(form, Form::UserInfo | Form::Value);
        // `task-…` holds no `sk-…`.
        if found.start() < end || (is_certain && is_inside && *prefix != "-----BEGIN ") {
            return None;
        }
        // The name of a value is no secret, and helps a reader.
        let at = if is_certain {
            found.start()
        } else {
            found.end()
        };
        end = found.end() + len;
        Some(Credential {
            at,
            len: end - at,
            what,
            is_certain,
        })
    })
}

impl Form {
    /// Bytes of the credential behind its prefix; none where it is none.
    fn length(self, rest: &str) -> Option<usize> {
        let run = |takes: fn(u8) -> bool| rest.bytes().take_while(|b| takes(*b)).count();
        let is_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        // A point that ends a sentence is none of its own.
        let token = || {
            let token = rest.get(..run(is_token)).unwrap_or_default();
            token.trim_end_matches('.')
        };
        match self {
            Self::Alphanumeric(least) => {
                let length = run(|b| b.is_ascii_alphanumeric());
                (length >= least).then_some(length)
            }
            Self::Capitals(exactly) => {
                let length = run(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
                (length == exactly && token().len() == length).then_some(length)
            }
            Self::Token(least) => {
                let length = token().len();
                (length >= least).then_some(length)
            }
            Self::Jwt => {
                let parts: Vec<_> = token().split('.').collect();
                let [header, claims, signature] = parts.as_slice() else {
                    return None;
                };
                let is_jwt = header.len() >= 8 && claims.starts_with("eyJ") && signature.len() >= 8;
                is_jwt.then_some(token().len())
            }
            Self::PrivateKey => {
                let kind = run(|b| b.is_ascii_uppercase() || matches!(b, b' '));
                let line = rest.get(..kind)?;
                let end = line.ends_with("PRIVATE KEY") && rest.get(kind..)?.starts_with("-----");
                // All of it, so that nothing of the key is left where it is cut out.
                let key = || rest.find("-----END ").unwrap_or(rest.len());
                end.then(key)
            }
            Self::UserInfo => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'');
                let authority = rest.split(ends).next().unwrap_or_default();
                let (user, _) = authority.rsplit_once('@')?;
                (!user.is_empty()).then_some(user.len())
            }
            Self::Value => {
                let length = run(|b| b.is_ascii_graphic() && !b"&\"'`,;<>)}]".contains(&b));
                (length >= 8).then_some(length)
            }
        }
    }
}

/// It stands for one, as documentation has it.
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

/// A text without the credentials in it, for what is repeated to a caller.
#[must_use]
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut end = 0;
    for Credential { at, len, .. } in credentials(text) {
        shown.push_str(text.get(end..at).unwrap_or_default());
        shown.push_str("[redacted]");
        end = at + len;
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random letters, made where they are needed: none stands in this file.
    fn letters(count: usize) -> String {
        (0..count)
            .map(|at| char::from(b"q7Zk2mWx9LpR4tVb8NcY"[at % 20]))
            .collect()
    }

    #[test]
    fn credentials_are_known_by_their_form() {
        let key = format!("AKIA{}", letters(16).to_uppercase());
        let github = format!("ghp_{}", letters(36));
        let jwt = format!("eyJ{0}.eyJ{0}.{0}", letters(20));
        for (credential, what) in [
            (&key, "an AWS access key"),
            (&github, "a GitHub token"),
            (&format!("sk-ant-api03-{}", letters(40)), "an Anthropic key"),
            (&format!("xoxb-{}", letters(30)), "a Slack token"),
            (&jwt, "a signed token"),
        ] {
            let text = format!("Set it to {credential}, then go on.");
            let found: Vec<_> = credentials(&text).collect();
            let expected = Credential {
                at: 10,
                len: credential.len(),
                what,
                is_certain: true,
            };
            assert_eq!(found, [expected], "{text}");
            assert_eq!(redacted(&text), "Set it to [redacted], then go on.");
        }
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        assert_eq!(redacted(pem), "[redacted]-----END RSA PRIVATE KEY-----");
    }

    #[test]
    fn what_is_no_credential_stays() {
        for text in [
            "task-management and risk-averse, disk-ghp_",
            "AKIA is what the keys of AWS begin with",
            "-----BEGIN CERTIFICATE-----",
            "https://example.com/a@b and mail@example.com",
            "token=$TOKEN",
            "eyJ alone",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        for (text, shown) in [
            (
                "skill://me:s3cret@host/x is not there",
                "skill://[redacted]@host/x is not there",
            ),
            ("https://s3cret@host", "https://[redacted]@host"),
            ("'x?token=abcdefgh1&y=2'", "'x?token=[redacted]&y=2'"),
            ("Bearer abcdefgh12345678", "Bearer [redacted]"),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }

    #[test]
    fn what_documentation_shows_is_a_placeholder() {
        assert!(is_placeholder("AKIAIOSFODNN7EXAMPLE"));
        assert!(is_placeholder(
            "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        ));
        assert!(!is_placeholder(&format!("ghp_{}", letters(36))));
    }
}
