//! Commands on sources.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::connect::Client;
use super::output::{Done, FAINT, Failed, GOOD, List, Output, WARN, counted, time, word};
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
    pub(super) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
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
pub(super) struct Add {
    /// Its id: letters, digits and `-`.
    id: String,
    /// The kind of source.
    kind: KindName,
    /// Its address, or the path of its folder.
    location: Option<String>,
    /// Its display name.
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
pub(super) struct Remove {
    /// The source.
    id: String,
    /// Withdraw its skills.
    #[arg(long)]
    withdraw: bool,
}

const SOURCES: List<v1::SourceInfo> = List::new(&[
    ("source", |info| of(info).source_id),
    ("kind", |info| {
        word("SOURCE_KIND_", of(info).kind().as_str_name())
    }),
    ("skills", |info| info.skills_contributed.to_string()),
    ("at", |info| info.revision.clone()),
    ("synced", |info| time(info.last_successful_sync)),
    ("from", |info| {
        let source = of(info);
        if source.location.is_empty() {
            source.select.join(", ")
        } else {
            source.location
        }
    }),
]);

fn of(info: &v1::SourceInfo) -> v1::Source {
    info.source.clone().unwrap_or_default()
}

fn env(name: Option<String>) -> Option<v1::SecretReference> {
    Some(v1::SecretReference {
        env: name?,
        ..Default::default()
    })
}

fn credential(add: &Add) -> Result<Option<v1::SecretReference>, Failed> {
    let Some(file) = &add.token_file else {
        return Ok(env(add.token_env.clone()));
    };
    // Relative to this command's folder, which a server does not know.
    let file = std::path::absolute(file).map_err(Failed::fault)?;
    Ok(Some(v1::SecretReference {
        file: file.display().to_string(),
        ..Default::default()
    }))
}

pub(super) async fn source(client: &Client, options: Source, output: &Output) -> Done {
    match options.action.unwrap_or(Action::List) {
        Action::List => list(client, output).await,
        Action::Add(add) => self::add(client, *add, output).await,
        Action::Remove(options) => remove(client, options, output).await,
    }
}

async fn add(client: &Client, add: Add, output: &Output) -> Done {
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
    let added = output.answer(client.registry().add_source(request).await?)?;
    let id = added.source.and_then(|info| info.source);
    let id = id.map(|source| source.source_id).unwrap_or_default();
    output.line(&format!("{GOOD}added{GOOD:#} {id}"))?;
    output.note(&format!(
        "`repertoire sync {id}` syncs it now; a running server does so on its own"
    ));
    Ok(())
}

async fn remove(client: &Client, options: Remove, output: &Output) -> Done {
    let request = v1::RemoveSourceRequest {
        source_id: options.id,
        withdraw_skills: options.withdraw,
    };
    let removed = output.answer(client.registry().remove_source(request).await?)?;
    let (withdrawn, kept) = (removed.skills_withdrawn, removed.skills_kept);
    let what = if options.withdraw {
        format!("{} withdrawn", counted(withdrawn as usize, "skill"))
    } else {
        format!("{} kept", counted(kept as usize, "skill"))
    };
    output.line(&format!(
        "{GOOD}removed{GOOD:#} {}; {what}",
        removed.source_id
    ))
}

async fn list(client: &Client, output: &Output) -> Done {
    let request = v1::ListSourcesRequest {};
    let listed = output.answer(client.registry().list_sources(request).await?)?;
    if listed.sources.is_empty() {
        return output.line(&format!("{FAINT}no source is set up{FAINT:#}"));
    }
    output.list(&SOURCES, &listed.sources)?;
    for info in &listed.sources {
        let id = of(info).source_id;
        skips_of(&id, &info.skipped, info.skipped_left_out, output)?;
    }
    Ok(())
}

pub(super) fn skips_of(id: &str, skips: &[v1::SkippedSkill], more: u32, output: &Output) -> Done {
    for v1::SkippedSkill { path, reason } in skips {
        let path = if path.is_empty() { "." } else { path };
        output.line(&format!("{WARN}skipped{WARN:#} {id}: {path}: {reason}"))?;
    }
    if more > 0 {
        output.line(&format!("{FAINT}and {more} more of {id}{FAINT:#}"))?;
    }
    Ok(())
}
