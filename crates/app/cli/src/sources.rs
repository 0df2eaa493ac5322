//! Commands on sources.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use super::connect::Client;
use super::output::{Exit, FAINT, Failed, GOOD, Output, Table, WARN, counted, note, time};
use contract::v1;

const SOURCE_EXAMPLES: &str = "\
Examples:
  repertoire source add acme git https://github.com/acme/skills.git --token-env ACME_TOKEN
  repertoire source add team directory /srv/skills --namespace team/shared
  repertoire source add public github --select acme,topic:agent-skills --token-env GITHUB_TOKEN
  repertoire source add partner repertoire https://skills.partner.example
  repertoire source                                what there is, and what was not taken
  repertoire source remove acme --withdraw

A server keeps sources in step by itself; `repertoire sync` does it now. Sources can also
stand in the config file. A source of an address of your own network needs
`sync.allow_networks` in the server's settings.";

#[derive(Debug, Args)]
#[command(after_help = SOURCE_EXAMPLES)]
pub(super) struct Source {
    #[command(subcommand)]
    action: Option<Action>,
}

impl Source {
    /// It lists sources.
    pub(super) fn prints_rows(&self) -> bool {
        matches!(self.action, None | Some(Action::List))
    }
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sources, and what of them was not taken.
    List,
    /// Add a source: the server syncs it at once, and keeps it in step.
    Add(Box<Add>),
    /// Remove a source. Its skills stay, unless --withdraw says otherwise.
    Remove(Remove),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    /// A folder on the server's machine.
    Directory,
    /// A Git repository.
    Git,
    /// Repositories of GitHub, by its API.
    Github,
    /// An index below /.well-known of a web site.
    WellKnown,
    /// A registry that speaks the protocol of `ClawHub`.
    Clawhub,
    /// Another server of this kind.
    Repertoire,
}

#[derive(Debug, Args)]
struct Add {
    /// What to call it: letters, digits and `-`.
    id: String,
    /// What sort of place it is.
    kind: KindName,
    /// Its address, or the path of its folder.
    location: Option<String>,
    /// What people call it.
    #[arg(long, default_value = "")]
    name: String,
    /// Branch or tag of a repository.
    #[arg(long = "ref", value_name = "REF", default_value = "")]
    reference: String,
    /// Only what is below this path of it.
    #[arg(long, default_value = "")]
    path: String,
    /// Repositories, owners and `topic:NAME` of GitHub, slugs of `ClawHub`, beginnings of ids
    /// of another server; with commas between them.
    #[arg(long, value_delimiter = ',')]
    select: Vec<String>,
    /// How the ids of its skills begin: `source/author`, or `source`.
    #[arg(long, default_value = "")]
    namespace: String,
    /// Seconds between two syncs; 0: only when somebody asks. [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    interval: Option<u32>,
    /// Variable of the server's environment that holds the token it wants.
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// File of the server's machine that holds the token it wants.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Variable of the server's environment that holds the secret of its webhooks.
    #[arg(long, value_name = "NAME")]
    webhook_secret_env: Option<String>,
}

#[derive(Debug, Args)]
struct Remove {
    /// The source.
    id: String,
    /// Withdraw its skills.
    #[arg(long)]
    withdraw: bool,
}

fn env(name: Option<String>) -> Option<v1::SecretReference> {
    let env = name?;
    Some(v1::SecretReference {
        env,
        file: String::new(),
    })
}

fn credential(add: &Add) -> Result<Option<v1::SecretReference>, Failed> {
    let Some(file) = &add.token_file else {
        return Ok(env(add.token_env.clone()));
    };
    // The server does not know where this command was started.
    let file = std::path::absolute(file).map_err(Failed::fault)?;
    Ok(Some(v1::SecretReference {
        env: String::new(),
        file: file.display().to_string(),
    }))
}

pub(super) async fn source(client: &mut Client, options: Source, output: &Output) -> Exit {
    match options.action.unwrap_or(Action::List) {
        Action::List => list(client, output).await,
        Action::Add(add) => self::add(client, *add, output).await,
        Action::Remove(options) => remove(client, options, output).await,
    }
}

async fn add(client: &mut Client, add: Add, output: &Output) -> Exit {
    let credential = credential(&add)?;
    let kind = match add.kind {
        KindName::Directory => v1::SourceKind::Directory,
        KindName::Git => v1::SourceKind::Git,
        KindName::Github => v1::SourceKind::Github,
        KindName::WellKnown => v1::SourceKind::WellKnown,
        KindName::Clawhub => v1::SourceKind::Clawhub,
        KindName::Repertoire => v1::SourceKind::Repertoire,
    };
    let mut location = add.location.unwrap_or_default();
    if matches!(add.kind, KindName::Directory) && !location.is_empty() {
        let path = std::path::absolute(&location).map_err(Failed::fault)?;
        location = path.display().to_string();
    }
    let source = v1::Source {
        source_id: add.id,
        name: add.name,
        kind: kind.into(),
        location,
        r#ref: add.reference,
        path: add.path,
        select: add.select,
        namespace: add.namespace,
        interval_seconds: add.interval,
        credential,
        webhook_secret: env(add.webhook_secret_env),
    };
    let request = v1::AddSourceRequest {
        source: Some(source),
    };
    let added = client.registry().add_source(request).await?.into_inner();
    if output.is_json() {
        output.message("AddSourceResponse", &added)?;
        return Ok(ExitCode::SUCCESS);
    }
    let id = added.source.and_then(|info| info.source);
    let id = id.map(|source| source.source_id).unwrap_or_default();
    output.line(&format!("{GOOD}added{GOOD:#} {id}"))?;
    note(&format!(
        "`repertoire sync {id}` syncs it now; a server that runs does so by itself"
    ));
    Ok(ExitCode::SUCCESS)
}

async fn remove(client: &mut Client, options: Remove, output: &Output) -> Exit {
    let request = v1::RemoveSourceRequest {
        source_id: options.id,
        withdraw_skills: options.withdraw,
    };
    let removed = client.registry().remove_source(request).await?.into_inner();
    if output.is_json() {
        output.message("RemoveSourceResponse", &removed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (withdrawn, kept) = (removed.skills_withdrawn, removed.skills_kept);
    let what = if options.withdraw {
        format!("{} withdrawn", counted(withdrawn as usize, "skill"))
    } else {
        format!("{} kept", counted(kept as usize, "skill"))
    };
    output.line(&format!(
        "{GOOD}removed{GOOD:#} {}; {what}",
        removed.source_id
    ))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(client: &mut Client, output: &Output) -> Exit {
    let request = v1::ListSourcesRequest {};
    let listed = client.registry().list_sources(request).await?.into_inner();
    if output.is_json() {
        output.message("ListSourcesResponse", &listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if listed.sources.is_empty() {
        output.line(&format!("{FAINT}no source is set up{FAINT:#}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&["source", "kind", "skills", "at", "synced", "from"]);
    let mut skipped = Vec::new();
    for info in listed.sources {
        let source = info.source.unwrap_or_default();
        let kind = kind_name(source.kind());
        let from = if source.location.is_empty() {
            source.select.join(", ")
        } else {
            source.location.clone()
        };
        let synced = time(info.last_successful_sync);
        let skills = info.skills_contributed.to_string();
        rows.add_row([
            &source.source_id,
            kind,
            &skills,
            &info.revision,
            &synced,
            &from,
        ]);
        let more = info.skipped_left_out;
        skipped.push((source.source_id, info.skipped, more));
    }
    output.table(&rows)?;
    for (id, skips, more) in skipped {
        skips_of(&id, &skips, more, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn kind_name(kind: v1::SourceKind) -> &'static str {
    match kind {
        v1::SourceKind::Unspecified => "",
        v1::SourceKind::Directory => "directory",
        v1::SourceKind::Git => "git",
        v1::SourceKind::Github => "github",
        v1::SourceKind::WellKnown => "well-known",
        v1::SourceKind::Clawhub => "clawhub",
        v1::SourceKind::Repertoire => "repertoire",
    }
}

pub(super) fn skips_of(
    id: &str,
    skips: &[v1::SkippedSkill],
    more: u32,
    output: &Output,
) -> Result<(), Failed> {
    for v1::SkippedSkill { path, reason } in skips {
        let path = if path.is_empty() { "." } else { path };
        output.line(&format!("{WARN}skipped{WARN:#} {id}: {path}: {reason}"))?;
    }
    if more > 0 {
        output.line(&format!("{FAINT}and {more} more of {id}{FAINT:#}"))?;
    }
    Ok(())
}
