//! The time of the next try.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The longest wait, whatever a server asks for.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a server wants to be left alone (`Retry-After` of RFC 9110): seconds, or a moment of
/// its own clock. A day at most.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    wanted_pause(headers).map(|wait| wait.min(MAX_RETRY_DELAY))
}

fn wanted_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // Both moments are of one clock, so ours does not matter.
    let wait = moment(text)?.duration_since(server_time(headers)?);
    // A moment that has passed is now.
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// The time of the server's own clock, so that no two clocks are compared.
#[must_use]
pub fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    moment(headers.get(DATE)?.to_str().ok()?)
}

fn moment(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(retry: &str, date: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry.parse().expect("a header"));
        if !date.is_empty() {
            headers.insert(DATE, date.parse().expect("a header"));
        }
        retry_after(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn the_wait_is_seconds_or_a_moment_of_the_servers_clock() {
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(read("17", ""), Some(17));
        assert_eq!(read(" 0 ", now), Some(0));
        assert_eq!(read("18446744073709551615", ""), Some(24 * 60 * 60));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT", now), Some(60));
        assert_eq!(read("Sun, 06 Nov 1994 08:48:37 GMT", now), Some(0));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT", ""), None);
        assert_eq!(read("soon", now), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
