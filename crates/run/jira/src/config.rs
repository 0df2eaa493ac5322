//! The address of Jira and the account, as the operator set them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use model::SkillId;

/// Settings of the tools.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The Jira. None: the tools say that there is none.
    pub connection: Option<Connection>,
    /// Skills that may use it in addition to the bundled one.
    pub skills: Vec<SkillId>,
}

/// A Jira, and an account of it.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Its address.
    pub site: Site,
    /// Cloud: the account's email address. None: Data Center.
    pub user: Option<String>,
    /// API token of Cloud, or personal access token of Data Center.
    pub token: SecretString,
    /// How long a connection may take to be made.
    pub connect: Duration,
    /// How long one request may take, its answer included.
    pub request: Duration,
    /// Delay before the first repetition where Jira names none; doubled for each that
    /// follows.
    pub pause: Duration,
}

impl Connection {
    /// A connection with the usual times.
    #[must_use]
    pub fn new(site: Site, user: Option<String>, token: SecretString) -> Self {
        Self {
            site,
            user,
            token,
            connect: Duration::from_secs(5),
            request: Duration::from_secs(20),
            pause: Duration::from_secs(1),
        }
    }
}

/// The address of a Jira: `https`, or `http` on this machine, with nothing in it
/// that is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site(Url);

/// It is no address of a Jira.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// It is no address.
    #[error("it is not an address such as https://acme.atlassian.net")]
    Malformed,
    /// Another protocol.
    #[error("its protocol is neither https nor http")]
    Protocol,
    /// In the clear, to another machine.
    #[error(
        "http would expose the token to the network: use https (http is for this machine only)"
    )]
    InTheClear,
    /// A name or a password before the host.
    #[error("it has a user or a password in it: use `user` and `token`")]
    UserInfo,
    /// A query or a fragment.
    #[error("it has a query or a fragment")]
    Query,
}

impl Site {
    /// The address of something below it. Segments are escaped.
    #[expect(clippy::expect_used, reason = "addresses of HTTP have a path")]
    pub(super) fn join(&self, path: &str, segments: &[&str]) -> Url {
        let mut url = self.0.clone();
        url.path_segments_mut()
            .expect("a path")
            .pop_if_empty()
            .extend(path.split('/').filter(|part| !part.is_empty()))
            .extend(segments);
        url
    }

    /// Its host, for messages.
    #[expect(clippy::expect_used, reason = "addresses of HTTP have a host")]
    pub(super) fn host(&self) -> &str {
        self.0.host_str().expect("a host")
    }

    /// Where people read an issue; unknown where Jira is called through the
    /// gateway of Atlassian.
    pub(super) fn browse(&self, key: &str) -> Option<String> {
        (self.host() != "api.atlassian.com").then(|| self.join("browse", &[key]).to_string())
    }
}

impl FromStr for Site {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<Self, SiteError> {
        let url = Url::parse(text.trim()).map_err(|_| SiteError::Malformed)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(SiteError::Protocol);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SiteError::UserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(SiteError::Query);
        }
        let site = Self(url);
        if site.0.scheme() == "http" && !is_this_machine(site.host()) {
            return Err(SiteError::InTheClear);
        }
        Ok(site)
    }
}

/// `localhost` by its name, which is this machine's everywhere, or an address of
/// the loopback.
fn is_this_machine(host: &str) -> bool {
    // `Url` keeps the brackets of an IPv6 address.
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_https_or_on_this_machine_and_holds_no_secret() {
        let read = |text: &str| text.parse::<Site>().map(|site| site.to_string());
        for (text, site) in [
            ("https://acme.atlassian.net/", "https://acme.atlassian.net"),
            ("https://example.org/jira", "https://example.org/jira"),
            ("http://localhost:2990/jira/", "http://localhost:2990/jira"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(read(text), Ok(site.to_owned()));
        }
        for (text, error) in [
            ("acme.atlassian.net", SiteError::Malformed),
            ("ftp://acme.example", SiteError::Protocol),
            ("http://acme.example", SiteError::InTheClear),
            ("http://127.0.0.1.acme.example", SiteError::InTheClear),
            ("https://me:secret@acme.example", SiteError::UserInfo),
            ("https://acme.example/?token=x", SiteError::Query),
            ("https://acme.example/#x", SiteError::Query),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
    }

    #[test]
    fn what_is_below_a_site_keeps_its_path_and_is_escaped() {
        let site: Site = "https://example.org/jira/".parse().expect("a site");
        assert_eq!(
            site.join("rest/api/2/issue", &["A/../B?c"]).as_str(),
            "https://example.org/jira/rest/api/2/issue/A%2F..%2FB%3Fc"
        );
        assert_eq!(
            site.browse("ABC-1").as_deref(),
            Some("https://example.org/jira/browse/ABC-1")
        );
    }
}
