//! Decodes the bytes of a `SKILL.md` as text.

use super::findings::Findings;

/// Decodes the bytes, and reports what editors leave behind.
pub(super) fn decode<'a>(bytes: &'a [u8], findings: &mut Findings) -> Option<&'a str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = line_of(bytes, error.valid_up_to());
            findings.error("not-utf8", line, format!("Line {line} is not UTF-8 text"));
            return None;
        }
    };
    if let Some(at) = text.find('\0') {
        let line = line_of(text.as_bytes(), at);
        findings.error(
            "nul-character",
            line,
            format!("Line {line} has a NUL character"),
        );
        return None;
    }
    if text.starts_with('\u{feff}') {
        findings.warning(
            "byte-order-mark",
            1,
            "The file begins with a byte order mark; save it without",
        );
    }
    if let Some(at) = text.find("\r\n") {
        let line = line_of(text.as_bytes(), at);
        findings.info("line-endings", line, "Lines end with CR LF");
    }
    Some(text)
}

/// Returns the line of a byte, from 1.
pub(super) fn line_of(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or_default();
    before.split(|byte| *byte == b'\n').count()
}
