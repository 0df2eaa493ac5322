//! Reads bytes as the text that a model would read, whatever disguises its characters.

use std::borrow::Cow;

use model::is_ignorable;
use unicode_normalization::UnicodeNormalization as _;

/// Decodes a file as text: UTF-8, or UTF-16 with a mark. `None`: it is no text.
pub(crate) fn decoded(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        String::from_utf16_lossy(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>())
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => return Some(Cow::Owned(utf16(rest, u16::from_le_bytes))),
        [0xFE, 0xFF, rest @ ..] => return Some(Cow::Owned(utf16(rest, u16::from_be_bytes))),
        _ => {}
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        _ if is_binary(bytes) => None,
        Ok(text) => Some(Cow::Borrowed(text)),
        // Latin-1, or a stray byte, is still text.
        Err(_) if has_few_strays(bytes) => Some(String::from_utf8_lossy(bytes)),
        Err(_) => None,
    }
}

/// Tells whether bytes are no text. By a share of control characters: one NUL must not hide a file.
fn is_binary(bytes: &[u8]) -> bool {
    let control = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    bytes.iter().filter(control).count() * 50 > bytes.len()
}

fn has_few_strays(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| !byte.is_ascii()).count() * 5 < bytes.len()
}

/// Removes disguises: compatibility forms are unified, invisible characters left out,
/// letters of other scripts inside Latin words replaced by those they look like. Lines
/// stay where they are.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_ordinary = |byte: u8| matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    // Nearly all files, without a copy.
    if text.bytes().all(is_ordinary) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.is_ascii() {
            plain.extend(
                line.chars()
                    .filter(|c| !c.is_control() || matches!(c, '\t' | '\n')),
            );
            continue;
        }
        let seen = line.chars().filter(|c| !is_ignorable(*c));
        let unified: String = seen
            .nfkc()
            .filter(|c| !c.is_control() || matches!(c, '\t' | '\n'))
            .collect();
        push_unmixed(&unified, &mut plain);
    }
    Cow::Owned(plain)
}

/// Replaces letters that look Latin in words that also have Latin letters. Words of one other
/// script are honest text.
fn push_unmixed(line: &str, plain: &mut String) {
    for word in line.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let is_mixed = !word.is_ascii() && word.bytes().any(|byte| byte.is_ascii_alphabetic());
        if is_mixed {
            plain.extend(word.chars().map(look_alike));
        } else {
            plain.push_str(word);
        }
    }
}

/// Returns the Latin letter that a letter looks like.
pub(crate) fn look_alike(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let mut buffer = [0; 4];
    let mut skeleton = unicode_security::skeleton(c.encode_utf8(&mut buffer));
    match (skeleton.next(), skeleton.next()) {
        (Some(seen), None) if seen.is_ascii_alphanumeric() => seen,
        _ => c,
    }
}

/// The name of a section in a list of names: `[name]`.
pub(crate) fn section(word: &str) -> Option<&str> {
    word.strip_prefix('[')?.strip_suffix(']')
}

/// Cuts a text for a report: on one line, without hidden characters and secrets.
pub(crate) fn evidence(text: &str) -> String {
    const CHARS: usize = 200;
    let start: String = text.trim_start().chars().take(CHARS * 4).collect();
    model::shown(start.trim_end(), CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguised_text_reads_as_what_it_looks_like() {
        for (text, seen) in [
            ("plain\n", "plain\n"),
            ("c\u{200b}u\u{200d}rl\r\n", "curl\n"),
            ("\u{ff43}\u{ff55}\u{ff52}\u{ff4c}", "curl"),
            ("b\u{430}sh", "bash"),
            (
                "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}",
                "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}",
            ),
            ("\u{1d400}\u{1d401}", "AB"),
        ] {
            assert_eq!(plain(text), seen, "{text:?}");
        }
    }

    #[test]
    fn text_is_told_from_what_is_none() {
        assert_eq!(decoded(b"\xEF\xBB\xBFabc").as_deref(), Some("abc"));
        assert_eq!(decoded(b"\xFF\xFEa\0b\0").as_deref(), Some("ab"));
        assert_eq!(
            decoded(b"caf\xE9 au lait").as_deref(),
            Some("caf\u{fffd} au lait")
        );
        assert_eq!(decoded(b"\0\x01\x02\x03"), None);
        assert_eq!(decoded(b""), Some(Cow::Borrowed("")));
    }
}
