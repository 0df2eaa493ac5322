//! Skills with nearly the same text, in the words of the contract.

use super::convert::{count, ids};
use super::search::{rounded, summary};
use super::{DEFAULT_SIMILAR_SKILLS, MIN_SIMILARITY, page_size};
use ::lookup::{Lookup, Resolved};
use contract::v1;
use model::{Failure, Reference};
use registry::Registry;
use search::{SearchIndex, SimilarSkill, SimilarSkills};

/// Lists the skills that are similar to one.
pub(super) async fn list(
    registry: &Registry,
    lookup: &Lookup,
    index: &SearchIndex,
    request: v1::ListSimilarSkillsRequest,
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
    let similar = index.find_similar(head, min, limit).await;
    let SimilarSkills {
        skills,
        total,
        is_partial,
    } = similar?;
    let (catalog, now) = (registry.catalog(), registry.now());
    let skills = skills.into_iter().map(
        |SimilarSkill {
             head,
             similarity,
             same_name,
             same_files,
         }| v1::SimilarSkill {
            skill: Some(summary(&catalog, &head, now)),
            similarity: rounded(similarity),
            same_name,
            same_files,
        },
    );
    Ok(v1::ListSimilarSkillsResponse {
        skill_id: id,
        skills: skills.collect(),
        total: count(total),
        partial: is_partial,
        shadowed_ids: ids(shadowed),
    })
}
