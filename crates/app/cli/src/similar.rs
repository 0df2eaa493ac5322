//! The command that lists skills with nearly the same text.

use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{Exit, Output, Table, WARN, note};
use contract::v1;

const SIMILAR_EXAMPLES: &str = "\
Examples:
  repertoire similar refunds                     copies, and what became of them
  repertoire similar refunds --min 1             the same words";

#[derive(Debug, Args)]
#[command(after_help = SIMILAR_EXAMPLES)]
pub(super) struct Similar {
    /// The skill: its id or its short name. It may be blocked, held or withdrawn.
    skill: String,
    /// How similar the texts are at least, from 0.3 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    min: f64,
    /// Skills at most, 200 at the most.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(i32).range(1..=200))]
    limit: i32,
}

pub(super) async fn similar(client: &mut Client, options: Similar, output: &Output) -> Exit {
    client.index().await;
    let request = v1::ListSimilarSkillsRequest {
        skill_id: options.skill,
        min_similarity: Some(options.min),
        limit: Some(options.limit),
    };
    let found = client.lookup().list_similar_skills(request).await?;
    let found = found.into_inner();
    if output.is_json() {
        output.message("ListSimilarSkillsResponse", &found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.partial {
        note(&format!(
            "{WARN}The index is still being made: there may be more{WARN:#}"
        ));
    }
    if found.skills.is_empty() {
        note(&format!("No other skill is similar to {}.", found.skill_id));
    }
    let mut rows = Table::new(&["id", "similarity", "same", "description"]);
    for similar in &found.skills {
        let skill = similar.skill.clone().unwrap_or_default();
        let same = match (similar.same_files, similar.same_name) {
            (true, true) => "name, files",
            (true, false) => "files",
            (false, true) => "name",
            (false, false) => "",
        };
        let similarity = format!("{:.2}", similar.similarity);
        rows.add_row([&skill.id, &similarity, same, &skill.description]);
    }
    if !found.skills.is_empty() || output.is_rows() {
        output.table(&rows)?;
    }
    let left = (found.total as usize).saturating_sub(found.skills.len());
    if left > 0 {
        output.line(&format!("and {left} more: see --limit"))?;
    }
    Ok(ExitCode::SUCCESS)
}
