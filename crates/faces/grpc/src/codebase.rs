//! The rpcs that analyze a codebase and recommend skills for it.

use std::path::PathBuf;

use tonic::{Request, Response};

use super::convert::{count, time};
use super::enums::same_variants;
use super::installed::Installs;
use super::search::{rounded, summary};
use super::{CallerFolder, REASONS, time_left};
use codebase::{InlineFile, ScanOptions};
use contract::handlers::Answer;
use contract::v1;
use model::Failure;
use recommend::{Advisor, Mode, Priority, ReasonKind, Recommendation, Severity, Source, Wish};
use registry::Registry;

same_variants!(fn project_type(::codebase::ProjectKind) -> ProjectType {
    Monorepo, Single, Library, Application, Unknown
});

same_variants!(fn confidence_level(::codebase::ConfidenceLevel) -> ConfidenceLevel {
    High, Medium, Low
});

same_variants!(fn technology_type(::codebase::TechnologyKind) -> TechnologyType {
    Language, Framework, Tool, Platform, Library
});

same_variants!(fn gap_severity(Severity) -> GapSeverity { High, Medium, Low });

same_variants!(fn reason_type(ReasonKind) -> RecommendationReasonType {
    TechnologyMatch, GapCoverage, PopularPairing, AuthorReputation
});

same_variants!(fn priority(Priority) -> RecommendationPriority {
    Essential, Recommended, Optional
});

/// Returns the folder that the caller was started in, if known.
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
) -> Answer<v1::AnalyzeCodebaseResponse> {
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
    let analysis = seen.analysis;
    let project = analysis.project;
    Ok(Response::new(v1::AnalyzeCodebaseResponse {
        path: seen.path,
        scanned_at: Some(time(seen.scanned_at)),
        stack: analysis.stack.into_iter().map(item).collect(),
        project_info: Some(v1::ProjectInfo {
            name: project.name,
            version: project.version,
            description: project.description,
            r#type: project_type(project.kind).into(),
            package_manager: project.package_manager.map(|manager| manager.to_string()),
            package_managers: project
                .package_managers
                .iter()
                .map(ToString::to_string)
                .collect(),
        }),
        stats: Some(v1::CodebaseStats {
            total_files: count(analysis.stats.total_files),
            analyzed_files: count(analysis.stats.analyzed_files),
            directories_scanned: count(analysis.stats.directories_scanned),
            languages_detected: analysis.stats.languages_detected,
        }),
        confidence_level: confidence_level(analysis.confidence_level).into(),
        signals: analysis
            .signals
            .into_iter()
            .map(|signal| v1::CodebaseSignal {
                name: signal.fact.to_string(),
                path: signal.file,
            })
            .collect(),
        notes: analysis.notes.iter().map(ToString::to_string).collect(),
    }))
}

fn item(item: ::codebase::TechStackItem) -> v1::TechStackItem {
    v1::TechStackItem {
        technology_id: item.technology_id,
        name: item.name,
        r#type: technology_type(item.kind).into(),
        version: item.version,
        confidence: item.confidence,
        source: item.source.to_string(),
    }
}

pub(super) async fn recommend(
    advisor: &Advisor,
    registry: &Registry,
    request: Request<v1::RecommendSkillsRequest>,
    installs: &Installs,
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
        installed: installed_skills
            .into_iter()
            .chain(installs.names())
            .collect(),
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
                    // Also what the request and the codebase's own folders have.
                    installed: Some(here.contains(&skill.head.id)),
                    ..summary(&catalog, &skill.head, now, installs)
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
                severity: gap_severity(gap.severity).into(),
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
                r#type: reason_type(reason.kind).into(),
                description: reason.text,
                confidence: rounded(reason.confidence),
            })
            .collect(),
        impact_areas: skill.areas,
        priority: priority(skill.priority).into(),
    }
}
