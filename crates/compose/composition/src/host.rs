//! The host of an address, where every reader of addresses sees the same one.

use url::Host as Parsed;

use super::glob;
use super::uncertainty::Uncertainty;

/// The host of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// A name, in lower case.
    Name(String),
    /// An IPv4 address as everybody writes it. Any name may lead to it.
    Address(String),
}

/// The host of an address. Whatever parsers are known to read in different ways,
/// or to change before they connect, is a doubt.
pub(super) fn host(url: &str) -> Result<Host, Uncertainty> {
    let other_scheme = Uncertainty::Address("does not begin with http:// or https://");
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(other_scheme);
    };
    let default_port = match scheme.to_ascii_lowercase().as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(other_scheme),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The default port adds nothing; another one is another server.
    let name = authority.strip_suffix(default_port).unwrap_or(authority);
    if let Some(unusual) = name.chars().find_map(unusual) {
        return Err(Uncertainty::Address(unusual));
    }
    if name.ends_with('.') {
        return Err(Uncertainty::Address("has a dot at the end of its host"));
    }
    let name = name.to_ascii_lowercase();
    // A host that the parser changes, as `0x7f.1` to 127.0.0.1, is one that the tool's own client
    // may read as another.
    match Parsed::parse(&name) {
        Ok(Parsed::Domain(parsed)) if parsed == name => Ok(Host::Name(name)),
        Ok(Parsed::Ipv4(parsed)) if parsed.to_string() == name => Ok(Host::Address(name)),
        Ok(Parsed::Ipv4(_)) => Err(Uncertainty::Address(
            "spells an IP address in an unusual way",
        )),
        _ => Err(Uncertainty::Address("has a host that cannot be read")),
    }
}

/// What a character of a host means, unless it is a plain part of a name.
fn unusual(letter: char) -> Option<&'static str> {
    match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => None,
        '@' => Some("names a user before its host"),
        ':' => Some("names a port"),
        '[' | ']' => Some("has an IPv6 address for a host"),
        '%' => Some("has a `%` escape in its host"),
        '\\' => Some("has a backslash in its host"),
        letter if !letter.is_ascii() => Some("has letters beyond ASCII in its host"),
        _ => Some("has a character in its host that no host has"),
    }
}

/// The glob of a pattern's host; none where no host is written like that.
pub(super) fn pattern(written: &str) -> Option<Box<str>> {
    let written = written.trim();
    // A dot at the end is how resolvers write a full name, and means nothing more.
    let written = written.strip_suffix('.').unwrap_or(written).to_lowercase();
    let is_plain = |text: &str| text.chars().all(|c| c == '*' || unusual(c).is_none());
    if written.is_empty() || (is_plain(&written) && written.ends_with('.')) {
        return None;
    }
    if is_plain(&written) {
        return Some(written.into());
    }
    // `*.bücher.example`: the star stays, the name becomes what is looked up.
    let (star, name) = match written.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", written.as_str()),
    };
    match Parsed::parse(name) {
        Ok(Parsed::Domain(name)) if is_plain(&name) && !name.contains('*') => {
            Some([star, &name].concat().into())
        }
        _ => None,
    }
}

/// The host of an address fits the glob of a pattern.
pub(super) fn matches(glob: &str, url: &str) -> Result<bool, Uncertainty> {
    match host(url)? {
        Host::Name(name) => Ok(glob::matches(glob, &name)),
        Host::Address(address) if glob == address || glob == "*" => Ok(true),
        Host::Address(_) => Err(Uncertainty::Address(
            "is an IP address, to which any name may lead",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_where_all_readers_agree() {
        for (url, name) in [
            ("https://example.com/a", "example.com"),
            ("HTTPS://Example.COM?x", "example.com"),
            ("http://example.com:80#x", "example.com"),
            ("https://example.com:443", "example.com"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
            ("https://good.com/https://evil.com@x", "good.com"),
        ] {
            assert_eq!(host(url), Ok(Host::Name(name.to_owned())), "{url}");
        }
        assert_eq!(
            host("http://127.0.0.1/"),
            Ok(Host::Address("127.0.0.1".to_owned()))
        );
    }

    #[test]
    fn what_readers_of_addresses_see_differently_is_a_doubt() {
        for url in [
            "",
            "example.com",
            "//example.com/",
            "http:example.com",
            "https:/example.com",
            "https:///example.com",
            "file://example.com/etc/passwd",
            "ftp://example.com/",
            "javascript://example.com/%0aalert(1)",
            " https://example.com/",
            "ht\ttps://example.com/",
            "https://evil.com\\@example.com/",
            "https://example.com\\.evil.com/",
            "https://me@example.com/",
            "https://me:pw@example.com/",
            "https://example.com:8443/",
            "https://example.com:80/",
            "https://example.com:/",
            "https://example.com./",
            "https://example.com../",
            "https://evil。com/",
            "https://ｅvil.com/",
            "https://ex\u{ad}ample.com/",
            "https://example.com%2eevil.com/",
            "https://exa mple.com/",
            "https://exa\tmple.com/",
            "https://example.com\u{0}/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1.:80/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://1.2.3.999/",
            "https://xn--a/",
        ] {
            assert!(matches!(host(url), Err(Uncertainty::Address(_))), "{url:?}");
        }
    }

    #[test]
    fn patterns_of_hosts_are_names_or_nothing() {
        for (written, glob) in [
            ("example.com", Some("example.com")),
            (" Example.COM. ", Some("example.com")),
            ("*.example.com", Some("*.example.com")),
            ("*", Some("*")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("*.bücher.example", Some("*.xn--bcher-kva.example")),
            ("", None),
            ("example.com..", None),
            ("https://example.com", None),
            ("example.com/path", None),
            ("example.com:443", None),
        ] {
            assert_eq!(pattern(written).as_deref(), glob, "{written}");
        }
    }

    #[test]
    fn an_address_is_met_by_itself_and_by_every_host() {
        let url = "http://127.0.0.1/x";
        assert_eq!(matches("127.0.0.1", url), Ok(true));
        assert_eq!(matches("*", url), Ok(true));
        let doubt = Uncertainty::Address("is an IP address, to which any name may lead");
        assert_eq!(matches("127.0.0.2", url), Err(doubt));
        assert_eq!(
            host("http://[::1]/"),
            Err(Uncertainty::Address("has an IPv6 address for a host"))
        );
    }
}
