//! Requests to the one Jira that is configured, and their answers, bounded.

use std::error::Error;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::{Response, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::ClientError;
use super::config::{Connection, Site};
use super::error::{Trouble, messages};

/// Bytes that an answer may have.
pub(super) const MAX_BODY: usize = 4 * 1024 * 1024;
/// Attempts of one request.
const ATTEMPTS: u32 = 3;
/// Shorter secrets are not looked for in texts: they would be found in words.
const MIN_SECRET: usize = 8;

/// A client of the Jira; it reuses connections. Never prints its token.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    site: Site,
    is_cloud: bool,
    authorization: HeaderValue,
    /// Secrets that must not be in any text.
    secrets: Vec<SecretString>,
    request: Duration,
    pause: Duration,
}

impl Client {
    pub(super) fn new(connection: Connection) -> Result<Self, ClientError> {
        egress::provide_tls();
        let token = connection.token.expose_secret();
        let mut secrets = vec![connection.token.clone()];
        let mut authorization = match &connection.user {
            Some(user) => {
                let pair = STANDARD.encode(format!("{user}:{token}"));
                // The pair is as good as the token, and looks like neither.
                secrets.push(pair.clone().into());
                HeaderValue::try_from(format!("Basic {pair}"))
            }
            None => HeaderValue::try_from(format!("Bearer {token}")),
        }
        .map_err(|_| ClientError("the token has characters that no token has".to_owned()))?;
        authorization.set_sensitive(true);
        let http = reqwest::Client::builder()
            .user_agent(concat!("repertoire/", env!("CARGO_PKG_VERSION")))
            // A redirect would take the token to wherever it leads.
            .redirect(redirect::Policy::none())
            // `ask` does the retries itself, to count them and to keep to the deadline. A proxy
            // from the environment would be a host that the operator did not name.
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(connection.connect)
            .build()
            .map_err(|error| ClientError(innermost(&error)))?;
        Ok(Self {
            http,
            is_cloud: connection.user.is_some(),
            site: connection.site,
            authorization,
            secrets,
            request: connection.request,
            pause: connection.pause,
        })
    }

    pub(super) fn is_cloud(&self) -> bool {
        self.is_cloud
    }

    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    /// The platform's API: version 3 of Cloud has documents, 2 of Data Center texts.
    pub(super) fn api(&self) -> &'static str {
        if self.is_cloud {
            "rest/api/3"
        } else {
            "rest/api/2"
        }
    }

    /// Requests something below the site, and repeats that where Jira asks for it and
    /// there is time.
    pub(super) async fn get(
        &self,
        path: &str,
        segments: &[&str],
        query: &[(&str, &str)],
        until: Instant,
    ) -> Result<Value, Trouble> {
        let mut url = self.site.join(path, segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.ask(&url, None, until).await
    }

    /// A question that is too long for an address. Jira knows no other use of these
    /// paths, so nothing can change.
    pub(super) async fn search(
        &self,
        path: &str,
        segments: &[&str],
        body: &Value,
        until: Instant,
    ) -> Result<Value, Trouble> {
        let url = self.site.join(path, segments);
        self.ask(&url, Some(body), until).await
    }

    async fn ask(&self, url: &Url, body: Option<&Value>, until: Instant) -> Result<Value, Trouble> {
        let mut pause = self.pause;
        let mut attempt = 1;
        loop {
            let end = until.min(Instant::now() + self.request);
            let trouble = match timeout_at(end, self.once(url, body)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(trouble)) => trouble,
                Err(_) => Trouble::Timeout,
            };
            // Waiting beyond the deadline would replace this failure with a timeout that explains
            // nothing.
            let wait = trouble.wait(pause).filter(|wait| {
                attempt < ATTEMPTS && *wait < until.saturating_duration_since(Instant::now())
            });
            // Without the query, which reveals what somebody looks for.
            tracing::debug!(path = url.path(), attempt, ?wait, %trouble, "Jira did not answer the question");
            let Some(wait) = wait else {
                return Err(trouble);
            };
            sleep(wait).await;
            attempt += 1;
            pause *= 2;
        }
    }

    async fn once(&self, url: &Url, body: Option<&Value>) -> Result<Value, Trouble> {
        let request = match body {
            None => self.http.get(url.clone()),
            Some(body) => self
                .http
                .post(url.clone())
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string()),
        };
        let response = request
            .header(AUTHORIZATION, self.authorization.clone())
            .header(ACCEPT, "application/json")
            .send()
            .await
            .map_err(|error| trouble(&error.without_url()))?;
        let status = response.status();
        let headers = response.headers().clone();
        if is_signed_out(status, &headers) {
            return Err(Trouble::SignedOut);
        }
        if status.is_redirection() {
            return Err(Trouble::Redirect(self.elsewhere(&headers)));
        }
        let body = read(response).await;
        if !status.is_success() {
            let body = self.value(&body.unwrap_or_default());
            return Err(Trouble::Status {
                status,
                messages: messages(&body.unwrap_or_default()),
                retry_after: egress::retry_after(&headers),
                captcha: has(&headers, "x-authentication-denied-reason", "CAPTCHA")
                    || has(&headers, "x-seraph-loginreason", "AUTHENTICATION_DENIED"),
            });
        }
        self.value(&body?).map_err(|_| Trouble::NotJson {
            page: has(&headers, CONTENT_TYPE.as_str(), "html"),
        })
    }

    /// Parses an answer of Jira. It may quote the request, and JSON can write one letter
    /// in several ways (Jira's own `=` is `\u003d`), so secrets are removed from the parsed
    /// value and not from the bytes.
    fn value(&self, bytes: &[u8]) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::from_str(&String::from_utf8_lossy(bytes))?;
        self.take_secrets_out(&mut value);
        Ok(value)
    }

    fn take_secrets_out(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.take_secrets_out_of_text(text),
            Value::Array(values) => {
                for value in values {
                    self.take_secrets_out(value);
                }
            }
            Value::Object(map) => {
                // Names of members are Jira's texts as well, so they may quote a secret too.
                let members = std::mem::take(map).into_iter();
                map.extend(members.map(|(mut name, mut value)| {
                    self.take_secrets_out_of_text(&mut name);
                    self.take_secrets_out(&mut value);
                    (name, value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn take_secrets_out_of_text(&self, text: &mut String) {
        for secret in &self.secrets {
            let secret = secret.expose_secret();
            if secret.len() >= MIN_SECRET && text.contains(secret) {
                *text = text.replace(secret, "(removed)");
            }
        }
    }

    /// The host that a redirect leads to; its path may hold what it should not.
    fn elsewhere(&self, headers: &HeaderMap) -> Option<String> {
        let location = headers.get(LOCATION)?.to_str().ok()?;
        let url = self.site.join("", &[]).join(location).ok()?;
        url.host_str().map(str::to_owned)
    }
}

/// Cloud answers some questions as if nobody had signed in where the token is
/// refused: with 200, and nothing found. Only this header shows it.
fn is_signed_out(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::UNAUTHORIZED
        || has(headers, "x-seraph-loginreason", "AUTHENTICATED_FAILED")
}

fn has(headers: &HeaderMap, name: &str, part: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.contains(part)))
}

/// The bytes of a body, unpacked; they are counted as they come.
async fn read(mut response: Response) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| trouble(&error.without_url()))?
    {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Trouble::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Classifies a failed request. Texts of the underlying errors are not passed on, except
/// those of TLS, which name certificates.
fn trouble(error: &reqwest::Error) -> Trouble {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    let mut system = None;
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Trouble::Tls(tls.to_string());
        }
        next = error.source();
        if let Some(error) = error.downcast_ref::<io::Error>() {
            system = Some(error.kind());
            // The error that it is made of is none of its sources.
            if let Some(inner) = error.get_ref() {
                next = Some(inner);
            }
        }
    }
    if error.is_timeout() {
        return Trouble::Timeout;
    }
    Trouble::Unreachable(system.filter(|kind| *kind != io::ErrorKind::Other))
}

/// The cause of causes, in its words.
fn innermost(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
