//! The command that lists skills with nearly the same text.

use clap::Args;

use super::connect::Client;
use super::output::{Done, List, Output, WARN};
use contract::v1;

const SIMILAR_EXAMPLES: &str = "\
Examples:
  repertoire similar refunds                     near-duplicates of a skill
  repertoire similar refunds --min 1             the same words";

#[derive(Debug, Args)]
#[command(after_help = SIMILAR_EXAMPLES)]
pub(super) struct Similar {
    /// The skill: its id or its short name. It may be blocked, held or withdrawn.
    skill: String,
    /// How similar the texts are at least, from 0.3 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    min: f64,
    /// Maximum number of skills, up to 200.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(i32).range(1..=200))]
    limit: i32,
}

const FOUND: List<v1::SimilarSkill> = List::new(&[
    ("id", |found| of(found).id),
    ("similarity", |found| format!("{:.2}", found.similarity)),
    ("same", |found| {
        let same = match (found.same_files, found.same_name) {
            (true, true) => "name, files",
            (true, false) => "files",
            (false, true) => "name",
            (false, false) => "",
        };
        same.to_owned()
    }),
    ("description", |found| of(found).description),
]);

fn of(found: &v1::SimilarSkill) -> v1::SkillSummary {
    found.skill.clone().unwrap_or_default()
}

pub(super) async fn similar(client: &Client, options: Similar, output: &Output) -> Done {
    client.index().await;
    let request = v1::ListSimilarSkillsRequest {
        skill_id: options.skill,
        min_similarity: Some(options.min),
        limit: Some(options.limit),
    };
    let found = output.answer(client.lookup().list_similar_skills(request).await?)?;
    if found.partial {
        output.note(&format!(
            "{WARN}The index is still being made: there may be more{WARN:#}"
        ));
    }
    if found.skills.is_empty() {
        output.note(&format!("No other skill is similar to {}.", found.skill_id));
    } else {
        output.list(&FOUND, &found.skills)?;
    }
    let left = (found.total as usize).saturating_sub(found.skills.len());
    if left > 0 {
        output.line(&format!("and {left} more: see --limit"))?;
    }
    Ok(())
}
