//! Conversions from types of the domain to messages of the contract.

use jiff::Timestamp;

use super::enums::same_variants;
use super::installed::Installs;
use super::{facets, trust};
use ::trust::quality;
use contract::json::{to_struct, to_value};
use contract::v1;
use lookup::{FoundSkill, NameForm};
use model::{
    CompatibilityRuleType, ComposabilityRuleType, EventKind, FileEntry, Location, Skill, SkillId,
    SkillUri, TrustTier,
};
use registry::{
    ArchiveFormat, Catalog, ChangeKind, Described, Head, Lines, Outcome, Scan, VersionDiff,
    VersionState,
};

/// Converts a time. The clock of the domain gives none that a message cannot hold.
pub(super) fn time(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}

// Sizes and counts saturate: one that does not fit its field must not wrap to a small number.
pub(super) fn size(bytes: impl TryInto<i64>) -> i64 {
    bytes.try_into().unwrap_or(i64::MAX)
}

pub(super) fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

same_variants!(pub(super) fn location / location_of(Location) -> Location {
    Project, User, Global
});

same_variants!(pub(super) fn trust_tier / trust_tier_of(TrustTier) -> TrustTier {
    Official, Verified, Community, Unverified
});

same_variants!(pub(super) fn event_type / event_kind(EventKind) -> EventType {
    Published, Activated, Yanked, Unyanked, Deleted, Blocked, Unblocked, Held, Approved, Rejected,
    Scanned, Named,
});

same_variants!(pub(super) fn outcome(Outcome) -> PublishOutcome { Created, Updated, Unchanged });

pub(super) fn archive_format(format: v1::ArchiveFormat) -> ArchiveFormat {
    match format {
        v1::ArchiveFormat::Unspecified | v1::ArchiveFormat::TarGz => ArchiveFormat::TarGz,
        v1::ArchiveFormat::Zip => ArchiveFormat::Zip,
    }
}

pub(super) fn name_form(form: v1::NameForm) -> NameForm {
    match form {
        v1::NameForm::Unspecified | v1::NameForm::Short => NameForm::Short,
        v1::NameForm::Id => NameForm::Id,
    }
}

pub(super) fn ids(ids: impl IntoIterator<Item = SkillId>) -> Vec<String> {
    ids.into_iter().map(String::from).collect()
}

pub(super) fn entry(id: &SkillId, file: &FileEntry) -> v1::FileEntry {
    v1::FileEntry {
        path: file.path.to_string(),
        digest: file.digest.to_string(),
        size_bytes: size(file.size),
        mime_type: file.path.mime_type().to_owned(),
        uri: SkillUri::of(id, &file.path).to_string(),
    }
}

pub(super) fn info(described: &Described) -> v1::VersionInfo {
    state(described.into())
}

pub(super) fn state(state: VersionState) -> v1::VersionInfo {
    v1::VersionInfo {
        version_number: state.number.get(),
        semantic_version: state.semantic.to_string(),
        digest: state.digest.to_string(),
        created_at: Some(time(state.created_at)),
        created_by: state.created_by.to_string(),
        change_summary: state.change_summary,
        active: state.active,
        yanked: state.withdrawn.is_some(),
        yank_reason: state.withdrawn.unwrap_or_default(),
        size_bytes: size(state.size),
        file_count: count(state.files),
        held: state.held.is_some(),
        hold_reason: state.held.unwrap_or_default(),
    }
}

/// Returns the list entry of a skill of a catalog; none where it has no active version.
pub(super) fn metadata(catalog: &Catalog, head: &Head) -> Option<v1::SkillMetadata> {
    let summary = head.summary.as_ref()?;
    Some(v1::SkillMetadata {
        id: head.id.to_string(),
        name: summary.name.clone(),
        description: summary.description.clone(),
        category: facets::categories(summary)
            .into_iter()
            .next()
            .unwrap_or_default(),
        version: summary.semantic.to_string(),
        short_name: catalog.short_name(head).to_owned(),
        uri: SkillUri::of(&head.id, &summary.entry).to_string(),
        standard: head.is_standard(),
        // An agent that searches for a skill has no use for the count; `listed` sets it.
        problem_count: 0,
        security_scan_status: trust::scan_status(head.verdict()).into(),
    })
}

/// Returns the list entry with the number of problems, which authors ask for.
pub(super) fn listed(catalog: &Catalog, head: &Head) -> Option<v1::SkillMetadata> {
    let problems = head.summary.as_ref()?.problems;
    Some(v1::SkillMetadata {
        problem_count: problems.unwrap_or_default(),
        ..metadata(catalog, head)?
    })
}

same_variants!(fn compatibility_rule(CompatibilityRuleType) -> CompatibilityRuleType {
    Requires, Incompatible
});

same_variants!(fn composability_rule(ComposabilityRuleType) -> ComposabilityRuleType {
    Requires, Forbids
});

pub(super) fn definition(skill: &Skill, version: &str) -> v1::SkillDefinition {
    v1::SkillDefinition {
        name: skill.name.clone(),
        description: skill.description.clone(),
        version: version.to_owned(),
        allowed_tools: skill.allowed_tools.clone(),
        forbidden_tools: skill.forbidden_tools.clone(),
        execution_protocol: skill.execution_protocol.clone(),
        preconditions: skill.preconditions.clone(),
        postconditions: skill.postconditions.clone(),
        output_contract: skill
            .output_contract
            .as_ref()
            .map(|contract| v1::OutputContract {
                r#type: contract.kind.clone(),
                schema: contract.schema.clone().map(to_struct),
            }),
        compatibility_rules: skill
            .compatibility_rules
            .iter()
            .map(|rule| v1::CompatibilityRule {
                r#type: compatibility_rule(rule.kind).into(),
                skill: rule.skill.clone(),
                reason: rule.reason.clone(),
            })
            .collect(),
        composability_rules: skill
            .composability_rules
            .iter()
            .map(|rule| v1::ComposabilityRule {
                r#type: composability_rule(rule.kind).into(),
                skill: rule.skill.clone(),
                reason: rule.reason.clone(),
            })
            .collect(),
    }
}

pub(super) fn tool_configs(skill: &Skill) -> Vec<v1::ToolConfig> {
    skill
        .tool_configs
        .iter()
        .map(|tool| v1::ToolConfig {
            name: tool.name.clone(),
            description: tool.description.clone(),
            method: tool.method.clone(),
            args: tool
                .args
                .iter()
                .map(|arg| v1::ToolArgument {
                    name: arg.name.clone(),
                    r#type: arg.kind.clone(),
                    description: arg.description.clone(),
                    required: arg.required,
                    default: arg.default.clone().map(to_value),
                })
                .collect(),
        })
        .collect()
}

pub(super) fn resource_configs(skill: &Skill) -> Vec<v1::ResourceConfig> {
    skill
        .resource_configs
        .iter()
        .map(|resource| v1::ResourceConfig {
            name: resource.name.clone(),
            description: resource.description.clone(),
            file: resource.file.clone(),
            dynamic: resource.dynamic,
            method: resource.method.clone(),
        })
        .collect()
}

/// Returns the author of a skill: the id by which it is known, and the name that it states.
pub(super) fn author(id: &SkillId, stated: Option<&str>, tier: TrustTier) -> v1::Author {
    v1::Author {
        id: format!("{}:{}", id.source(), id.author()),
        name: stated.unwrap_or_else(|| id.author()).to_owned(),
        verified: matches!(tier, TrustTier::Official | TrustTier::Verified),
    }
}

/// Returns a skill in full. `now` decides how old it is.
pub(super) fn detail(
    found: &FoundSkill,
    readme: bool,
    scan: Option<&Scan>,
    now: Timestamp,
    installs: &Installs,
) -> v1::SkillDetail {
    let Described { head, version, .. } = &found.described;
    let (id, skill) = (&head.id, &version.skill);
    let tier = head.trust_tier();
    let named = |compatibility, composability| {
        let compatible = skill.compatibility_rules.iter();
        let compatible = compatible.filter(move |rule| rule.kind == compatibility);
        let composable = skill.composability_rules.iter();
        let composable = composable.filter(move |rule| rule.kind == composability);
        let named = compatible.map(|rule| rule.skill.clone());
        named.chain(composable.map(|rule| rule.skill.clone()))
    };
    let conflicts = named(
        CompatibilityRuleType::Incompatible,
        ComposabilityRuleType::Forbids,
    );
    let related = named(
        CompatibilityRuleType::Requires,
        ComposabilityRuleType::Requires,
    );
    let semantic = version.semantic.to_string();
    let summary = facets::summary(head, version);
    let standing = head.standing(now);
    let verdict = scan.map(|scan| scan.report.verdict);
    v1::SkillDetail {
        id: id.to_string(),
        name: skill.name.clone(),
        slug: id.slug().to_owned(),
        description: skill.description.clone(),
        author: Some(author(id, skill.author.as_deref(), tier)),
        trust_tier: trust_tier(tier).into(),
        // Computed at each read, since the score depends on how old the skill is.
        quality_score: scan.map(|scan| quality::score(scan.base(), standing)),
        // `sources::show` fills in the facts of the repository for callers that see every skill.
        github_stars: None,
        categories: facets::categories(&summary),
        technologies: facets::technologies(&summary),
        inferred: facets::inferred(&summary),
        updated_at: Some(time(head.updated_at)),
        installed: installs.has(id),
        long_description: skill.long_description.clone(),
        repo_url: skill.repository.clone(),
        homepage_url: skill.homepage.clone(),
        github_forks: None,
        github_open_issues: None,
        github_license: skill.license.clone(),
        has_skill_md: true,
        has_tests: version.has_tests(),
        has_examples: version.has_examples(),
        estimated_char_budget: size(skill.chars),
        security_scan_status: trust::scan_status(verdict).into(),
        security_findings: Vec::new(),
        quality_parts: Vec::new(),
        related_skills: related.collect(),
        conflicts_with: conflicts.collect(),
        versions: Vec::new(),
        readme_excerpt: readme.then(|| skill.excerpt.clone()),
        location: location(id.location()).into(),
        uri: SkillUri::of(id, &skill.entry).to_string(),
        version_number: version.number.get(),
        digest: version.digest.to_string(),
        is_builtin: id.is_builtin(),
        created_at: Some(time(head.created_at)),
        tags: skill.tags.clone(),
        triggers: skill.triggers.clone(),
        compatibility: skill.compatibility.clone(),
        definition: Some(definition(skill, &semantic)),
        current_version: semantic,
        tool_configs: tool_configs(skill),
        resource_configs: resource_configs(skill),
        file_count: count(version.files.len()),
        size_bytes: size(version.size()),
    }
}

/// Returns a version in full, with the body of its instructions.
pub(super) fn version(described: &Described, core_content: String) -> v1::SkillVersion {
    let Described { head, version, .. } = described;
    let skill = &version.skill;
    let (scripts, resources): (Vec<_>, Vec<_>) = version
        .files
        .iter()
        // The Agent Skills standard keeps programs in `scripts/`.
        .partition(|file| file.path.as_str().starts_with("scripts/"));
    let entries = |files: Vec<&FileEntry>| {
        files
            .into_iter()
            .map(|file| entry(&head.id, file))
            .collect()
    };
    v1::SkillVersion {
        info: Some(info(described)),
        name: skill.name.clone(),
        description: skill.description.clone(),
        category: skill.category.clone(),
        author: skill.author.clone(),
        core_content,
        resources: entries(resources),
        scripts: entries(scripts),
        tool_configs: tool_configs(skill),
        resource_configs: resource_configs(skill),
        definition: Some(definition(skill, &version.semantic.to_string())),
        front_matter: Some(to_struct(skill.front_matter.clone())),
        problems: version.problems.iter().cloned().map(Into::into).collect(),
    }
}

same_variants!(fn change_type(ChangeKind) -> ChangeType { Added, Removed, Modified });

fn lines(lines: Lines) -> (Option<String>, v1::LineComparison) {
    match lines {
        Lines::Unified(text) => (Some(text), v1::LineComparison::Compared),
        Lines::NotText => (None, v1::LineComparison::NotText),
        Lines::TooLarge => (None, v1::LineComparison::TooLarge),
        Lines::OverBudget => (None, v1::LineComparison::OverBudget),
    }
}

pub(super) fn diff(diff: VersionDiff) -> v1::DiffVersionsResponse {
    v1::DiffVersionsResponse {
        skill_id: diff.to.head.id.to_string(),
        from: Some(info(&diff.from)),
        to: Some(info(&diff.to)),
        fields: diff
            .fields
            .into_iter()
            .map(|field| v1::FieldChange {
                field: field.field,
                r#type: change_type(field.change.kind()).into(),
                old_value: field.change.old.map(to_value),
                new_value: field.change.new.map(to_value),
            })
            .collect(),
        files: diff
            .files
            .into_iter()
            .map(|file| {
                let digest = |side: &Option<FileEntry>| {
                    side.as_ref()
                        .map(|side| side.digest.to_string())
                        .unwrap_or_default()
                };
                let bytes =
                    |side: &Option<FileEntry>| side.as_ref().map_or(0, |side| size(side.size));
                let (unified_diff, line_comparison) = lines(file.lines);
                v1::FileChange {
                    path: file.path,
                    r#type: change_type(file.change.kind()).into(),
                    old_digest: digest(&file.change.old),
                    new_digest: digest(&file.change.new),
                    old_size_bytes: bytes(&file.change.old),
                    new_size_bytes: bytes(&file.change.new),
                    unified_diff,
                    line_comparison: line_comparison.into(),
                }
            })
            .collect(),
    }
}
