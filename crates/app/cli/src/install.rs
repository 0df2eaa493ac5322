//! Commands on skills that are installed on the caller's machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};

use super::connect::Client;
use super::output::{self, BAD, Exit, FAINT, Failed, GOOD, Output, WARN, note};
use super::served::Served;
use ::install::Method;
use model::SystemClock;
use provision::{CommandReport, Concern, Provision, Targets, Tone, Wish};

/// How long to wait for another process that installs to the same folder.
const FOLDER_LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Exit codes where a skill must not be used, and where a person should review one.
const BLOCKED_EXIT_CODE: u8 = 3;
const REVIEW_EXIT_CODE: u8 = 4;

const EXAMPLES: &str = "\
Examples:
  repertoire install github/acme/refunds           for the agents of this project
  repertoire install refunds@^1.2 --agent claude,cursor
  repertoire install refunds --scope user          for yourself, in every project
  repertoire install --frozen                      what skills.lock says, to the byte

It writes skills.lock, which the others of a project install from: keep it in version
control. Agents: claude, agents (.agents/skills, which several read), cursor, codex, gemini,
opencode, copilot, windsurf, goose, amp.";

const AUDIT_HELP: &str = "\
Exit codes:
  0  nothing is wrong
  1  something else went wrong, as with every command
  2  the command line is wrong
  3  a skill must not be used: it is blocked or held, or its files differ
  4  a skill needs review: it was changed, is missing, or was withdrawn";

/// Commands on skills that are installed.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Install skills on this machine, for the agents of a project or of a person.
    Install(Install),
    /// Remove installed skills from this machine.
    Uninstall(Uninstall),
    /// List the skills that are installed on this machine, and whether they were changed.
    Installed(Installed),
    /// Resolve the versions of installed skills again.
    Update(Update),
    /// List installed skills with other versions by now. Exits with 4 if so.
    Outdated(Installed),
    /// Look at every skill of skills.lock: on disk, and on the server.
    Audit(Audit),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    /// Below the folder that you are in.
    Project,
    /// Below your home.
    User,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MethodName {
    /// The files.
    Copy,
    /// A link to one copy for all folders.
    Symlink,
}

#[derive(Debug, Args)]
pub(super) struct Where {
    /// Agents, with commas between them. [default: those whose folder is here, else claude]
    #[arg(long = "agent", value_name = "NAME", value_delimiter = ',')]
    agents: Vec<String>,
    /// For whom.
    #[arg(long, value_enum, default_value = "project")]
    scope: ScopeName,
    /// A folder of skills, instead of those of agents.
    #[arg(long, value_name = "DIR", conflicts_with = "agents")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Install {
    /// The skills: ID or NAME, perhaps with @VERSION. [default: those of skills.lock, else of
    /// the skills-lock.json of `npx skills`]
    skills: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// What is put there.
    #[arg(long, value_enum, default_value = "copy")]
    method: MethodName,
    /// Install what skills.lock says, and fail where that cannot be had to the byte.
    #[arg(long, conflicts_with = "skills")]
    frozen: bool,
    /// Install in spite of warnings of the scan, and give up changes of files.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Update {
    /// Skills of skills.lock. [default: all]
    skills: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// Install in spite of warnings of the scan, and give up changes of files.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Uninstall {
    /// The skills: ID or NAME.
    #[arg(required = true)]
    skills: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// Remove what others put into its folder, too.
    #[arg(long)]
    remove_data: bool,
    /// Remove it though its files were changed.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Installed {
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub(super) struct Audit {
    #[command(flatten)]
    place: Where,
}

/// Returns the folders that are meant.
fn targets(place: Where) -> Result<Targets, Failed> {
    let wish = Wish {
        agents: place.agents,
        dir: place.dir,
        is_user: matches!(place.scope, ScopeName::User),
    };
    let dirs = directories::BaseDirs::new().ok_or_else(|| Failed::fault("you have no home"))?;
    let own = dirs.data_dir().join("repertoire-installed");
    let (project, person) = (std::env::current_dir()?, dirs.home_dir().to_owned());
    Ok(Targets::new(&wish, &project, (person, own), |name| {
        std::env::var_os(name)
    })?)
}

/// Runs work with a server, with a count of the skills that it fetches.
async fn with<'client, T>(
    client: &'client Client,
    place: Where,
    call: impl AsyncFnOnce(&Provision<'_, Served<'client>>) -> Result<T, Failed>,
) -> Result<(T, Targets), Failed> {
    let targets = targets(place)?;
    let bar = output::counter("skills fetched");
    let provision = Provision {
        source: &Served(client),
        targets: &targets,
        clock: &SystemClock,
        until: Instant::now() + FOLDER_LOCK_TIMEOUT,
        fetched: &|| bar.inc(1),
    };
    let answer = call(&provision).await;
    bar.finish_and_clear();
    Ok((answer?, targets))
}

/// Prints the report of a command.
fn show(report: &CommandReport, output: &Output) -> Exit {
    // To stderr, also with JSON.
    for text in &report.notes {
        note(&format!("{WARN}warning:{WARN:#} {text}"));
    }
    output.value(&report.json)?;
    for line in &report.lines {
        let style = match line.tone {
            Tone::Good => GOOD,
            Tone::Warn => WARN,
            Tone::Bad => BAD,
            Tone::Faint => FAINT,
        };
        output.line(&format!("{style}{}{style:#} {}", line.word, line.text))?;
    }
    Ok(match report.concern {
        Concern::None => ExitCode::SUCCESS,
        Concern::Look => ExitCode::from(REVIEW_EXIT_CODE),
        Concern::Refuse => ExitCode::from(BLOCKED_EXIT_CODE),
    })
}

pub(super) fn installed(options: Installed, output: &Output) -> Exit {
    let all = provision::installed(&targets(options.place)?)?;
    show(&provision::of_installed(&all), output)
}

pub(super) fn uninstall(options: Uninstall, output: &Output) -> Exit {
    let (targets, until) = (
        targets(options.place)?,
        Instant::now() + FOLDER_LOCK_TIMEOUT,
    );
    let (data, force) = (options.remove_data, options.force);
    let give_up = || Instant::now() >= until;
    let removed = options.skills.iter();
    let removed = removed.map(|it| provision::uninstall(&targets, it, data, force, &give_up));
    let removed: Vec<_> = removed.collect::<Result<_, _>>()?;
    show(&provision::of_removed(&removed), output)
}

/// Runs the commands that need a server.
pub(super) async fn served(client: &Client, command: Command, output: &Output) -> Exit {
    match command {
        Command::Install(options) => install(client, options, output).await,
        Command::Update(options) => {
            let (place, skills, force) = (options.place, options.skills, options.force);
            let call = async |with: &Provision<'_, _>| provision::update(with, skills, force).await;
            let (changes, targets) = with(client, place, call).await?;
            show(&provision::of_changes(&changes, &targets), output)
        }
        Command::Outdated(options) => {
            let (found, _) = with(client, options.place, provision::newer).await?;
            show(&provision::of_newer(&found), output)
        }
        Command::Audit(options) => {
            let (found, _) = with(client, options.place, provision::audit).await?;
            show(&provision::of_audit(&found), output)
        }
        Command::Uninstall(_) | Command::Installed(_) => {
            Err(Failed::fault("this command needs no server"))
        }
    }
}

async fn install(client: &Client, options: Install, output: &Output) -> Exit {
    let (skills, frozen, force) = (options.skills, options.frozen, options.force);
    let method = match options.method {
        MethodName::Copy => Method::Copy,
        MethodName::Symlink => Method::Symlink,
    };
    let call = async |with: &Provision<'_, _>| {
        provision::install(with, skills, method, frozen, force).await
    };
    let (changes, targets) = with(client, options.place, call).await?;
    let exit = show(&provision::of_changes(&changes, &targets), output)?;
    // An install of less than the lock of `npx skills` lists is no success.
    Ok(if changes.missing.is_empty() {
        exit
    } else {
        ExitCode::FAILURE
    })
}
