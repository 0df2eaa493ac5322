//! The server that `--server` names: with TLS where its address says `https`, never without,
//! and with the caller's headers.
//!
//! A token goes over TLS, or to this machine alone: whoever is on the way reads it otherwise.

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
/// Names the token. There is no option of it: all of a machine may read what a command was
/// started with.
const TOKEN: &str = "REPERTOIRE_TOKEN";
/// What to do where a server ends TLS, or the first call over it.
const SHOW_ONE: &str =
    "Where the server asks for certificates, show one: --cert FILE --key FILE, in PEM";
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

/// `NAME: VALUE`, as it stands in a request.
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
    /// The server that was named; none: none was.
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
            // Else it is in whatever prints a request.
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // Refused, not warned of: a warning is read when the token has been sent.
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
            let failed = Failed::new(
                Code::ServerUnreachable,
                format!("no server answers at {} ({cause})", self.url),
            );
            // What rustls says of a certificate that signs itself, unless it was made with care.
            if cause.contains("CaUsedAsEndEntity") {
                return failed.hint("the server's certificate is that of an authority: make one with `basicConstraints=CA:FALSE`, signed by an authority or self-signed");
            }
            if cause.contains("certificate") {
                let hint = "name the authority that signed its certificate: --ca FILE, in PEM";
                return failed.hint(hint);
            }
            // What rustls says of a server that ends TLS.
            if cause.contains("received fatal alert") {
                return failed.hint(SHOW_ONE);
            }
            // What rustls says of an answer that is no TLS.
            if cause.contains("InvalidContentType") {
                return failed.hint("the server has no TLS there: write http:// in its address");
            }
            failed.hint("start one with `repertoire serve`, or name another with --server")
        })?;
        // A peer that ends the first call may be one that has TLS, or wants a certificate.
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
        // It is not repeated: a log may have it.
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

/// What is sent there stays on this machine.
fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// An error and what is below it, each said once.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !words.iter().any(|known: &String| known.contains(&text)) {
            words.push(text);
        }
        next = error.source();
    }
    words.join(": ")
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
