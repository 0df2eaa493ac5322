//! Decodes what is encoded in a text.

use std::io::Read as _;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::lines::{Line, LineScope};

/// The fewest characters of an encoded text.
const MIN_ENCODED_CHARS: usize = 20;
/// The most bytes of a decoded text: a small archive may unpack to gigabytes.
const MAX_DECODED_BYTES: u64 = 256 * 1024;
/// The fewest bytes of a decoded text.
const MIN_DECODED_BYTES: usize = 8;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        // Lenient: the decoder that an attacker uses may take what a strict one refuses.
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Prefixes of data URLs with media, which no agent reads as text.
const PICTURES: [&str; 4] = [
    "data:image/",
    "data:font/",
    "data:audio/",
    "data:application/font",
];

/// A text that was encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    /// The line that it begins in.
    pub(crate) line: usize,
}

/// Decodes what is encoded in lines.
pub(crate) fn decoded(lines: &[Line<'_>]) -> Vec<Decoded> {
    let mut all: Vec<Decoded> = Vec::new();
    let mut run = Run::default();
    let mut add = |line: usize, text: String| {
        if all.last().is_none_or(|last| last.text != text) {
            all.push(Decoded { text, line });
        }
    };
    for (line, read) in lines.iter().enumerate() {
        in_line(&read.text, read.scope, &mut |text| add(line, text));
        run.take(read, line, &mut add);
    }
    run.end(&mut add);
    all
}

/// Consecutive lines of nothing but encoded text, which are one.
#[derive(Default)]
struct Run {
    text: String,
    /// Index of its first line.
    first: usize,
    lines: usize,
    next: u32,
}

impl Run {
    fn take(&mut self, line: &Line<'_>, at: usize, found: &mut dyn FnMut(usize, String)) {
        // What surrounds a string literal that is split over lines in source code.
        let bare = line.text.trim_matches(|c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    '"' | '\'' | '`' | ',' | '+' | '(' | ')' | '\\' | '.' | ';'
                )
        });
        let is_encoded = bare.len() >= 8 && bare.bytes().all(is_base64);
        if is_encoded && (self.lines == 0 || self.next == line.number) {
            if self.lines == 0 {
                self.first = at;
            }
            self.text.push_str(bare);
            self.lines += 1;
            self.next = line.number + 1;
            return;
        }
        self.end(found);
        if is_encoded {
            bare.clone_into(&mut self.text);
            self.first = at;
            self.lines = 1;
            self.next = line.number + 1;
        }
    }

    fn end(&mut self, found: &mut dyn FnMut(usize, String)) {
        // A single line was decoded by `in_line` already.
        if self.lines > 1 {
            let first = self.first;
            found_base64(&self.text, &mut |text| found(first, text));
        }
        self.text.clear();
        self.lines = 0;
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

fn in_line(text: &str, scope: LineScope, found: &mut dyn FnMut(String)) {
    base64_runs(text, found);
    let has = |needle: &str| text.contains(needle);
    if has("\\x") || has("\\u00") || has("\\1") || has("\\0") {
        escapes(text, found);
    }
    if has("%") {
        percent(text, found);
    }
    if has("&#") {
        entities(text, found);
    }
    let lower = text.to_ascii_lowercase();
    let has_any = |needles: &[&str]| needles.iter().any(|needle| lower.contains(needle));
    if has_any(&[
        "chr(",
        "char]",
        "fromcharcode",
        "bytes(",
        "bytearray(",
        "buffer.from([",
        "0x",
    ]) {
        numbers(text, found);
    }
    if has_any(&["rot13", "rot_13", "n-za-m"]) {
        found(text.chars().map(rot13).collect());
    }
    if has_any(&["[::-1]", ".reverse()", "| rev", "|rev", "strrev("]) && text.len() < 8 * 1024 {
        let reversed: String = text.chars().rev().collect();
        base64_runs(&reversed, found);
        found(reversed);
    }
    if !LineScope::SAID.has(scope) && (has("\"\"") || has("''")) {
        // A shell ignores empty quotes inside a word: `cu""rl` runs `curl`.
        let bare = text.replace("\"\"", "").replace("''", "");
        if bare.len() + 4 <= text.len() {
            found(bare);
        }
    }
    if !LineScope::SAID.has(scope)
        && text.len() < 64 * 1024
        && let Some(joined) = joined(text)
    {
        base64_runs(&joined, found);
        found(joined);
    }
}

/// Joins strings of a line that the code puts together.
fn joined(text: &str) -> Option<String> {
    let mut joined = String::with_capacity(text.len());
    let mut joints = 0;
    let mut rest = text;
    let lists = text.contains(".join('')")
        || text.contains(".join(\"\")")
        || text.contains("''.join")
        || text.contains("\"\".join");
    let between_strings = |c: char| matches!(c, ' ' | '+' | '.' | '&') || (lists && c == ',');
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, from) = rest.split_at(at);
        joined.push_str(before);
        let quote = from.get(..1).unwrap_or_default();
        let behind = from.get(1..).unwrap_or_default();
        let between = behind.trim_start_matches(between_strings);
        let gap = behind.len() - between.len();
        // `"cu" + "rl"`: two strings with the same quotes and little but operators between them.
        if gap > 0 && gap <= 5 && between.starts_with(quote) && !before.is_empty() {
            joints += 1;
            rest = between.get(1..).unwrap_or_default();
        } else {
            joined.push_str(quote);
            rest = behind;
        }
    }
    joined.push_str(rest);
    // One joint is ordinary code. Who hides a word cuts it more often.
    (joints >= 2).then_some(joined)
}

fn base64_runs(text: &str, found: &mut dyn FnMut(String)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes.get(at..).unwrap_or_default();
        let length = run.iter().take_while(|byte| is_base64(**byte)).count();
        if length >= MIN_ENCODED_CHARS {
            let run = text.get(at..at + length).unwrap_or_default();
            let before = text.get(at.saturating_sub(48)..at).unwrap_or_default();
            let is_picture = PICTURES.iter().any(|start| before.contains(start));
            if !is_picture {
                found_base64(run, found);
                found_hex(run, found);
                // `/` and `=` belong to base64, but a path or `name=` may also stand in front of
                // it.
                for part in run.split(['/', '=']).filter(|part| part.len() < run.len()) {
                    if part.len() >= MIN_ENCODED_CHARS {
                        found_base64(part, found);
                    }
                }
            }
        }
        at += length.max(1);
    }
}

fn found_base64(run: &str, found: &mut dyn FnMut(String)) {
    let standard: String = run
        .trim_end_matches('=')
        .chars()
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    if standard.contains('=') || standard.len() < MIN_ENCODED_CHARS - 4 {
        return;
    }
    // No base64 has such a length: the last letter belongs to what follows, or the text was cut.
    let length = if standard.len() % 4 == 1 {
        standard.len() - 1
    } else {
        standard.len()
    };
    if let Ok(bytes) = BASE64.decode(standard.get(..length).unwrap_or_default()) {
        found_bytes(&bytes, found);
    }
}

fn found_hex(run: &str, found: &mut dyn FnMut(String)) {
    let run = run.strip_prefix("0x").unwrap_or(run);
    if run.len() >= 24
        && run.len().is_multiple_of(2)
        && run.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        let (pairs, _) = run.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs.iter().map(|[a, b]| byte(*a, *b)).collect();
        found_bytes(&bytes.unwrap_or_default(), found);
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// The byte that two digits of hex stand for.
fn byte(high: u8, low: u8) -> Option<u8> {
    Some(digit(high)? * 16 + digit(low)?)
}

/// Reports bytes that are a text, or that unpack to one.
fn found_bytes(bytes: &[u8], found: &mut dyn FnMut(String)) {
    let mut unpacked = Vec::new();
    let bytes = match bytes {
        [0x1F, 0x8B, ..] => {
            // An error: the data broke off, and what came before that is scanned.
            let mut packed = flate2::read::GzDecoder::new(bytes).take(MAX_DECODED_BYTES);
            drop(packed.read_to_end(&mut unpacked));
            unpacked.as_slice()
        }
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => {
            let mut packed = flate2::read::ZlibDecoder::new(bytes).take(MAX_DECODED_BYTES);
            drop(packed.read_to_end(&mut unpacked));
            unpacked.as_slice()
        }
        _ => bytes,
    };
    if let Some(text) = text_of(bytes) {
        found(text);
    }
}

/// Returns bytes as text, where they are one.
fn text_of(bytes: &[u8]) -> Option<String> {
    if bytes.len() < MIN_DECODED_BYTES {
        return None;
    }
    let (pairs, _) = bytes.as_chunks::<2>();
    let wide = pairs
        .iter()
        .filter(|[low, high]| *high == 0 && *low != 0)
        .count();
    // Nine in ten units below 256: UTF-16 without a mark, as `powershell -enc` takes it.
    if wide * 10 >= pairs.len() * 9 {
        let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        return Some(String::from_utf16_lossy(&units));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A run that was cut inside a character.
        Err(error) if error.valid_up_to() + 4 > bytes.len() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    (text.len() >= MIN_DECODED_BYTES && text.chars().all(is_plain)).then(|| text.to_owned())
}

/// `\x63\x75`, `\u0063`, `\143`.
fn escapes(text: &str, found: &mut dyn FnMut(String)) {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        if at > 0 && !bytes.is_empty() {
            end_bytes(&mut bytes, found);
        }
        let behind = rest.get(at + 1..).unwrap_or_default();
        let (length, value) = match behind.as_bytes() {
            [b'x', a, b, ..] => (3, byte(*a, *b)),
            [b'u', b'0', b'0', a, b, ..] => (5, byte(*a, *b)),
            [a @ b'0'..=b'1', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                (3, Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0')))
            }
            _ => (0, None),
        };
        match value {
            Some(value) => bytes.push(value),
            None => end_bytes(&mut bytes, found),
        }
        let step = if value.is_some() { length } else { 0 };
        rest = behind.get(step..).unwrap_or_default();
    }
    end_bytes(&mut bytes, found);
}

fn end_bytes(bytes: &mut Vec<u8>, found: &mut dyn FnMut(String)) {
    if bytes.len() >= 4
        && let Some(text) = text_of(bytes).or_else(|| short_word(bytes))
    {
        found(text);
    }
    bytes.clear();
}

/// Returns a word of printable ASCII: `exec` has four letters, fewer than a text needs.
fn short_word(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.bytes()
        .all(|byte| byte.is_ascii_graphic())
        .then(|| text.to_owned())
}

fn percent(text: &str, found: &mut dyn FnMut(String)) {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut escapes = 0_usize;
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        let value = match bytes.get(at + 1..at + 3) {
            Some([a, b]) if *first == b'%' => byte(*a, *b),
            _ => None,
        };
        out.push(value.unwrap_or(*first));
        escapes += usize::from(value.is_some());
        at += if value.is_some() { 3 } else { 1 };
    }
    // Fewer are ordinary in URLs and HTML.
    if escapes >= 6 {
        found(String::from_utf8_lossy(&out).into_owned());
    }
}

fn entities(text: &str, found: &mut dyn FnMut(String)) {
    let mut out = String::with_capacity(text.len());
    let mut count = 0;
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("&#") {
        out.push_str(before);
        let end = behind.find(';').filter(|end| *end <= 8);
        let number = end.and_then(|end| {
            let digits = behind.get(..end)?;
            match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            }
        });
        if let (Some(end), Some(c)) = (end, number.and_then(char::from_u32)) {
            out.push(c);
            count += 1;
            rest = behind.get(end + 1..).unwrap_or_default();
        } else {
            out.push_str("&#");
            rest = behind;
        }
    }
    out.push_str(rest);
    if count >= 6 {
        found(out);
    }
}

/// `chr(99)+chr(117)`, `[99, 117, 114]`, `0x63, 0x75`.
fn numbers(text: &str, found: &mut dyn FnMut(String)) {
    let bytes = text.as_bytes();
    let mut word: Vec<u8> = Vec::new();
    let mut end = |word: &mut Vec<u8>| {
        if word.len() >= 6
            && let Some(text) = text_of(word).or_else(|| short_word(word))
        {
            found(text);
        }
        word.clear();
    };
    let mut at = 0;
    let mut last = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let (skip, radix) = if rest.starts_with(b"0x") {
            (2, 16)
        } else {
            (0, 10)
        };
        let digits = rest.iter().skip(skip);
        let length = digits
            .take_while(|byte| char::from(**byte).is_digit(radix))
            .count();
        if length == 0 {
            at += 1;
            continue;
        }
        let digits = text.get(at + skip..at + skip + length).unwrap_or_default();
        if at - last > 16 {
            end(&mut word);
        }
        match u8::from_str_radix(digits, radix) {
            Ok(value @ (9 | 10 | 13 | 32..=126)) => word.push(value),
            _ => end(&mut word),
        }
        at += skip + length;
        last = at;
    }
    end(&mut word);
}

fn rot13(c: char) -> char {
    let turn = |c: char, first: u8| {
        u8::try_from(c).map_or(c, |byte| char::from((byte - first + 13) % 26 + first))
    };
    match c {
        'a'..='z' => turn(c, b'a'),
        'A'..='Z' => turn(c, b'A'),
        c => c,
    }
}
