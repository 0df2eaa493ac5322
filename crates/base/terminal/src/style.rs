//! Styles: marks that nobody else can write, which become escape sequences at the end.

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use anstyle::AnsiColor;

use model::{invisible, printable_lines};

/// The look of a part of a text: `{GOOD}yes{GOOD:#}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The word before an error.
    Error,
    /// The word before what to do next.
    Hint,
    /// A success.
    Good,
    /// A possible problem.
    Warn,
    /// A problem.
    Bad,
    /// A less important part.
    Faint,
    /// A more important part.
    Bold,
    /// None.
    Plain,
}

/// [`Style::Error`].
pub const ERROR: Style = Style::Error;
/// [`Style::Hint`].
pub const HINT: Style = Style::Hint;
/// [`Style::Good`].
pub const GOOD: Style = Style::Good;
/// [`Style::Warn`].
pub const WARN: Style = Style::Warn;
/// [`Style::Bad`].
pub const BAD: Style = Style::Bad;
/// [`Style::Faint`].
pub const FAINT: Style = Style::Faint;

/// The beginning of a mark: two private characters that differ in each run, so that no text
/// can contain one.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let random = uuid::Uuid::new_v4().as_u128();
    let private = |bits: u128| {
        let offset = u32::try_from(bits % 0xFFFD).unwrap_or_default();
        char::from_u32(0x10_0000 + offset).unwrap_or('\u{100000}')
    };
    [private(random >> 64), private(random & 0xFFFF_FFFF)]
        .iter()
        .collect()
});

/// The end of every style.
const END: char = '.';

impl Style {
    const ALL: [(char, Self); 8] = [
        ('e', Self::Error),
        ('h', Self::Hint),
        ('g', Self::Good),
        ('w', Self::Warn),
        ('b', Self::Bad),
        ('f', Self::Faint),
        ('d', Self::Bold),
        ('p', Self::Plain),
    ];

    /// The style that a mark begins; none: the mark ends one.
    fn of_mark(mark: Option<char>) -> Option<Self> {
        let known = Self::ALL.iter().find(|(known, _)| Some(*known) == mark);
        known.map(|(_, style)| *style)
    }

    fn ansi(self) -> anstyle::Style {
        match self {
            Self::Error => AnsiColor::Red.on_default().bold(),
            Self::Hint => AnsiColor::Cyan.on_default(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Faint => anstyle::Style::new().dimmed(),
            Self::Bold => anstyle::Style::new().bold(),
            Self::Plain => anstyle::Style::new(),
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = Self::ALL.iter().find(|(_, style)| style == self);
        let mark = mark
            .filter(|_| !f.alternate())
            .map_or(END, |(mark, _)| *mark);
        write!(f, "{}{mark}", *MARK)
    }
}

/// The first style that is written in a text, and the text without styles.
pub(crate) fn split(text: &str) -> (Option<Style>, String) {
    let mut parts = text.split(MARK.as_str());
    let mut bare = parts.next().unwrap_or_default().to_owned();
    let mut style = None;
    for part in parts {
        let mut rest = part.chars();
        style = style.or(Style::of_mark(rest.next()));
        bare.push_str(rest.as_str());
    }
    (style, bare)
}

/// A text as a terminal gets it: styles as escape sequences, and nothing else that
/// a terminal acts on.
#[must_use]
pub fn painted(text: &str) -> String {
    let mut parts = text.split(MARK.as_str());
    let mut shown = printable_lines(parts.next().unwrap_or_default()).into_owned();
    let mut open = Style::Plain;
    for part in parts {
        let mut rest = part.chars();
        match Style::of_mark(rest.next()) {
            Some(style) => {
                open = style;
                shown.push_str(&open.ansi().render().to_string());
            }
            None => shown.push_str(&open.ansi().render_reset().to_string()),
        }
        // Each part for itself: of all escape sequences only our own must come through.
        shown.push_str(&printable_lines(rest.as_str()));
    }
    shown
}

/// Does the same for a text on one line: a name with a line end gets no line of its own.
#[must_use]
pub fn painted_line(text: &str) -> String {
    painted(text).replace('\n', "\\n")
}

/// JSON as a terminal gets it: the same value, in which what a terminal acts on is
/// escaped.
#[must_use]
pub fn json_line(json: &str) -> String {
    let mut hidden = invisible(json).map(|(at, _, _)| at).peekable();
    let mut shown = String::with_capacity(json.len());
    for (at, c) in json.char_indices() {
        if hidden.next_if_eq(&at).is_none() {
            shown.push(c);
            continue;
        }
        // JSON escapes UTF-16 units: a character above U+FFFF takes two.
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Into a string it cannot fail.
            _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Titles, screens, links, colours, hidden and reversed text, another line.
    const HOSTILE: &str =
        "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}1m\r\u{202e}x\u{E0041}\u{200b}\0";

    #[test]
    fn a_terminal_gets_no_control_character_but_those_of_our_styles() {
        let text = format!("{GOOD}valid{GOOD:#} {HOSTILE}");
        assert_eq!(
            painted(&text),
            "\u{1b}[32mvalid\u{1b}[0m \\u{1b}]0;PWNED\\u{7}\\u{1b}[2J\\u{1b}[31mred\\u{9b}1m\\r\\u{202e}x\\u{e0041}\\u{200b}\\u{0}"
        );
        assert_eq!(painted("a\n\tb 👩‍💻"), "a\n\tb 👩‍💻");
        assert_eq!(painted("\u{100000}\u{100001}g"), "\u{100000}\u{100001}g");
    }

    #[test]
    fn each_style_is_painted_as_itself_and_ends() {
        let sequence = |codes: &str| format!("{codes}a\u{1b}[0m");
        for (style, codes) in [
            (ERROR, "\u{1b}[1m\u{1b}[31m"),
            (HINT, "\u{1b}[36m"),
            (GOOD, "\u{1b}[32m"),
            (WARN, "\u{1b}[33m"),
            (BAD, "\u{1b}[31m"),
            (FAINT, "\u{1b}[2m"),
            (Style::Bold, "\u{1b}[1m"),
        ] {
            assert_eq!(painted(&format!("{style}a{style:#}")), sequence(codes));
        }
        let plain = Style::Plain;
        assert_eq!(painted(&format!("{plain}a{plain:#}")), "a");
    }

    #[test]
    fn a_line_stays_one() {
        let text = format!("{GOOD}valid{GOOD:#} x\n1 created\r\n\tb\rc");
        assert_eq!(
            painted_line(&text),
            "\u{1b}[32mvalid\u{1b}[0m x\\n1 created\\n\tb\\rc"
        );
    }

    #[test]
    fn json_for_a_terminal_is_the_same_value_without_control_characters() {
        let value = json!({"text": format!("{HOSTILE}\u{7f} ü")});
        let shown = json_line(&value.to_string());
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{E0041}']), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).ok(), Some(value));
    }

    proptest! {
        #[test]
        fn no_text_paints_itself(text in ".{0,40}|[\\x00-\\x9f\u{100000}-\u{100010}ge.]{0,40}") {
            let shown = painted(&text);
            prop_assert!(!shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{:?}", shown);
        }
    }
}
