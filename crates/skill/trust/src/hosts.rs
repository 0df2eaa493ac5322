//! Finds the hosts of a text, and classifies them.

use std::net::{Ipv4Addr, Ipv6Addr};

use rustc_hash::FxHashMap;

use super::text::{look_alike, section};

/// The most characters of a host name.
const MAX_HOST_CHARS: usize = 253;

/// The lists of known hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    kinds: FxHashMap<&'static str, HostKind>,
    /// Known hosts that others may imitate, each also with dashes for points.
    known: Vec<(&'static str, String)>,
}

/// The kind of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// A well-known vendor or project.
    Known,
    /// Nothing is known.
    Other,
    /// A public IP address.
    Address,
    /// Anybody can put texts or files there anonymously.
    Paste,
    /// Redirects to another host.
    Short,
    /// Collects requests, or tunnels to somebody's machine.
    Catcher,
    /// Anybody can get a site there.
    Free,
    /// Looks like a known host, and is another.
    Lookalike,
    /// A name that examples use, and that a person or an agent fills in later.
    Example,
    /// This machine, or a private network.
    Private,
}

/// A host in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Bytes of the text, from the scheme on.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) name: String,
    pub(crate) kind: HostKind,
    /// Its scheme has no TLS.
    pub(crate) is_plain: bool,
}

impl HostKind {
    /// The signal of this kind.
    pub(crate) fn signal(self) -> &'static str {
        match self {
            Self::Known => "host-known",
            Self::Other => "host-other",
            Self::Address => "host-address",
            Self::Paste => "host-paste",
            Self::Short => "host-short",
            Self::Catcher => "host-catcher",
            Self::Free => "host-free",
            Self::Lookalike => "host-lookalike",
            Self::Example | Self::Private => "private-host",
        }
    }

    /// Tells whether it is no host of somebody else's.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Self::Example | Self::Private)
    }

    /// Tells whether nobody is responsible for its contents.
    pub(crate) fn is_risky(self) -> bool {
        matches!(
            self,
            Self::Address | Self::Paste | Self::Short | Self::Catcher | Self::Lookalike
        )
    }
}

impl Hosts {
    /// Reads `hosts.txt`: names below `[kind]`.
    pub(crate) fn read(text: &'static str, unread: &mut Vec<String>) -> Self {
        let mut kinds = FxHashMap::default();
        let mut known = Vec::new();
        let mut kind = None;
        for word in model::listed(text) {
            if let Some(name) = section(word) {
                kind = match name {
                    "known" => Some(HostKind::Known),
                    "paste" => Some(HostKind::Paste),
                    "short" => Some(HostKind::Short),
                    "catcher" => Some(HostKind::Catcher),
                    "free" => Some(HostKind::Free),
                    "example" => Some(HostKind::Example),
                    "private" => Some(HostKind::Private),
                    _ => None,
                };
            } else if let Some(kind) = kind {
                if kind == HostKind::Known {
                    known.push((word, word.replace('.', "-")));
                }
                kinds.insert(word, kind);
            }
            if kind.is_none() {
                unread.push(word.to_owned());
            }
        }
        Self { kinds, known }
    }

    /// Finds the hosts of a text: those of URLs, and risky ones also without a scheme.
    pub(crate) fn find(&self, text: &str) -> Vec<Host> {
        let mut found: Vec<Host> = Vec::new();
        let bytes = text.as_bytes();
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find("://")) {
            let at = from + at;
            from = at + 3;
            let before = text.get(..at).unwrap_or_default();
            let scheme = before.len()
                - before
                    .bytes()
                    .rev()
                    .take(8)
                    .take_while(u8::is_ascii_alphabetic)
                    .count();
            let scheme_name = before
                .get(scheme..)
                .unwrap_or_default()
                .to_ascii_lowercase();
            if !matches!(
                scheme_name.as_str(),
                // `hxxp` is how reports write an address that is not to be clicked. A skill can
                // have an agent turn it back.
                "http" | "https" | "hxxp" | "hxxps" | "ftp" | "ws" | "wss" | "tcp" | "ssh"
            ) {
                continue;
            }
            let Some((name, length)) = host_at(text.get(from..).unwrap_or_default()) else {
                continue;
            };
            let kind = self.kind(&name);
            found.push(Host {
                start: scheme,
                end: from + length,
                is_plain: matches!(scheme_name.as_str(), "http" | "ftp" | "ws" | "tcp")
                    && !kind.is_own(),
                name,
                kind,
            });
            from += length;
        }
        // `curl 203.0.113.7/x`, `rentry.co/x`: with a path, programs take it without a scheme.
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            let word = bytes.get(at..).unwrap_or_default();
            let length = word.iter().take_while(|byte| is_part(**byte)).count();
            at += length.max(1);
            let next = word.get(length).copied().unwrap_or(b' ');
            let before = start.checked_sub(1).and_then(|at| bytes.get(at)).copied();
            if !(6..=MAX_HOST_CHARS).contains(&length)
                || !matches!(next, b'/' | b':')
                // Part of a path, a user or a longer word.
                || matches!(before, Some(b'/' | b'@' | b'\\' | 0x80..))
                || !word.iter().take(length).any(|byte| *byte == b'.')
            {
                continue;
            }
            let name = text
                .get(start..start + length)
                .unwrap_or_default()
                .to_ascii_lowercase();
            let kind = self.kind(&name);
            let is_scheme = next == b':' && word.get(length + 1) == Some(&b'/');
            // Not lookalikes: without a scheme, names of files and modules look like hosts, too.
            if kind.is_risky() && kind != HostKind::Lookalike && !is_scheme {
                found.push(Host {
                    start,
                    end: start + length,
                    name,
                    kind,
                    is_plain: false,
                });
            }
        }
        found
    }

    /// Classifies a host. The longest listed suffix decides.
    pub(crate) fn kind(&self, host: &str) -> HostKind {
        if let Some(kind) = address_kind(host) {
            return kind;
        }
        let mut suffix = host;
        loop {
            if let Some(kind) = self.kinds.get(suffix) {
                return *kind;
            }
            match suffix.split_once('.') {
                Some((_, rest)) => suffix = rest,
                None => break,
            }
        }
        // A name without a point resolves inside a network alone.
        if !host.contains('.') {
            return HostKind::Private;
        }
        if self.is_lookalike(host) {
            return HostKind::Lookalike;
        }
        HostKind::Other
    }

    fn is_lookalike(&self, host: &str) -> bool {
        // Letters of other scripts that look Latin, as in an IDN homograph attack.
        let latin: String = host.chars().map(look_alike).collect();
        let labels: Vec<&str> = latin.split('.').collect();
        let own = labels
            .get(labels.len().saturating_sub(2)..)
            .unwrap_or_default();
        let (name, top) = match own {
            [name, top] => (*name, *top),
            _ => return false,
        };
        self.known.iter().any(|(known, dashed)| {
            // `astral.sh.evil.example`
            let begins = latin.strip_prefix(known);
            let is_below = begins.is_some_and(|rest| rest.starts_with('.') && rest.len() > 4);
            // `astral-sh.evil.example`
            let is_dashed = known.len() >= 8
                && labels.iter().any(|label| {
                    let rest = label.strip_prefix(dashed.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                });
            let same = latin == *known && latin != host;
            let near = known.rsplit_once('.').is_some_and(|(own, known_top)| {
                own.len() >= 5 && top == known_top && !own.contains('.') && is_near(own, name)
            });
            is_below || is_dashed || same || near
        })
    }
}

/// Tells whether two names differ by one letter that was changed, left out, added or swapped.
fn is_near(known: &str, name: &str) -> bool {
    let (known, name) = (known.as_bytes(), name.as_bytes());
    if known == name || known.len().abs_diff(name.len()) > 1 {
        return false;
    }
    let same = known.iter().zip(name).take_while(|(a, b)| a == b).count();
    let known_rest = known.get(same..).unwrap_or_default();
    let name_rest = name.get(same..).unwrap_or_default();
    match (known_rest, name_rest) {
        ([one, two, known @ ..], [first, second, name @ ..])
            if one == second && two == first && known == name =>
        {
            true
        }
        ([_, known @ ..], [_, name @ ..]) if known_rest.len() == name_rest.len() => known == name,
        _ => known_rest.get(1..) == Some(name_rest) || name_rest.get(1..) == Some(known_rest),
    }
}

/// Returns the host that a text begins with, behind a scheme, and its length.
fn host_at(text: &str) -> Option<(String, usize)> {
    let authority = text
        .find(|c: char| {
            matches!(
                c,
                '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | ')' | '\\'
            ) || c.is_whitespace()
        })
        .unwrap_or(text.len())
        .min(4 * MAX_HOST_CHARS);
    let authority = text.get(..authority)?;
    // The last `@`: `https://github.com@evil.example/` goes to `evil.example`.
    let user = authority.rfind('@').map_or(0, |at| at + 1);
    let host = authority.get(user..)?;
    if let Some(rest) = host.strip_prefix('[') {
        let (address, _) = rest.split_once(']')?;
        return Some((address.to_ascii_lowercase(), user + address.len() + 2));
    }
    let length = host
        .find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '_'))
        .unwrap_or(host.len());
    let name = host.get(..length)?.trim_end_matches(['.', '-', '_']);
    let is_host = !name.is_empty() && name.len() <= MAX_HOST_CHARS;
    is_host.then(|| (name.to_lowercase(), user + name.len()))
}

/// Classifies an IP address. Programs also take one number in decimal or hexadecimal.
fn address_kind(host: &str) -> Option<HostKind> {
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        let is_near = address.is_loopback()
            || address.is_unspecified()
            || address.is_unique_local()
            || address.is_unicast_link_local();
        return Some(if is_near {
            HostKind::Private
        } else {
            HostKind::Address
        });
    }
    let address = if let Ok(address) = host.parse::<Ipv4Addr>() {
        address
    } else {
        let number = match host.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None if host.len() >= 8 => host.parse::<u32>().ok(),
            None => None,
        };
        Ipv4Addr::from(number?)
    };
    let octets = address.octets();
    // Public resolvers, which many texts name. Link-local addresses have the metadata of clouds,
    // for which there is a rule of its own.
    let is_resolver = matches!(octets, [1, 1, 1, 1] | [8, 8, 8 | 4, 8 | 4]);
    let is_near = address.is_loopback()
        || address.is_private()
        || address.is_unspecified()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast();
    // `1.2.3.4` and the like are placeholders.
    let is_sample = matches!(octets, [1, 2, 3, 4] | [0, ..]);
    Some(if is_resolver || is_near || is_sample {
        HostKind::Private
    } else {
        HostKind::Address
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::*;

    fn kinds(text: &str) -> Vec<(String, HostKind)> {
        let hosts = &Rules::bundled().hosts;
        let found = hosts.find(text).into_iter();
        found.map(|host| (host.name, host.kind)).collect()
    }

    #[test]
    fn hosts_are_what_is_known_of_them() {
        for (text, name, kind) in [
            (
                "https://astral.sh/uv/install.sh",
                "astral.sh",
                HostKind::Known,
            ),
            (
                "https://astral.sh.evil.example/uv",
                "astral.sh.evil.example",
                HostKind::Lookalike,
            ),
            (
                "https://user:pw@raw.githubusercontent.com:443/x",
                "raw.githubusercontent.com",
                HostKind::Known,
            ),
            ("https://githud.com/x", "githud.com", HostKind::Lookalike),
            (
                "https://g\u{456}thub.com/x",
                "g\u{456}thub.com",
                HostKind::Lookalike,
            ),
            ("http://91.92.242.30/x", "91.92.242.30", HostKind::Address),
            ("http://1532031518/x", "1532031518", HostKind::Address),
            ("curl 91.92.242.30/x", "91.92.242.30", HostKind::Address),
            ("http://[2001:db8::1]:80/", "2001:db8::1", HostKind::Address),
            ("http://127.0.0.1:8080", "127.0.0.1", HostKind::Private),
            ("http://localhost:3000/", "localhost", HostKind::Private),
            ("see rentry.co/abc", "rentry.co", HostKind::Paste),
            (
                "https://abc.webhook.site/x",
                "abc.webhook.site",
                HostKind::Catcher,
            ),
            (
                "https://some.vendor.io/x",
                "some.vendor.io",
                HostKind::Other,
            ),
        ] {
            assert_eq!(kinds(text), [(name.to_owned(), kind)], "{text}");
        }
        assert_eq!(kinds("version 1.20.3.4 of a.b-c, x:y, 12:30/a.b"), []);
    }
}
