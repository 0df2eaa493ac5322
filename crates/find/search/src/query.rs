//! What is looked for, and in which order.

use std::cmp::Ordering;

use super::filter::Filters;

/// What skills are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// How well they answer.
    #[default]
    Relevance,
    /// Their quality; those without a score come last.
    Score,
    /// Stars of their repositories; none are known yet.
    Stars,
    /// When they last changed.
    Updated,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sort {
    /// By what.
    pub by: SortBy,
    /// The least first.
    pub ascending: bool,
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    /// Words, a name, or a sentence.
    pub text: String,
    /// What a skill must have.
    pub filters: Filters,
    /// The order.
    pub sort: Sort,
    /// Skills to pass over.
    pub offset: usize,
    /// Skills at most.
    pub limit: usize,
    /// Count what is found by its properties.
    pub facets: bool,
    /// Look for words only.
    pub words_only: bool,
    /// Leave the snippets out, for which texts of skills are read.
    pub no_snippets: bool,
}

/// The order of two scores; whoever has none comes last, either way.
pub(super) fn by_score(a: Option<f64>, b: Option<f64>, ascending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if ascending => a.total_cmp(&b),
        (Some(a), Some(b)) => b.total_cmp(&a),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}
