//! Commands that find skills: by words, and for a codebase.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::connect::Client;
use super::output::{Done, FAINT, Failed, GOOD, List, Output, Style, WARN, counted, lower, note};
use codebase::ScanOptions;
use contract::v1;
use model::{Code, printable};

/// The most files of a codebase that are sent.
const MAX_FILES: usize = 5_000;
/// How long the walk through a codebase may take.
const WALK_TIMEOUT: Duration = Duration::from_secs(30);

const SEARCH_EXAMPLES: &str = "\
Examples:
  repertoire search systematic-debugging              a name
  repertoire search review of a pull request          a task, in words
  repertoire search \"kuberntes deploymnet\"            spelling is corrected
  repertoire search database --technology postgres --limit 5";

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[command(after_help = SEARCH_EXAMPLES)]
pub(super) struct Search {
    /// Words, a name, or a sentence about a task.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Only skills of this category. Can be given more than once: any of them.
    #[arg(long = "category", value_name = "CATEGORY")]
    categories: Vec<String>,
    /// Only skills about this technology. Can be given more than once: any of them.
    #[arg(long = "technology", value_name = "TECHNOLOGY")]
    technologies: Vec<String>,
    /// Only skills with this tag. Can be given more than once: any of them.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only skills of this namespace, such as `github` or `github/acme`. Can be given
    /// more than once: any of them.
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// What the skills are ordered by.
    #[arg(long, value_enum, default_value = "relevance")]
    sort: SortField,
    /// The least first.
    #[arg(long)]
    ascending: bool,
    /// Maximum number of skills, up to 50.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=50))]
    limit: i32,
    /// Skills to pass over.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    offset: i32,
    /// Count what is found by category, technology, trust tier and source.
    #[arg(long)]
    facets: bool,
    /// Search by words only, not by meaning.
    #[arg(long)]
    words_only: bool,
    /// Explain each skill's rank.
    #[arg(long)]
    explain: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SortField {
    /// How well they answer the query.
    Relevance,
    /// Their quality.
    Score,
    /// Stars of their repositories.
    Stars,
    /// When they last changed.
    Updated,
}

/// A codebase of this machine.
#[derive(Debug, Args)]
pub(super) struct Analyze {
    /// The folder of the codebase.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Directories to go down, 1 to 10.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=10))]
    depth: i32,
    /// Leave out the dependencies of manifests.
    #[arg(long)]
    no_dependencies: bool,
    /// Read manifests near the root only.
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Args)]
pub(super) struct Recommend {
    /// The folder of the codebase.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Maximum number of skills, up to 25.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=25))]
    limit: i32,
    /// Also what may help, and skills that were never used.
    #[arg(long)]
    exploratory: bool,
    /// Skills that are installed, by id or short name, with commas between; those in
    /// the codebase's own skill folders are found.
    #[arg(long, value_name = "SKILLS", value_delimiter = ',')]
    installed: Vec<String>,
    /// List skills that are installed, too.
    #[arg(long)]
    all: bool,
}

const FOUND: List<v1::SkillSummary> = List::new(&[
    ("id", |skill| skill.id.clone()),
    ("name", |skill| skill.short_name.clone()),
    ("score", |skill| {
        let score = skill.r#match.as_ref().map_or(0.0, |why| why.score);
        format!("{score:.3}")
    }),
]);

const STACK: List<v1::TechStackItem> = List::new(&[
    ("technology", |item| item.name.clone()),
    ("type", |item| lower(item.r#type())),
    ("version", |item| item.version.clone().unwrap_or_default()),
    ("confidence", |item| format!("{:.1}", item.confidence)),
    ("source", |item| item.source.clone()),
]);

const RECOMMENDED: List<v1::Recommendation> = List::new(&[
    ("id", |one| of(one).id),
    ("name", |one| of(one).short_name),
    ("priority", priority),
    ("score", |one| format!("{:.2}", one.match_score)),
]);

const GAPS: List<v1::SkillGap> = List::new(&[
    ("gap", |gap| gap.area.clone()),
    ("severity", |gap| lower(gap.severity())),
    ("would help", |gap| gap.suggested_skills.join(", ")),
]);

fn of(one: &v1::Recommendation) -> v1::SkillSummary {
    one.skill.clone().unwrap_or_default()
}

fn priority(one: &v1::Recommendation) -> String {
    lower(one.priority())
}

pub(super) async fn search(client: &Client, options: Search, output: &Output) -> Done {
    client.index().await;
    let sort = match options.sort {
        SortField::Relevance => v1::SearchSortField::Relevance,
        SortField::Score => v1::SearchSortField::Score,
        SortField::Stars => v1::SearchSortField::Stars,
        SortField::Updated => v1::SearchSortField::Updated,
    };
    let direction = if options.ascending {
        v1::SortDirection::Asc
    } else {
        v1::SortDirection::Desc
    };
    let request = v1::SearchRequest {
        query: options.query.join(" "),
        filters: Some(v1::SearchFilters {
            categories: options.categories,
            technologies: options.technologies,
            tags: options.tags,
            namespaces: options.namespaces,
            ..Default::default()
        }),
        sort: Some(v1::SearchSort {
            field: sort.into(),
            direction: direction.into(),
        }),
        limit: Some(options.limit),
        offset: options.offset,
        facets: options.facets,
        words_only: options.words_only,
        // They cost the server time, and rows show none.
        highlights: !output.is_rows(),
    };
    let found = output.answer(client.lookup().search(request).await?)?;
    let analysis = found.query_analysis.unwrap_or_default();
    for repair in &analysis.repairs {
        output.note(&format!(
            "{WARN}No skill has '{}'; read as '{}'{WARN:#}",
            repair.word,
            repair.read_as.join("', '")
        ));
    }
    if found.results.is_empty() {
        output.note("Nothing was found.");
        for suggestion in &found.suggestions {
            output.note(&format!("  {suggestion}"));
        }
        return Ok(());
    }
    output.rows(&FOUND, &found.results)?;
    for skill in &found.results {
        output.line(&format!(
            "{GOOD}{}{GOOD:#}  {FAINT}{}{FAINT:#}",
            skill.short_name, skill.id
        ))?;
        let why = skill.r#match.clone().unwrap_or_default();
        output.line(&format!("  {}", highlighted(&why.snippet, &why.highlights)))?;
        if options.explain {
            output.line(&format!("  {FAINT}{}{FAINT:#}", reason(&why)))?;
        }
    }
    for facet in &found.facets {
        let values = facet.values.iter();
        let values: Vec<String> = values.map(|v| format!("{} {}", v.value, v.count)).collect();
        output.line(&format!("{}: {}", facet.field, values.join(", ")))?;
    }
    let first = options.offset + 1;
    let last = i64::from(options.offset) + i64::try_from(found.results.len()).unwrap_or(0);
    output.line(&format!(
        "{first}–{last} of {}",
        counted(found.total as usize, "skill")
    ))?;
    if found.has_more && !analysis.suggested_refinements.is_empty() {
        let refinements = analysis.suggested_refinements.join("', '");
        output.line(&format!("{FAINT}finer: '{refinements}'{FAINT:#}"))?;
    }
    Ok(())
}

/// Renders a snippet with the matches in bold.
fn highlighted(snippet: &str, ranges: &[v1::TextRange]) -> String {
    let is_match = |at: usize| {
        let holds =
            |range: &v1::TextRange| (range.start as usize..range.end as usize).contains(&at);
        ranges.iter().any(holds)
    };
    let bold = Style::Bold;
    // Characters that a terminal acts on are escaped part by part: escaped before, the text would
    // be longer, and the ranges would be those of other characters.
    let chars: Vec<(usize, char)> = snippet.chars().enumerate().collect();
    let mut text = String::new();
    for run in chars.chunk_by(|(a, _), (b, _)| is_match(*a) == is_match(*b)) {
        let part: String = run.iter().map(|(_, c)| c).collect();
        let part = printable(&part);
        if run.first().is_some_and(|(at, _)| is_match(*at)) {
            // Into a string it cannot fail.
            _ = write!(text, "{bold}{part}{bold:#}");
        } else {
            text.push_str(&part);
        }
    }
    text
}

fn reason(why: &v1::SearchMatch) -> String {
    let tier = match why.tier() {
        v1::MatchTier::Unspecified | v1::MatchTier::Words => "",
        v1::MatchTier::Name => "its name; ",
        v1::MatchTier::NameWords => "every word in its name; ",
        v1::MatchTier::Meaning => "by meaning alone; ",
    };
    let words = if why.matched_terms.is_empty() {
        String::new()
    } else {
        format!(
            "'{}' in {}; ",
            why.matched_terms.join("', '"),
            why.fields.join(", ")
        )
    };
    format!(
        "{tier}{words}score {:.3} = words {:.3} + meaning {:.3}",
        why.score, why.words_score, why.meaning_score
    )
}

/// Reads the files of a codebase on this machine that an analysis uses: the server may be on
/// another one.
fn files(folder: &Path, options: &ScanOptions) -> Result<Vec<v1::CodebaseFile>, Failed> {
    let end = Instant::now() + WALK_TIMEOUT;
    let stop = || Instant::now() >= end;
    let inventory = ::codebase::walk(folder, options, &stop)
        .map_err(|error| Failed::file(error).hint("name the folder of a codebase"))?;
    let mut files: Vec<v1::CodebaseFile> = inventory
        .files()
        .map(|(path, content)| v1::CodebaseFile {
            path: path.to_owned(),
            content: content.map(ToOwned::to_owned),
        })
        .collect();
    // Those with a text first, such as manifests: they tell most where some are left out.
    files.sort_by_key(|file| file.content.is_none());
    if files.len() > MAX_FILES {
        note(&format!(
            "{WARN}{} files are left out: {MAX_FILES} are looked at{WARN:#}",
            files.len() - MAX_FILES
        ));
        files.truncate(MAX_FILES);
    }
    if files.is_empty() {
        return Err(Failed::new(
            Code::InvalidParameter,
            format!("'{}' holds no files", folder.display()),
        ));
    }
    Ok(files)
}

pub(super) async fn analyze(client: &Client, options: Analyze, output: &Output) -> Done {
    let scan = ScanOptions {
        depth: u8::try_from(options.depth).unwrap_or(u8::MAX),
        quick_mode: options.quick,
        ..ScanOptions::default()
    };
    let request = v1::AnalyzeCodebaseRequest {
        depth: Some(options.depth),
        include_dependencies: Some(!options.no_dependencies),
        quick_mode: options.quick,
        files: files(&options.folder, &scan)?,
        ..Default::default()
    };
    let found = output.answer(client.lookup().analyze_codebase(request).await?)?;
    let project = found.project_info.clone().unwrap_or_default();
    let kind = lower(project.r#type());
    let name = project.name.unwrap_or_else(|| "a codebase".to_owned());
    let managers = project.package_managers.join(", ");
    output.line(&format!(
        "{GOOD}{name}{GOOD:#}  {kind}  {FAINT}{managers}{FAINT:#}"
    ))?;
    output.list(&STACK, &found.stack)?;
    let stats = found.stats.clone().unwrap_or_default();
    output.line(&format!(
        "{}; languages: {}; confidence: {}",
        counted(stats.total_files as usize, "file"),
        stats.languages_detected.join(", "),
        lower(found.confidence_level())
    ))?;
    let signals = found.signals.iter();
    let signals: Vec<&str> = signals
        .map(|it| it.name.trim_start_matches("has_"))
        .collect();
    output.line(&format!("has: {}", signals.join(", ")))?;
    for remark in &found.notes {
        output.note(&format!("{WARN}{remark}{WARN:#}"));
    }
    Ok(())
}

pub(super) async fn recommend(client: &Client, options: Recommend, output: &Output) -> Done {
    client.index().await;
    let mode = if options.exploratory {
        v1::DiscoveryMode::Exploratory
    } else {
        v1::DiscoveryMode::Conservative
    };
    let request = v1::RecommendSkillsRequest {
        max_results: Some(options.limit),
        exclude_installed: Some(!options.all),
        discovery_mode: mode.into(),
        files: files(&options.folder, &ScanOptions::default())?,
        installed_skills: options.installed,
        ..Default::default()
    };
    let found = output.answer(client.lookup().recommend_skills(request).await?)?;
    if output.is_rows() {
        return output.list(&RECOMMENDED, &found.recommendations);
    }
    output.line(&found.analysis_summary)?;
    for one in &found.recommendations {
        let (skill, priority) = (of(one), priority(one));
        output.line(&format!(
            "{GOOD}{}{GOOD:#}  {priority}  {:.2}  {FAINT}{}{FAINT:#}",
            skill.short_name, one.match_score, skill.id
        ))?;
        for reason in &one.reasons {
            output.line(&format!("  {}", reason.description))?;
        }
    }
    if found.recommendations.is_empty() {
        output.note("No skill here fits this codebase plainly; try --exploratory.");
    }
    if !found.gaps_identified.is_empty() {
        output.list(&GAPS, &found.gaps_identified)?;
    }
    output.line(&format!(
        "{:.0} % of what it asks for is installed",
        found.installed_coverage * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use terminal::painted_line;

    use super::*;

    fn shown(snippet: &str, ranges: &[(u32, u32)]) -> String {
        let range = |&(start, end): &(u32, u32)| v1::TextRange { start, end };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        painted_line(&highlighted(snippet, &ranges))
    }

    #[test]
    fn what_was_found_is_bold_and_nothing_else_however_odd_the_text_before_it() {
        assert_eq!(
            shown("**\u{1b}[2J é\u{202e}字 undo", &[(9, 10), (11, 15)]),
            "**\\u{1b}[2J é\\u{202e}\u{1b}[1m字\u{1b}[0m \u{1b}[1mundo\u{1b}[0m"
        );
        assert_eq!(shown("as it is", &[]), "as it is");
    }

    #[test]
    fn ranges_that_the_text_does_not_have_do_no_harm() {
        assert_eq!(
            shown("short", &[(3, 90), (7, 2), (200, 300), (4, 5)]),
            "sho\u{1b}[1mrt\u{1b}[0m"
        );
    }
}
