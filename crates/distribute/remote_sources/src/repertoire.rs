//! Another Repertoire server, over its REST.

use std::collections::BTreeMap;

use egress::Egress;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::archive::{MAX_ARCHIVE, exported};
use super::place_cache::{read_cache, write_cache};
use super::web::{Ask, Fetcher, Web};
use super::{Error, Fetch, Files, Item, Listing, Look, Work};
use model::{Digest, SkillId, bundle_digest};

/// Skills on a page.
const PAGE: &str = "500";
/// Skills that are requested at once.
const FETCH_CONCURRENCY: usize = 8;
/// Events that are requested; if there are more, all skills are listed.
const MAX_EVENTS: usize = 1000;
/// The cache of listed versions, by id.
const CACHE: &str = "repertoire-skills.json";
/// Bytes of the stream of events.
const MAX_STREAM: u64 = 8 * 1024 * 1024;

/// Another Repertoire server: the active version of every skill that it lists.
///
/// The mark is a position in its event log. Skills without an event since then are not requested
/// again.
#[derive(Debug)]
pub struct Repertoire {
    web: Web,
}

#[derive(Deserialize)]
#[serde(default, rename_all = "snake_case")]
#[derive(Default)]
struct Page {
    skills: Vec<Metadata>,
    next_page_token: String,
    resume_token: String,
}

#[derive(Deserialize)]
struct Metadata {
    id: String,
}

/// The active version of a skill. A read requests it by number, as another may be active by then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ListedVersion {
    number: u64,
    digest: String,
    version: String,
}

/// The listed versions, as of a position in the log.
#[derive(Default, Serialize, Deserialize)]
struct CachedListing {
    mark: String,
    skills: BTreeMap<String, ListedVersion>,
}

#[derive(Serialize, Deserialize)]
struct Handle {
    id: String,
    number: u64,
    version: String,
}

/// The events since a position in the log.
enum Since {
    Nothing,
    /// The skills that have some, and the position after the last.
    These(Vec<String>, String),
    /// They cannot be had: all skills have to be listed.
    Unknown,
}

impl Repertoire {
    /// A server by its address, such as `https://skills.example.com`. The token, if there is
    /// one, is sent to this origin alone.
    ///
    /// # Errors
    /// The address or the token is none.
    pub fn new(server: &str, token: Option<&SecretString>, egress: Egress) -> Result<Self, Error> {
        let web = Web::new(server, token, egress)?;
        Ok(Self { web })
    }

    async fn listed(&self, fetcher: &Fetcher<'_>, mark: Option<&str>) -> Result<Look, Error> {
        let mut known = read_cache::<CachedListing>(&fetcher.work().folder, CACHE)
            .await
            .unwrap_or_default();
        // Of a listing that `sync` did not take, or of another server that the source had before.
        if mark != Some(known.mark.as_str()) {
            known.skills.clear();
        }
        let mut until = None;
        if let Some(mark) = mark {
            match self.since(fetcher, mark).await? {
                Since::Nothing => {
                    let rate_limit = fetcher.rate_limit();
                    return Ok(Look::Unchanged { rate_limit });
                }
                Since::These(ids, token) => {
                    known.skills.retain(|id, _| !ids.contains(id));
                    until = Some(token);
                }
                Since::Unknown => known.skills.clear(),
            }
        }
        let (ids, mark) = self.ids(fetcher).await?;
        // The older position: an event between the stream and the list may be of a skill whose
        // cached version was used, and the next look has to see it.
        let mark = until.unwrap_or(mark);
        let known = &known.skills;
        let (web, asked) = (&self.web, fetcher);
        let details = stream::iter(ids).map(|id| async move {
            let found = match known.get(&id) {
                Some(known) => Some(known.clone()),
                None => detail(web, asked, &id).await?,
            };
            Ok::<_, Error>((id, found))
        });
        let details: Vec<_> = details.buffered(FETCH_CONCURRENCY).try_collect().await?;
        let (mut listing, mut skills) = (Listing::default(), BTreeMap::new());
        for (id, found) in details {
            // Deleted, or all its versions withdrawn, since the list was written.
            let Some(found) = found else { continue };
            match item(&id, &found) {
                Ok(item) => listing.items.push(item),
                Err(why) => listing.skipped.push((model::shown(&id, 200), why)),
            }
            skills.insert(id, found);
        }
        listing.sort();
        write_cache(
            &fetcher.work().folder,
            CACHE,
            CachedListing {
                mark: mark.clone(),
                skills,
            },
        )
        .await?;
        listing.mark.clone_from(&mark);
        listing.revision = mark;
        listing.rate_limit = fetcher.rate_limit();
        Ok(Look::Listing(listing))
    }

    /// The skills with events since a position in the log.
    async fn since(&self, fetcher: &Fetcher<'_>, mark: &str) -> Result<Since, Error> {
        let mut url = self.web.below("api/v1/events")?;
        url.query_pairs_mut()
            .append_pair("resume_token", mark)
            .append_pair("max_events", &MAX_EVENTS.to_string())
            // A look wants the events until now, and not to wait for more.
            .append_pair("max_wait_seconds", "1");
        let ask = Ask {
            accept: Some("text/event-stream"),
            max: MAX_STREAM,
            tag: None,
        };
        let answer = match fetcher.get(&url, ask).await {
            Ok(answer) => answer,
            // The token is of another server, or older than its log.
            Err(Error::Refused(_) | Error::TooLarge(_)) => return Ok(Since::Unknown),
            Err(error) => return Err(error),
        };
        if answer.is_missing() {
            return Ok(Since::Unknown);
        }
        let (mut ids, mut events, mut token) = (Vec::new(), 0, None);
        let text = String::from_utf8_lossy(&answer.body);
        for line in text.lines() {
            if line.starts_with("event:") && line.trim_end().ends_with("error") {
                return Ok(Since::Unknown);
            }
            let Some(data) = line.strip_prefix("data:") else {
                continue;
            };
            let Ok(data) = serde_json::from_str::<Json>(data) else {
                return Ok(Since::Unknown);
            };
            let until = data.get("resume_token").and_then(Json::as_str);
            let until = until.filter(|until| !until.is_empty());
            token = until.map(str::to_owned).or(token);
            let Some(event) = data.get("event").filter(|event| !event.is_null()) else {
                continue;
            };
            events += 1;
            match event.get("skill_id").and_then(Json::as_str) {
                Some(id) => ids.push(id.to_owned()),
                None => return Ok(Since::Unknown),
            }
        }
        Ok(match (events, token) {
            // A server begins with the position of its log. An answer without it is from a proxy, a
            // page to sign in, or a stream that was cut off. Taken for no events, it would end all
            // updates, as the mark would not move.
            (0, Some(_)) => Since::Nothing,
            (1..MAX_EVENTS, Some(token)) => Since::These(ids, token),
            _ => Since::Unknown,
        })
    }

    /// The ids of all skills, and the position of the log before they were listed.
    async fn ids(&self, fetcher: &Fetcher<'_>) -> Result<(Vec<String>, String), Error> {
        let (mut ids, mut mark, mut token) = (Vec::new(), None, String::new());
        loop {
            let mut url = self.web.below("api/v1/skills")?;
            url.query_pairs_mut().append_pair("page_size", PAGE);
            if !token.is_empty() {
                url.query_pairs_mut().append_pair("page_token", &token);
            }
            let page: Page = fetcher.get(&url, Ask::default()).await?.there()?.json()?;
            ids.extend(page.skills.into_iter().map(|skill| skill.id));
            let max = fetcher.work().limits.skills;
            if ids.len() > max {
                return Err(Error::TooLarge(format!(
                    "the server has more than {max} skills"
                )));
            }
            // Of the first page: events during the listing are for the next look.
            let mark = mark.get_or_insert(page.resume_token);
            if page.next_page_token.is_empty() {
                if mark.is_empty() {
                    let message =
                        "the server has no position in its log: it is not a Repertoire server";
                    return Err(Error::Refused(message.to_owned()));
                }
                let mark = std::mem::take(mark);
                ids.sort();
                ids.dedup();
                return Ok((ids, mark));
            }
            if token == page.next_page_token {
                let message = "the pages of its skills go round in circles";
                return Err(Error::Unavailable(message.to_owned()));
            }
            token = page.next_page_token;
        }
    }

    async fn files(&self, item: &Item, work: &Work) -> Result<Files, Error> {
        let fetcher = Fetcher::new(&self.web, work);
        let wrong = || Error::Invalid("this is no item of a server".to_owned());
        let handle: Handle = serde_json::from_str(&item.handle).map_err(|_| wrong())?;
        let id: SkillId = handle.id.parse().map_err(|_| wrong())?;
        let mut url = self.web.below(&format!("{}/export", one(&id)))?;
        url.query_pairs_mut()
            .append_pair("version_number", &handle.number.to_string());
        let answer = fetcher.get(&url, Ask::file(MAX_ARCHIVE)).await?.there()?;
        let mut files = exported(answer.body).await?;
        let digests = files
            .files
            .iter()
            .map(|(path, content)| (path, Digest::of(content)));
        if bundle_digest(digests).to_string() != item.fingerprint {
            let message = format!("the archive of `{id}` does not have the digest that was listed");
            return Err(Error::Unavailable(message));
        }
        files.version = Some(handle.version).filter(|version| !version.is_empty());
        Ok(files)
    }
}

impl Fetch for Repertoire {
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

/// The path of a skill, with its id as one segment: an id like `a/b/export` must not be read as
/// another route.
fn one(id: &SkillId) -> String {
    format!("api/v1/skills/{}", id.as_str().replace('/', "%2F"))
}

/// Fetches the active version of a skill; none: the skill is gone.
async fn detail(
    web: &Web,
    fetcher: &Fetcher<'_>,
    id: &str,
) -> Result<Option<ListedVersion>, Error> {
    #[derive(Deserialize)]
    struct Answer {
        skill: Option<Skill>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Skill {
        version_number: u64,
        digest: String,
        current_version: String,
    }
    // `item` skips an invalid id, with the reason.
    let Ok(id) = id.parse::<SkillId>() else {
        return Ok(Some(ListedVersion::default()));
    };
    let mut url = web.below(&one(&id))?;
    url.query_pairs_mut().append_pair("include_readme", "false");
    let answer = fetcher.get(&url, Ask::default()).await?;
    if answer.is_missing() {
        return Ok(None);
    }
    let answer: Answer = answer.there()?.json()?;
    let skill = answer.skill.unwrap_or_default();
    Ok(Some(ListedVersion {
        number: skill.version_number,
        digest: skill.digest,
        version: skill.current_version,
    }))
}

fn item(id: &str, known: &ListedVersion) -> Result<Item, String> {
    let id: SkillId = id.parse().map_err(|error| format!("{error}"))?;
    let digest: Digest = known.digest.parse().map_err(|error| format!("{error}"))?;
    let handle = Handle {
        id: id.to_string(),
        number: known.number,
        version: known.version.clone(),
    };
    Ok(Item {
        path: id.to_string(),
        fingerprint: digest.to_string(),
        author: Some(id.author().to_owned()),
        handle: serde_json::to_string(&handle).map_err(|error| error.to_string())?,
        facts: None,
    })
}
