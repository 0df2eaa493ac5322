//! Codebases: analysis and recommendation, in the words of the contract.

use std::path::PathBuf;

use tonic::Request;

use super::convert::{count, time};
use super::search::{rounded, summary};
use super::{CallerFolder, REASONS, time_left};
use codebase::{InlineFile, ScanOptions};
use contract::v1;
use model::Failure;
use recommend::{Advisor, Mode, Priority, ReasonKind, Recommendation, Severity, Source, Wish};
use registry::Registry;

/// Where the caller was started, if that is known.
pub(super) fn folder<T>(request: &Request<T>) -> Option<PathBuf> {
    let folder = request.extensions().get::<CallerFolder>();
    folder.map(|CallerFolder(folder)| folder.clone())
}

fn source(path: String, files: Vec<v1::CodebaseFile>, folder: Option<PathBuf>) -> Source {
    let files = files.into_iter().map(|file| InlineFile {
        path: file.path,
        content: file.content,
    });
    Source {
        path,
        files: files.collect(),
        folder,
    }
}

pub(super) async fn analyze(
    advisor: &Advisor,
    request: Request<v1::AnalyzeCodebaseRequest>,
) -> Result<v1::AnalyzeCodebaseResponse, Failure> {
    let (time_left, folder) = (time_left(&request), folder(&request));
    let v1::AnalyzeCodebaseRequest {
        path,
        depth,
        include_dependencies,
        quick_mode,
        files,
    } = request.into_inner();
    let defaults = ScanOptions::default();
    let options = ScanOptions {
        depth: depth
            .and_then(|depth| u8::try_from(depth).ok())
            .unwrap_or(defaults.depth),
        include_dependencies: include_dependencies.unwrap_or(defaults.include_dependencies),
        quick_mode,
        ..defaults
    };
    let seen = advisor.analyze(source(path, files, folder), options, time_left);
    let seen = seen.await?;
    let ::codebase::Analysis {
        stack,
        project,
        stats,
        confidence_level,
        notes,
        signals,
    } = seen.analysis;
    Ok(v1::AnalyzeCodebaseResponse {
        path: seen.path,
        scanned_at: Some(time(seen.scanned_at)),
        stack: stack.into_iter().map(item).collect(),
        project_info: Some(v1::ProjectInfo {
            name: project.name,
            version: project.version,
            description: project.description,
            r#type: match project.kind {
                ::codebase::ProjectKind::Monorepo => v1::ProjectType::Monorepo,
                ::codebase::ProjectKind::Single => v1::ProjectType::Single,
                ::codebase::ProjectKind::Library => v1::ProjectType::Library,
                ::codebase::ProjectKind::Application => v1::ProjectType::Application,
                ::codebase::ProjectKind::Unknown => v1::ProjectType::Unknown,
            }
            .into(),
            package_manager: project.package_manager.map(|manager| manager.to_string()),
            package_managers: project
                .package_managers
                .iter()
                .map(ToString::to_string)
                .collect(),
        }),
        stats: Some(v1::CodebaseStats {
            total_files: count(stats.total_files),
            analyzed_files: count(stats.analyzed_files),
            directories_scanned: count(stats.directories_scanned),
            languages_detected: stats.languages_detected,
        }),
        confidence_level: match confidence_level {
            ::codebase::ConfidenceLevel::High => v1::ConfidenceLevel::High,
            ::codebase::ConfidenceLevel::Medium => v1::ConfidenceLevel::Medium,
            ::codebase::ConfidenceLevel::Low => v1::ConfidenceLevel::Low,
        }
        .into(),
        signals: signals
            .into_iter()
            .map(|signal| v1::CodebaseSignal {
                name: signal.fact.to_string(),
                path: signal.file,
            })
            .collect(),
        notes: notes.iter().map(ToString::to_string).collect(),
    })
}

fn item(item: ::codebase::TechStackItem) -> v1::TechStackItem {
    v1::TechStackItem {
        technology_id: item.technology_id,
        name: item.name,
        r#type: match item.kind {
            ::codebase::TechnologyKind::Language => v1::TechnologyType::Language,
            ::codebase::TechnologyKind::Framework => v1::TechnologyType::Framework,
            ::codebase::TechnologyKind::Tool => v1::TechnologyType::Tool,
            ::codebase::TechnologyKind::Platform => v1::TechnologyType::Platform,
            ::codebase::TechnologyKind::Library => v1::TechnologyType::Library,
        }
        .into(),
        version: item.version,
        confidence: item.confidence,
        source: item.source.to_string(),
    }
}

pub(super) async fn recommend(
    advisor: &Advisor,
    registry: &Registry,
    request: Request<v1::RecommendSkillsRequest>,
) -> Result<v1::RecommendSkillsResponse, Failure> {
    let (time_left, defaults) = (time_left(&request), Wish::default());
    let folder = folder(&request);
    let mode = match request.get_ref().discovery_mode() {
        v1::DiscoveryMode::Unspecified => defaults.mode,
        v1::DiscoveryMode::Conservative => Mode::Conservative,
        v1::DiscoveryMode::Exploratory => Mode::Exploratory,
    };
    let v1::RecommendSkillsRequest {
        path,
        max_results,
        include_reasons,
        exclude_installed,
        discovery_mode: _,
        files,
        installed_skills,
    } = request.into_inner();
    let reasons = include_reasons.unwrap_or(REASONS);
    let wish = Wish {
        limit: usize::try_from(max_results.unwrap_or_default()).unwrap_or_default(),
        exclude_installed: exclude_installed.unwrap_or(defaults.exclude_installed),
        mode,
        installed: installed_skills,
    };
    let found = advisor.recommend(source(path, files, folder), wish, time_left);
    let found = found.await?;
    let (catalog, now) = (registry.catalog(), registry.now());
    let here: Vec<_> = found.installed.iter().map(|head| head.id.clone()).collect();
    Ok(v1::RecommendSkillsResponse {
        recommendations: found
            .skills
            .into_iter()
            .map(|skill| {
                let shown = v1::SkillSummary {
                    installed: Some(here.contains(&skill.head.id)),
                    ..summary(&catalog, &skill.head, now)
                };
                recommendation(shown, skill, reasons)
            })
            .collect(),
        analysis_summary: found.summary,
        gaps_identified: found
            .gaps
            .into_iter()
            .map(|gap| v1::SkillGap {
                area: gap.area.to_owned(),
                description: gap.text,
                suggested_skills: gap.suggested,
                severity: match gap.severity {
                    Severity::High => v1::GapSeverity::High,
                    Severity::Medium => v1::GapSeverity::Medium,
                    Severity::Low => v1::GapSeverity::Low,
                }
                .into(),
            })
            .collect(),
        installed_coverage: rounded(found.coverage),
        installed_skills: here.iter().map(ToString::to_string).collect(),
    })
}

fn recommendation(
    summary: v1::SkillSummary,
    skill: Recommendation,
    reasons: bool,
) -> v1::Recommendation {
    let shown = if reasons { skill.reasons } else { Vec::new() };
    v1::Recommendation {
        skill: Some(summary),
        match_score: rounded(skill.score),
        reasons: shown
            .into_iter()
            .map(|reason| v1::RecommendationReason {
                r#type: match reason.kind {
                    ReasonKind::TechnologyMatch => v1::RecommendationReasonType::TechnologyMatch,
                    ReasonKind::GapCoverage => v1::RecommendationReasonType::GapCoverage,
                    ReasonKind::PopularPairing => v1::RecommendationReasonType::PopularPairing,
                    ReasonKind::AuthorReputation => v1::RecommendationReasonType::AuthorReputation,
                }
                .into(),
                description: reason.text,
                confidence: rounded(reason.confidence),
            })
            .collect(),
        impact_areas: skill.areas,
        priority: match skill.priority {
            Priority::Essential => v1::RecommendationPriority::Essential,
            Priority::Recommended => v1::RecommendationPriority::Recommended,
            Priority::Optional => v1::RecommendationPriority::Optional,
        }
        .into(),
    }
}
