//! Findings of the scanner and reviews, as messages of the contract.

use jiff::Timestamp;
use tonic::Response;

use super::convert::{self, count, time};
use super::enums::same_variants;
use super::registry::RegistryService;
use super::{DEFAULT_HELD_VERSIONS, missing, named, number, page_size, publish, target, wrong};
use ::lookup::Lookup;
use ::registry::{Caller, HeldVersion, Hold, Registry, Review, Reviewed, Scan, Scanned, Upload};
use ::trust::quality::{self, Part, QualityFactors};
use ::trust::{Category, Change, Confidence, Finding, Report, Severity, Verdict};
use contract::handlers::Answer;
use contract::v1;
use model::VersionNumber;

/// Findings that a list shows of each version.
const MAX_SHOWN_FINDINGS: usize = 5;

pub(super) fn scan_status(verdict: Option<Verdict>) -> v1::ScanStatus {
    match verdict {
        Some(Verdict::Passed) => v1::ScanStatus::Passed,
        Some(Verdict::Warning) => v1::ScanStatus::Warning,
        Some(Verdict::Failed) => v1::ScanStatus::Failed,
        None => v1::ScanStatus::Pending,
    }
}

fn finding_type(category: Category) -> v1::SecurityFindingType {
    // The contract has fewer types than the scanner has categories; `rule` names the exact one.
    match category {
        Category::ExternalUrl | Category::Exfiltration => v1::SecurityFindingType::ExternalUrl,
        Category::ShellCommand => v1::SecurityFindingType::ShellCommand,
        Category::FileAccess | Category::Persistence | Category::Secret => {
            v1::SecurityFindingType::FileAccess
        }
        Category::Obfuscation | Category::PromptInjection | Category::Opaque => {
            v1::SecurityFindingType::Obfuscation
        }
        Category::Typosquatting => v1::SecurityFindingType::Typosquatting,
    }
}

same_variants!(fn severity(Severity) -> SecuritySeverity { Info, Low, Medium, High, Critical });

same_variants!(fn confidence(Confidence) -> SecurityConfidence { Low, Medium, High });

pub(super) fn finding(finding: &Finding) -> v1::SecurityFinding {
    v1::SecurityFinding {
        r#type: finding_type(finding.category).into(),
        severity: severity(finding.severity).into(),
        title: finding.title.to_string(),
        description: finding.description.to_string(),
        file_path: (!finding.path.is_empty()).then(|| finding.path.clone()),
        line_number: (finding.line > 0).then_some(finding.line),
        rule: finding.rule.to_string(),
        confidence: confidence(finding.confidence).into(),
        evidence: finding.evidence.clone(),
        fix: finding.fix.to_string(),
        owasp: finding.owasp.to_string(),
    }
}

fn report(report: &Report, scanned: Timestamp) -> v1::ScanReport {
    let capabilities = report.capabilities.iter();
    v1::ScanReport {
        status: scan_status(Some(report.verdict)).into(),
        rules_version: report.rules,
        scanned_at: Some(time(scanned)),
        findings: report.findings.iter().map(finding).collect(),
        findings_left_out: report.left_out,
        capabilities: capabilities.map(|it| it.name().to_owned()).collect(),
        hosts: report.hosts.iter().cloned().collect(),
    }
}

fn changes((since, changes): (VersionNumber, Vec<Change>)) -> v1::ScanChanges {
    let mut new = v1::ScanChanges {
        since_version: since.get(),
        ..Default::default()
    };
    for change in changes {
        match change {
            Change::Host(host) => new.hosts.push(host),
            Change::Capability(power) => new.capabilities.push(power.name().to_owned()),
            Change::Finding(found) => new.findings.push(finding(&found)),
        }
    }
    new
}

pub(super) fn quality_parts(
    parts: Vec<Part>,
    standing: QualityFactors,
) -> (f64, Vec<v1::QualityPart>) {
    let quality = quality::quality(parts, standing);
    let parts = quality.parts.into_iter();
    let parts = parts.map(|part| v1::QualityPart {
        name: part.name,
        score: part.score,
        weight: part.weight,
        reason: part.reason,
    });
    (quality.score, parts.collect())
}

fn hold(hold: Hold) -> v1::HoldInfo {
    let mut info = v1::HoldInfo {
        reason: hold.reason,
        held_at: Some(time(hold.time)),
        ..Default::default()
    };
    if let Some(review) = hold.rejected {
        info.rejected_by = review.actor.to_string();
        info.rejected_because = review.reason;
        info.rejected_at = Some(time(review.time));
    }
    info
}

fn approval(review: Review) -> v1::ApprovalInfo {
    v1::ApprovalInfo {
        approved_by: review.actor.to_string(),
        reason: review.reason,
        approved_at: Some(time(review.time)),
    }
}

fn held(held: HeldVersion) -> v1::HeldVersion {
    let HeldVersion { described, scan } = held;
    let report = scan.as_ref().map(|scan| &scan.report);
    v1::HeldVersion {
        skill_id: described.head.id.to_string(),
        version: Some(convert::info(&described)),
        hold: described.hold.map(hold),
        active_version: number(described.head.active),
        security_scan_status: scan_status(report.map(|report| report.verdict)).into(),
        findings: report.map_or_else(Vec::new, |report| {
            report
                .findings
                .iter()
                .take(MAX_SHOWN_FINDINGS)
                .map(finding)
                .collect()
        }),
    }
}

/// Scans a version of a skill, or files that were sent.
pub(super) async fn scan(
    registry: &Registry,
    lookup: &Lookup,
    request: v1::ScanSkillRequest,
) -> Answer<v1::ScanSkillResponse> {
    let v1::ScanSkillRequest {
        skill_id,
        version_number,
        semantic_version,
        files,
    } = request;
    if files.is_empty() {
        if skill_id.is_empty() {
            let steps = "Name a skill in `skill_id`, or send `files` with a SKILL.md among them";
            return Err(missing("skill_id").suggest(steps));
        }
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let scanned = lookup.scan(&skill, &version).await;
        return Ok(Response::new(of_version(scanned?, registry.now())));
    }
    if version_number > 0 || !semantic_version.is_empty() {
        let message = "a version is scanned, or files are: not both";
        return Err(wrong("files", message).suggest("Leave out `files`, or the version"));
    }
    let upload = Upload {
        skill: skill_id,
        files: publish::files(files),
        ..Default::default()
    };
    let scan: Scan = registry.scan_upload(upload).await?;
    // Files have no history: they are scored like a skill that an unknown author publishes now.
    let standing = QualityFactors {
        age_days: Some(0),
        tier: model::TrustTier::Unverified,
    };
    let (quality_score, quality_parts) = quality_parts(scan.quality, standing);
    Ok(Response::new(v1::ScanSkillResponse {
        report: Some(report(&scan.report, scan.time)),
        quality_score,
        quality_parts,
        ..Default::default()
    }))
}

fn of_version(scanned: Scanned, now: Timestamp) -> v1::ScanSkillResponse {
    let scan = scanned.scan;
    let standing = scanned.head.standing(now);
    let (quality_score, quality_parts) = quality_parts(scan.quality.clone(), standing);
    v1::ScanSkillResponse {
        skill_id: scanned.head.id.to_string(),
        version_number: scanned.number.get(),
        report: Some(report(&scan.report, scan.time)),
        changes: scanned.changes.map(changes),
        quality_score,
        quality_parts,
        hold: scanned.hold.map(hold),
        approval: scan.review.clone().map(approval),
    }
}

/// Lists a page of held versions.
pub(super) fn list_held(
    registry: &Registry,
    request: v1::ListHeldRequest,
) -> Answer<v1::ListHeldResponse> {
    let v1::ListHeldRequest {
        page_size: size,
        page_token,
    } = request;
    let page = registry.list_held(page_size(size, DEFAULT_HELD_VERSIONS), &page_token);
    let page = page?;
    Ok(Response::new(v1::ListHeldResponse {
        held: page.versions.into_iter().map(held).collect(),
        held_size: count(page.size),
        next_page_token: page.next.unwrap_or_default(),
    }))
}

pub(super) async fn approve(
    service: &RegistryService,
    request: v1::ApproveVersionRequest,
    caller: &Caller,
) -> Answer<v1::ApproveVersionResponse> {
    let v1::ApproveVersionRequest {
        skill_id,
        version_number,
        semantic_version,
        reason,
        idempotency_key: _,
    } = request;
    let RegistryService {
        registry, stored, ..
    } = service;
    let version = named(version_number, &semantic_version)?;
    let approve = async |id| registry.approve(&id, version, &reason, caller).await;
    let approved: Reviewed = stored.write(&skill_id, approve).await?;
    Ok(Response::new(v1::ApproveVersionResponse {
        skill_id: approved.id.to_string(),
        version: Some(convert::state(approved.version)),
        active_version: number(approved.active),
    }))
}

pub(super) async fn reject(
    service: &RegistryService,
    request: v1::RejectVersionRequest,
    caller: &Caller,
) -> Answer<v1::RejectVersionResponse> {
    let v1::RejectVersionRequest {
        skill_id,
        version_number,
        semantic_version,
        reason,
        idempotency_key: _,
    } = request;
    let RegistryService {
        registry, stored, ..
    } = service;
    let version = named(version_number, &semantic_version)?;
    let reject = async |id| registry.reject(&id, version, &reason, caller).await;
    let rejected: Reviewed = stored.write(&skill_id, reject).await?;
    Ok(Response::new(v1::RejectVersionResponse {
        skill_id: rejected.id.to_string(),
        version: Some(convert::state(rejected.version)),
    }))
}
