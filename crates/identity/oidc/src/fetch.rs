//! Fetches the keys of an issuer: its metadata, then the JWK set that these point to.

use std::time::Duration;

use egress::{Client, Timeouts};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use url::Url;

use crate::ConfigError;
use crate::config::{IssuerConfig, IssuerUrl, is_safe};

/// The most bytes of the metadata, and of the keys.
const MAX_METADATA: usize = 64 * 1024;
const MAX_KEYS: usize = 512 * 1024;
/// The timeout of a fetch, both of its requests together.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there are no keys. Its text is for the operator's log alone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Client(#[from] egress::Error),
    #[error("it took longer than {} seconds", FETCH_TIMEOUT.as_secs())]
    Late,
    #[error("{0} was answered with {1}")]
    Status(&'static str, StatusCode),
    #[error("{0} have more than {1} KiB")]
    TooLarge(&'static str, usize),
    #[error("{0} broke off")]
    Broken(&'static str),
    #[error("its metadata are not an OpenID configuration")]
    Metadata,
    #[error("its metadata are those of another issuer")]
    OtherIssuer,
    #[error("its metadata name no https address for its keys")]
    KeysAddress,
    #[error(transparent)]
    Keys(#[from] crate::keys::KeysError),
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Makes a client that calls an issuer, and follows no redirect.
pub(crate) fn client(config: &IssuerConfig) -> Result<Client, ConfigError> {
    let timeouts = Timeouts {
        connect: FETCH_TIMEOUT / 2,
        silence: FETCH_TIMEOUT / 2,
        total: FETCH_TIMEOUT,
    };
    // A redirect could lead to another host, which the issuer does not answer for.
    let client = Client::new(config.allow_networks.0.clone(), timeouts, 0);
    client.map_err(|error| ConfigError::Client(error.to_string()))
}

/// Fetches the JWK set of an issuer.
pub(crate) async fn keys(client: &Client, issuer: &IssuerUrl) -> Result<Vec<u8>, FetchError> {
    let fetch = async {
        let text = get(client, &issuer.discovery, "its metadata", MAX_METADATA).await?;
        let metadata: Metadata = serde_json::from_slice(&text).map_err(|_| FetchError::Metadata)?;
        // OpenID Connect Discovery 4.3: else another issuer's keys would do.
        if metadata.issuer != issuer.text {
            return Err(FetchError::OtherIssuer);
        }
        let address = Url::parse(&metadata.jwks_uri).ok();
        let address = address.filter(|url| {
            // `is_safe` allows plain HTTP to this machine. Only an issuer on this machine may use
            // that: another one could have the server call its own local ports.
            is_safe(url) && (url.scheme() == "https" || issuer.discovery.scheme() == "http")
        });
        let address = address.ok_or(FetchError::KeysAddress)?;
        get(client, &address, "its keys", MAX_KEYS).await
    };
    match tokio::time::timeout(FETCH_TIMEOUT, fetch).await {
        Ok(fetched) => fetched,
        Err(_late) => Err(FetchError::Late),
    }
}

async fn get(
    client: &Client,
    url: &Url,
    what: &'static str,
    max: usize,
) -> Result<Vec<u8>, FetchError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let mut response = client.get(url, &headers, None).await?.response;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(what, response.status()));
    }
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|_| FetchError::Broken(what))?
    {
        // By what arrives: a `content-length` is the peer's word.
        if body.len() + piece.len() > max {
            return Err(FetchError::TooLarge(what, max >> 10));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
