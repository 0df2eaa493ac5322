//! The rpc that lists skills with nearly the same text.

use super::convert::{count, ids};
use super::installed::Installs;
use super::search::{rounded, summary};
use super::{DEFAULT_SIMILAR_SKILLS, MIN_SIMILARITY, page_size};
use ::lookup::{Lookup, Resolved};
use contract::v1;
use model::{Failure, Reference};
use registry::Registry;
use search::SearchIndex;

/// Lists the skills that are similar to one.
pub(super) async fn list(
    registry: &Registry,
    lookup: &Lookup,
    index: &SearchIndex,
    request: v1::ListSimilarSkillsRequest,
    installs: &Installs,
) -> Result<v1::ListSimilarSkillsResponse, Failure> {
    let v1::ListSimilarSkillsRequest {
        skill_id,
        min_similarity,
        limit,
    } = request;
    let found = lookup.resolve(&Reference::parse(&skill_id));
    let Resolved { head, shadowed } = found?;
    let (id, min) = (
        head.id.to_string(),
        min_similarity.unwrap_or(MIN_SIMILARITY),
    );
    let limit = page_size(limit.unwrap_or_default(), DEFAULT_SIMILAR_SKILLS);
    let similar = index.find_similar(head, min, limit).await?;
    let (catalog, now) = (registry.catalog(), registry.now());
    let skills = similar.skills.into_iter();
    let skills = skills.map(|similar| v1::SimilarSkill {
        skill: Some(summary(&catalog, &similar.head, now, installs)),
        similarity: rounded(similar.similarity),
        same_name: similar.same_name,
        same_files: similar.same_files,
    });
    Ok(v1::ListSimilarSkillsResponse {
        skill_id: id,
        skills: skills.collect(),
        total: count(similar.total),
        partial: similar.is_partial,
        shadowed_ids: ids(shadowed),
    })
}
