//! A place with skills, as the operator names it.

use model::SkillId;
use secret::{CredentialRef, NamedBy};
use serde::{Deserialize, Serialize};

use super::Error;

/// Characters of an id.
const MAX_ID: usize = 64;
/// Bytes of a location, a path or a ref.
const MAX_TEXT: usize = 2_048;
/// Entries of `select` of one source.
const MAX_SELECT: usize = 1_000;
/// Seconds between two syncs, at least: no place should be asked all the time.
const MIN_INTERVAL: u32 = 10;
/// Seconds between two syncs where the source does not say.
pub(crate) const DEFAULT_INTERVAL: u32 = 3_600;

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A folder on the server's machine.
    Directory,
    /// A Git repository.
    Git,
    /// Repositories of GitHub, by its API.
    Github,
    /// An index below `/.well-known` of a web site.
    #[serde(alias = "well-known")]
    WellKnown,
    /// A registry that speaks the protocol of `ClawHub`.
    Clawhub,
    /// Another server of this kind.
    Repertoire,
}

impl SourceKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Directory,
        Self::Git,
        Self::Github,
        Self::WellKnown,
        Self::Clawhub,
        Self::Repertoire,
    ];

    /// Its name, as in the config file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Git => "git",
            Self::Github => "github",
            Self::WellKnown => "well_known",
            Self::Clawhub => "clawhub",
            Self::Repertoire => "repertoire",
        }
    }

    /// Its skills were published elsewhere, with reviewers of its own: a skill that goes back to
    /// an earlier version there does so here.
    pub(crate) fn is_registry(self) -> bool {
        matches!(self, Self::Repertoire)
    }
}

/// The first one or two segments of the ids of a source's skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// First segment.
    pub source: String,
    /// Second segment; none: the author of each skill.
    pub author: Option<String>,
}

impl std::str::FromStr for Namespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (source, author) = match text.split_once('/') {
            Some((source, author)) => (source, Some(author)),
            None => (text, None),
        };
        // The rules of ids are asked by making one: any author and slug will do.
        SkillId::new(source, author.unwrap_or("a"), "a").map_err(|_| {
            format!("'{text}' is no namespace: it is `source/author`, or `source` alone")
        })?;
        if source.eq_ignore_ascii_case(SkillId::BUILTIN) {
            return Err("`builtin` is the source of the skills that come with the server".into());
        }
        Ok(Self {
            source: source.to_owned(),
            author: author.map(str::to_owned),
        })
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source)?;
        match &self.author {
            Some(author) => write!(f, "/{author}"),
            None => Ok(()),
        }
    }
}

/// A place with skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its id in calls and settings: `[a-z0-9][a-z0-9-]*`, 64 characters at most.
    pub id: String,
    /// Its name for people; empty: the id.
    #[serde(default)]
    pub name: String,
    /// Its kind.
    pub kind: SourceKind,
    /// Its address, or the path of its folder. May be empty for GitHub.
    #[serde(default)]
    pub location: String,
    /// Branch, tag or other ref of a repository; empty: its default branch.
    #[serde(default, rename = "ref")]
    pub reference: String,
    /// Only skills below this path; empty: all of them.
    #[serde(default)]
    pub path: String,
    /// What to take of it: repositories (`acme/skills`), owners (`acme`) and topics
    /// (`topic:agent-skills`) of GitHub, slugs of `ClawHub`, beginnings of ids
    /// (`github/acme`) of another server. Empty: all of it.
    #[serde(default)]
    pub select: Vec<String>,
    /// The start of the ids of its skills; none: from its address.
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// Seconds between two syncs; none: an hour, 0: only when somebody asks.
    #[serde(default)]
    pub interval_seconds: Option<u32>,
    /// The secret that the place asks of callers.
    #[serde(default)]
    pub credential: Option<CredentialRef>,
    /// The secret that its webhooks are signed with; none: it takes no webhooks.
    #[serde(default)]
    pub webhook_secret: Option<CredentialRef>,
    /// Who names its address and its secrets.
    #[serde(default)]
    pub named_by: NamedBy,
}

/// Returns whether a source is at a web address: what callers on the network may name, as it is
/// neither a path of this machine nor the address of a program such as `ssh`.
#[must_use]
pub fn is_web_address(location: &str) -> bool {
    // As Git reads it: the parser of URLs forgives blanks and missing slashes, with which Git takes
    // it for another kind of address.
    let scheme = location.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_web = ["http", "https"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it));
    is_web && url::Url::parse(location).is_ok_and(|url| url.has_host())
}

fn wrong(field: &'static str, message: impl Into<String>) -> Error {
    let message = message.into();
    Error::Parameter { field, message }
}

fn is_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=MAX_ID).contains(&id.len())
        && id.starts_with(plain)
        && id.chars().all(|c| plain(c) || c == '-')
}

impl Source {
    /// Checks its settings, before anything is called.
    ///
    /// # Errors
    /// The first thing that is wrong, by field.
    pub fn check(&self) -> Result<(), Error> {
        if !is_id(&self.id) {
            return Err(wrong(
                "source_id",
                format!(
                    "'{}' is no id of a source: 1 to {MAX_ID} of `a-z`, `0-9` and `-`, with a letter or digit first",
                    model::shown(&self.id, 80)
                ),
            ));
        }
        for (field, text) in [
            ("location", &self.location),
            ("ref", &self.reference),
            ("path", &self.path),
            ("name", &self.name),
        ] {
            if text.len() > MAX_TEXT || text.contains(char::is_control) {
                return Err(wrong(
                    field,
                    format!("has control characters, or more than {MAX_TEXT} bytes"),
                ));
            }
        }
        if self.select.len() > MAX_SELECT {
            return Err(wrong("select", format!("more than {MAX_SELECT} entries")));
        }
        if let Some(seconds) = self.interval_seconds
            && (1..MIN_INTERVAL).contains(&seconds)
        {
            return Err(wrong(
                "interval_seconds",
                format!("at least {MIN_INTERVAL}, or 0 for only when somebody asks"),
            ));
        }
        match self.kind {
            SourceKind::Directory if !std::path::Path::new(&self.location).is_absolute() => {
                Err(wrong(
                    "location",
                    format!("'{}' is no absolute path of a folder", self.location),
                ))
            }
            SourceKind::Github if self.select.is_empty() => Err(wrong(
                "select",
                "name repositories (`acme/skills`), owners (`acme`) or topics (`topic:agent-skills`)",
            )),
            SourceKind::Directory | SourceKind::Github => Ok(()),
            _ if self.location.is_empty() => {
                Err(wrong("location", "the address of the source is needed"))
            }
            _ => self.check_address(),
        }
    }

    fn check_address(&self) -> Result<(), Error> {
        let wrong = |message: &str| wrong("location", message);
        // It may become an argument of `ssh`, which would take it for an option: `-oProxyCommand=…`
        // runs a program.
        if self.location.starts_with('-') {
            return Err(wrong("an address that begins with `-` would be an option"));
        }
        let Ok(url) = url::Url::parse(&self.location) else {
            // As `git` writes it: `git@example.com:acme/skills.git`.
            let is_scp = self.kind == SourceKind::Git && self.location.contains(':');
            return if is_scp {
                Ok(())
            } else {
                Err(wrong(
                    "it is no address; such as `https://example.com/skills.git`",
                ))
            };
        };
        // The name in front of the host is a user for ssh. For https it may be a token: hosts take
        // one in the place of a name.
        let is_named = url.scheme() == "ssh" && url.password().is_none();
        if url.password().is_some() || (!url.username().is_empty() && !is_named) {
            // Refused before it is stored: backups and lists of sources would show it.
            return Err(wrong(
                "it has a secret in it; name where the secret is with `credential` instead",
            ));
        }
        Ok(())
    }

    /// Its address, also where it names none.
    #[must_use]
    pub(crate) fn address(&self) -> &str {
        match self.kind {
            SourceKind::Github if self.location.is_empty() => sources::GITHUB_API,
            _ => &self.location,
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.name.is_empty() {
            &self.id
        } else {
            &self.name
        }
    }

    /// A skill at this path of it is wanted.
    pub(crate) fn wants(&self, path: &str) -> bool {
        let is_below = |path: &str, folder: &str| {
            let rest = path.strip_prefix(folder.trim_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self.kind {
            // Paths of GitHub begin with the owner and the name of the repository.
            SourceKind::Github => {
                let inside = path.splitn(3, '/').nth(2).unwrap_or_default();
                self.path.is_empty() || is_below(inside, &self.path)
            }
            SourceKind::Repertoire => {
                // Every server has its own `builtin`, and the other two are the skills around
                // one person's agent: from elsewhere they would pose as those of this machine.
                let own = ["builtin", "local/project", "local/user"];
                let is_own = own.iter().any(|own| is_below(path, own));
                let is_named = self.select.iter().any(|id| is_below(path, id));
                !is_own && (self.select.is_empty() || is_named)
            }
            _ => self.path.is_empty() || is_below(path, &self.path),
        }
    }

    /// Seconds between two syncs; none: only when somebody asks.
    #[must_use]
    pub fn interval(&self) -> Option<u32> {
        match self.interval_seconds {
            None => Some(DEFAULT_INTERVAL),
            Some(0) => None,
            Some(seconds) => Some(seconds),
        }
    }
}
