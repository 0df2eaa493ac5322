//! The operator's feed of skills to block: a file that another program updates.
//!
//! It is JSON, `{"blocked": [{"skill_id": "github/acme/refunds", "reason": "…"}]}`; other keys
//! are ignored, so that another server's answer to `ListBlocked` is a feed. A feed that cannot
//! be read as a whole changes nothing: half a blocklist would unblock the other half.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Deserialize;

use super::{Caller, Error, Refreshed, Registry};
use model::{SkillId, shown};

/// Maximum number of bytes of a feed.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum number of entries of a feed.
const MAX_ENTRIES: usize = 50_000;
/// Maximum number of characters of a reason that are stored.
const MAX_REASON: usize = 1_024;

#[derive(Deserialize)]
struct Listed {
    blocked: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    skill_id: String,
    #[serde(default)]
    reason: String,
}

/// The path of the feed, and the time of its last import. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    path: Option<PathBuf>,
    taken_in: Arc<Mutex<Option<Timestamp>>>,
}

fn read(path: &Path) -> Result<Vec<(SkillId, String)>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    // One byte more than may be: a file that is too long is refused, not cut.
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    parse(&text)
}

fn parse(text: &[u8]) -> Result<Vec<(SkillId, String)>, String> {
    let listed: Listed = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if listed.blocked.len() > MAX_ENTRIES {
        return Err(format!("it has more than {MAX_ENTRIES} entries"));
    }
    let mut entries = Vec::new();
    for Entry { skill_id, reason } in listed.blocked {
        let id: SkillId = skill_id
            .parse()
            .map_err(|error| format!("'{}': {error}", shown(&skill_id, 100)))?;
        let reason = if reason.trim().is_empty() {
            "It is on the feed of blocked skills".to_owned()
        } else {
            shown(&reason, MAX_REASON)
        };
        entries.push((id, reason));
    }
    Ok(entries)
}

impl Feed {
    /// The feed of a file; none: there is no feed.
    #[must_use]
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            taken_in: Arc::default(),
        }
    }

    /// Returns whether there is a feed.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.path.is_some()
    }

    /// Returns the time of its last import; none: not since the start.
    #[must_use]
    pub fn taken_in(&self) -> Option<Timestamp> {
        *self.taken_in.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the blocklist of a registry follow the feed.
    ///
    /// # Errors
    /// There is no feed, or it cannot be read as a whole; the store cannot be written.
    pub async fn take_in(&self, registry: &Registry, caller: &Caller) -> Result<Refreshed, Error> {
        let unavailable = |reason: String| Error::Feed { reason };
        let path = self.path.clone();
        let path = path.ok_or_else(|| unavailable("no feed is configured".to_owned()))?;
        let name = path.display().to_string();
        let entries = registry
            .executor()
            .run(executor::Kind::Read, move |_| read(&path))
            .await?
            .map_err(|reason| unavailable(format!("`{name}`: {reason}")))?;
        let refreshed = registry.follow_feed(entries, caller).await?;
        let now = registry.inner.clock.now();
        *self.taken_in.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        Ok(refreshed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_read_as_a_whole_or_not_at_all() {
        let of = |text: &str| parse(text.as_bytes());
        let entries = of(
            r#"{"blocked": [{"skill_id": "github/acme/refunds", "reason": "steals\nkeys", "by": 1},
            {"skill_id": "x/y/z"}], "next_page_token": ""}"#,
        );
        let entries = entries.expect("a feed");
        let expected = [
            ("github/acme/refunds", "steals\\nkeys"),
            ("x/y/z", "It is on the feed of blocked skills"),
        ];
        let expected = expected.map(|(id, reason)| (id.parse().expect("an id"), reason.to_owned()));
        assert_eq!(entries, expected);
        for (text, reason) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{}", "missing field `blocked` at line 1 column 2"),
            (
                r#"{"blocked": [{"skill_id": "x/y/z"}, {"skill_id": "nonsense"}]}"#,
                "'nonsense': `nonsense` is not a skill id: it must have three segments, `source/author/slug`",
            ),
        ] {
            assert_eq!(of(text), Err(reason.to_owned()), "{text}");
        }
    }
}
