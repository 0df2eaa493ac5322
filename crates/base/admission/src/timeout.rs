//! The deadline that a caller asks for.

use std::time::Duration;

use http::HeaderMap;

use model::{Code, Failure};

/// The time that a call may take (gRPC over HTTP/2, `Timeout`): at most eight digits and
/// a unit.
///
/// # Errors
/// It is written otherwise.
pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(|text| {
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        if digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: u64 = digits.parse().ok()?;
        Some(match unit {
            "H" => Duration::from_secs(number * 3600),
            "M" => Duration::from_secs(number * 60),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    });
    parsed.map(Some).ok_or_else(|| {
        Failure::new(
            Code::InvalidParameter,
            "The header grpc-timeout is up to eight digits and a unit, such as 500m",
        )
        .field("grpc-timeout", "not a timeout")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_grpc_writes_it() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().expect("a header"));
            timeout(&headers).ok().flatten()
        };
        for (text, expected) in [
            ("2H", Duration::from_secs(7200)),
            ("2M", Duration::from_secs(120)),
            ("2S", Duration::from_secs(2)),
            ("100m", Duration::from_millis(100)),
            ("100u", Duration::from_micros(100)),
            ("100n", Duration::from_nanos(100)),
            ("0n", Duration::ZERO),
            ("99999999m", Duration::from_millis(99_999_999)),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        let without = timeout(&HeaderMap::new()).expect("no timeout");
        assert_eq!(without, None, "as long as it takes");
        for bad in ["", "m", "1", "1x", "-1m", "123456789m", "1.5S", "１m"] {
            let mut headers = HeaderMap::new();
            let value = http::HeaderValue::from_bytes(bad.as_bytes()).expect("a header");
            headers.insert("grpc-timeout", value);
            assert!(timeout(&headers).is_err(), "{bad:?} was accepted");
        }
    }
}
