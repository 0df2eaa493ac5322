//! Usage counts as messages of the contract.

use super::convert::time;
use ::registry::SkillUsage;
use contract::v1;

pub(super) fn metrics(usage: SkillUsage) -> v1::GetMetricsResponse {
    let versions = usage.versions.into_iter();
    let versions = versions.map(|(version, counts)| v1::VersionMetrics {
        version_number: version.number.get(),
        semantic_version: version.semantic.to_string(),
        loads: counts.loads,
        reads: counts.reads,
        distinct_sessions: counts.sessions,
        last_used_at: counts.last_used_at.map(time),
    });
    v1::GetMetricsResponse {
        skill_id: usage.head.id.to_string(),
        total_loads: usage.loads,
        total_reads: usage.reads,
        versions: versions.collect(),
    }
}
