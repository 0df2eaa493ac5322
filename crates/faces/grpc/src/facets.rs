//! Categories and technologies of a skill: those that its author states, then inferred ones.

use std::borrow::Cow;

use contract::v1;
use model::Version;
use registry::{Head, Summary};

/// Returns the summary of a version.
pub(super) fn summary<'a>(head: &'a Head, version: &Version) -> Cow<'a, Summary> {
    // A head has the summary of its active version only; that of any other is computed.
    let active = head.active == Some(version.number);
    let summary = head.summary.as_ref().filter(|_| active);
    summary.map_or_else(|| Cow::Owned(Summary::new(version, None)), Cow::Borrowed)
}

/// Returns the categories of a skill, stated ones first.
pub(super) fn categories(summary: &Summary) -> Vec<String> {
    let stated = summary.stated_categories().map(str::to_owned);
    let inferred = summary.inferred_categories().iter();
    let inferred = inferred.map(|inferred| inferred.id.to_string());
    stated.chain(inferred).collect()
}

/// Returns the technologies of a skill, stated ones first.
pub(super) fn technologies(summary: &Summary) -> Vec<String> {
    let inferred = summary.inferred_technologies().iter();
    let inferred = inferred.map(|inferred| inferred.id.to_string());
    summary
        .technologies
        .iter()
        .cloned()
        .chain(inferred)
        .collect()
}

/// Returns the inferred ones among these, and how certain they are.
pub(super) fn inferred(summary: &Summary) -> Vec<v1::InferredFacet> {
    let all = [
        summary.inferred_categories(),
        summary.inferred_technologies(),
    ];
    let all = all.into_iter().flatten();
    all.map(|inferred| v1::InferredFacet {
        id: inferred.id.to_string(),
        confidence: inferred.confidence(),
    })
    .collect()
}
