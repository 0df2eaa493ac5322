//! Of the words that a task and a skill have in common, those that show an agent why
//! the skill fits.

use std::sync::LazyLock;

use model::listed;
use rustc_hash::FxHashSet;

/// Words of an answer.
const MAX_WORDS: usize = 4;

/// Words that say nothing of why a skill fits. Search leaves the emptiest out itself, and
/// weighs the others; here they only take the place of better ones.
static WEAK: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| listed(include_str!("reason_words/weak.txt")).collect());

/// The words, in their order.
pub(super) fn words(text: &str, matched: &[String]) -> Vec<String> {
    let text = text.to_lowercase();
    // The index cuts scripts without spaces into pairs of characters. Pairs that overlap in the
    // text become one word again; a pair of two scripts is the end of a word with the beginning
    // of the next.
    let mut words: Vec<String> = Vec::new();
    for word in matched.iter().filter(|word| !is_of_two(word)) {
        let joined = words.last().and_then(|last| joined(last, word));
        match (
            joined.filter(|joined| text.contains(joined)),
            words.last_mut(),
        ) {
            (Some(joined), Some(last)) => *last = joined,
            _ => words.push(word.clone()),
        }
    }
    words.retain(|word| is_telling(word));
    words.truncate(MAX_WORDS);
    words
}

/// The run with the pair behind it that it overlaps.
fn joined(run: &str, pair: &str) -> Option<String> {
    let mut chars = pair.chars();
    let (first, second) = (chars.next()?, chars.next()?);
    let continues = chars.next().is_none() && Script::of(first).is_some() && run.ends_with(first);
    continues.then(|| format!("{run}{second}"))
}

fn is_of_two(word: &str) -> bool {
    let mut scripts = word.chars().map(Script::of);
    let first = scripts.next().flatten();
    first.is_some() && scripts.any(|script| script != first)
}

/// A whole word that says something of why a skill fits.
fn is_telling(word: &str) -> bool {
    let mut chars = word.chars();
    // Two kana are a part of a word, or one that says nothing.
    let is_fragment = match (chars.next().and_then(Script::of), chars.nth(1)) {
        (Some(Script::Hiragana | Script::Katakana), None) => true,
        (None, _) => word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()),
        _ => false,
    };
    !is_fragment && !WEAK.contains(word)
}

/// The scripts that put no spaces between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Hiragana,
    Katakana,
    Han,
    Hangul,
}

impl Script {
    fn of(c: char) -> Option<Self> {
        match c {
            '\u{3040}'..='\u{309f}' => Some(Self::Hiragana),
            '\u{30a0}'..='\u{30ff}' => Some(Self::Katakana),
            '\u{3005}' | '\u{3400}'..='\u{9fff}' => Some(Self::Han),
            '\u{ac00}'..='\u{d7af}' => Some(Self::Hangul),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_and_say_something() {
        let told = |text: &str, matched: &[&str]| {
            let matched: Vec<String> = matched.iter().map(|word| (*word).to_owned()).collect();
            words(text, &matched).join(" ")
        };
        assert_eq!(
            told(
                "How many customers are in our SQL database?",
                &["many", "customers", "sql", "database"]
            ),
            "customers sql database"
        );
        assert_eq!(
            told("お詫びのメールを敬語で", &["メー", "ール", "ルを", "敬語"]),
            "メール 敬語"
        );
        // The end of a word, the rest of which is not there; and the end of one with the
        // beginning of another.
        assert_eq!(told("コードとカード", &["ード"]), "");
        assert_eq!(
            told("取引先への", &["取引", "引先", "先へ", "への"]),
            "取引先"
        );
        // Pairs that only seem to go on.
        assert_eq!(told("数据 据库", &["数据", "据库"]), "数据 据库");
        assert_eq!(told("数据库查询", &["数据", "据库", "查询"]), "数据库 查询");
        let many = ["aa", "bb", "cc", "dd", "ee"];
        assert_eq!(told("", &many), "aa bb cc dd");
        assert_eq!(told("a c++", &["a", "c++"]), "c++");
    }
}
