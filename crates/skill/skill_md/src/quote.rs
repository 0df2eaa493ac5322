//! A text as a YAML scalar in double quotes, which holds any text.

use std::fmt::Write as _;

use model::is_ignorable;

/// The text in double quotes, on one line. What a reader would not see is
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
            // Those that choose how an emoji looks are as good as seen.
            '\u{FE00}'..='\u{FE0F}' => out.push(c),
            c if c.is_control() || is_ignorable(c) => out.push_str(&escape(u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A character by its number, as a double-quoted scalar writes it.
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
