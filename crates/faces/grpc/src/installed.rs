//! The rpcs for skills installed on the server's machine.

use std::collections::HashSet;

use http::Extensions;
use tonic::{Request, Response};

use super::convert::{count, size, time};
use super::enums::same_variants;
use super::{HEALTH, LOCK, checks, target};
use ::install::{Method, Status as Health};
use contract::handlers::Answer;
use contract::v1;
use model::{SkillId, SkillKey};
use preflight::{Budget, InstallRequest, Installer, Listed};

/// The skills that are installed for a caller.
pub(super) struct Installs(Option<HashSet<SkillKey>>);

impl Installs {
    /// Reads those of a caller on this machine, whose agents find skills where these are. What
    /// callers elsewhere have is not known.
    pub(super) async fn of(installer: Option<&Installer>, call: &Extensions) -> Self {
        let here = contract::access_of(call).origin.is_local();
        let Some(installer) = installer.filter(|_| here) else {
            return Self(None);
        };
        let keys = installer.installed_keys().await;
        // No reason to refuse a search, which says of no skill then whether it is installed.
        if let Err(error) = &keys {
            tracing::warn!(%error, "what is installed on this machine cannot be read");
        }
        Self(keys.ok())
    }

    /// Tells whether a skill is installed; none: it is not known.
    pub(super) fn has(&self, id: &SkillId) -> Option<bool> {
        self.0.as_ref().map(|keys| keys.contains(&id.key()))
    }

    /// The ids of those that are known.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let keys = self.0.iter().flatten();
        keys.map(|key| key.as_str().to_owned())
    }
}

pub(super) async fn install(
    installer: &Installer,
    request: Request<v1::InstallSkillRequest>,
) -> Answer<v1::InstallSkillResponse> {
    let folder = super::codebase::folder(&request);
    let method = match request.get_ref().install_method() {
        v1::InstallMethod::Unspecified => None,
        v1::InstallMethod::Copy => Some(Method::Copy),
        v1::InstallMethod::Symlink => Some(Method::Symlink),
        v1::InstallMethod::Plugin => {
            let message = "no agent lets others install its plugins; leave it away";
            return Err(super::wrong("install_method", message));
        }
    };
    let v1::InstallSkillRequest {
        skill_id,
        skip_conflict_check,
        skip_security_scan,
        force,
        target_directory,
        version_number,
        semantic_version,
        install_method: _,
    } = request.into_inner();
    let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
    let wanted = InstallRequest {
        skill,
        version,
        skip_conflict_check,
        skip_security_scan,
        force,
        directory: target_directory,
        folder,
        method,
    };
    let done = installer.install(wanted).await?;
    let (placed, report) = (done.placed, done.report);
    let found = report.map(|report| report.findings).unwrap_or_default();
    Ok(Response::new(v1::InstallSkillResponse {
        skill_id: placed.record.id.to_string(),
        installed_path: installer.shown(&placed.path()),
        installed_version: placed.record.semantic.to_string(),
        install_method: install_method(placed.record.method).into(),
        conflicts: done.conflicts.into_iter().map(checks::conflict).collect(),
        security_warnings: found.iter().map(super::trust::finding).collect(),
        budget_impact: Some(impact(&done.budget)),
        activation_tips: done.tips,
        suggested_hooks: done.hooks.map(|hooks| checks::hook_config(hooks).0),
    }))
}

same_variants!(fn install_method(Method) -> InstallMethod { Copy, Symlink });

fn impact(budget: &Budget) -> v1::BudgetImpact {
    v1::BudgetImpact {
        current_usage: size(budget.current),
        skill_size: size(budget.size),
        projected_usage: size(budget.projected()),
        budget_limit: size(budget.limit),
        utilization_percent: budget.percent(),
        warning: budget.warning(),
    }
}

pub(super) async fn uninstall(
    installer: &Installer,
    request: Request<v1::UninstallSkillRequest>,
) -> Answer<v1::UninstallSkillResponse> {
    let v1::UninstallSkillRequest {
        skill_id,
        remove_data,
        force,
    } = request.into_inner();
    let done = installer.uninstall(skill_id, remove_data, force);
    let done = done.await?;
    let removed = done.removed;
    Ok(Response::new(v1::UninstallSkillResponse {
        skill_id: removed.record.id.to_string(),
        removed_path: installer.shown(&removed.path),
        data_removed: remove_data,
        budget_freed: size(removed.record.chars),
        dependent_skills_affected: done.dependents.iter().map(ToString::to_string).collect(),
    }))
}

same_variants!(fn health(Health) -> HealthStatus { Healthy, Warning, Error, Unknown });

pub(super) async fn list(
    installer: &Installer,
    request: v1::ListInstalledRequest,
) -> Answer<v1::ListInstalledResponse> {
    let wanted = request.filter_health();
    let v1::ListInstalledRequest {
        include_health,
        include_updates,
        filter_health: _,
    } = request;
    let updates = include_updates.unwrap_or_default();
    let all = installer
        .list(include_health.unwrap_or(HEALTH), updates)
        .await;
    let all = all?;
    // Counted before the filter: the summary covers all that is installed.
    let many = |status| count(all.iter().filter(|one| one.status == status).count());
    let summary = v1::HealthSummary {
        healthy: many(Health::Healthy),
        warning: many(Health::Warning),
        error: many(Health::Error),
        unknown: many(Health::Unknown),
    };
    let is_wanted =
        |one: &&Listed| wanted == v1::HealthStatus::Unspecified || wanted == health(one.status);
    Ok(Response::new(v1::ListInstalledResponse {
        skills: all
            .iter()
            .filter(is_wanted)
            .map(|one| info(installer, one))
            .collect(),
        total_count: count(all.len()),
        total_budget_used: size(Installer::used_chars(&all)),
        budget_limit: size(installer.budget_chars()),
        health_summary: Some(summary),
    }))
}

fn info(installer: &Installer, one: &Listed) -> v1::InstalledSkillInfo {
    let record = &one.placed.record;
    v1::InstalledSkillInfo {
        skill_id: record.id.to_string(),
        name: record.name.clone(),
        installed_version: record.semantic.to_string(),
        installed_at: Some(time(record.installed_at)),
        installation_path: installer.shown(&one.placed.path()),
        health_status: health(one.status).into(),
        health_details: one.details.clone(),
        activation_count: one.loads,
        last_activated_at: one.last_used_at.map(time),
        update_available: one.update.as_ref().map(|update| v1::AvailableUpdate {
            latest_version: update.semantic.to_string(),
            breaking_changes: update.is_breaking,
        }),
        char_budget: size(record.chars),
        version_number: record.number.get(),
        digest: record.digest.to_string(),
        install_method: install_method(record.method).into(),
        verdict: record.verdict.clone(),
        forced: record.forced,
        security_scan_skipped: record.scan_skipped,
    }
}

pub(super) async fn priorities(
    installer: &Installer,
    request: v1::GetPrioritiesRequest,
) -> Answer<v1::GetPrioritiesResponse> {
    let v1::GetPrioritiesRequest { skill_ids } = request;
    let found = installer.priorities(skill_ids).await?;
    let order = if found.is_manual {
        v1::PriorityOrder::Manual
    } else {
        v1::PriorityOrder::InstallDate
    };
    Ok(Response::new(v1::GetPrioritiesResponse {
        priorities: found
            .skills
            .into_iter()
            .map(|ranked| v1::SkillPriority {
                skill_id: ranked.id.to_string(),
                name: ranked.name,
                priority: count(ranked.place),
                locked: ranked.locked,
                effective_triggers: ranked.triggers,
            })
            .collect(),
        default_order: order.into(),
    }))
}

pub(super) async fn set_priority(
    installer: &Installer,
    request: Request<v1::SetPriorityRequest>,
) -> Answer<v1::SetPriorityResponse> {
    let v1::SetPriorityRequest {
        skill_id,
        priority,
        lock,
    } = request.into_inner();
    let priority = usize::try_from(priority).unwrap_or_default();
    let locked = lock.unwrap_or(LOCK);
    let moved = installer.set_priority(skill_id, priority, locked).await;
    let mut moved = moved?.into_iter().map(|moved| v1::MovedSkill {
        skill_id: moved.id.to_string(),
        old_priority: count(moved.from),
        new_priority: count(moved.to),
    });
    // The domain returns the skill itself first, then those that made way for it.
    let of = moved.next().unwrap_or_default();
    Ok(Response::new(v1::SetPriorityResponse {
        skill_id: of.skill_id,
        old_priority: of.old_priority,
        new_priority: of.new_priority,
        locked,
        affected_skills: moved.collect(),
    }))
}
