//! Commands that list, show and hand out skills.

use clap::Args;
use serde_json::json;

use super::connect::{Client, next, pages};
use super::outcome::problem_line;
use super::output::{
    Done, FAINT, GOOD, List, Output, Table, WARN, bytes, counted, json_of, lower, time,
};
use super::review;
use super::skill_args::{LocationName, OfVersion, version};
use contract::v1;

const SKILLS_PER_PAGE: i32 = 500;

#[derive(Debug, Args)]
pub(super) struct ListSkills {
    /// Only skills of this source.
    #[arg(long)]
    source: Option<String>,
    /// Only skills of this author.
    #[arg(long, requires = "source")]
    author: Option<String>,
    /// Only skills of this category.
    #[arg(long)]
    category: Option<String>,
    /// Only skills with this tag; repeat it for several.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only skills about this technology.
    #[arg(long)]
    technology: Option<String>,
    /// Only skills of this location.
    #[arg(long, value_enum)]
    location: Option<LocationName>,
    /// Only skills whose files have warnings; `show` lists them.
    #[arg(long)]
    with_problems: bool,
    /// Only skills that require this one, by its id or its short name.
    #[arg(long, value_name = "SKILL")]
    requires: Option<String>,
    /// The most skills to list. [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct Read {
    #[command(flatten)]
    of: OfVersion,
    /// Path of the file inside the skill.
    #[arg(default_value = "")]
    path: String,
    /// The bytes as they are, also to a terminal.
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Args)]
pub(super) struct Watch {
    /// Go on after this token. [default: from now on]
    #[arg(long, value_name = "TOKEN")]
    resume: Option<String>,
    /// End after this many events. [default: do not end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=1000))]
    max_events: Option<i32>,
    /// End after this many seconds. [default: do not end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=3600))]
    max_seconds: Option<i32>,
    /// Only events of these skills, by id.
    #[arg(value_name = "ID")]
    skills: Vec<String>,
}

const SKILLS: List<v1::SkillMetadata> = List::new(&[
    ("id", |skill| skill.id.clone()),
    ("version", |skill| skill.version.clone()),
    ("category", |skill| skill.category.clone()),
    ("description", |skill| skill.description.clone()),
]);

pub(super) async fn list(client: &Client, options: ListSkills, output: &Output) -> Done {
    let limit = options.limit.unwrap_or(usize::MAX);
    let location = match options.location {
        None => v1::Location::Unspecified,
        Some(LocationName::Project) => v1::Location::Project,
        Some(LocationName::User) => v1::Location::User,
        Some(LocationName::Global) => v1::Location::Global,
    };
    let mut request = v1::ListSkillsRequest {
        page_size: i32::try_from(limit)
            .unwrap_or(SKILLS_PER_PAGE)
            .clamp(1, SKILLS_PER_PAGE),
        source: options.source.unwrap_or_default(),
        author: options.author.unwrap_or_default(),
        category: options.category.unwrap_or_default(),
        tags: options.tags,
        technology: options.technology.unwrap_or_default(),
        location: location.into(),
        with_problems: options.with_problems,
        requires: options.requires.unwrap_or_default(),
        ..Default::default()
    };
    let mut skills = Vec::new();
    pages(async |page_token| {
        request.page_token = page_token;
        let page = client.lookup().list_skills(request.clone()).await?;
        let page = page.into_inner();
        skills.extend(page.skills);
        if skills.len() >= limit {
            return Ok(String::new());
        }
        Ok(page.next_page_token)
    })
    .await?;
    skills.truncate(limit);
    if output.is_json() {
        let skills: Result<Vec<_>, _> = skills.iter().map(json_of).collect();
        return output.value(&json!({"skills": skills?}));
    }
    if options.with_problems {
        for skill in &mut skills {
            let problems = counted(skill.problem_count as usize, "problem");
            skill.description = format!("{problems}: {}", skill.description);
        }
    }
    output.list(&SKILLS, &skills)?;
    output.line(&counted(skills.len(), "skill"))
}

pub(super) async fn show(client: &Client, options: OfVersion, output: &Output) -> Done {
    let (version_number, semantic_version) = version(options.at);
    let request = v1::GetSkillRequest {
        skill_id: options.skill,
        include_versions: true,
        include_dependents: true,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = output.answer(client.lookup().get_skill(request).await?)?;
    if output.is_json() {
        return Ok(());
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
    let (version, number) = (&skill.current_version, skill.version_number);
    row("version", format!("{version} (number {number})"));
    row("category", skill.categories.join(", "));
    row("tags", skill.tags.join(", "));
    row("triggers", skill.triggers.join(", "));
    row("author", skill.author.clone().unwrap_or_default().name);
    row("licence", skill.github_license.clone());
    row("trust", lower(skill.trust_tier()));
    let scan = review::status(skill.security_scan_status());
    row("scan", scan.to_owned());
    let quality = skill.quality_score.map(|score| format!("{score:.2} of 1"));
    row("quality", quality.unwrap_or_default());
    row("location", lower(skill.location()));
    row("uri", skill.uri.clone());
    row("digest", skill.digest.clone());
    let (size, budget) = (skill.size_bytes.unsigned_abs(), skill.estimated_char_budget);
    let size = bytes(size);
    let files = counted(skill.file_count as usize, "file");
    row(
        "size",
        format!("{size} in {files}; {budget} characters to load"),
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
    problems(client, skill, output).await
}

/// Joins ids of a list whose whole length is `total`.
fn some_of(ids: &[String], total: usize) -> String {
    let more = total.saturating_sub(ids.len());
    let all = ids.join(", ");
    if more > 0 {
        format!("{all}, and {more} more")
    } else {
        all
    }
}

/// Prints the problems of the version that is shown.
async fn problems(client: &Client, skill: v1::SkillDetail, output: &Output) -> Done {
    let request = v1::GetVersionRequest {
        skill_id: skill.id,
        version_number: skill.version_number,
        ..Default::default()
    };
    let version = client.registry().get_version(request).await?.into_inner();
    let problems = version.version.unwrap_or_default().problems;
    // Infos are for authors; `validate` shows them.
    for problem in problems
        .iter()
        .filter(|p| p.severity() != v1::Severity::Info)
    {
        output.line(&problem_line(problem))?;
    }
    Ok(())
}

pub(super) async fn read(client: &Client, options: Read, output: &Output) -> Done {
    let Read { of, path, raw } = options;
    let (version_number, semantic_version) = version(of.at);
    let path = Some(path).filter(|path| !path.is_empty());
    let request = v1::ReadFileRequest {
        skill_id: of.skill,
        path: path.unwrap_or_else(|| model::FilePath::SKILL_MD.to_owned()),
        version_number,
        semantic_version,
        ..Default::default()
    };
    let file = client.lookup().read_file(request).await?.into_inner();
    output.file(&file.content, raw)
}

pub(super) async fn watch(client: &Client, options: Watch, output: &Output) -> Done {
    let request = v1::WatchRequest {
        resume_token: options.resume.unwrap_or_default(),
        skill_ids: options.skills,
        types: Vec::new(),
        max_events: options.max_events.unwrap_or_default(),
        max_wait_seconds: options.max_seconds.unwrap_or_default(),
    };
    let mut answers = client.registry().watch(request).await?.into_inner();
    while let Some(answer) = next(&mut answers).await? {
        output.event(&answer)?;
        if let Some(event) = answer.event {
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
                lower(event.r#type()),
                event.skill_id,
                event.actor,
            ))?;
        }
    }
    Ok(())
}
