//! The kinds of addresses, and which of them may be called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use url::{Host, Url};

/// The addresses that may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    permitted: Arc<[IpNet]>,
}

/// An address is one that may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is {what}, which this server may not call")]
pub struct Refused {
    /// Host or address, without anything secret.
    pub address: String,
    /// The kind of the address, such as `a private address`.
    pub what: String,
}

/// A text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network: write `10.0.0.0/8`, or one address such as `127.0.0.1`")]
pub struct NetworkError(String);

impl Egress {
    /// Public addresses alone.
    #[must_use]
    pub fn public() -> Self {
        Self::default()
    }

    /// Public addresses, and these networks: `10.0.0.0/8`, `fd00::/8`, or single addresses.
    ///
    /// # Errors
    /// One of them is no network.
    pub fn permitting<S: AsRef<str>>(networks: &[S]) -> Result<Self, NetworkError> {
        let network = |text: &S| {
            let text = text.as_ref().trim();
            let single = || text.parse::<IpAddr>().map(IpNet::from);
            text.parse::<IpNet>()
                .or_else(|_| single())
                .map_err(|_| NetworkError(text.chars().take(80).collect()))
        };
        let permitted = networks
            .iter()
            .map(network)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            permitted: permitted.into(),
        })
    }

    /// Checks that an address may be called.
    ///
    /// A network of version 4 that is permitted is so in the forms that version 6 has for it
    /// only where the address itself, as it is called, is in a permitted network.
    ///
    /// # Errors
    /// It is not public, and not permitted.
    pub fn permits(&self, address: IpAddr) -> Result<(), Refused> {
        let Some(what) = sort_of(address) else {
            return Ok(());
        };
        if self.permitted.iter().any(|net| net.contains(&address)) {
            return Ok(());
        }
        Err(Refused {
            address: address.to_string(),
            what: what.to_owned(),
        })
    }

    /// Checks that a URL may be called, as far as it shows: its scheme, and its host where that
    /// is an address. A name is checked once it is resolved.
    ///
    /// # Errors
    /// Another scheme than `http` and `https`, no host, or an address that is not permitted.
    pub fn permits_url(&self, url: &Url) -> Result<(), Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused {
                address: format!("{}:", url.scheme()),
                what: "an address of another kind than http and https".to_owned(),
            });
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.permits(address.into()),
            Some(Host::Ipv6(address)) => self.permits(address.into()),
            Some(Host::Domain(name)) if !name.is_empty() => Ok(()),
            _ => Err(Refused {
                address: format!("{}:", url.scheme()),
                what: "an address without a host".to_owned(),
            }),
        }
    }
}

/// The kind of an address, unless it is a public one: the registries of special addresses of
/// IANA (RFC 6890 and its successors).
fn sort_of(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => sort_of_v4(address),
        IpAddr::V6(address) => sort_of_v6(address),
    }
}

fn sort_of_v4(address: Ipv4Addr) -> Option<&'static str> {
    let what = match address.octets() {
        [0, 0, 0, 0] => "the unspecified address",
        [0, ..] => "an address of this network",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        // Named by itself: it is what request forgery is after, as it hands out the machine's
        // credentials.
        [169, 254, 169, 254] => "the address of a cloud's metadata",
        [169, 254, ..] => "a link-local address",
        [100, 64..=127, ..] => "a shared address of providers (RFC 6598)",
        [192, 0, 0, _] => "an address of protocols (RFC 6890)",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "an address for documentation",
        [192, 88, 99, _] => "an address of relays (RFC 7526)",
        [198, 18 | 19, ..] => "an address for benchmarks (RFC 2544)",
        [224..=239, ..] => "a multicast address",
        [255, 255, 255, 255] => "the broadcast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    };
    Some(what)
}

fn sort_of_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("the unspecified address");
    }
    if address.is_loopback() {
        return Some("a loopback address");
    }
    let segments = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let inner = match segments {
        // Mapped and compatible (RFC 4291), translated (RFC 2765), and NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        // 6to4 (RFC 3056).
        | [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    };
    if let Some(inner) = inner {
        // Also where the inner one is public: nobody is reached that way but by these.
        return Some(sort_of_v4(inner).unwrap_or("an address of version 4 in one of version 6"));
    }
    let [first, second, third, ..] = segments;
    let what = match (first, second, third) {
        (0x64, 0xff9b, 1) => "a local address of NAT64 (RFC 8215)",
        (0x100, 0, 0) => "an address that discards (RFC 6666)",
        (0x2001, 0xdb8, _) | (0x3fff, 0..=0xfff, _) => "an address for documentation",
        // Teredo, benchmarks, ORCHID and the rest of RFC 2928.
        (0x2001, 0..=0x1ff, _) => "an address of protocols (RFC 2928)",
        (0x5f00, ..) => "an address of segment routing (RFC 9602)",
        (0xfc00..=0xfdff, ..) => "a private address",
        (0xfe80..=0xfebf, ..) => "a link-local address",
        (0xfec0..=0xfeff, ..) => "a site-local address",
        (0xff00..=0xffff, ..) => "a multicast address",
        // Global unicast is 2000::/3; the rest is reserved.
        (0x2000..=0x3fff, ..) => return None,
        _ => "a reserved address",
    };
    Some(what)
}
