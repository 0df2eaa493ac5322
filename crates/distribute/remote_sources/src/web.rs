//! Requests to a place on the web, and their answers, with bounds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use egress::{Client, Egress};
use futures_util::future::{Either, select};
use http::header::{ACCEPT, ETAG, IF_NONE_MATCH, LINK};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::journal::{Journal, Line};
use super::{Error, RateLimit, Work};

/// Bytes that an answer in JSON may have.
pub(crate) const MAX_JSON: u64 = 64 * 1024 * 1024;
/// How long to wait where the place names no time.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Characters of an address in a message.
const MAX_SHOWN: usize = 300;

/// A place on the web: its address and the credential for it.
#[derive(Debug)]
pub(crate) struct Web {
    base: Url,
    credential: Option<HeaderValue>,
    client: Client,
}

impl Web {
    /// `base` is `http` or `https`; its last segment is taken as a folder.
    pub(crate) fn new(
        base: &str,
        token: Option<&SecretString>,
        egress: Egress,
    ) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Invalid(format!("the address of the place {why}"));
        let mut base = Url::parse(base).map_err(|_| wrong("is none"))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(wrong("is to begin with http:// or https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("holds a password: hand it over as a token"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("has a query: it is to end with a path"));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let credential = token.map(|token| {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let wrong = |_| Error::Invalid("the token has letters that no token has".to_owned());
            let mut value = value.map_err(wrong)?;
            // Not in the debug output of a place.
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        });
        let redirects = super::Limits::default().redirects;
        // A `Fetcher` has the limits of a look, which differ; these are the most that they may be.
        let timeouts = egress::Timeouts {
            silence: Duration::from_secs(120),
            total: Duration::from_secs(3600),
            ..egress::Timeouts::default()
        };
        let client = Client::new(egress, timeouts, redirects)
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(Self {
            base,
            credential: credential.transpose()?,
            client,
        })
    }

    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// The address of a path below the base, such as `api/v1/skills`.
    pub(crate) fn below(&self, path: &str) -> Result<Url, Error> {
        join(&self.base, path)
    }
}

/// An address that is relative to another one.
pub(crate) fn join(base: &Url, path: &str) -> Result<Url, Error> {
    let wrong = |_| Error::Invalid(format!("`{}` leads nowhere", model::shown(path, 80)));
    base.join(path).map_err(wrong)
}

/// An address as it may be shown: without a password, and without its query, which may hold a
/// secret, such as that of a signed download.
pub(crate) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    url.set_username("").ok();
    url.set_password(None).ok();
    url.set_query(None);
    url.set_fragment(None);
    model::shown(url.as_str(), MAX_SHOWN)
}

/// The options of a request.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// Media type that is wanted.
    pub(crate) accept: Option<&'static str>,
    /// The `ETag` of the answer that is known.
    pub(crate) tag: Option<&'a str>,
    /// Bytes that the answer may have; 0: as JSON may.
    pub(crate) max: u64,
}

impl Ask<'_> {
    /// A file of any type.
    pub(crate) fn file(max: u64) -> Self {
        Self {
            accept: Some("*/*"),
            max: max.max(1),
            tag: None,
        }
    }
}

/// An answer: a body, nothing new (304), or nothing (404, 410).
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Its address, after redirects.
    pub(crate) url: Url,
}

impl Answer {
    pub(crate) fn is_unchanged(&self) -> bool {
        self.status == StatusCode::NOT_MODIFIED
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.status, StatusCode::NOT_FOUND | StatusCode::GONE)
    }

    /// The answer, unless there is nothing.
    pub(crate) fn there(self) -> Result<Self, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        let (url, status) = (redacted(&self.url), self.status.as_u16());
        Err(Error::Refused(format!(
            "{url} answers {status}: it is not there"
        )))
    }

    pub(crate) fn tag(&self) -> Option<String> {
        // It is stored and sent back: a place may send any.
        let tag = self.headers.get(ETAG)?.to_str().ok()?;
        (tag.len() <= 512).then(|| tag.to_owned())
    }

    /// The next page, by `Link` (RFC 8288).
    pub(crate) fn next_page(&self) -> Option<Url> {
        let links = self.headers.get_all(LINK).iter();
        let links = links.filter_map(|link| link.to_str().ok());
        let next = links.flat_map(|links| links.split(',')).find_map(|link| {
            let (target, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
            let mut parameters = rest.split(';').map(str::trim);
            let is_next = parameters.any(|rel| matches!(rel, "rel=\"next\"" | "rel=next"));
            is_next.then_some(target)
        });
        self.url.join(next?).ok()
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        // serde_json ends at 128 levels, so that nested arrays do not overflow the stack.
        serde_json::from_slice(&self.body).map_err(|error| {
            let (url, line) = (redacted(&self.url), error.line());
            let what = match error.classify() {
                serde_json::error::Category::Eof => "ends in the middle",
                serde_json::error::Category::Syntax => "is no JSON",
                _ => "is JSON of another form",
            };
            Error::Unavailable(format!("what {url} answers {what} (line {line})"))
        })
    }
}

/// Fetches for a look, or for the read of one skill. The bounds are for all its requests together.
#[derive(Debug)]
pub(crate) struct Fetcher<'a> {
    web: &'a Web,
    work: &'a Work,
    until: Instant,
    bytes: AtomicU64,
    limit: Mutex<Option<RateLimit>>,
    /// The answers of an interrupted look.
    journal: Option<Journal>,
    /// A request was interrupted.
    is_interrupted: AtomicBool,
}

impl<'a> Fetcher<'a> {
    pub(crate) fn new(web: &'a Web, work: &'a Work) -> Self {
        Self {
            web,
            work,
            until: Instant::now() + work.limits.time,
            bytes: AtomicU64::new(0),
            limit: Mutex::new(None),
            journal: None,
            is_interrupted: AtomicBool::new(false),
        }
    }

    /// A look. It continues the last one with this mark, if that was interrupted.
    pub(crate) async fn look(web: &'a Web, work: &'a Work, mark: Option<&str>) -> Self {
        let mut fetcher = Self::new(web, work);
        fetcher.journal = Some(Journal::open(&work.folder, mark).await);
        fetcher
    }

    /// Ends a look. Its answers are kept only if the place, the network or the caller interrupted
    /// it: after another error they are of no use, as the next look would fail by the same ones.
    pub(crate) async fn over<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        let is_interrupted = done.is_err() && self.is_interrupted.load(Ordering::Relaxed);
        if let Some(journal) = self.journal.as_ref().filter(|_| !is_interrupted) {
            journal.end().await;
        }
        done
    }

    pub(crate) fn work(&self) -> &'a Work {
        self.work
    }

    pub(crate) fn rate_limit(&self) -> Option<RateLimit> {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn below(&self, path: &str, ask: Ask<'_>) -> Result<Answer, Error> {
        self.get(&self.web.below(path)?, ask).await
    }

    /// Gets an address. The credential is sent to the origin of the base alone.
    ///
    /// # Errors
    /// Every answer but one of success, 304, 404 and 410 is an error.
    pub(crate) async fn get(&self, url: &Url, ask: Ask<'_>) -> Result<Answer, Error> {
        if let Some(answer) = self.known(url, ask).await? {
            return Ok(answer);
        }
        let answer = match self.asked(url, ask).await {
            Ok(answer) => answer,
            Err(error) => {
                let is_break = matches!(
                    error,
                    Error::RateLimited { .. } | Error::Unavailable(_) | Error::Stopped
                );
                self.is_interrupted.fetch_or(is_break, Ordering::Relaxed);
                return Err(error);
            }
        };
        self.record(url, ask, answer).await
    }

    /// The answer from before the look was interrupted.
    async fn known(&self, url: &Url, ask: Ask<'_>) -> Result<Option<Answer>, Error> {
        let Some(journal) = &self.journal else {
            return Ok(None);
        };
        // A journal may hold thousands of answers, and none of them waits for the network.
        if self.work.stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        let Some((line, body)) = journal.answer(url.as_str(), ask.tag).await else {
            return Ok(None);
        };
        let (Ok(status), Ok(url)) = (StatusCode::from_u16(line.status), Url::parse(&line.from))
        else {
            return Ok(None);
        };
        // Counted like a new one: the limits of a look do not grow with its interruptions.
        self.count(body.len() as u64)?;
        fits(body.len() as u64, ask, &url)?;
        let headers = line.headers.iter().filter_map(|(name, value)| {
            let name = HeaderName::try_from(name.as_str()).ok()?;
            Some((name, HeaderValue::try_from(value.as_str()).ok()?))
        });
        Ok(Some(Answer {
            status,
            headers: headers.collect(),
            body,
            url,
        }))
    }

    /// Records an answer for the case that the look is interrupted. 404 and 410 are not recorded:
    /// another token may see more.
    async fn record(&self, url: &Url, ask: Ask<'_>, answer: Answer) -> Result<Answer, Error> {
        let Some(journal) = self.journal.as_ref().filter(|_| !answer.is_missing()) else {
            return Ok(answer);
        };
        let mut from = answer.url.clone();
        from.set_query(None);
        let mut line = Line::new(url.as_str(), ask.tag, answer.status.as_u16(), from.as_str());
        // The headers that `Answer` reads.
        for name in [ETAG, LINK] {
            for value in answer.headers.get_all(&name) {
                if let Ok(value) = value.to_str() {
                    line.headers.push((name.to_string(), value.to_owned()));
                }
            }
        }
        let body = journal.add(line, answer.body).await?;
        Ok(Answer { body, ..answer })
    }

    async fn asked(&self, url: &Url, ask: Ask<'_>) -> Result<Answer, Error> {
        let got = timeout_at(self.until, self.once(url, ask));
        let stopped = std::pin::pin!(self.work.stop.cancelled());
        match select(stopped, std::pin::pin!(got)).await {
            Either::Left(_) => Err(Error::Stopped),
            Either::Right((Ok(got), _)) => got,
            Either::Right((Err(_), _)) => {
                let seconds = self.work.limits.time.as_secs();
                let url = redacted(url);
                let message =
                    format!("{url} was not done after {seconds} seconds, which is the limit");
                Err(Error::Unavailable(message))
            }
        }
    }

    async fn once(&self, url: &Url, ask: Ask<'_>) -> Result<Answer, Error> {
        let mut headers = HeaderMap::new();
        let accept = ask.accept.unwrap_or("application/json");
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(tag) = ask.tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
            headers.insert(IF_NONE_MATCH, tag);
        }
        let is_home = url.origin() == self.web.base.origin();
        let credential = self.web.credential.as_ref().filter(|_| is_home);
        let silence = self.work.limits.silence;
        let silent = || {
            let seconds = silence.as_secs_f32();
            Error::Unavailable(format!(
                "{} sent nothing for {seconds} seconds",
                redacted(url)
            ))
        };
        let client = self.web.client.following(self.work.limits.redirects);
        let sent = timeout(silence, client.get(url, &headers, credential)).await;
        let sent = sent.map_err(|_| silent())?;
        let egress::Answer {
            mut response,
            url: from,
        } = sent.map_err(|error| failed(url, error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let limit = rate_limit(&headers);
        if let Some(limit) = limit {
            *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
        }
        check(status, &headers, limit, &from)?;
        let mut body = Vec::new();
        if status.is_success() {
            loop {
                let chunk = timeout(silence, response.chunk())
                    .await
                    .map_err(|_| silent())?;
                let broken =
                    |_| Error::Unavailable(format!("what {} sends broke off", redacted(&from)));
                let Some(chunk) = chunk.map_err(broken)? else {
                    break;
                };
                self.count(chunk.len() as u64)?;
                fits((body.len() + chunk.len()) as u64, ask, &from)?;
                body.extend_from_slice(&chunk);
            }
        }
        Ok(Answer {
            status,
            headers,
            body,
            url: from,
        })
    }

    fn count(&self, bytes: u64) -> Result<(), Error> {
        let max = self.work.limits.bytes;
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > max {
            return Err(Error::TooLarge(format!("it has more than {max} bytes")));
        }
        Ok(())
    }
}

fn fits(bytes: u64, ask: Ask<'_>, from: &Url) -> Result<(), Error> {
    let max = if ask.max == 0 { MAX_JSON } else { ask.max };
    if bytes > max {
        let url = redacted(from);
        return Err(Error::TooLarge(format!("{url} has more than {max} bytes")));
    }
    Ok(())
}

fn failed(url: &Url, error: egress::Error) -> Error {
    match error {
        egress::Error::Refused(refused) => Error::Address {
            address: model::shown(&refused.address, MAX_SHOWN),
            what: refused.what,
        },
        egress::Error::Downgrade => Error::Refused(format!("{}: {error}", redacted(url))),
        _ => Error::Unavailable(format!("{}: {error}", redacted(url))),
    }
}

/// Turns the status of an error into that error.
fn check(
    status: StatusCode,
    headers: &HeaderMap,
    limit: Option<RateLimit>,
    url: &Url,
) -> Result<(), Error> {
    let fine = status.is_success() || status == StatusCode::NOT_MODIFIED;
    if fine || matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
        return Ok(());
    }
    let asked = egress::retry_after(headers);
    let spent = limit.is_some_and(|limit| limit.remaining == 0);
    let is_limit = match status.as_u16() {
        429 => true,
        // GitHub has 403 for both of its limits: one has the header of what is left, the other the
        // one of when to come back.
        403 => spent || asked.is_some(),
        503 => asked.is_some(),
        _ => false,
    };
    if is_limit {
        // By the place's own clock (`Date`): ours may differ by more than the wait.
        let reset = limit.filter(|_| spent).map(|limit| {
            let wait = limit
                .resets_at
                .duration_since(egress::server_time(headers)?);
            Some(Duration::try_from(wait).unwrap_or_default())
        });
        let after = asked.or(reset.flatten()).unwrap_or(DEFAULT_RETRY_DELAY);
        // Never zero: the caller would be back at once.
        let after = after.clamp(Duration::from_secs(1), egress::MAX_RETRY_DELAY);
        return Err(Error::RateLimited { after, limit });
    }
    let (url, code) = (redacted(url), status.as_u16());
    Err(match code {
        401 => Error::Refused(format!("{url} answers 401: it wants another token")),
        403 => Error::Refused(format!("{url} answers 403: it does not let the caller in")),
        400..=499 => Error::Refused(format!("{url} answers {code}")),
        _ => Error::Unavailable(format!("{url} answers {code}")),
    })
}

fn rate_limit(headers: &HeaderMap) -> Option<RateLimit> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let resets = i64::try_from(number("x-ratelimit-reset")?).ok()?;
    Some(RateLimit {
        remaining: number("x-ratelimit-remaining")?,
        limit: number("x-ratelimit-limit")?,
        resets_at: Timestamp::from_second(resets).ok()?,
    })
}
