//! The words of a query, each with the forms that it may take.

use super::Repair;
use super::repair::{self, Dictionary};
use super::snapshot::Snapshot;
use super::tokens::{self, Stemmer};

/// Words of a query that are searched for. The rest of a longer one adds little.
pub(super) const MAX_QUERY_WORDS: usize = 32;
/// Words that only begin like a word of the query, at most.
const MAX_COMPLETIONS: usize = 16;
/// Words of a query that are corrected, at most. Where more are unknown, they are no slips:
/// it is another language.
const MAX_CORRECTED_WORDS: usize = 3;
/// Letters from which on a word may be the beginning of another.
const MIN_PREFIX_CHARS: usize = 3;

/// The weights of other forms of a word, relative to the word itself.
const PREFIX_WEIGHT: f32 = 0.6;
const CORRECTED_WEIGHT: f32 = 0.7;
const JOINED_WEIGHT: f32 = 0.8;

/// One way to say a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WordForm {
    /// Its stem; of a form that is searched for in names only, the whole word.
    pub(super) text: String,
    /// The weight of a match, from 0 to 1.
    pub(super) weight: f32,
    /// Searched for among the whole words of names only.
    pub(super) in_names: bool,
}

/// A word of the query with its forms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// The word as it was typed, folded.
    pub(super) word: String,
    /// Its forms, the word itself first.
    pub(super) forms: Vec<WordForm>,
}

/// The words of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct Terms {
    /// The words that count.
    pub(super) groups: Vec<Group>,
    /// The query with its spelling corrected.
    pub(super) interpreted: String,
    /// All words of the query, folded, one space between two.
    pub(super) folded: String,
    /// Words that no skill has, and their corrections.
    pub(super) repairs: Vec<Repair>,
    /// Words that no skill has, nor any that is spelled like it.
    pub(super) unknown: Vec<String>,
}

fn form(text: String, weight: f32) -> WordForm {
    WordForm {
        text,
        weight,
        in_names: false,
    }
}

impl Terms {
    /// Reads a query against the words that skills have.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(super) fn read(
        snapshot: &Snapshot,
        stemmer: &mut Stemmer,
        query: &str,
    ) -> tantivy::Result<Self> {
        let dictionary = Dictionary(snapshot);
        let typed: Vec<String> = tokens::list(query).into_iter().map(|w| w.text).collect();
        let mut terms = Self {
            folded: typed.join(" "),
            ..Self::default()
        };
        let says_something = typed.iter().any(|word| !tokens::is_empty(word));
        let mut interpreted = Vec::with_capacity(typed.len());
        let mut words = typed.iter().peekable();
        while let Some(word) = words.next() {
            // A query of nothing but such words, as `to do`, is looked for as it is.
            if says_something && tokens::is_empty(word) || terms.groups.len() >= MAX_QUERY_WORDS {
                interpreted.push(word.clone());
                continue;
            }
            let next = words.peek().map(|next| next.as_str());
            terms.add(&dictionary, stemmer, word, next, &mut interpreted)?;
        }
        terms.interpreted = interpreted.join(" ");
        Ok(terms)
    }

    fn add(
        &mut self,
        dictionary: &Dictionary<'_>,
        stemmer: &mut Stemmer,
        word: &str,
        next: Option<&str>,
        interpreted: &mut Vec<String>,
    ) -> tantivy::Result<()> {
        let stem = stemmer.stem(word).to_owned();
        let mut group = Group {
            word: word.to_owned(),
            forms: vec![form(stem.clone(), 1.0)],
        };
        let mut read_as = Vec::new();
        if !dictionary.has_stem(&stem)? {
            if let Some((first, second)) = repair::apart(dictionary, word)? {
                read_as = vec![first.clone(), second.clone()];
                group.forms = vec![form(stemmer.stem(&first).to_owned(), 1.0)];
                self.push(Group {
                    word: word.to_owned(),
                    forms: vec![form(stemmer.stem(&second).to_owned(), 1.0)],
                });
            } else if self.repairs.len() + self.unknown.len() < MAX_CORRECTED_WORDS {
                read_as = repair::near(dictionary, word)?;
                let repaired = read_as.iter();
                let repaired =
                    repaired.map(|near| form(stemmer.stem(near).to_owned(), CORRECTED_WEIGHT));
                group.forms.extend(repaired);
            }
            if read_as.is_empty() {
                self.unknown.push(word.to_owned());
            } else {
                self.repairs.push(Repair {
                    word: word.to_owned(),
                    read_as: read_as.clone(),
                });
            }
        }
        if word.chars().count() >= MIN_PREFIX_CHARS {
            for longer in dictionary.names_beginning(word, MAX_COMPLETIONS)? {
                if stemmer.stem(&longer) != stem {
                    group.forms.push(WordForm {
                        text: longer,
                        weight: PREFIX_WEIGHT,
                        in_names: true,
                    });
                }
            }
        }
        if let Some(next) = next {
            let joined = format!("{word}{next}");
            if dictionary.has_word(&joined)? {
                let joined = stemmer.stem(&joined).to_owned();
                group.forms.push(form(joined, JOINED_WEIGHT));
            }
        }
        match read_as.as_slice() {
            [] => interpreted.push(word.to_owned()),
            [first, second] if group.forms.len() == 1 || second.starts_with(first.as_str()) => {
                interpreted.extend([first.clone(), second.clone()]);
            }
            [first, ..] => interpreted.push(first.clone()),
        }
        self.push(group);
        Ok(())
    }

    /// Adds a word once.
    fn push(&mut self, group: Group) {
        let same = |other: &Group| other.forms.first() == group.forms.first();
        if self.groups.len() < MAX_QUERY_WORDS && !self.groups.iter().any(same) {
            self.groups.push(group);
        }
    }
}
