//! The server that `--server` names: with TLS where its address is `https`, without exception,
//! and with the caller's headers.
//!
//! A token goes over TLS, or to this machine alone: on the way it could be read otherwise.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::args::Global;
use super::connect::transport;
use super::output::Failed;
use gateway::Transport;
use model::Code;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The variable of the token. There is no option for it: every user of a machine can read the
/// command lines of its processes.
const TOKEN: &str = "REPERTOIRE_TOKEN";
/// The suggestion where a server ends the handshake, or the first call after it.
const SHOW_ONE: &str =
    "Where the server asks for certificates, show one: --cert FILE --key FILE, in PEM";
/// Suggestions by a part of the message of rustls, whose errors tonic passes on as text. The
/// first that matches.
const HINTS: [(&str, &str); 4] = [
    // A certificate that signs itself, as `openssl req -x509` makes it.
    (
        "CaUsedAsEndEntity",
        "the server's certificate is that of an authority: make one with `basicConstraints=CA:FALSE`, signed by an authority or self-signed",
    ),
    (
        "certificate",
        "name the authority that signed its certificate: --ca FILE, in PEM",
    ),
    // The server ended the handshake.
    ("received fatal alert", SHOW_ONE),
    // The answer is no TLS.
    (
        "InvalidContentType",
        "the server has no TLS there: write http:// in its address",
    ),
];
/// Headers that the protocol itself needs.
const RESERVED: [&str; 5] = [
    "host",
    "te",
    "content-type",
    "connection",
    "transfer-encoding",
];

pub(super) struct Remote {
    url: String,
    endpoint: Endpoint,
    headers: HeaderMap,
}

fn invalid(message: String) -> Failed {
    Failed::new(Code::InvalidParameter, message)
}

/// Parses `NAME: VALUE`, as in a request.
pub(super) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("write it as `NAME: VALUE`".to_owned())?;
    let name: HeaderName = name
        .trim()
        .parse()
        .map_err(|_| format!("`{}` is no name of a header", name.trim()))?;
    if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
        return Err(format!("`{name}` is for the protocol to set"));
    }
    let value = HeaderValue::from_str(value.trim())
        .map_err(|_| format!("the value of `{name}` has what no header may have"))?;
    Ok((name, value))
}

impl Remote {
    /// The server that --server names; none: none.
    pub(super) fn new(global: &Global) -> Result<Option<Self>, Failed> {
        let Some(url) = &global.server else {
            if !global.headers.is_empty() {
                let message = "--header is for a server that --server names".to_owned();
                return Err(invalid(message).hint("add --server URL"));
            }
            return Ok(None);
        };
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let uri = address(url)?;
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        let mut headers: HeaderMap = global.headers.iter().cloned().collect();
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| invalid(format!("{TOKEN} has what no token may have")))?;
            // Else `Debug` of a request prints it.
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // Refused, not warned of: a warning is read after the token was sent.
        if !is_secure && headers.contains_key(AUTHORIZATION) && !is_local(&uri) {
            let message = format!("refusing to send a token over plain HTTP to {url}");
            return Err(invalid(message).hint("write https:// where the server has TLS"));
        }
        let mut endpoint = Endpoint::from(uri).connect_timeout(CONNECT_TIMEOUT);
        if is_secure {
            let mut tls = ClientTlsConfig::new().with_native_roots();
            if let Some(path) = &global.ca {
                tls = tls.ca_certificate(Certificate::from_pem(read(path)?));
            }
            match (&global.cert, &global.key) {
                (Some(cert), Some(key)) => {
                    tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
                }
                (None, None) => {}
                _ => {
                    let message = "a certificate is shown with its key".to_owned();
                    return Err(invalid(message).hint("name both: --cert FILE --key FILE"));
                }
            }
            endpoint = endpoint.tls_config(tls).map_err(|error| {
                invalid(format!("TLS for {url}: {}", causes(&error)))
                    .hint("--ca and --cert name files of certificates in PEM, --key that of a key")
            })?;
        }
        Ok(Some(Self {
            url: url.clone(),
            endpoint,
            headers,
        }))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) async fn connect(&self) -> Result<Transport, Failed> {
        let channel = self.endpoint.connect().await.map_err(|error| {
            let cause = causes(&error);
            let hint = HINTS.iter().find(|(sign, _)| cause.contains(sign));
            let hint = hint.map_or(
                "start one with `repertoire serve`, or name another with --server",
                |(_, hint)| hint,
            );
            let message = format!("no server answers at {} ({cause})", self.url);
            Failed::new(Code::ServerUnreachable, message).hint(hint)
        })?;
        // With TLS 1.3 a server refuses a client without a certificate after the handshake, so
        // the first call is the first to notice; the same holds for plain text sent to TLS.
        let first = if self.endpoint.uri().scheme() == Some(&Scheme::HTTPS) {
            SHOW_ONE
        } else {
            "Where the server has TLS, write https:// in its address"
        };
        Ok(transport(channel, self.headers.clone(), Some(first)))
    }
}

/// A file of PEM.
fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(|error| Failed::file(format!("{}: {error}", path.display())))
}

fn address(url: &str) -> Result<Uri, Failed> {
    let hint = "write it as http://HOST:PORT or https://HOST";
    if url.contains('@') {
        // The address is not repeated in the message: that may end up in a log.
        let message = "the address of the server has a user or a password".to_owned();
        return Err(invalid(message)
            .hint(format!(
                "a token goes into {TOKEN}, other words into --header"
            ))
            .hint(hint));
    }
    let wrong =
        |why: &str| invalid(format!("'{url}' is not the address of a server: {why}")).hint(hint);
    let uri: Uri = url.parse().map_err(|error| wrong(&format!("{error}")))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        _ => return Err(wrong("it begins with neither http:// nor https://")),
    }
    Ok(uri)
}

/// Data sent there stays on this machine: no other name than `localhost`, which DNS cannot
/// lead elsewhere.
fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// An error and its causes.
pub(super) fn chain<'error>(
    error: &'error (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'error (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// The messages of an error and its causes.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut messages = Vec::<String>::new();
    for message in chain(error).map(ToString::to_string) {
        // Some errors repeat their cause in their own message.
        if !messages.iter().any(|known| known.contains(&message)) {
            messages.push(message);
        }
    }
    messages.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let (name, value) = header("X-Team:  shops ").expect("a header");
        assert_eq!((name.as_str(), value.as_bytes()), ("x-team", &b"shops"[..]));
        for (text, why) in [
            ("shops", "write it as `NAME: VALUE`"),
            ("a b: c", "`a b` is no name of a header"),
            ("x: a\nb", "the value of `x` has what no header may have"),
            ("Host: other", "`host` is for the protocol to set"),
            (
                "grpc-timeout: 1S",
                "`grpc-timeout` is for the protocol to set",
            ),
        ] {
            assert_eq!(header(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_address_is_of_this_machine_by_its_loopback_alone() {
        let local = |url: &str| is_local(&url.parse().expect("an address"));
        for url in ["http://localhost:1", "http://127.8.9.1", "http://[::1]:1"] {
            assert!(local(url), "{url}");
        }
        for url in [
            "http://localhost.example.com",
            "http://10.0.0.1",
            "http://[::2]",
        ] {
            assert!(!local(url), "{url}");
        }
    }
}
