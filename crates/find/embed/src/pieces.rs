//! A text as rows of the built-in table.
//!
//! `table/README.md` has the rules; `table/fit.py` made the table by the same, and
//! `table/golden.json` holds this file to them.

use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Characters of the longest word that is read; a longer one is data.
const MAX_WORD_CHARS: usize = 64;
/// Characters of the longest piece: of a word, and of a run without spaces.
const MAX_PIECE_CHARS: usize = 24;
const MAX_UNSPACED_CHARS: usize = 8;
/// Average letters of a piece, in quarters, below which a text is noise: it is cut into hardly
/// more than its letters, and the rows of letters have no common meaning. German compounds
/// that the table has no part of have 2.3 and more; four in five texts of random letters have
/// less.
const MIN_QUARTER_LETTERS: usize = 9;
/// The letters that a whole word, or a character of a script without spaces, counts as:
/// however short, it has a meaning.
const WHOLE_WORD_WEIGHT: usize = 4;

/// The pieces that have a row, by their text.
#[derive(Debug)]
pub(super) struct Pieces {
    rows: FxHashMap<&'static [u8], u32>,
}

impl Pieces {
    /// One piece a line, in the order of the rows.
    pub(super) fn new(lines: &'static [u8]) -> Self {
        let pieces = lines.trim_ascii_end().split(|byte| *byte == b'\n');
        Self {
            rows: pieces.zip(0..).collect(),
        }
    }

    fn row(&self, piece: &str) -> Option<u32> {
        self.rows.get(piece.as_bytes()).copied()
    }

    /// The rows of a text, in its order.
    pub(super) fn rows_of(&self, text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let mut piece = String::new();
        each_word(text, |word, behind, unspaced| {
            if !unspaced && let Some(row) = self.with_sign(word, behind, &mut piece) {
                found.push(row);
            } else if word.len() <= MAX_WORD_CHARS {
                self.cut(word, unspaced, &mut piece, &mut found);
            }
        });
        found
    }

    /// The text has pieces, and these are hardly more than letters: no words of a language
    /// that the table knows.
    pub(super) fn is_noise(&self, text: &str) -> bool {
        let (mut letters, mut pieces) = (0, 0);
        let (mut piece, mut rows) = (String::new(), Vec::new());
        each_word(text, |word, behind, unspaced| {
            if !unspaced && self.with_sign(word, behind, &mut piece).is_some() {
                letters += WHOLE_WORD_WEIGHT;
                pieces += 1;
                return;
            }
            rows.clear();
            self.cut(word, unspaced, &mut piece, &mut rows);
            pieces += rows.len();
            letters += match rows.len() {
                0 => 0,
                found if unspaced => found * WHOLE_WORD_WEIGHT,
                1 if word.len() > 1 => word.len().max(WHOLE_WORD_WEIGHT),
                _ => word.len(),
            };
        });
        letters * 4 < pieces * MIN_QUARTER_LETTERS
    }

    /// `c++` and `c#`.
    fn with_sign(&self, word: &[char], behind: &[char], piece: &mut String) -> Option<u32> {
        let sign = match behind {
            ['+', '+', ..] => "++",
            ['#', ..] => "#",
            _ => return None,
        };
        piece.clear();
        piece.extend(word);
        piece.push_str(sign);
        self.row(piece)
    }

    /// The longest pieces, from the left; a character that begins none is left out.
    fn cut(&self, word: &[char], unspaced: bool, piece: &mut String, found: &mut Vec<u32>) {
        let longest = if unspaced {
            MAX_UNSPACED_CHARS
        } else {
            MAX_PIECE_CHARS
        };
        let mut at = 0;
        while let Some(rest) = word.get(at..).filter(|rest| !rest.is_empty()) {
            let fitting = (1..=longest.min(rest.len())).rev().find_map(|length| {
                piece.clear();
                if at > 0 && !unspaced {
                    piece.push_str("##");
                }
                piece.extend(rest.iter().take(length));
                Some((length, self.row(piece)?))
            });
            match fitting {
                Some((length, row)) => {
                    found.push(row);
                    at += length;
                }
                None => at += 1,
            }
        }
    }
}

/// Calls `each` with the words of a text, the text behind each, and whether its script puts no
/// spaces between words.
fn each_word(text: &str, mut each: impl FnMut(&[char], &[char], bool)) {
    let text: Vec<char> = folded(text).chars().collect();
    let mut rest = text.as_slice();
    while let Some((first, tail)) = rest.split_first() {
        if !first.is_alphanumeric() {
            rest = tail;
            continue;
        }
        let unspaced = is_unspaced(*first);
        let is_same = |c: &char| c.is_alphanumeric() && is_unspaced(*c) == unspaced;
        let end = rest.iter().position(|c| !is_same(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        each(word, behind, unspaced);
    }
}

/// In lower case, without marks, letters of other alphabets as two of this.
fn folded(text: &str) -> String {
    let plain: String = text
        .to_lowercase()
        .nfkd()
        .filter(|c| !is_combining_mark(*c) || is_sound_mark(*c))
        .collect();
    let mut folded = String::with_capacity(plain.len());
    // A second time: `ℌ` and its like have no lower case before they come apart into a capital.
    for c in plain.to_lowercase().chars() {
        match c {
            'ß' => folded.push_str("ss"),
            'ł' => folded.push('l'),
            'ı' => folded.push('i'),
            'ø' => folded.push('o'),
            'đ' => folded.push('d'),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            c => folded.push(c),
        }
    }
    // Syllables of Korean and kana came apart with the marks, and are rows as wholes.
    folded.nfc().collect()
}

/// A mark that makes another sound of a kana, and so another letter.
fn is_sound_mark(c: char) -> bool {
    matches!(c, '\u{3099}' | '\u{309a}')
}

/// A character of a script that puts no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{ac00}'..='\u{d7af}')
}
