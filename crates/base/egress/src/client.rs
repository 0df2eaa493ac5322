//! A client of HTTP that calls permitted addresses alone.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use url::Url;

use super::{Egress, Refused};

/// Installs the cryptography of TLS for the whole process, which every client needs. One that is
/// installed already will do.
pub fn provide_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
    }
}

/// The timeouts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The timeout of a connection attempt.
    pub connect: Duration,
    /// How long the other side may be silent.
    pub silence: Duration,
    /// The whole of a request with its answer, a redirect at a time.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            total: Duration::from_secs(15 * 60),
        }
    }
}

/// Finds the addresses of a name.
pub trait Lookup: Send + Sync + fmt::Debug {
    /// The addresses that a name has.
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// Names as the system resolves them.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Lookup for System {
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address, or one that a redirect leads to, may not be called.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Redirects that lead nowhere.
    #[error("more than {0} redirects")]
    Redirects(usize),
    /// A redirect without an address that could be read.
    #[error("a redirect without a location")]
    Nowhere,
    /// A redirect from `https` to `http`.
    #[error("a redirect from https to http")]
    Downgrade,
    /// The request failed. Names no address, as its query may be secret.
    #[error("{}", words(.0))]
    Request(reqwest::Error),
}

/// An answer, after redirects.
#[derive(Debug)]
pub struct Answer {
    /// The answer, its body still to be read.
    pub response: reqwest::Response,
    /// Its address.
    pub url: Url,
}

/// Calls permitted addresses alone. Cheap to clone; connections are pooled.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    egress: Egress,
    redirects: usize,
}

impl Client {
    /// A client that resolves names as the system does, and follows this many redirects.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(egress: Egress, timeouts: Timeouts, redirects: usize) -> Result<Self, Error> {
        Self::with_lookup(egress, timeouts, redirects, Arc::new(System))
    }

    /// A client that resolves names in another way.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn with_lookup(
        egress: Egress,
        timeouts: Timeouts,
        redirects: usize,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, Error> {
        provide_tls();
        let http = reqwest::Client::builder()
            .user_agent(concat!("repertoire/", env!("CARGO_PKG_VERSION")))
            // Followed by `get`, which checks each address and decides what is sent there.
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            // It would show the next server where the redirect came from, query included.
            .referer(false)
            // A proxy would connect for us, to addresses that nobody checked.
            .no_proxy()
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.silence)
            .timeout(timeouts.total)
            .dns_resolver(Arc::new(Checked {
                egress: egress.clone(),
                lookup,
            }))
            .build()
            .map_err(Error::Request)?;
        Ok(Self {
            http,
            egress,
            redirects,
        })
    }

    /// The same client, which follows this many redirects.
    #[must_use]
    pub fn following(&self, redirects: usize) -> Self {
        Self {
            redirects,
            ..self.clone()
        }
    }

    /// Gets something, and follows redirects. A credential is sent to the origin of `url`
    /// alone, and so is every header that could hold one.
    ///
    /// # Errors
    /// See [`Error`]. An answer that says no is an answer.
    pub async fn get(
        &self,
        url: &Url,
        headers: &HeaderMap,
        credential: Option<&HeaderValue>,
    ) -> Result<Answer, Error> {
        let mut here = url.clone();
        // A password in an address would go where the address goes.
        here.set_username("").ok();
        here.set_password(None).ok();
        for _ in 0..=self.redirects {
            // An address in digits never reaches the resolver, so it is checked here.
            self.egress.permits_url(&here)?;
            let is_home = here.origin() == url.origin();
            let mut headers = headers.clone();
            if is_home {
                if let Some(credential) = credential {
                    let mut credential = credential.clone();
                    credential.set_sensitive(true);
                    headers.insert(AUTHORIZATION, credential);
                }
            } else {
                for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                    headers.remove(name);
                }
            }
            let request = self.http.get(here.clone()).headers(headers);
            let response = request.send().await.map_err(failed)?;
            let status = response.status();
            if !is_redirect(status) {
                return Ok(Answer {
                    response,
                    url: here,
                });
            }
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            let next = location.and_then(|location| here.join(location).ok());
            let mut next = next.ok_or(Error::Nowhere)?;
            next.set_username("").ok();
            next.set_password(None).ok();
            if here.scheme() == "https" && next.scheme() == "http" {
                return Err(Error::Downgrade);
            }
            here = next;
        }
        Err(Error::Redirects(self.redirects))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// A request that failed: because of its address, or otherwise.
fn failed(error: reqwest::Error) -> Error {
    // The refusal of the resolver comes back inside the errors of hyper and reqwest.
    let first: &(dyn std::error::Error + 'static) = &error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    match causes.find_map(|cause| cause.downcast_ref::<Refused>()) {
        Some(refused) => Error::Refused(refused.clone()),
        None => Error::Request(error.without_url()),
    }
}

/// Describes a failed request, without any address.
#[must_use]
fn words(error: &reqwest::Error) -> String {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return format!("TLS failed: {tls}");
        }
        next = cause.source();
        if let Some(system) = cause.downcast_ref::<std::io::Error>() {
            match system.get_ref() {
                // The error that it is made of is none of its sources.
                Some(inner) => next = Some(inner),
                None => return system.kind().to_string(),
            }
        }
    }
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    if error.is_connect() {
        return "no connection".to_owned();
    }
    if error.is_body() || error.is_decode() {
        return "the answer broke off".to_owned();
    }
    "no answer".to_owned()
}

/// Resolves names, and leaves out addresses that may not be called.
struct Checked {
    egress: Egress,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (egress, name) = (self.egress.clone(), name.as_str().to_owned());
        let found = self.lookup.lookup(name.clone());
        Box::pin(async move {
            // The connection is made to one of these, so a name that resolves otherwise a moment
            // later gains nothing.
            let permitted = egress.permitted_of(&name, found.await?)?;
            let addresses = permitted.into_iter();
            Ok(Box::new(addresses.map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// A server with a certificate of its own that answers one request, its address, and a
    /// client that trusts it.
    async fn secure(answer: String) -> (Url, Client) {
        provide_tls();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let made = made.expect("a certificate");
        let certificate = made.cert.der().clone();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .expect("a server");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut stream = acceptor.accept(stream).await.expect("a handshake");
            let mut asked = vec![0; 8192];
            let read = stream.read(&mut asked).await.expect("a request");
            assert!(read > 0, "a request");
            stream.write_all(answer.as_bytes()).await.expect("written");
            stream.shutdown().await.ok();
        });
        let trusted = reqwest::Certificate::from_der(&certificate).expect("a certificate");
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .tls_certs_only([trusted]);
        let client = Client {
            http: http.build().expect("a client"),
            egress: Egress::permitting(&["127.0.0.1"]).expect("networks"),
            redirects: 3,
        };
        let url = Url::parse(&format!("https://{address}/")).expect("an address");
        (url, client)
    }

    #[tokio::test]
    async fn a_redirect_from_https_to_http_is_not_followed() {
        // Were it followed, this address would be refused.
        for (to, is_downgrade) in [("http://127.0.0.2/", true), ("https://127.0.0.2/", false)] {
            let answer = format!("HTTP/1.1 302 x\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            let (url, client) = secure(answer).await;
            let error = client.get(&url, &HeaderMap::new(), None).await;
            let error = error.expect_err("refused");
            let expected = if is_downgrade {
                matches!(error, Error::Downgrade)
            } else {
                matches!(error, Error::Refused(_))
            };
            assert!(expected, "{to}: {error:?}");
        }
    }
}
