//! A caller's text, in what is said to people.

use std::borrow::Cow;

/// Text without characters that a terminal or a reader acts on: controls and the
/// marks that turn the direction of writing become escapes. Line feeds and tabs
/// stay.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_shown_as_an_escape() {
        assert_eq!(printable("a\nb\tü"), "a\nb\tü");
        assert_eq!(
            printable("\u{1b}[31m\0\u{202e}x"),
            "\\u{1b}[31m\\u{0}\\u{202e}x"
        );
    }
}
