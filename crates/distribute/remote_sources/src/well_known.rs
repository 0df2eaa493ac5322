//! Web sites with an index of skills at a well-known address: discovery of agent skills, versions
//! 0.2.0 and 0.1.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use egress::Egress;
use futures_util::future::BoxFuture;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::archive::{MAX_ARCHIVE, sifted, unpacked};
use super::place_cache::{read_cache, write_cache};
use super::web::{Answer, Ask, Fetcher, Web, join, redacted};
use super::{Error, Fetch, Files, Item, Listing, Look, Work};
use model::{Digest, FilePath, MAX_FILES, MAX_SKILL_BYTES, bundle_digest};

const INDEX: &str = ".well-known/agent-skills/index.json";
const INDEX_0_1: &str = ".well-known/skills/index.json";
/// The cache for version 0.1: digests of files, by address.
const CACHE: &str = "well-known-files.json";
/// Characters of a name in an index.
const MAX_NAME: usize = 256;
/// Characters of a segment of a path that are not encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// A site with an index of its skills at a well-known address.
///
/// The index of 0.2.0 has the digest of every skill, so that a look is one request. That of 0.1 has
/// none, so a look requests every file, known ones with their `ETag`.
#[derive(Debug)]
pub struct WellKnown {
    web: Web,
}

/// The state of a look.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Mark {
    /// The tag of the index of 0.2.0. That of 0.1 need not change when a file does.
    tag: Option<String>,
    /// The digest of the listing.
    digest: String,
}

#[derive(Deserialize)]
struct Index<T> {
    skills: Vec<T>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    digest: String,
}

#[derive(Deserialize)]
struct OldEntry {
    #[serde(default)]
    name: String,
    #[serde(default)]
    files: Vec<String>,
}

#[derive(Serialize, Deserialize)]
enum Handle {
    Skill { url: String, digest: Digest },
    Archive { url: String, digest: Digest },
    Files { below: String, files: Vec<String> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedFile {
    tag: String,
    digest: Digest,
}

impl WellKnown {
    /// A site by its address, such as `https://skills.example.com`. The token, if there is
    /// one, is sent to this origin alone.
    ///
    /// # Errors
    /// The address or the token is none.
    pub fn new(site: &str, token: Option<&SecretString>, egress: Egress) -> Result<Self, Error> {
        let web = Web::new(site, token, egress)?;
        Ok(Self { web })
    }

    async fn listed(&self, fetcher: &Fetcher<'_>, mark: Option<&str>) -> Result<Look, Error> {
        let mark: Option<Mark> = mark.and_then(|mark| serde_json::from_str(mark).ok());
        let tag = mark.as_ref().and_then(|mark| mark.tag.as_deref());
        let ask = Ask {
            tag,
            ..Ask::default()
        };
        let index = fetcher.below(INDEX, ask).await?;
        if index.is_unchanged() && tag.is_some() {
            let rate_limit = fetcher.rate_limit();
            return Ok(Look::Unchanged { rate_limit });
        }
        let (mut listing, tag) = if index.is_missing() {
            (old(fetcher).await?, None)
        } else {
            let index = index.there()?;
            (new(&index, fetcher.work())?, index.tag())
        };
        listing.sort();
        let items: Vec<_> = listing
            .items
            .iter()
            .map(|item| (&item.path, &item.fingerprint, &item.handle))
            .collect();
        let all = serde_json::to_vec(&(items, &listing.skipped)).unwrap_or_default();
        let now = Mark {
            tag,
            digest: Digest::of(&all).to_string(),
        };
        let rate_limit = fetcher.rate_limit();
        if mark.is_some_and(|mark| mark.digest == now.digest) {
            return Ok(Look::Unchanged { rate_limit });
        }
        listing.revision.clone_from(&now.digest);
        listing.mark = serde_json::to_string(&now).unwrap_or_default();
        listing.rate_limit = rate_limit;
        Ok(Look::Listing(listing))
    }

    async fn files(&self, item: &Item, work: &Work) -> Result<Files, Error> {
        let fetcher = Fetcher::new(&self.web, work);
        let wrong = |_| Error::Invalid("this is no item of an index".to_owned());
        let url = |url: &str| join(self.web.base(), url);
        match serde_json::from_str(&item.handle).map_err(wrong)? {
            Handle::Skill { url: at, digest } => {
                let body = bytes(&fetcher, &url(&at)?, MAX_SKILL_BYTES, digest).await?;
                Ok(Files {
                    files: BTreeMap::from([(FilePath::skill_md(), Bytes::from(body))]),
                    ..Files::default()
                })
            }
            Handle::Archive { url: at, digest } => {
                unpacked(bytes(&fetcher, &url(&at)?, MAX_ARCHIVE, digest).await?).await
            }
            Handle::Files { below, files } => {
                let (below, mut read, mut left) = (url(&below)?, Files::default(), MAX_SKILL_BYTES);
                for name in &files {
                    let (path, url) = file(&below, name)?;
                    let answer = fetcher.get(&url, Ask::file(left)).await?.there()?;
                    left = left.saturating_sub(answer.body.len() as u64);
                    read.files.insert(path, answer.body.into());
                }
                let digests = read.files.iter();
                let digest =
                    bundle_digest(digests.map(|(path, content)| (path, Digest::of(content))));
                // The files are requests of their own, and may be of two versions.
                if digest.to_string() != item.fingerprint {
                    let below = redacted(&below);
                    let message = format!("what is below {below} changed since it was listed");
                    return Err(Error::Unavailable(message));
                }
                Ok(sifted(read))
            }
        }
    }
}

impl Fetch for WellKnown {
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Look, Error>> {
        Box::pin(async move {
            let fetcher = Fetcher::look(&self.web, work, mark).await;
            let listed = self.listed(&fetcher, mark).await;
            fetcher.over(listed).await
        })
    }

    fn read<'a>(&'a self, item: &'a Item, work: &'a Work) -> BoxFuture<'a, Result<Files, Error>> {
        Box::pin(self.files(item, work))
    }
}

/// Fetches bytes that must have this digest.
async fn bytes(
    fetcher: &Fetcher<'_>,
    url: &Url,
    max: u64,
    digest: Digest,
) -> Result<Vec<u8>, Error> {
    let answer = fetcher.get(url, Ask::file(max)).await?.there()?;
    if Digest::of(&answer.body) != digest {
        let message = format!(
            "what is at {} is not what the index has the digest of",
            redacted(url)
        );
        return Err(Error::Unavailable(message));
    }
    Ok(answer.body)
}

fn count(skills: usize, work: &Work, url: &Url) -> Result<(), Error> {
    let max = work.limits.skills;
    if skills > max {
        let url = redacted(url);
        return Err(Error::TooLarge(format!(
            "{url} has {skills} skills, and {max} are the limit"
        )));
    }
    Ok(())
}

/// Lists the skills of an index of 0.2.0.
fn new(index: &Answer, work: &Work) -> Result<Listing, Error> {
    let entries: Index<Entry> = index.json()?;
    count(entries.skills.len(), work, &index.url)?;
    let (mut listing, mut names) = (Listing::default(), BTreeSet::new());
    for entry in entries.skills {
        match item(&entry, &index.url, &mut names) {
            Ok(item) => listing.items.push(item),
            Err(why) => listing
                .skipped
                .push((model::shown(&entry.name, MAX_NAME), why)),
        }
    }
    Ok(listing)
}

fn item(entry: &Entry, index: &Url, names: &mut BTreeSet<String>) -> Result<Item, String> {
    named(&entry.name, names)?;
    let digest: Digest = entry.digest.parse().map_err(|error| format!("{error}"))?;
    let url = index
        .join(&entry.url)
        .map_err(|_| "its address is none".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") || entry.url.is_empty() {
        return Err("its address is none of the web".to_owned());
    }
    let url = url.to_string();
    let handle = match entry.kind.as_str() {
        "skill-md" => Handle::Skill { url, digest },
        "archive" => Handle::Archive { url, digest },
        other => {
            return Err(format!(
                "its type is `{}`, which is not known",
                model::shown(other, 40)
            ));
        }
    };
    Ok(Item {
        path: entry.name.clone(),
        fingerprint: digest.to_string(),
        handle: serde_json::to_string(&handle).map_err(|error| error.to_string())?,
        ..Item::default()
    })
}

fn named(name: &str, names: &mut BTreeSet<String>) -> Result<(), String> {
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return Err(format!(
            "its name is empty, or longer than {MAX_NAME} letters"
        ));
    }
    if !names.insert(name.to_owned()) {
        return Err("the index has this name twice".to_owned());
    }
    Ok(())
}

/// A file below an address. As a [`FilePath`] it has no `..`, and does not leave the address.
fn file(below: &Url, name: &str) -> Result<(FilePath, Url), Error> {
    let path: FilePath = name
        .parse()
        .map_err(|error| Error::Invalid(format!("{error}")))?;
    let url = join(
        below,
        &format!("./{}", utf8_percent_encode(path.as_str(), SEGMENT)),
    )?;
    Ok((path, url))
}

/// Lists the skills of an index of 0.1. Fetches their files, for the digests.
async fn old(fetcher: &Fetcher<'_>) -> Result<Listing, Error> {
    let work = fetcher.work();
    let index = fetcher.below(INDEX_0_1, Ask::default()).await?.there()?;
    let entries: Index<OldEntry> = index.json()?;
    count(entries.skills.len(), work, &index.url)?;
    // Before the first request for a file: each of them is one.
    let files: usize = entries.skills.iter().map(|entry| entry.files.len()).sum();
    if files > work.limits.files {
        let (url, max) = (redacted(&index.url), work.limits.files);
        return Err(Error::TooLarge(format!(
            "{url} has {files} files, and {max} are the limit"
        )));
    }
    let known: BTreeMap<String, CachedFile> =
        read_cache(&work.folder, CACHE).await.unwrap_or_default();
    let mut seen = BTreeMap::new();
    let (mut listing, mut names) = (Listing::default(), BTreeSet::new());
    for entry in entries.skills {
        let name = model::shown(&entry.name, MAX_NAME);
        if let Err(why) = named(&entry.name, &mut names) {
            listing.skipped.push((name, why));
            continue;
        }
        match old_item(fetcher, &index.url, entry, &known, &mut seen).await? {
            Ok(item) => listing.items.push(item),
            Err(why) => listing.skipped.push((name, why)),
        }
    }
    write_cache(&work.folder, CACHE, seen).await?;
    Ok(listing)
}

/// One skill of an index of 0.1, or the reason to skip it.
async fn old_item(
    fetcher: &Fetcher<'_>,
    index: &Url,
    entry: OldEntry,
    known: &BTreeMap<String, CachedFile>,
    seen: &mut BTreeMap<String, CachedFile>,
) -> Result<Result<Item, String>, Error> {
    if entry.files.is_empty() || entry.files.len() > MAX_FILES {
        return Ok(Err(format!("it has no files, or more than {MAX_FILES}")));
    }
    if matches!(entry.name.as_str(), "." | "..") || entry.name.contains(['/', '\\']) {
        return Ok(Err("its name is no segment of a path".to_owned()));
    }
    let below = format!("./{}/", utf8_percent_encode(&entry.name, SEGMENT));
    let below = join(index, &below)?;
    let (mut digests, mut left) = (BTreeMap::new(), MAX_SKILL_BYTES);
    for name in &entry.files {
        let (path, url) = match file(&below, name) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let known = known.get(url.as_str());
        let ask = Ask {
            tag: known.map(|known| known.tag.as_str()),
            ..Ask::file(left)
        };
        let answer = match fetcher.get(&url, ask).await {
            // One skill that is too large costs itself alone.
            Err(Error::TooLarge(why)) => return Ok(Err(why)),
            answer => answer?,
        };
        let digest = if let Some(known) = known.filter(|_| answer.is_unchanged()) {
            seen.insert(url.to_string(), known.clone());
            known.digest
        } else {
            let answer = answer.there()?;
            let digest = Digest::of(&answer.body);
            left = left.saturating_sub(answer.body.len() as u64);
            if let Some(tag) = answer.tag() {
                seen.insert(url.to_string(), CachedFile { tag, digest });
            }
            digest
        };
        digests.insert(path, digest);
    }
    let digest = bundle_digest(digests.iter().map(|(path, digest)| (path, *digest)));
    let handle = Handle::Files {
        below: below.to_string(),
        files: entry.files,
    };
    let handle = serde_json::to_string(&handle);
    let handle = handle.map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(Ok(Item {
        path: entry.name,
        fingerprint: digest.to_string(),
        handle,
        ..Item::default()
    }))
}
