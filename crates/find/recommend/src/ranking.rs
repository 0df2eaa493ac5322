//! Candidates with their reasons, and their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::SkillKey;
use registry::{Head, Summary};

use super::recommendation::{Priority, Reason, ReasonKind, Recommendation};

/// Skills that are called essential; more are not.
const MAX_ESSENTIAL_SKILLS: usize = 3;
/// Score from which on they may be.
const MIN_ESSENTIAL: f64 = 0.7;
/// Score from which on a skill is recommended, and no longer an option.
const MIN_RECOMMENDED: f64 = 0.5;
/// The factor of one more skill for the same need.
const SAME_NEED_FACTOR: f64 = 0.82;

/// The reasons for a skill so far.
#[derive(Debug)]
struct Candidate {
    head: Arc<Head>,
    reasons: BTreeMap<(ReasonKind, String), Reason>,
    is_essential: bool,
}

/// Skills that there are reasons for.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    by_key: BTreeMap<SkillKey, Candidate>,
}

impl Candidates {
    /// Adds a reason for a skill; of equal ones the stronger counts. Nobody asked for the skill
    /// itself, so one that agents are not offered is no candidate.
    pub(super) fn add(&mut self, head: &Arc<Head>, reason: Reason, is_essential: bool) {
        if !head.is_offered() {
            return;
        }
        let candidate = self.by_key.entry(head.id.key());
        let candidate = candidate.or_insert_with(|| Candidate {
            head: Arc::clone(head),
            reasons: BTreeMap::new(),
            is_essential: false,
        });
        candidate.is_essential |= is_essential;
        let known = candidate.reasons.entry((reason.kind, reason.text.clone()));
        known
            .and_modify(|known| known.confidence = known.confidence.max(reason.confidence))
            .or_insert(reason);
    }

    /// All of them.
    pub(super) fn heads(&self) -> Vec<Arc<Head>> {
        let candidates = self.by_key.values();
        candidates
            .map(|candidate| Arc::clone(&candidate.head))
            .collect()
    }

    /// The candidates that are worth reporting, the best first; among equals the more trusted,
    /// then the one of more quality, then the older. Of several with one name one is reported, and of several
    /// for the same area only, the later ones move back, so that the first are not all alike.
    pub(super) fn best(&self, min: f64) -> Vec<Recommendation> {
        let candidates = self.by_key.values();
        let mut left: Vec<(Recommendation, bool)> = candidates
            .map(|candidate| (candidate.recommendation(), candidate.is_essential))
            .filter(|(recommendation, _)| recommendation.score >= min)
            .collect();
        left.sort_by(|(a, _), (b, _)| {
            let by_score = b.score.total_cmp(&a.score);
            by_score
                .then_with(|| a.head.trust_tier().cmp(&b.head.trust_tier()))
                .then_with(|| quality(&b.head).total_cmp(&quality(&a.head)))
                // Nobody is first by the id that they choose.
                .then_with(|| a.head.created_at.cmp(&b.head.created_at))
                .then_with(|| a.head.id.key().cmp(&b.head.id.key()))
        });
        let mut names: BTreeSet<String> = BTreeSet::new();
        left.retain(|(skill, _)| names.insert(skill.head.id.slug().to_owned()));
        let mut alike: BTreeMap<String, i32> = BTreeMap::new();
        let mut placed: Vec<(f64, Recommendation, bool)> = left
            .into_iter()
            .map(|(skill, is_essential)| {
                let is_for_area = skill.reasons.first().map(|first| first.kind);
                let before = match is_for_area {
                    Some(ReasonKind::GapCoverage) => {
                        let area = skill.areas.first().cloned().unwrap_or_default();
                        let before = alike.entry(area).or_default();
                        *before += 1;
                        *before - 1
                    }
                    _ => 0,
                };
                (
                    skill.score * SAME_NEED_FACTOR.powi(before),
                    skill,
                    is_essential,
                )
            })
            .collect();
        // Stable: among equals the order by score and id stays.
        placed.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut essential = 0;
        let place = |(_, skill, is_essential): (f64, Recommendation, bool)| {
            let is_essential =
                is_essential && skill.score >= MIN_ESSENTIAL && essential < MAX_ESSENTIAL_SKILLS;
            essential += usize::from(is_essential);
            Recommendation {
                priority: if is_essential {
                    Priority::Essential
                } else {
                    skill.priority
                },
                ..skill
            }
        };
        placed.into_iter().map(place).collect()
    }
}

/// The quality of the active version of a skill.
fn quality(head: &Head) -> f64 {
    // Without its age, which `Head::quality` takes in: the same codebase gets the same answer on
    // any day.
    let summary = head.summary.as_ref();
    summary.and_then(|summary| summary.quality).unwrap_or(0.0)
}

impl Candidate {
    fn recommendation(&self) -> Recommendation {
        let mut reasons: Vec<Reason> = self.reasons.values().cloned().collect();
        reasons.sort_by(|a, b| {
            let by_confidence = b.confidence.total_cmp(&a.confidence);
            by_confidence.then_with(|| (a.kind, &a.text).cmp(&(b.kind, &b.text)))
        });
        let left: f64 = reasons
            .iter()
            .map(|reason| 1.0 - reason.confidence)
            .product();
        let score = 1.0 - left;
        Recommendation {
            head: Arc::clone(&self.head),
            score,
            areas: self
                .head
                .summary
                .iter()
                .flat_map(Summary::categories)
                .map(|(id, _)| id.into_owned())
                .collect(),
            priority: if score >= MIN_RECOMMENDED {
                Priority::Recommended
            } else {
                Priority::Optional
            },
            reasons,
        }
    }
}
