//! Tokens for the next page of lists that Jira addresses by position.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use handler::ToolError;

/// The token for the page of `subject` that begins at `start`. It is valid for that
/// subject only: the rest of another query would look like an answer.
pub(super) fn write(subject: &str, start: u64) -> String {
    // A checksum, not a signature: a forged token only skips rows that its author may read anyway.
    let sum = crc32fast::hash(subject.as_bytes());
    URL_SAFE_NO_PAD.encode(format!("{sum:08x}:{start}"))
}

/// Where the page begins; an empty token is the first one.
pub(super) fn read(subject: &str, token: &str) -> Result<u64, ToolError> {
    if token.is_empty() {
        return Ok(0);
    }
    let wrong = || {
        ToolError::invalid("next_page_token is not one that this tool gave for the same arguments",
        )
        .field("next_page_token")
        .suggest("Repeat the call with the same arguments as for the previous page, or leave out next_page_token to begin again")
    };
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (sum, start) = text.split_once(':').ok_or_else(wrong)?;
    let start: u64 = start.parse().map_err(|_| wrong())?;
    if sum != format!("{:08x}", crc32fast::hash(subject.as_bytes())) {
        return Err(wrong());
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use handler::ToolErrorKind;

    #[test]
    fn a_token_leads_back_to_its_place_in_the_same_subject_only() {
        let token = write("project = ABC", 50);
        assert_eq!(read("project = ABC", &token), Ok(50));
        assert_eq!(read("project = ABC", ""), Ok(0));
        for (subject, token) in [
            ("project = X", token.as_str()),
            ("project = ABC", "x"),
            ("project = ABC", "50"),
            ("project = ABC", "!"),
        ] {
            let error = read(subject, token).expect_err("refused");
            assert_eq!(
                (error.kind, error.field.as_str()),
                (ToolErrorKind::Invalid, "next_page_token"),
                "{token}"
            );
        }
    }
}
