//! Which addresses may be called.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use super::Error;

/// Says of an address whether it may be called.
#[derive(Clone)]
pub struct Permits(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permits")
    }
}

impl From<Arc<dyn Fn(IpAddr) -> bool + Send + Sync>> for Permits {
    fn from(permits: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>) -> Self {
        Self(permits)
    }
}

impl Permits {
    /// What the function says of each address.
    pub fn new(permits: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(permits))
    }

    /// The addresses of a host that may be called, at least one. The host is a name, or an
    /// address itself, one of IPv6 with or without brackets.
    ///
    /// # Errors
    /// The name is unknown, or all of its addresses are refused.
    pub(super) fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let addresses: Vec<SocketAddr> = (bare, port)
            .to_socket_addrs()
            .map_err(|error| {
                Error::Unavailable(format!("the host `{host}` cannot be resolved: {error}"))
            })?
            .collect();
        let (permitted, refused): (Vec<_>, Vec<_>) = addresses
            .into_iter()
            .partition(|address| (self.0)(plain(address.ip())));
        if !permitted.is_empty() {
            return Ok(permitted);
        }
        let Some(address) = refused.first().map(|address| plain(address.ip())) else {
            return Err(Error::Unavailable(format!(
                "the host `{host}` has no address"
            )));
        };
        let literal = bare.parse::<IpAddr>().is_ok();
        Err(Error::Address {
            address: if literal {
                host.to_owned()
            } else {
                format!("{host} ({address})")
            },
            what: what(address).to_owned(),
        })
    }
}

/// An address of IPv4 that is written as one of IPv6 is one of IPv4.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn what(address: IpAddr) -> &'static str {
    let private = |v4: Ipv4Addr| v4.is_private();
    match address {
        _ if address.is_loopback() => "this machine itself",
        _ if address.is_unspecified() => "no address of a host",
        _ if address.is_multicast() => "an address of many hosts",
        IpAddr::V4(v4) if v4.is_link_local() => "a link-local address",
        IpAddr::V6(v6) if v6.is_unicast_link_local() => "a link-local address",
        IpAddr::V4(v4) if private(v4) => "a private address",
        IpAddr::V6(v6) if v6.is_unique_local() => "a private address",
        _ => "an address that is not permitted",
    }
}
