//! Commands that list, show and hand out skills.

use std::process::ExitCode;

use serde_json::json;

use super::connect::Client;
use super::outcome::problem_line;
use super::output::{
    Exit, FAINT, Failed, GOOD, Output, Table, WARN, bytes, counted, json_of, time,
};
use super::review;
use super::skill_args::{List, LocationName, OfVersion, Read, Watch, version};
use contract::v1;

const PAGE: i32 = 500;

pub(super) async fn list(client: &mut Client, options: List, output: &Output) -> Exit {
    let List {
        source,
        author,
        category,
        tags,
        technology,
        location,
        with_problems,
        requires,
        limit,
    } = options;
    let limit = limit.unwrap_or(usize::MAX);
    let mut request = v1::ListSkillsRequest {
        page_size: i32::try_from(limit).unwrap_or(PAGE).clamp(1, PAGE),
        source: source.unwrap_or_default(),
        author: author.unwrap_or_default(),
        category: category.unwrap_or_default(),
        tags,
        technology: technology.unwrap_or_default(),
        location: location
            .map_or(v1::Location::Unspecified, |location| match location {
                LocationName::Project => v1::Location::Project,
                LocationName::User => v1::Location::User,
                LocationName::Global => v1::Location::Global,
            })
            .into(),
        with_problems,
        requires: requires.unwrap_or_default(),
        ..Default::default()
    };
    let mut skills = Vec::new();
    loop {
        let page = client
            .lookup()
            .list_skills(request.clone())
            .await?
            .into_inner();
        skills.extend(page.skills);
        if page.next_page_token.is_empty() || skills.len() >= limit {
            break;
        }
        request.page_token = page.next_page_token;
    }
    skills.truncate(limit);
    if output.is_json() {
        let skills: Result<Vec<_>, _> = skills
            .iter()
            .map(|skill| json_of("SkillMetadata", skill))
            .collect();
        output.value(&json!({"skills": skills?}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&["id", "version", "category", "description"]);
    for skill in &skills {
        let mut description = skill.description.clone();
        if with_problems {
            let problems = counted(skill.problem_count as usize, "problem");
            description = format!("{problems}: {description}");
        }
        rows.add_row([&skill.id, &skill.version, &skill.category, &description]);
    }
    output.table(&rows)?;
    output.line(&counted(skills.len(), "skill"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn show(client: &mut Client, options: OfVersion, output: &Output) -> Exit {
    let (version_number, semantic_version) = version(options.at);
    let request = v1::GetSkillRequest {
        skill_id: options.skill,
        include_versions: true,
        include_dependents: true,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = client.lookup().get_skill(request).await?.into_inner();
    if output.is_json() {
        output.message("GetSkillResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let skill = answer.skill.unwrap_or_default();
    let mut rows = Table::new(&["skill", &skill.id]).wrapped();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            rows.add_row([name.to_owned(), value]);
        }
    };
    row("name", skill.name.clone());
    row("description", skill.description.clone());
    row(
        "version",
        format!(
            "{} (number {})",
            skill.current_version, skill.version_number
        ),
    );
    row("category", skill.categories.join(", "));
    row("tags", skill.tags.join(", "));
    row("triggers", skill.triggers.join(", "));
    row(
        "author",
        skill
            .author
            .as_ref()
            .map(|author| author.name.clone())
            .unwrap_or_default(),
    );
    row("licence", skill.github_license.clone());
    row("trust", format!("{:?}", skill.trust_tier()).to_lowercase());
    row(
        "scan",
        review::status(skill.security_scan_status()).to_owned(),
    );
    row(
        "quality",
        skill
            .quality_score
            .map_or_else(String::new, |score| format!("{score:.2} of 1")),
    );
    row("location", format!("{:?}", skill.location()).to_lowercase());
    row("uri", skill.uri.clone());
    row("digest", skill.digest.clone());
    row(
        "size",
        format!(
            "{} in {}; {} characters to load",
            bytes(skill.size_bytes),
            counted(skill.file_count as usize, "file"),
            skill.estimated_char_budget
        ),
    );
    let tools = skill.tool_configs.iter().map(|tool| tool.name.as_str());
    row("tools", tools.collect::<Vec<_>>().join(", "));
    let resources = skill.resource_configs.iter().map(|r| r.name.as_str());
    row("resources", resources.collect::<Vec<_>>().join(", "));
    if let Some(definition) = &skill.definition {
        row("allowed tools", definition.allowed_tools.join(", "));
        row("forbidden tools", definition.forbidden_tools.join(", "));
        row("protocol", definition.execution_protocol.join(" → "));
    }
    let total = answer.dependent_count.unwrap_or_default() as usize;
    row("required by", some_of(&answer.dependents, total));
    row("updated", time(skill.updated_at));
    output.table(&rows)?;
    if !answer.shadowed_ids.is_empty() {
        output.line(&format!(
            "{WARN}hides{WARN:#} {}",
            answer.shadowed_ids.join(", ")
        ))?;
    }
    problems(client, skill, output).await?;
    Ok(ExitCode::SUCCESS)
}

/// Ids of a list that may be longer than what of it is here.
pub(super) fn some_of(ids: &[String], total: usize) -> String {
    let more = total.saturating_sub(ids.len());
    let all = ids.join(", ");
    if more > 0 {
        format!("{all}, and {more} more")
    } else {
        all
    }
}

/// What was found in the version that is shown: what an author may want to know, a
/// reader need not.
async fn problems(
    client: &mut Client,
    skill: v1::SkillDetail,
    output: &Output,
) -> Result<(), Failed> {
    let request = v1::GetVersionRequest {
        skill_id: skill.id,
        version_number: skill.version_number,
        ..Default::default()
    };
    let version = client.registry().get_version(request).await?.into_inner();
    let problems = version.version.unwrap_or_default().problems;
    let problems = problems
        .iter()
        .filter(|p| p.severity() != v1::Severity::Info);
    for problem in problems {
        output.line(&problem_line(problem))?;
    }
    Ok(())
}

pub(super) async fn read(client: &mut Client, options: Read, output: &Output) -> Exit {
    let Read {
        of: OfVersion { skill, at },
        path,
        raw,
    } = options;
    let (version_number, semantic_version) = version(at);
    let path = if path.is_empty() {
        model::FilePath::SKILL_MD.to_owned()
    } else {
        path
    };
    let request = v1::ReadFileRequest {
        skill_id: skill,
        path,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let file = client.lookup().read_file(request).await?.into_inner();
    output.file(&file.content, raw)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn watch(client: &mut Client, options: Watch, output: &Output) -> Exit {
    let Watch {
        resume,
        max_events,
        max_seconds,
        skills,
    } = options;
    let request = v1::WatchRequest {
        resume_token: resume,
        skill_ids: skills,
        types: Vec::new(),
        max_events: max_events.unwrap_or_default(),
        max_wait_seconds: max_seconds.unwrap_or_default(),
    };
    let mut answers = client.registry().watch(request).await?.into_inner();
    loop {
        let answer = tokio::select! {
            answer = answers.message() => answer?,
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
        };
        let Some(answer) = answer else {
            return Ok(ExitCode::SUCCESS);
        };
        if output.is_json() {
            output.json(&json_of("WatchResponse", &answer)?.to_string())?;
        } else if let Some(event) = answer.event {
            let version = if event.version_number == 0 {
                String::new()
            } else {
                format!(
                    " version {} ({})",
                    event.version_number, event.semantic_version
                )
            };
            output.line(&format!(
                "{FAINT}{}{FAINT:#} {GOOD}{}{GOOD:#} {}{version} {FAINT}by {}{FAINT:#}",
                time(event.time),
                format!("{:?}", event.r#type()).to_lowercase(),
                event.skill_id,
                event.actor,
            ))?;
        }
    }
}
