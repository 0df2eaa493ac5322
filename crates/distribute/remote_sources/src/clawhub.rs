//! Registries that speak `ClawHub`'s REST protocol, version 1.

use std::collections::BTreeSet;

use egress::Egress;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use url::Url;

use super::archive::{MAX_ARCHIVE, unpacked};
use super::web::{Ask, Fetcher, Web, join, redacted};
use super::{Error, Fetch, Files, Item, Listing, Look, Work};
use model::Digest;

/// Skills on a page.
const PAGE: &str = "200";
/// Skills that are requested at once.
const FETCH_CONCURRENCY: usize = 4;
/// Bytes of a slug or a version.
const MAX_NAME: usize = 256;

/// A registry that speaks `ClawHub`'s protocol.
///
/// Its versions never change, so a version with the time of its last change is a fingerprint.
#[derive(Debug)]
pub struct ClawHub {
    web: Web,
    slugs: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// The tag of the list, if it is one page: that of the first page says nothing of others.
    tag: Option<String>,
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Handle {
    api: String,
    slug: String,
    version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    items: Vec<Summary>,
    next_cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Summary {
    slug: String,
    tags: Json,
    latest_version: Option<Version>,
    updated_at: Json,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    skill: Option<Summary>,
    latest_version: Option<Version>,
    owner: Option<Owner>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    handle: Option<String>,
}

impl ClawHub {
    /// A registry by its address, such as `https://registry.example.com`, and the slugs of the
    /// skills to take; none: all. The address of its API is in `/.well-known/clawhub.json`, else it
    /// is below the address. The token, if there is one, is sent to this origin alone.
    ///
    /// # Errors
    /// The address or the token is none.
    pub fn new(
        registry: &str,
        slugs: Vec<String>,
        token: Option<&SecretString>,
        egress: Egress,
    ) -> Result<Self, Error> {
        let web = Web::new(registry, token, egress)?;
        Ok(Self { web, slugs })
    }

    /// The address of the API, with a `/` at its end.
    async fn api(&self, fetcher: &Fetcher<'_>) -> Result<Url, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WellKnown {
            api_base: Option<String>,
        }
        let answer = fetcher
            .below(".well-known/clawhub.json", Ask::default())
            .await?;
        if answer.is_missing() {
            return self.web.below("api/v1/");
        }
        let answer = answer.there()?;
        let known: WellKnown = answer.json()?;
        match known.api_base {
            Some(base) => join(
                &join(&answer.url, &format!("{}/", base.trim_end_matches('/')))?,
                "api/v1/",
            ),
            None => self.web.below("api/v1/"),
        }
    }

    async fn listed(&self, fetcher: &Fetcher<'_>, mark: Option<&str>) -> Result<Look, Error> {
        let mark: Option<Mark> = mark.and_then(|mark| serde_json::from_str(mark).ok());
        let api = self.api(fetcher).await?;
        let tag = mark.as_ref().and_then(|mark| mark.tag.as_deref());
        let found = if self.slugs.is_empty() {
            all(fetcher, &api, tag).await?
        } else {
            let named = stream::iter(self.slugs.clone());
            let (fetcher, api) = (fetcher, &api);
            let named = named.map(|slug| async move { detail(fetcher, api, &slug).await });
            let named: Vec<_> = named.buffered(FETCH_CONCURRENCY).try_collect().await?;
            Some((named, None))
        };
        let rate_limit = fetcher.rate_limit();
        let Some((found, tag)) = found else {
            return Ok(Look::Unchanged { rate_limit });
        };
        let (mut listing, mut slugs) = (Listing::default(), BTreeSet::new());
        for found in found {
            match found.and_then(|(summary, author)| {
                let slug = summary.slug.clone();
                item(&api, summary, author, &mut slugs).map_err(|why| (slug, why))
            }) {
                Ok(item) => listing.items.push(item),
                Err((slug, why)) => listing.skipped.push((model::shown(&slug, MAX_NAME), why)),
            }
        }
        listing.sort();
        let all = serde_json::to_vec(&(&listing.items, &listing.skipped)).unwrap_or_default();
        let digest = Digest::of(&all).to_string();
        if mark.is_some_and(|mark| mark.digest == digest) {
            return Ok(Look::Unchanged { rate_limit });
        }
        listing.revision.clone_from(&digest);
        listing.mark = serde_json::to_string(&Mark { tag, digest }).unwrap_or_default();
        listing.rate_limit = rate_limit;
        Ok(Look::Listing(listing))
    }

    async fn files(&self, item: &Item, work: &Work) -> Result<Files, Error> {
        let fetcher = Fetcher::new(&self.web, work);
        let handle: Handle = serde_json::from_str(&item.handle)
            .map_err(|_| Error::Invalid("this is no item of a registry".to_owned()))?;
        let mut url = join(&join(self.web.base(), &handle.api)?, "download")?;
        url.query_pairs_mut()
            .append_pair("slug", &handle.slug)
            .append_pair("version", &handle.version);
        let answer = fetcher.get(&url, Ask::file(MAX_ARCHIVE)).await?.there()?;
        let mut files = unpacked(answer.body).await?;
        files.version = Some(handle.version);
        Ok(files)
    }
}

impl Fetch for ClawHub {
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

/// A skill with its owner, or its slug with the reason to skip it.
type ListedSkill = Result<(Summary, Option<String>), (String, String)>;

/// All skills, and the tag of the list where it is one page. None: nothing changed.
async fn all(
    fetcher: &Fetcher<'_>,
    api: &Url,
    tag: Option<&str>,
) -> Result<Option<(Vec<ListedSkill>, Option<String>)>, Error> {
    let (mut found, mut cursor, mut cursors) = (Vec::new(), None::<String>, BTreeSet::new());
    loop {
        let mut url = join(api, "skills")?;
        url.query_pairs_mut().append_pair("limit", PAGE);
        let is_first = cursor.is_none();
        if let Some(cursor) = &cursor {
            url.query_pairs_mut().append_pair("cursor", cursor);
        }
        let ask = Ask {
            tag: tag.filter(|_| is_first),
            ..Ask::default()
        };
        let answer = fetcher.get(&url, ask).await?;
        if answer.is_unchanged() {
            return Ok(None);
        }
        if answer.is_missing() {
            // A search is no replacement: it has the hits that it ranks highest, and what a look
            // does not list counts as gone.
            let message = format!(
                "{} has no list of all skills: name those that are wanted",
                redacted(api)
            );
            return Err(Error::Refused(message));
        }
        let answer = answer.there()?;
        let page: Page = answer.json()?;
        found.extend(page.items.into_iter().map(|summary| Ok((summary, None))));
        let max = fetcher.work().limits.skills;
        if found.len() > max {
            let message = format!("{} has more than {max} skills", redacted(api));
            return Err(Error::TooLarge(message));
        }
        match page.next_cursor.filter(|next| !next.is_empty()) {
            None => return Ok(Some((found, answer.tag().filter(|_| is_first)))),
            // Without this a place with a bug, or malice, is asked until the time limit.
            Some(next) if !cursors.insert(next.clone()) => {
                let message = format!("the pages of {} go round in circles", redacted(&url));
                return Err(Error::Unavailable(message));
            }
            next => cursor = next,
        }
    }
}

async fn detail(fetcher: &Fetcher<'_>, api: &Url, slug: &str) -> Result<ListedSkill, Error> {
    let mut url = join(api, "skills")?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push(slug);
    }
    let answer = fetcher.get(&url, Ask::default()).await?;
    if answer.is_missing() {
        return Ok(Err((slug.to_owned(), "there is no such skill".to_owned())));
    }
    let detail: Detail = answer.there()?.json()?;
    let mut summary = detail.skill.unwrap_or_default();
    summary.latest_version = detail.latest_version.or(summary.latest_version);
    let owner = detail.owner.and_then(|owner| owner.handle);
    Ok(Ok((summary, owner.filter(|owner| !owner.is_empty()))))
}

fn item(
    api: &Url,
    summary: Summary,
    author: Option<String>,
    slugs: &mut BTreeSet<String>,
) -> Result<Item, String> {
    let slug = summary.slug;
    if slug.is_empty() || slug.len() > MAX_NAME {
        return Err(format!(
            "its slug is empty, or longer than {MAX_NAME} bytes"
        ));
    }
    let tagged = || {
        summary
            .tags
            .get("latest")
            .and_then(Json::as_str)
            .map(str::to_owned)
    };
    let version = summary
        .latest_version
        .map(|latest| latest.version)
        .filter(|version| !version.is_empty());
    let version = version
        .or_else(tagged)
        .filter(|version| !version.is_empty() && version.len() <= MAX_NAME);
    let version = version.ok_or_else(|| "it has no version".to_owned())?;
    if !slugs.insert(slug.clone()) {
        return Err("the list has it twice".to_owned());
    }
    let changed = summary.updated_at;
    let handle = Handle {
        api: api.to_string(),
        slug: slug.clone(),
        version: version.clone(),
    };
    Ok(Item {
        fingerprint: format!("{version} {changed}"),
        handle: serde_json::to_string(&handle).map_err(|error| error.to_string())?,
        path: slug,
        author,
        facts: None,
    })
}
