//! The query of a search, and its order.

use std::cmp::Ordering;

use super::filter::Filters;

/// The key of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// Their relevance.
    #[default]
    Relevance,
    /// Their quality; those without a score come last.
    Score,
    /// Stars of their repositories; none are known yet.
    Stars,
    /// The time of their last change.
    Updated,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sort {
    /// The key.
    pub by: SortBy,
    /// The least first.
    pub ascending: bool,
}

/// The query of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    /// Words, a name, or a sentence.
    pub text: String,
    /// The filters.
    pub filters: Filters,
    /// The order.
    pub sort: Sort,
    /// Skills to skip.
    pub offset: usize,
    /// Skills at most.
    pub limit: usize,
    /// Count the hits by their properties.
    pub facets: bool,
    /// Search by words only.
    pub words_only: bool,
    /// Leave the snippets out, for which texts of skills are read.
    pub no_snippets: bool,
}

/// The order of two scores; a missing one comes last, either way.
pub(super) fn by_score(a: Option<f64>, b: Option<f64>, ascending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if ascending => a.total_cmp(&b),
        (Some(a), Some(b)) => b.total_cmp(&a),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}
