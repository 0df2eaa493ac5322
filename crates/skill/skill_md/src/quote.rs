//! Writes a text as a YAML scalar in double quotes, which can hold any text.

use std::fmt::Write as _;

use model::is_ignorable;

/// Returns the text in double quotes, on one line. Invisible characters are
/// escaped.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Variation selectors choose the look of an emoji, and escapes would be unreadable.
            '\u{FE00}'..='\u{FE0F}' => out.push(c),
            c if c.is_control() || is_ignorable(c) => out.push_str(&escape(u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the escape of a character in a double-quoted scalar.
pub(super) fn escape(code: u32) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _infallible = match code {
        0..=0xFF => write!(out, "\\x{code:02x}"),
        0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    out
}
