//! Words of a text, as the index and a query both read them.
//!
//! * A word is a run of letters and digits, in lower case and without marks:
//!   `État` is `etat`. Apostrophes inside a word are left out.
//! * One letter keeps `+` and `#` behind it: `c++`, `c#`.
//! * Chinese, Japanese and Korean are written without spaces: each run gives the
//!   pairs of its neighbors, so that a query finds any part of it.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tantivy::tokenizer::{Language, RawTokenizer, TextAnalyzer, Token, TokenStream, Tokenizer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Longer words are cut: they are data, not language.
const MAX_WORD_CHARS: usize = 64;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The word, folded.
    pub(super) text: String,
    /// Its range of bytes.
    pub(super) range: Range<usize>,
}

/// A character of a script that puts no spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11ff | 0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x3130..=0x318f
        | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff
        | 0xff66..=0xff9f | 0x2_0000..=0x3_ffff)
}

/// One of the common characters of these scripts, all of which are letters.
fn is_usual(c: char) -> bool {
    matches!(c, 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{4e00}'..='\u{9fff}' | '가'..='힣')
}

/// The words of a text, in their order.
pub(super) fn words(text: &str, each: impl FnMut(&str, Range<usize>)) {
    words_beginning(text, |_| true, each);
}

/// Calls `each` with the words of a text whose first letter `takes` accepts; with some others
/// too, where they are not plain.
pub(super) fn words_beginning(
    text: &str,
    takes: impl Fn(char) -> bool,
    mut each: impl FnMut(&str, Range<usize>),
) {
    let mut folded = String::new();
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
            at += 1;
        } else if let Some(word) = plain_word(text, at) {
            let end = at + word.len();
            if takes(char::from(byte.to_ascii_lowercase())) {
                folded.clear();
                folded.push_str(word.get(..MAX_WORD_CHARS).unwrap_or(word));
                folded.make_ascii_lowercase();
                each(&folded, at..end);
            }
            at = end;
        } else {
            at = next_words(text, at, &mut folded, &takes, &mut each);
        }
    }
}

/// The word that begins here, where it is of nothing but ASCII letters and digits:
/// nearly all are, and need no more than this.
fn plain_word(text: &str, at: usize) -> Option<&str> {
    let rest = text.as_bytes().get(at..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let end = end.unwrap_or(rest.len());
    match (end, rest.get(end)) {
        // These words need a look at characters, not bytes: `c#`, `don't`, `naïve`.
        (0, _) | (1, Some(b'#' | b'+')) | (_, Some(b'\'' | 0x80..)) => None,
        _ => text.get(at..at + end),
    }
}

/// Calls `each` with the word, or the words of the run, that begins here, if any; returns the
/// position behind it.
fn next_words(
    text: &str,
    at: usize,
    folded: &mut String,
    takes: &impl Fn(char) -> bool,
    each: &mut impl FnMut(&str, Range<usize>),
) -> usize {
    let rest = text.get(at..).unwrap_or_default().char_indices();
    let mut rest = rest.map(|(behind, c)| (at + behind, c)).peekable();
    let Some((start, first)) = rest.next() else {
        return text.len();
    };
    let mut end = start + first.len_utf8();
    if !is_usual(first) && !first.is_alphanumeric() {
        return end;
    }
    if is_unspaced(first) {
        let (mut at, mut before, mut alone) = (start, first, true);
        let takes = |folded: &str| folded.chars().next().is_some_and(&takes);
        while let Some((next, c)) = rest.next_if(|&(_, c)| is_unspaced(c)) {
            end = next + c.len_utf8();
            folded.clear();
            fold(before, folded);
            if takes(folded) {
                fold(c, folded);
                each(folded, at..end);
            }
            (at, before, alone) = (next, c, false);
        }
        // A single character has no pair, and must still be found.
        if alone {
            folded.clear();
            folded.push(first);
            each(folded, start..end);
        }
        return end;
    }
    folded.clear();
    let mut letters = 1;
    fold(first, folded);
    while let Some(&(at, c)) = rest.peek() {
        if (c.is_alphanumeric() && !is_unspaced(c)) || is_combining_mark(c) {
            fold(c, folded);
            letters += 1;
        } else if letters == 1 && (c == '#' || c == '+') {
            folded.push(c);
        } else if matches!(c, '\'' | '\u{2019}') {
            let mut ahead = rest.clone();
            ahead.next();
            if !ahead.peek().is_some_and(|(_, c)| c.is_alphanumeric()) {
                break;
            }
        } else {
            break;
        }
        end = at + c.len_utf8();
        rest.next();
    }
    if !folded.is_empty() {
        folded.truncate(folded.floor_char_boundary(MAX_WORD_CHARS.min(folded.len())));
        each(folded, start..end);
    }
    end
}

/// A character in lower case, without marks.
fn fold(c: char, into: &mut String) {
    if c.is_ascii() {
        into.push(c.to_ascii_lowercase());
        return;
    }
    match c {
        // Unicode takes none of these apart.
        'ß' => into.push_str("ss"),
        'ø' | 'Ø' => into.push('o'),
        'ł' | 'Ł' => into.push('l'),
        'æ' | 'Æ' => into.push_str("ae"),
        'œ' | 'Œ' => into.push_str("oe"),
        'đ' | 'Đ' => into.push('d'),
        'ı' => into.push('i'),
        // Kana, ideographs and syllables that stand for nothing but themselves.
        'ぁ'..='ゖ'
        | 'ァ'..='ヺ'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '가'..='힣' => {
            into.push(c);
        }
        _ if is_unspaced(c) => into.extend(std::iter::once(c).nfkc()),
        _ => into.extend(
            std::iter::once(c)
                .nfkd()
                .filter(|c| !is_combining_mark(*c))
                .flat_map(char::to_lowercase)
                .filter(|c| !is_combining_mark(*c)),
        ),
    }
}

/// The words of a text as a list.
pub(super) fn list(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    words(text, |word, range| {
        found.push(Word {
            text: word.to_owned(),
            range,
        });
    });
    found
}

/// The words of a text, one space between two.
pub(super) fn folded(text: &str) -> String {
    let mut joined = String::new();
    words(text, |word, _| {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    });
    joined
}

/// A buffer for the tokens of a text, used again by the next one.
#[derive(Debug, Clone, Default)]
struct TokenBuffer(Vec<Token>);

impl TokenBuffer {
    /// Reads a text; each word is written as `spell` says.
    fn read(&mut self, text: &str, mut spell: impl FnMut(&str, &mut String)) -> ReadText<'_> {
        let mut count = 0;
        words(text, |word, range| {
            if self.0.len() <= count {
                self.0.push(Token::default());
            }
            if let Some(token) = self.0.get_mut(count) {
                token.text.clear();
                spell(word, &mut token.text);
                token.offset_from = range.start;
                token.offset_to = range.end;
                token.position = count;
            }
            count += 1;
        });
        let read = self.0.get_mut(..count).unwrap_or_default();
        ReadText {
            rest: read.iter_mut(),
            token: Token::default(),
        }
    }
}

/// The tokens of a text that was read before.
pub(super) struct ReadText<'a> {
    rest: std::slice::IterMut<'a, Token>,
    token: Token,
}

impl TokenStream for ReadText<'_> {
    fn advance(&mut self) -> bool {
        match self.rest.next() {
            Some(next) => {
                std::mem::swap(&mut self.token, next);
                true
            }
            None => false,
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// Tokens for the index: words as they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Plain(TokenBuffer);

impl Tokenizer for Plain {
    type TokenStream<'a> = ReadText<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> ReadText<'a> {
        self.0.read(text, |word, into| into.push_str(word))
    }
}

/// Tokens for the index: the stems of words.
#[derive(Clone, Default)]
pub(super) struct Stems {
    buffer: TokenBuffer,
    stemmer: Stemmer,
}

impl Tokenizer for Stems {
    type TokenStream<'a> = ReadText<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> ReadText<'a> {
        let stemmer = &mut self.stemmer;
        self.buffer
            .read(text, |word, into| into.push_str(stemmer.stem(word)))
    }
}

/// Stems that each stemmer caches: texts repeat their words, and a lookup takes a tenth of the
/// time of a stem.
const STEM_CACHE_CAPACITY: usize = 8 * 1024;

/// Makes stems, and caches them.
#[derive(Clone)]
pub(super) struct Stemmer {
    english: TextAnalyzer,
    known: FxHashMap<Box<str>, Box<str>>,
}

impl Default for Stemmer {
    fn default() -> Self {
        let whole = TextAnalyzer::builder(RawTokenizer::default());
        Self {
            english: whole
                .filter(tantivy::tokenizer::Stemmer::new(Language::English))
                .build(),
            known: FxHashMap::default(),
        }
    }
}

impl Stemmer {
    /// The stem of one folded word.
    pub(super) fn stem(&mut self, word: &str) -> &str {
        if !self.known.contains_key(word) {
            if self.known.len() >= STEM_CACHE_CAPACITY {
                self.known.clear();
            }
            let mut stream = self.english.token_stream(word);
            let stem: Box<str> = if stream.advance() {
                stream.token().text.as_str().into()
            } else {
                word.into()
            };
            drop(stream);
            self.known.insert(word.into(), stem);
        }
        self.known.get(word).map_or("", AsRef::as_ref)
    }
}

/// The analyzer of fields that are compared by stems.
pub(super) fn stems() -> TextAnalyzer {
    TextAnalyzer::builder(Stems::default()).build()
}

/// The analyzer of fields that are compared by whole words.
pub(super) fn plain() -> TextAnalyzer {
    TextAnalyzer::builder(Plain::default()).build()
}

/// Stop words.
const EMPTY: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can",
    "could", "did", "do", "does", "dont", "for", "from", "get", "give", "had", "has", "have",
    "help", "here", "how", "i", "if", "im", "in", "into", "is", "it", "its", "ive", "just", "let",
    "lets", "like", "make", "me", "my", "need", "no", "not", "now", "of", "on", "or", "our", "out",
    "please", "should", "so", "some", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "up", "us", "use", "using", "want", "was", "way", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// The word is a stop word.
pub(super) fn is_empty(word: &str) -> bool {
    EMPTY.contains(&word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_that_begin_so_are_those_of_all_words_that_do(
            text in "[a-c .'#é\u{301}中国々ｶ語カ-]{0,40}", beginning in "[a-cé中国語カ]",
        ) {
            let begins = |c: char| beginning.starts_with(c);
            let is_one = |word: &str| word.chars().next().is_some_and(begins);
            let mut found = Vec::new();
            words_beginning(&text, begins, |word, range| {
                if is_one(word) {
                    found.push(Word { text: word.to_owned(), range });
                }
            });
            let mut all = list(&text);
            all.retain(|word| is_one(&word.text));
            prop_assert_eq!(found, all);
        }

        #[test]
        fn plain_words_are_read_as_all_others(text in "[a-cA-C0-9 .'’+#é\u{301}ß中국-]{0,40}") {
            let mut slowly = Vec::new();
            let (mut at, mut folded) = (0, String::new());
            while at < text.len() {
                at = next_words(&text, at, &mut folded, &|_| true, &mut |word: &str, range| {
                    slowly.push(Word { text: word.to_owned(), range });
                });
            }
            prop_assert_eq!(list(&text), slowly);
        }
    }

    #[test]
    fn a_stem_is_the_same_however_many_were_made_and_few_are_kept() {
        let mut stemmer = Stemmer::default();
        let word = |at: usize| format!("deploying{at}s");
        for round in 0..2 {
            for at in 0..STEM_CACHE_CAPACITY + 100 {
                assert_eq!(stemmer.stem(&word(at)), format!("deploying{at}"), "{round}");
                assert!(stemmer.known.len() <= STEM_CACHE_CAPACITY);
            }
        }
        assert_eq!(stemmer.stem("deploying"), "deploy");
    }

    #[test]
    fn characters_without_spaces_are_folded_as_the_standard_says() {
        let unspaced = (0..=u32::from(char::MAX)).filter_map(char::from_u32);
        for c in unspaced.filter(|c| is_unspaced(*c)) {
            assert!(!is_usual(c) || c.is_alphanumeric(), "{c:?}");
            let mut folded = String::new();
            fold(c, &mut folded);
            assert_eq!(
                folded,
                std::iter::once(c).nfkc().collect::<String>(),
                "{c:?}"
            );
        }
    }
}
