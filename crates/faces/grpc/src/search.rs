//! The rpc that searches skills.

use std::ops::Range;

use jiff::Timestamp;

use super::convert::{author, count, location_of, time, trust_tier, trust_tier_of};
use super::enums::same_variants;
use super::facets::{categories, inferred, technologies};
use super::installed::Installs;
use super::{DEFAULT_SEARCH_RESULTS, page_size, trust, wrong};
use contract::v1;
use model::{Code, Failure};
use registry::{Catalog, Head, Registry};
use search::{
    Analysis, Facet, Filters, MatchExplanation, Part, SearchIndex, SearchQuery, Sort, SortBy, Tier,
};

/// Searches a page of skills.
pub(super) async fn search(
    registry: &Registry,
    index: &SearchIndex,
    request: v1::SearchRequest,
    for_model: bool,
    installs: &Installs,
) -> Result<v1::SearchResponse, Failure> {
    let has_highlights = request.highlights;
    let mut query = query(request)?;
    // From the metadata that a face sets, not from the request, whose fields a model fills in.
    query.filters.offered = for_model;
    let found = index.find(query).await?;
    let (catalog, now) = (registry.catalog(), registry.now());
    Ok(v1::SearchResponse {
        results: found
            .hits
            .into_iter()
            .map(|hit| v1::SkillSummary {
                r#match: Some(why(hit.why, has_highlights)),
                ..summary(&catalog, &hit.head, now, installs)
            })
            .collect(),
        total: count(found.total),
        has_more: found.has_more,
        query_analysis: Some(understood(found.analysis)),
        facets: found.facets.into_iter().map(facet).collect(),
        suggestions: found.suggestions,
    })
}

fn query(request: v1::SearchRequest) -> Result<SearchQuery, Failure> {
    let v1::SearchRequest {
        query,
        filters,
        sort,
        limit,
        offset,
        facets,
        words_only,
        highlights: _,
    } = request;
    if query.trim().is_empty() {
        let failure = wrong("query", "Query cannot be empty");
        return Err(failure.suggest("Describe what you look for in 1 to 500 characters"));
    }
    Ok(SearchQuery {
        text: query,
        filters: filters.map(self::filters).transpose()?.unwrap_or_default(),
        sort: sort.map(self::sort).unwrap_or_default(),
        offset: page_size(offset, 0),
        limit: page_size(limit.unwrap_or_default(), DEFAULT_SEARCH_RESULTS),
        facets,
        words_only,
        no_snippets: false,
    })
}

fn sort(sort: v1::SearchSort) -> Sort {
    Sort {
        by: match sort.field() {
            v1::SearchSortField::Unspecified | v1::SearchSortField::Relevance => SortBy::Relevance,
            v1::SearchSortField::Score => SortBy::Score,
            v1::SearchSortField::Stars => SortBy::Stars,
            v1::SearchSortField::Updated => SortBy::Updated,
        },
        ascending: sort.direction() == v1::SortDirection::Asc,
    }
}

fn filters(filters: v1::SearchFilters) -> Result<Filters, Failure> {
    let trust_tiers = filters.trust_tier().filter_map(trust_tier_of).collect();
    let locations = filters.location().filter_map(location_of).collect();
    let v1::SearchFilters {
        categories,
        technologies,
        trust_tier: _,
        min_score,
        source,
        updated_after,
        has_tests,
        has_examples,
        tags,
        namespaces,
        location: _,
    } = filters;
    let updated_after = updated_after
        .map(|time| jiff::Timestamp::new(time.seconds, time.nanos))
        .transpose()
        .map_err(|error| {
            Failure::new(
                Code::InvalidParameter,
                format!("`filters.updated_after` is no time: {error}"),
            )
            .field("filters.updated_after", error.to_string())
            .suggest("Write it as `2026-01-31T00:00:00Z`")
        })?;
    Ok(Filters {
        categories,
        technologies,
        tags,
        trust_tiers,
        sources: source,
        namespaces,
        locations,
        min_score,
        updated_after,
        has_tests,
        has_examples,
        offered: false,
    })
}

/// Converts a skill for a list of results. `now` decides how old it is.
pub(super) fn summary(
    catalog: &Catalog,
    head: &Head,
    now: Timestamp,
    installs: &Installs,
) -> v1::SkillSummary {
    let tier = head.trust_tier();
    let shown = head.summary.as_ref();
    v1::SkillSummary {
        id: head.id.to_string(),
        name: shown.map_or_else(String::new, |shown| shown.name.clone()),
        slug: head.id.slug().to_owned(),
        description: shown.map_or_else(String::new, |shown| shown.description.clone()),
        author: Some(author(&head.id, None, tier)),
        trust_tier: trust_tier(tier).into(),
        quality_score: head.quality(now),
        github_stars: None,
        categories: shown.map_or_else(Vec::new, categories),
        technologies: shown.map_or_else(Vec::new, technologies),
        inferred: shown.map_or_else(Vec::new, inferred),
        updated_at: Some(time(head.updated_at)),
        installed: installs.has(&head.id),
        r#match: None,
        short_name: catalog.short_name(head).to_owned(),
        security_scan_status: trust::scan_status(head.verdict()).into(),
    }
}

same_variants!(fn match_tier(Tier) -> MatchTier { Name, NameWords, Words, Meaning });

fn why(why: MatchExplanation, has_highlights: bool) -> v1::SearchMatch {
    let (words, meaning) = (f64::from(why.words), f64::from(why.meaning));
    v1::SearchMatch {
        tier: match_tier(why.tier).into(),
        score: rounded(words + meaning),
        words_score: rounded(words),
        meaning_score: rounded(meaning),
        fields: why
            .parts
            .iter()
            .map(|part: &Part| part.name().to_owned())
            .collect(),
        matched_terms: why.matched,
        snippet: why.snippet.text,
        highlights: if has_highlights {
            why.snippet.highlights.into_iter().map(range).collect()
        } else {
            Vec::new()
        },
    }
}

fn range(range: Range<usize>) -> v1::TextRange {
    v1::TextRange {
        start: count(range.start),
        end: count(range.end),
    }
}

/// Rounds to four places: more would only be noise.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn understood(analysis: Analysis) -> v1::QueryAnalysis {
    v1::QueryAnalysis {
        interpreted_query: analysis.interpreted,
        detected_intent: analysis.intent,
        suggested_refinements: analysis.refinements,
        repairs: analysis
            .repairs
            .into_iter()
            .map(|repair| v1::SpellingRepair {
                word: repair.word,
                read_as: repair.read_as,
            })
            .collect(),
        unknown_words: analysis.unknown,
        meaning_share: rounded(f64::from(analysis.meaning_share)),
    }
}

fn facet(facet: Facet) -> v1::SearchFacet {
    v1::SearchFacet {
        field: facet.field.to_owned(),
        values: facet
            .values
            .into_iter()
            .map(|(value, skills)| v1::FacetValue {
                value,
                count: count(skills),
            })
            .collect(),
    }
}
