//! Characters that are invisible, or that change how their neighbors look.
//!
//! They can carry instructions to a model past the person who reviews a text,
//! make a terminal act, or make one text look like another. Where a script or an
//! emoji needs them they are part of the text, and not reported.

/// The kind of a character that is not plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invisible {
    /// A control character of ASCII or Latin-1 other than tab and line ends.
    Control,
    /// It reorders what follows, so that a reader sees another text.
    Bidi,
    /// A Unicode Tag, or a variation selector that selects nothing: runs of them
    /// carry whole hidden texts.
    Payload,
    /// It takes no width and does nothing that is needed here.
    ZeroWidth,
}

impl Invisible {
    /// No honest text needs it.
    #[must_use]
    pub fn is_hostile(self) -> bool {
        self != Self::ZeroWidth
    }

    /// Its kind, for messages: `a control character`.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Control => "a control character",
            Self::Bidi => "a character that reverses the direction of writing",
            Self::Payload => "a character that carries hidden text",
            Self::ZeroWidth => "a character that is not seen",
        }
    }
}

/// The character has no look of its own: it changes its neighbors, or nothing. Some disks
/// leave such characters out before they compare names. Unlike [`invisible`], this ignores
/// the characters around it.
#[must_use]
pub fn is_ignorable(c: char) -> bool {
    is_selector(c)
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The invisible characters of a text, each with the byte it begins at.
pub fn invisible(text: &str) -> impl Iterator<Item = (usize, char, Invisible)> {
    // Nearly every text has none, and most are ASCII.
    let plain = text.bytes().all(is_plain);
    let text = if plain { "" } else { text };
    let has_rtl = text.chars().any(is_rtl);
    let mut before = None;
    let mut in_flag = false;
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, c) = chars.next()?;
            let after = chars.peek().map(|(_, c)| *c);
            let is_tag = matches!(c, '\u{E0020}'..='\u{E007F}');
            in_flag = in_flag && is_tag || is_flag(text.get(at..).unwrap_or_default());
            let kind = kind(before, c, after, has_rtl).filter(|_| !in_flag);
            before = Some(c);
            if let Some(kind) = kind {
                return Some((at, c, kind));
            }
        }
    })
}

/// The byte is a visible character of ASCII, a blank or a line end.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// The flags of England, Scotland and Wales are a black flag and Unicode Tags:
/// the only ones that Unicode recommends (UTS 51, `RGI_Emoji_Tag_Sequence`).
const FLAGS: [&str; 3] = [
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// The text begins with one of the flags, and no further tags hang on it.
fn is_flag(text: &str) -> bool {
    let mut behind = FLAGS.iter().filter_map(|flag| text.strip_prefix(flag));
    behind.any(|rest| !rest.starts_with(|c| matches!(c, '\u{E0000}'..='\u{E0FFF}')))
}

fn kind(before: Option<char>, c: char, after: Option<char>, has_rtl: bool) -> Option<Invisible> {
    let unless = |fine: bool, kind| (!fine).then_some(kind);
    match c {
        '\t' | '\n' | '\r' => None,
        c if c.is_control() => Some(Invisible::Control),
        // Overrides are for tables of characters; embeddings and isolates have
        // their use where the text has letters that are written to the left.
        '\u{202D}' | '\u{202E}' => Some(Invisible::Bidi),
        '\u{202A}'..='\u{202C}' | '\u{2066}'..='\u{2069}' => Some(if has_rtl {
            Invisible::ZeroWidth
        } else {
            Invisible::Bidi
        }),
        '\u{61C}' | '\u{200E}' | '\u{200F}' => unless(has_rtl, Invisible::ZeroWidth),
        // Joiners are part of how Persian and the scripts of India are spelled, and of emoji
        // that are put together from several.
        '\u{200C}' | '\u{200D}' => {
            let joins_letters = before.is_some_and(is_joining);
            let joins_emoji = c == '\u{200D}'
                && before.is_some_and(|c| is_pictograph(c) || c == '\u{FE0F}')
                && after.is_some_and(is_pictograph);
            unless(joins_letters || joins_emoji, Invisible::ZeroWidth)
        }
        '\u{FE00}'..='\u{FE0F}' => {
            // One selector selects. A second one behind it carries data.
            let selects =
                before.is_some_and(|c| !c.is_whitespace() && !c.is_control() && !is_selector(c));
            unless(selects, Invisible::ZeroWidth)
        }
        // These choose between forms of one ideograph (UTS 37). Behind anything else they only
        // carry bytes.
        '\u{E0100}'..='\u{E01EF}' => unless(before.is_some_and(is_han), Invisible::Payload),
        '\u{E0000}'..='\u{E0FFF}' => Some(Invisible::Payload),
        '\u{180B}'..='\u{180F}' => unless(
            before.is_some_and(|c| matches!(c, '\u{1800}'..='\u{18AF}')),
            Invisible::ZeroWidth,
        ),
        c => is_ignorable(c).then_some(Invisible::ZeroWidth),
    }
}

/// Letters that are written to the left.
fn is_rtl(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{61B}' | '\u{61D}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
}

/// Letters of scripts that need joiners: Arabic and its kin, those of India and of
/// the south east of Asia, Tibetan, Mongolian.
fn is_joining(c: char) -> bool {
    matches!(c,
        '\u{600}'..='\u{8FF}' | '\u{900}'..='\u{109F}' | '\u{1780}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}'
        | '\u{A800}'..='\u{A8FF}' | '\u{A900}'..='\u{ABFF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10A00}'..='\u{10FFF}' | '\u{11000}'..='\u{11FFF}' | '\u{1E800}'..='\u{1EFFF}')
}

fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{2BFF}'
        | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}')
}

pub(super) fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

fn is_han(c: char) -> bool {
    matches!(c,
        '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(text: &str) -> Vec<Invisible> {
        invisible(text).map(|(_, _, kind)| kind).collect()
    }

    #[test]
    fn text_of_any_script_and_emoji_has_nothing_invisible() {
        for text in [
            "plain\ttext\r\n",
            "naïve — “quotes” … 日本語 한국어 Ελληνικά",
            "می‌خواهم", // Persian, with a non-joiner
            "क्‍ष नहीं",  // Devanagari, with a joiner
            "👩‍💻 👨‍👩‍👧‍👦 ❤️‍🔥 🏳️‍🌈 🧑🏽‍🚀 1️⃣ ⚠️ ©️",
            "🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿",
            "葛\u{E0100}城", // an ideographic variant
            "שלום\u{200F}!",
            "",
        ] {
            assert_eq!(kinds(text), [], "{text:?}");
        }
    }

    #[test]
    fn what_hides_reorders_or_controls_is_found_where_it_stands() {
        let found: Vec<_> = invisible("ab\u{1b}[31m\u{202e}x").collect();
        assert_eq!(
            found,
            [
                (2, '\u{1b}', Invisible::Control),
                (7, '\u{202e}', Invisible::Bidi)
            ]
        );
        for (text, kind) in [
            ("a\0b", Invisible::Control),
            ("a\u{7f}", Invisible::Control),
            ("a\u{9b}31m", Invisible::Control),
            ("a\u{202d}b", Invisible::Bidi),
            ("a\u{2066}b", Invisible::Bidi),
            ("a\u{E0041}", Invisible::Payload),
            ("a\u{E0001}", Invisible::Payload),
            ("a\u{E0100}", Invisible::Payload),
            ("wri\u{200d}te", Invisible::ZeroWidth),
            ("wri\u{200c}te", Invisible::ZeroWidth),
            ("a\u{200b}b", Invisible::ZeroWidth),
            ("a\u{200e}b", Invisible::ZeroWidth),
            ("a\u{ad}b", Invisible::ZeroWidth),
            ("a\u{feff}b", Invisible::ZeroWidth),
            ("a\u{2028}b", Invisible::ZeroWidth),
            ("⚙\u{fe0f}\u{fe0f}", Invisible::ZeroWidth),
            ("א\u{2067}b", Invisible::ZeroWidth),
        ] {
            assert_eq!(kinds(text), [kind], "{text:?}");
        }
    }

    #[test]
    fn a_flag_with_more_behind_it_hides_no_text() {
        let flag = FLAGS[0];
        assert_eq!(kinds(flag), []);
        let longer = format!("{flag}\u{E0041}");
        assert!(kinds(&longer).contains(&Invisible::Payload));
        let other = "\u{1F3F4}\u{E0069}\u{E0067}\u{E007F}";
        assert_eq!(kinds(other), [Invisible::Payload; 3]);
        // Behind a flag that is whole, tags hide as they do elsewhere.
        assert_eq!(kinds(&format!("{flag} \u{E0041}")), [Invisible::Payload]);
    }

    /// What is found where it stands is left out wherever names are compared.
    #[test]
    fn what_is_invisible_beside_letters_is_ignorable() {
        for c in '\0'..=char::MAX {
            let found = kinds(&format!("a{c}b"));
            let is_found = found.iter().any(|kind| *kind != Invisible::Control);
            let is_seen_to = matches!(c, '\u{FE00}'..='\u{FE0F}');
            assert_eq!(is_found || is_seen_to, is_ignorable(c), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn every_tag_override_and_control_is_hostile_wherever_it_stands(
            before in "[a-zא日👩 ]{0,4}", after in ".{0,4}",
            c in prop_oneof![
                proptest::char::range('\u{0}', '\u{8}'), proptest::char::range('\u{80}', '\u{9f}'),
                proptest::char::range('\u{202d}', '\u{202e}'), proptest::char::range('\u{E0000}', '\u{E007F}'),
            ],
        ) {
            let text = format!("{before}{c}{after}");
            let found = invisible(&text).find(|(at, _, _)| *at == before.len());
            prop_assert!(found.is_some_and(|(_, _, kind)| kind.is_hostile()), "{:?}", text);
        }
    }
}
