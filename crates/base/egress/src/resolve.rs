//! Names resolved for callers that connect by themselves.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use super::{Egress, Refused};

/// The reason why there is no address to call.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It may not be called. A name is reported by itself: the caller need not learn its
    /// addresses.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The name is unknown.
    #[error("the host `{0}` cannot be resolved")]
    Unknown(String),
}

impl Egress {
    /// The addresses of a host that may be called, at least one: a name, or an address itself,
    /// one of version 6 with or without brackets. Blocks.
    ///
    /// # Errors
    /// The name is unknown, or all of its addresses are refused.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let unknown = || ResolveError::Unknown(host.to_owned());
        let found: Vec<IpAddr> = if let Ok(address) = bare.parse() {
            vec![address]
        } else {
            let found = (bare, port).to_socket_addrs().map_err(|_| unknown())?;
            found.map(|address| address.ip()).collect()
        };
        let permitted = self.permitted_of(host, found)?;
        if permitted.is_empty() {
            return Err(unknown());
        }
        let addresses = permitted.into_iter();
        Ok(addresses
            .map(|address| SocketAddr::new(address, port))
            .collect())
    }

    /// Those addresses of a host that may be called; none where it has none.
    ///
    /// # Errors
    /// All of them are refused.
    pub(super) fn permitted_of(
        &self,
        host: &str,
        found: Vec<IpAddr>,
    ) -> Result<Vec<IpAddr>, Refused> {
        let mut refused = None;
        let mut permitted = Vec::new();
        for address in found {
            match self.permits(address) {
                Ok(()) => permitted.push(address),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            // By the name: a caller must not learn the addresses of an internal network by it.
            Some(error) if permitted.is_empty() => Err(Refused {
                address: host.to_owned(),
                what: error.what,
            }),
            _ => Ok(permitted),
        }
    }
}
