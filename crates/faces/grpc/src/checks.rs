//! Conflicts, budgets and activation audits as messages of the contract.

use jiff::Timestamp;

use super::convert::{count, size};
use super::enums::same_variants;
use super::installed::Installs;
use super::search::summary;
use ::checks::{
    Activation, BudgetReport, ConflictKind, ConflictReport, ConflictSeverity, Estimate, Health,
    Hooks, Issue, IssueKind, IssueSeverity, Item, Opposed, Warning, WarningKind,
};
use contract::json::to_struct;
use contract::v1;
use model::SkillId;
use registry::{Catalog, Registry};

same_variants!(fn conflict_type(ConflictKind) -> ConflictType {
    TriggerOverlap, Behavioral, FileCollision
});

same_variants!(fn conflict_severity(ConflictSeverity) -> ConflictSeverity {
    Blocking, Warning, Info
});

same_variants!(fn overall_health(Health) -> OverallHealth { Healthy, Degraded, Critical });

same_variants!(fn issue_type(IssueKind) -> AuditIssueType {
    FrontmatterInvalid, FileMissing, SyntaxError, DependencyMissing
});

same_variants!(fn issue_severity(IssueSeverity) -> AuditSeverity { Error, Warning });

same_variants!(fn warning_type(WarningKind) -> AuditWarningType {
    Outdated, LowActivation, BudgetHeavy, NoTriggers
});

pub(super) fn conflicts(
    registry: &Registry,
    report: ConflictReport,
    installs: &Installs,
) -> v1::CheckConflictsResponse {
    let (catalog, now) = (registry.catalog(), registry.now());
    v1::CheckConflictsResponse {
        skill_id: report.subject.member.id.to_string(),
        has_conflicts: !report.conflicts.is_empty(),
        conflicts: report
            .conflicts
            .into_iter()
            .map(|opposed| conflict_detail(&catalog, opposed, now, installs))
            .collect(),
        recommendations: report.recommendations,
        skills_compared: count(report.compared),
    }
}

/// Converts a conflict, without the details of the other skill.
pub(super) fn conflict(Opposed { with, conflict }: Opposed) -> v1::Conflict {
    v1::Conflict {
        skill_id: with.member.id.to_string(),
        skill_name: with.member.version.skill.name.clone(),
        r#type: conflict_type(conflict.kind).into(),
        severity: conflict_severity(conflict.severity).into(),
        description: conflict.description,
        resolution_options: conflict
            .resolutions
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

fn conflict_detail(
    catalog: &Catalog,
    mut opposed: Opposed,
    now: Timestamp,
    installs: &Installs,
) -> v1::ConflictDetail {
    // The catalog is newer than the comparison: a skill deleted since then has no summary.
    let head = catalog.get(&opposed.with.member.id.key());
    let conflicting_skill = head.map(|head| summary(catalog, head, now, installs));
    let overlap = opposed.conflict.overlap.take();
    let conflict = conflict(opposed);
    v1::ConflictDetail {
        skill_id: conflict.skill_id,
        skill_name: conflict.skill_name,
        r#type: conflict.r#type,
        severity: conflict.severity,
        description: conflict.description,
        resolution_options: conflict.resolution_options,
        conflicting_skill,
        overlap_details: overlap.map(|overlap| v1::TriggerOverlap {
            shared_triggers: overlap.shared,
            overlap_percentage: overlap.percent,
        }),
    }
}

pub(super) fn estimate(estimate: Estimate) -> v1::EstimateBudgetResponse {
    v1::EstimateBudgetResponse {
        current_usage: size(estimate.current),
        estimated_addition: size(estimate.addition),
        projected_total: size(estimate.projected),
        budget_limit: size(estimate.limit),
        utilization_percent: estimate.percent,
        breakdown: estimate.items.into_iter().map(cost).collect(),
        fits_budget: estimate.overflow.is_none(),
        overflow_amount: estimate.overflow.map(size),
        estimated_tokens: size(estimate.added_tokens),
        listed_characters: size(estimate.listed_chars),
        recommendations: estimate.recommendations,
    }
}

fn cost(item: Item) -> v1::SkillCost {
    v1::SkillCost {
        skill_id: item.id.to_string(),
        name: item.name,
        estimated_size: size(item.cost.chars),
        installed: item.installed,
        estimated_tokens: size(item.cost.tokens),
        listed_characters: size(item.cost.listed_chars),
        listed_tokens: size(item.cost.listed_tokens),
    }
}

pub(super) fn activation(activation: Activation) -> v1::AuditActivationResponse {
    let audited = &activation.audited;
    let healthy = audited.iter().filter(|skill| skill.issues.is_empty());
    let summary = v1::AuditSummary {
        skills_audited: count(audited.len()),
        healthy: count(healthy.count()),
        issues_found: count(audited.iter().map(|skill| skill.issues.len()).sum()),
        warnings_found: count(audited.iter().map(|skill| skill.warnings.len()).sum()),
        overall_health: overall_health(activation.health).into(),
    };
    let (mut issues, mut warnings) = (Vec::new(), Vec::new());
    for skill in activation.audited {
        let id = skill.id;
        issues.extend(skill.issues.into_iter().map(|found| issue(&id, found)));
        warnings.extend(skill.warnings.into_iter().map(|found| warning(&id, found)));
    }
    let (generated_hooks, settings) = activation.hooks.map(hook_config).unzip();
    v1::AuditActivationResponse {
        summary: Some(summary),
        issues,
        warnings,
        recommendations: activation.recommendations,
        generated_hooks,
        budget_report: Some(budget_report(activation.budget)),
        claude_code_settings: settings.map(to_struct),
    }
}

fn issue(id: &SkillId, issue: Issue) -> v1::AuditIssue {
    v1::AuditIssue {
        skill_id: id.to_string(),
        issue_type: issue_type(issue.kind).into(),
        severity: issue_severity(issue.severity).into(),
        title: issue.title.to_owned(),
        description: issue.description,
        fix_suggestion: issue.fix,
        auto_fixable: issue.auto_fixable,
    }
}

fn warning(id: &SkillId, warning: Warning) -> v1::AuditWarning {
    v1::AuditWarning {
        skill_id: id.to_string(),
        warning_type: warning_type(warning.kind).into(),
        message: warning.message,
    }
}

pub(super) fn hook_config(
    hooks: Hooks,
) -> (v1::HookConfig, serde_json::Map<String, serde_json::Value>) {
    let config = v1::HookConfig {
        pre_message_hooks: hooks.pre_message,
        post_message_hooks: Vec::new(),
        file_triggers: hooks
            .files
            .into_iter()
            .map(|file| v1::FileTrigger {
                pattern: file.pattern,
                description: file.description,
            })
            .collect(),
    };
    (config, hooks.settings)
}

fn budget_report(report: BudgetReport) -> v1::BudgetReport {
    v1::BudgetReport {
        total_budget: size(report.total),
        used_budget: size(report.used),
        utilization_percent: report.percent,
        largest_skills: report
            .largest
            .into_iter()
            .map(|(item, share)| v1::LargeSkill {
                skill_id: item.id.to_string(),
                size: size(item.cost.chars),
                percent_of_budget: share,
            })
            .collect(),
        optimization_suggestions: report.suggestions,
    }
}
