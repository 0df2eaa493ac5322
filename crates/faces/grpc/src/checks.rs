//! Conflicts, budgets and audits, in the words of the contract.

use jiff::Timestamp;

use super::convert::{count, size};
use super::search::summary;
use ::checks::{
    Activation, AuditedSkill, BudgetReport, ConflictKind, ConflictReport, ConflictSeverity,
    Estimate, Health, Hooks, Issue, IssueKind, IssueSeverity, Item, Opposed, Warning, WarningKind,
};
use contract::json::to_struct;
use contract::v1;
use model::SkillId;
use registry::{Catalog, Registry};

fn conflict_type(kind: ConflictKind) -> v1::ConflictType {
    match kind {
        ConflictKind::TriggerOverlap => v1::ConflictType::TriggerOverlap,
        ConflictKind::Behavioral => v1::ConflictType::Behavioral,
        ConflictKind::FileCollision => v1::ConflictType::FileCollision,
    }
}

fn conflict_severity(severity: ConflictSeverity) -> v1::ConflictSeverity {
    match severity {
        ConflictSeverity::Blocking => v1::ConflictSeverity::Blocking,
        ConflictSeverity::Warning => v1::ConflictSeverity::Warning,
        ConflictSeverity::Info => v1::ConflictSeverity::Info,
    }
}

pub(super) fn conflicts(registry: &Registry, report: ConflictReport) -> v1::CheckConflictsResponse {
    let ConflictReport {
        subject,
        conflicts,
        recommendations,
        compared,
    } = report;
    let (catalog, now) = (registry.catalog(), registry.now());
    v1::CheckConflictsResponse {
        skill_id: subject.member.id.to_string(),
        has_conflicts: !conflicts.is_empty(),
        conflicts: conflicts
            .into_iter()
            .map(|opposed| conflict_detail(&catalog, opposed, now))
            .collect(),
        recommendations,
        skills_compared: count(compared),
    }
}

/// A conflict without the other skill in full.
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

fn conflict_detail(catalog: &Catalog, mut opposed: Opposed, now: Timestamp) -> v1::ConflictDetail {
    let head = catalog.get(&opposed.with.member.id.key());
    let conflicting_skill = head.map(|head| summary(catalog, head, now));
    let overlap = opposed.conflict.overlap.take();
    let v1::Conflict {
        skill_id,
        skill_name,
        r#type,
        severity,
        description,
        resolution_options,
    } = conflict(opposed);
    v1::ConflictDetail {
        skill_id,
        skill_name,
        r#type,
        severity,
        description,
        resolution_options,
        conflicting_skill,
        overlap_details: overlap.map(|overlap| v1::TriggerOverlap {
            shared_triggers: overlap.shared,
            overlap_percentage: overlap.percent,
        }),
    }
}

pub(super) fn estimate(estimate: Estimate) -> v1::EstimateBudgetResponse {
    let Estimate {
        current,
        addition,
        projected,
        limit,
        percent,
        items,
        overflow,
        listed_chars,
        added_tokens,
        recommendations,
    } = estimate;
    v1::EstimateBudgetResponse {
        current_usage: size(current),
        estimated_addition: size(addition),
        projected_total: size(projected),
        budget_limit: size(limit),
        utilization_percent: percent,
        breakdown: items.into_iter().map(cost).collect(),
        fits_budget: overflow.is_none(),
        overflow_amount: overflow.map(size),
        estimated_tokens: size(added_tokens),
        listed_characters: size(listed_chars),
        recommendations,
    }
}

fn cost(item: Item) -> v1::SkillCost {
    let Item {
        id,
        name,
        cost,
        installed,
    } = item;
    v1::SkillCost {
        skill_id: id.to_string(),
        name,
        estimated_size: size(cost.chars),
        installed,
        estimated_tokens: size(cost.tokens),
        listed_characters: size(cost.listed_chars),
        listed_tokens: size(cost.listed_tokens),
    }
}

pub(super) fn activation(activation: Activation) -> v1::AuditActivationResponse {
    let Activation {
        audited,
        health,
        recommendations,
        hooks,
        budget,
    } = activation;
    let summary = v1::AuditSummary {
        skills_audited: count(audited.len()),
        healthy: count(
            audited
                .iter()
                .filter(|skill| skill.issues.is_empty())
                .count(),
        ),
        issues_found: count(audited.iter().map(|skill| skill.issues.len()).sum()),
        warnings_found: count(audited.iter().map(|skill| skill.warnings.len()).sum()),
        overall_health: match health {
            Health::Healthy => v1::OverallHealth::Healthy,
            Health::Degraded => v1::OverallHealth::Degraded,
            Health::Critical => v1::OverallHealth::Critical,
        }
        .into(),
    };
    let (mut issues, mut warnings) = (Vec::new(), Vec::new());
    for skill in audited {
        let AuditedSkill {
            id,
            issues: found,
            warnings: worth,
        } = skill;
        issues.extend(found.into_iter().map(|found| issue(&id, found)));
        warnings.extend(worth.into_iter().map(|found| warning(&id, found)));
    }
    let (generated_hooks, settings) = hooks.map(hook_config).unzip();
    v1::AuditActivationResponse {
        summary: Some(summary),
        issues,
        warnings,
        recommendations,
        generated_hooks,
        budget_report: Some(budget_report(budget)),
        claude_code_settings: settings.map(to_struct),
    }
}

fn issue(id: &SkillId, issue: Issue) -> v1::AuditIssue {
    let Issue {
        kind,
        severity,
        title,
        description,
        fix,
        auto_fixable,
    } = issue;
    v1::AuditIssue {
        skill_id: id.to_string(),
        issue_type: match kind {
            IssueKind::FrontmatterInvalid => v1::AuditIssueType::FrontmatterInvalid,
            IssueKind::FileMissing => v1::AuditIssueType::FileMissing,
            IssueKind::SyntaxError => v1::AuditIssueType::SyntaxError,
            IssueKind::DependencyMissing => v1::AuditIssueType::DependencyMissing,
        }
        .into(),
        severity: match severity {
            IssueSeverity::Error => v1::AuditSeverity::Error,
            IssueSeverity::Warning => v1::AuditSeverity::Warning,
        }
        .into(),
        title: title.to_owned(),
        description,
        fix_suggestion: fix,
        auto_fixable,
    }
}

fn warning(id: &SkillId, warning: Warning) -> v1::AuditWarning {
    let Warning {
        kind,
        message,
        advice: _,
    } = warning;
    v1::AuditWarning {
        skill_id: id.to_string(),
        warning_type: match kind {
            WarningKind::Outdated => v1::AuditWarningType::Outdated,
            WarningKind::LowActivation => v1::AuditWarningType::LowActivation,
            WarningKind::BudgetHeavy => v1::AuditWarningType::BudgetHeavy,
            WarningKind::NoTriggers => v1::AuditWarningType::NoTriggers,
        }
        .into(),
        message,
    }
}

pub(super) fn hook_config(
    hooks: Hooks,
) -> (v1::HookConfig, serde_json::Map<String, serde_json::Value>) {
    let Hooks {
        pre_message,
        files,
        settings,
    } = hooks;
    let config = v1::HookConfig {
        pre_message_hooks: pre_message,
        post_message_hooks: Vec::new(),
        file_triggers: files
            .into_iter()
            .map(|file| v1::FileTrigger {
                pattern: file.pattern,
                description: file.description,
            })
            .collect(),
    };
    (config, settings)
}

fn budget_report(report: BudgetReport) -> v1::BudgetReport {
    let BudgetReport {
        total,
        used,
        percent,
        largest,
        suggestions,
    } = report;
    v1::BudgetReport {
        total_budget: size(total),
        used_budget: size(used),
        utilization_percent: percent,
        largest_skills: largest
            .into_iter()
            .map(|(item, share)| v1::LargeSkill {
                skill_id: item.id.to_string(),
                size: size(item.cost.chars),
                percent_of_budget: share,
            })
            .collect(),
        optimization_suggestions: suggestions,
    }
}
