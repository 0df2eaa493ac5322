//! HTTP for gix, with the bounds that its own client does not have: silence, redirects, bytes,
//! and the addresses that may be called.

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use egress::Egress;
use gix::protocol::transport::client::AuthenticationRequired;
use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use reqwest::{Method, Response, StatusCode};
use tokio::runtime::Runtime;
use url::Url;

use super::Error;
use super::exchange::{Body, Exchange, Headers, PostBody, Shared, halves};
use super::guard::Guard;

/// How often bounds are checked while the server is waited for.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// When to come back where the server names no time.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Characters of an error of HTTP, or of an address, in ours.
const MAX_ERROR_CHARS: usize = 200;

// The client of gix follows fifty redirects to any address, and would send the token to the
// server that a redirect leads to. So its protocol has this transport.
/// A client of one server at a time.
pub(super) struct Client {
    link: Link,
    redirected: Option<String>,
    /// Of the origin that was called last.
    last: Option<(String, reqwest::Client)>,
}

/// What every request needs.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) guard: Arc<Guard>,
    egress: Egress,
    runtime: Rc<Runtime>,
}

impl Client {
    pub(super) fn new(guard: Arc<Guard>, egress: Egress) -> Result<Self, Error> {
        egress::provide_tls();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::Unavailable(format!("no request can be made: {error}")))?;
        Ok(Self {
            link: Link {
                guard,
                egress,
                runtime: Rc::new(runtime),
            },
            redirected: None,
            last: None,
        })
    }

    /// A client that calls only addresses of the host that are permitted.
    fn client(&mut self, url: &Url) -> Result<reqwest::Client, Error> {
        let origin = url.origin().ascii_serialization();
        if let Some((last, client)) = &self.last
            && *last == origin
        {
            return Ok(client.clone());
        }
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        let addresses = self.link.egress.resolve(host, port)?;
        let client = reqwest::Client::builder()
            .user_agent(concat!("git/repertoire-", env!("CARGO_PKG_VERSION")))
            // Followed here, since each of them leads to an address to check.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // A proxy would resolve the name itself, to an address that was not checked.
            .no_proxy()
            .connect_timeout(self.link.guard.limits.silence)
            // The addresses that were checked: a name that is resolved again may lead elsewhere
            // by then (DNS rebinding).
            .resolve_to_addrs(host, &addresses)
            .build()
            .map_err(|error| Error::Unavailable(words(&error)))?;
        self.last = Some((origin, client.clone()));
        Ok(client)
    }

    /// Sends a request, and follows redirects.
    fn get_following(
        &mut self,
        url: &str,
        tail: &str,
        headers: &HeaderMap,
    ) -> Result<Response, Error> {
        let mut url = parsed(url)?;
        let mut headers = headers.clone();
        for _ in 0..=self.link.guard.limits.redirects {
            let client = self.client(&url)?;
            let request = client
                .request(Method::GET, url.clone())
                .headers(headers.clone());
            let response = self.link.send(request)?;
            if !is_redirect(response.status()) {
                let now = url.as_str();
                self.redirected = now.strip_suffix(tail).map(str::to_owned);
                return Ok(response);
            }
            let next = redirect(&url, &response, tail)?;
            // By origin and not by host: another port may be another one's program.
            if next.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
            }
            url = next;
        }
        Err(Error::Refused(format!(
            "the server redirects more than {} times",
            self.link.guard.limits.redirects
        )))
    }

    fn shared(&self, exchange: Exchange, error: Option<io::Error>) -> Rc<Shared> {
        Rc::new(Shared {
            link: self.link.clone(),
            exchange: RefCell::new(exchange),
            error: RefCell::new(error),
        })
    }

    fn failed(&self, error: Error) -> gix::Error {
        gix::Error::from_error(self.link.guard.fail(error))
    }
}

fn parsed(url: &str) -> Result<Url, Error> {
    Url::parse(url).map_err(|error| Error::Invalid(format!("it is no URL: {error}")))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect, if it may be followed.
fn redirect(from: &Url, response: &Response, tail: &str) -> Result<Url, Error> {
    let location = response.headers().get(LOCATION);
    let next = location
        .and_then(|location| location.to_str().ok())
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| Error::Unavailable("the server redirects to nowhere".to_owned()))?;
    let mut shown = next.clone();
    shown.set_query(None);
    // Both fail for URLs without a host, which are refused next.
    shown.set_username("").ok();
    shown.set_password(None).ok();
    let refused = |why: &str| {
        let shown = model::shown(shown.as_str(), MAX_ERROR_CHARS);
        Error::Refused(format!("the server redirects to `{shown}`: {why}"))
    };
    match (from.scheme(), next.scheme()) {
        ("http" | "https", "https") | ("http", "http") => {}
        _ => {
            return Err(refused(
                "from https only https is followed, and nothing else from http",
            ));
        }
    }
    if !next.username().is_empty() || next.password().is_some() {
        return Err(refused("it has credentials in it"));
    }
    // gix takes the tail off to get the base of all further requests.
    if !next.as_str().ends_with(tail) {
        return Err(refused("that is no repository; take the URL where it is"));
    }
    Ok(next)
}

/// The innermost cause: those around it only say that a request failed.
fn words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    format!(
        "the server cannot be reached: {}",
        model::shown(&cause.to_string(), MAX_ERROR_CHARS)
    )
}

/// The error of a status that is no success.
pub(super) fn check_status(response: &Response) -> Result<(), Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let shown = status.as_u16();
    let asks_to_wait = response.headers().contains_key(RETRY_AFTER);
    Err(match shown {
        // GitHub has 403 for its limits too, and proxies have 503.
        403 | 429 | 503 if shown == 429 || asks_to_wait => Error::RateLimited {
            after: egress::retry_after(response.headers()).unwrap_or(DEFAULT_RETRY_DELAY),
        },
        403 => Error::Refused("the server does not let the caller in (403)".to_owned()),
        404 | 410 => Error::Refused(format!(
            "the server has no such repository, or not for the caller ({shown})"
        )),
        300..=399 => Error::Refused(format!("the server redirects where it may not ({shown})")),
        400..=499 => Error::Refused(format!("the server refused the request ({shown})")),
        _ => Error::Unavailable(format!("the server answered {shown}")),
    })
}

impl Link {
    /// Waits for the server, within all bounds.
    pub(super) fn wait<T>(
        &self,
        work: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, Error> {
        self.guard.wait();
        self.runtime.block_on(async {
            let mut work = pin!(work);
            // In slices, as the flag of the caller wakes nobody.
            loop {
                if let Ok(done) = tokio::time::timeout(CHECK_INTERVAL, &mut work).await {
                    return done.map_err(|error| Error::Unavailable(words(&error)));
                }
                self.guard.check()?;
                self.guard.check_silence()?;
            }
        })
    }

    pub(super) fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Error> {
        self.guard.check()?;
        let response = self.wait(request.send())?;
        self.guard
            .receive(0)
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(response)
    }
}

fn header_map(lines: impl IntoIterator<Item = impl AsRef<str>>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.as_ref().split_once(':') else {
            continue;
        };
        let name = HeaderName::try_from(name.trim());
        let value = HeaderValue::try_from(value.trim());
        if let (Ok(name), Ok(mut value)) = (name, value) {
            // Not in the debug output of a request.
            value.set_sensitive(name == AUTHORIZATION);
            headers.append(name, value);
        }
    }
    headers
}

impl Http for Client {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = PostBody;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Headers, Body>> {
        let tail = url.strip_prefix(base_url).unwrap_or_default();
        let headers = header_map(headers);
        let response = self
            .get_following(url, tail, &headers)
            .map_err(|error| self.failed(error))?;
        // In the form of gix's own client, by which its protocol asks for a credential and tries
        // again.
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let asked = AuthenticationRequired {
                www_authenticate: challenges.map(|value| value.as_bytes().into()).collect(),
            };
            let error = io::Error::new(io::ErrorKind::PermissionDenied, asked);
            let (headers, body) = halves(&self.shared(Exchange::Over, Some(error)));
            return Ok(GetResponse { headers, body });
        }
        check_status(&response).map_err(|error| self.failed(error))?;
        // A page of HTML, or the "dumb" protocol of plain files, which gix does not speak.
        let is_smart = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/x-git-"));
        if !is_smart {
            return Err(self.failed(Error::Refused(
                "what is at the URL is no repository that can be fetched".to_owned(),
            )));
        }
        let (headers, body) = halves(&self.shared(Exchange::Answered(response), None));
        Ok(GetResponse { headers, body })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _kind: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Headers, Body, PostBody>> {
        let prepared = parsed(url).and_then(|url| {
            let client = self.client(&url)?;
            Ok(client.request(Method::POST, url))
        });
        let request = prepared.map_err(|error| self.failed(error))?;
        let waiting = Exchange::Waiting {
            request: request.headers(header_map(headers)),
            body: Vec::new(),
        };
        let shared = self.shared(waiting, None);
        let (headers, body) = halves(&shared);
        Ok(PostResponse {
            post_body: PostBody(shared),
            headers,
            body,
        })
    }

    fn configure(&mut self, _config: &dyn Any) -> gix::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.redirected.clone()
    }
}
