//! Host and origin checks: the names that this server answers to, and the pages that may call it.
//!
//! A browser runs the code of any page, and lets it call servers that only the
//! browser's machine can reach. Two checks keep such a page out, for everything
//! that a browser can send:
//!
//! * **Host.** A page whose name was made to resolve to this machine (DNS rebinding)
//!   asks for its own name. So the host of a request must be an address, which no
//!   name server can change, `localhost`, or a name that the operator lists. A
//!   request without a host comes from no browser.
//! * **Origin.** A request that names its origin must come from this machine, from
//!   this server, or from an origin that the operator lists. Where nobody signs in, a page of
//!   another port of this machine may only read (`access::Limit`).
//!
//! This is the one place for all faces, so rmcp's own check is off.
//!
//! Not here: the layer that checks (`server`), and callers (`access`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use serde::Deserialize;

use model::{Code, Failure};

/// The settings for browsers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    /// Names of this server, such as `skills.example.com`; with a port, only there.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Origins whose pages may call this server, such as
    /// `https://app.example.com`; `*` is any.
    pub allowed_origins: Vec<AllowedOrigin>,
}

/// A name of this server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AllowedHost {
    name: String,
    port: Option<u16>,
}

/// Pages that may call this server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum AllowedOrigin {
    /// Those of any origin.
    Any,
    /// Those of one.
    One(Origin),
}

/// Scheme, host and port of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl TryFrom<String> for AllowedHost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let authority = text.parse::<Authority>().ok();
        let authority = authority.filter(plain);
        let authority = authority.ok_or_else(|| {
            format!(
                "`{text}` is no host; write a name such as skills.example.com, or a name and a port"
            )
        })?;
        Ok(Self {
            name: name(&authority),
            port: authority.port_u16(),
        })
    }
}

impl std::fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl TryFrom<String> for AllowedOrigin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        Origin::parse(&text).map(Self::One).ok_or_else(|| {
            format!(
                "`{text}` is no origin; write one such as https://app.example.com, or `*` for any"
            )
        })
    }
}

/// A host, and a port that is one; no user.
fn plain(authority: &Authority) -> bool {
    // With a user in front the host is no prefix of the whole, so such a text is refused here.
    let rest = authority.as_str().strip_prefix(authority.host());
    let port = match rest {
        Some("") => true,
        Some(port) => port
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok()),
        None => false,
    };
    port && !authority.host().is_empty()
}

/// The host as it is compared: without case, without the dot of the root.
fn name(authority: &Authority) -> String {
    let host = authority.host().to_ascii_lowercase();
    host.strip_suffix('.').unwrap_or(&host).to_owned()
}

fn address(host: &str) -> Option<IpAddr> {
    let inside = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    inside.unwrap_or(host).parse().ok()
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let authority: Authority = rest.parse().ok()?;
        let known = ["http", "https"].contains(&scheme);
        (known && plain(&authority)).then(|| Self {
            scheme: scheme.to_owned(),
            host: name(&authority),
            port: authority.port_u16(),
        })
    }

    fn port(&self) -> u16 {
        let usual = if self.scheme == "https" { 443 } else { 80 };
        self.port.unwrap_or(usual)
    }

    /// A page of this machine.
    fn is_local(&self) -> bool {
        self.host == "localhost" || address(&self.host).is_some_and(|address| address.is_loopback())
    }

    /// A page of the server that answers to this host. Behind a proxy that speaks
    /// TLS the scheme is not known here, so a host without a port is any usual one.
    fn is_of(&self, host: &Authority) -> bool {
        let port = host.port_u16().unwrap_or_else(|| self.port());
        let usual = host.port().is_some() || matches!(self.port(), 80 | 443);
        self.host == name(host) && self.port() == port && usual
    }

    fn is(&self, other: &Self) -> bool {
        (&self.scheme, &self.host, self.port()) == (&other.scheme, &other.host, other.port())
    }
}

impl WebConfig {
    /// Lets a request pass, or says why not.
    ///
    /// # Errors
    /// Its host or its origin is not let in.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
        let mut hosts: Vec<Authority> = Vec::new();
        for text in headers.get_all(header::HOST) {
            let host = text.to_str().ok().and_then(|text| text.parse().ok());
            hosts.push(host.ok_or_else(|| host_refused("that is no host"))?);
        }
        // HTTP/2 has it in the URI. Where both say one, both must be right.
        hosts.extend(uri.authority().cloned());
        if let Some(wrong) = hosts.iter().find(|host| !self.knows(host)) {
            return Err(host_refused(wrong.as_str()));
        }
        for text in headers.get_all(header::ORIGIN) {
            let text = text.to_str().unwrap_or("that is no origin");
            let origin = Origin::parse(text);
            if !self.lets_in(origin.as_ref(), &hosts) {
                return Err(origin_refused(text));
            }
        }
        Ok(())
    }

    /// Whether a page sends this request that is neither of this server nor listed: one of
    /// another port of this machine, as `check` lets in no others.
    #[must_use]
    pub fn is_of_other_page(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        if origins.peek().is_none() {
            return false;
        }
        let named = headers.get_all(header::HOST).iter();
        let named = named.filter_map(|host| host.to_str().ok()?.parse().ok());
        let hosts: Vec<Authority> = named.chain(uri.authority().cloned()).collect();
        origins.any(|text| {
            let origin = text.to_str().ok().and_then(Origin::parse);
            let is_own = |origin: &Origin| hosts.iter().any(|host| origin.is_of(host));
            !origin.as_ref().is_some_and(is_own) && !self.lists(origin.as_ref())
        })
    }

    fn knows(&self, host: &Authority) -> bool {
        let name = name(host);
        let listed = |known: &AllowedHost| {
            known.name == name && known.port.is_none_or(|port| host.port_u16() == Some(port))
        };
        // DNS rebinding needs a name: nobody can make an address resolve to another one.
        let own = name == "localhost" || address(&name).is_some();
        plain(host) && (own || self.allowed_hosts.iter().any(listed))
    }

    /// An origin that is none (`null`: a page in a sandbox, a file) is let in only
    /// where any is.
    fn lets_in(&self, origin: Option<&Origin>, hosts: &[Authority]) -> bool {
        let own =
            |origin: &Origin| origin.is_local() || hosts.iter().any(|host| origin.is_of(host));
        origin.is_some_and(own) || self.lists(origin)
    }

    fn lists(&self, origin: Option<&Origin>) -> bool {
        let is_listed = |known: &AllowedOrigin| match known {
            AllowedOrigin::Any => true,
            AllowedOrigin::One(known) => origin.is_some_and(|origin| origin.is(known)),
        };
        self.allowed_origins.iter().any(is_listed)
    }
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

fn host_refused(host: &str) -> Failure {
    Failure::new(
        Code::HostRefused,
        format!("This server does not answer to the host {}", short(host)),
    )
    .suggest("Call it by its address, or ask the operator to list the name under web.allowed_hosts")
}

fn origin_refused(origin: &str) -> Failure {
    Failure::new(
        Code::OriginRefused,
        format!(
            "Pages of the origin {} may not call this server",
            short(origin)
        ),
    )
    .suggest("Ask the operator to list the origin under web.allowed_origins")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(hosts: &[&str], origins: &[&str]) -> WebConfig {
        let host = |text: &&str| AllowedHost::try_from((*text).to_owned()).expect("a host");
        let origin = |text: &&str| AllowedOrigin::try_from((*text).to_owned()).expect("an origin");
        WebConfig {
            allowed_hosts: hosts.iter().map(host).collect(),
            allowed_origins: origins.iter().map(origin).collect(),
        }
    }

    /// What a request with these headers is refused with.
    fn asked(web: &WebConfig, uri: &str, headers: &[(&str, &str)]) -> Option<Code> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        let uri = uri.parse().expect("a URI");
        web.check(&uri, &map).err().map(|failure| failure.code)
    }

    #[test]
    fn a_host_is_an_address_or_localhost_or_listed() {
        let web = web(&["Skills.Example.com", "other.example:8443"], &[]);
        for fine in [
            "127.0.0.1",
            "10.0.0.7:50051",
            "[::1]:50051",
            "localhost",
            "LOCALHOST:1",
            "localhost.:80",
            "skills.example.com:50051",
            "SKILLS.example.com.",
            "other.example:8443",
        ] {
            assert_eq!(asked(&web, "/", &[("host", fine)]), None, "{fine}");
            let uri = format!("http://{fine}/");
            assert_eq!(asked(&web, &uri, &[]), None, "{fine}");
        }
        for bad in [
            "evil.example",
            "skills.example.com.evil.example",
            "xskills.example.com",
            "127.0.0.1.evil.example",
            "127.1",
            "localhost.evil.example",
            "other.example",
            "other.example:1",
            "user@localhost",
            "localhost:99999",
            "a b",
            "",
        ] {
            let refused = Some(Code::HostRefused);
            assert_eq!(asked(&web, "/", &[("host", bad)]), refused, "{bad}");
        }
    }

    #[test]
    fn every_place_that_names_a_host_must_be_right() {
        let web = web(&[], &[]);
        let both = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(asked(&web, "/", &both), Some(Code::HostRefused));
        let authority = asked(&web, "http://evil.example/", &[("host", "localhost")]);
        assert_eq!(authority, Some(Code::HostRefused));
        assert_eq!(asked(&web, "/", &[]), None, "HTTP/1.0 has no host");
    }

    #[test]
    fn an_origin_is_of_this_machine_or_this_server_or_listed() {
        let web = web(
            &["skills.example.com"],
            &["https://app.example.com", "http://dev.example:3000"],
        );
        for (host, origin) in [
            ("localhost:50051", "http://localhost:3000"),
            ("localhost:50051", "https://127.9.9.9"),
            ("localhost:50051", "http://[::1]:8080"),
            ("10.0.0.7:50051", "http://10.0.0.7:50051"),
            ("skills.example.com", "https://skills.example.com"),
            ("skills.example.com:443", "https://skills.example.com"),
            ("localhost", "https://app.example.com"),
            ("localhost", "https://app.example.com:443"),
            ("localhost", "http://dev.example:3000"),
        ] {
            let headers = [("host", host), ("origin", origin)];
            assert_eq!(asked(&web, "/", &headers), None, "{host} {origin}");
        }
        for (host, origin) in [
            ("localhost", "https://evil.example"),
            ("localhost", "http://app.example.com"),
            ("localhost", "http://app.example.com:443"),
            ("localhost", "http://user@localhost"),
            ("localhost", "http://10.0.0.7"),
            ("localhost", "https://app.example.com:8443"),
            ("localhost", "http://dev.example"),
            ("localhost", "http://localhost.evil.example"),
            ("localhost", "null"),
            ("localhost", "file://"),
            ("localhost", "chrome-extension://abc"),
            ("localhost", ""),
            ("10.0.0.7:50051", "http://10.0.0.7:8080"),
            ("10.0.0.7:50051", "http://10.0.0.8:50051"),
            ("skills.example.com", "https://skills.example.com:8443"),
        ] {
            let headers = [("host", host), ("origin", origin)];
            let refused = Some(Code::OriginRefused);
            assert_eq!(asked(&web, "/", &headers), refused, "{host} {origin}");
        }
        let two = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "https://evil.example"),
        ];
        assert_eq!(asked(&web, "/", &two), Some(Code::OriginRefused));
    }

    #[test]
    fn any_origin_is_any_origin() {
        let web = web(&[], &["*"]);
        for origin in ["https://evil.example", "null", "chrome-extension://abc"] {
            let headers = [("host", "localhost"), ("origin", origin)];
            assert_eq!(asked(&web, "/", &headers), None, "{origin}");
        }
    }

    #[test]
    fn what_is_no_host_and_no_origin_is_not_listed() {
        for bad in [
            "",
            ":80",
            "https://a.example",
            "a.example/x",
            "u@a.example",
            "a:x",
            "a:99999",
        ] {
            assert!(AllowedHost::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        for bad in [
            "",
            "a.example",
            "https://a.example/",
            "ftp://a.example",
            "https://",
            "https://:443",
            "https://u@a.example",
            "https://a.example:99999",
            "null",
        ] {
            assert!(AllowedOrigin::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_said_of_a_stranger_is_short() {
        let refused = |header, value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost".parse().expect("a host"));
            headers.insert(header, value.parse().expect("a value"));
            let failure = web(&[], &[]).check(&Uri::from_static("/"), &headers);
            failure.expect_err("a stranger").message
        };
        let (name, shown) = ("a".repeat(300), "a".repeat(200));
        assert_eq!(
            refused(header::HOST, name.clone()),
            format!("This server does not answer to the host {shown}")
        );
        assert_eq!(
            refused(header::ORIGIN, name),
            format!("Pages of the origin {shown} may not call this server")
        );
    }

    #[test]
    fn a_listed_host_is_told_in_lower_case_and_with_its_port() {
        let hosts = web(&["Skills.Example.com.", "other.example:8443"], &[]).allowed_hosts;
        let told: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["skills.example.com", "other.example:8443"]);
    }

    #[test]
    fn a_setting_that_nobody_knows_is_an_error() {
        let read = serde_json::from_str::<WebConfig>;
        let config = read(r#"{"allowed_hosts": ["a.example"], "allowed_origins": ["*"]}"#);
        assert_eq!(config.expect("a config"), web(&["a.example"], &["*"]));
        for wrong in [r#"{"allowed_host": []}"#, r#"{"allowed_hosts": ["a b"]}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
