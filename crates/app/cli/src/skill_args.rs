//! What the commands on skills understand. The comments are their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A place of this machine's skills.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LocationName {
    /// Skills of the project at hand; they win short names.
    Project,
    /// A person's skills; they come next.
    User,
    /// Everyone's skills.
    Global,
}

impl LocationName {
    pub(super) fn author(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Global => "global",
        }
    }
}

/// Where skills are to live.
#[derive(Debug, Clone, Args)]
pub(super) struct Home {
    /// Location: the skills become local/LOCATION/NAME. [default: the author that the path tells,
    /// as in `github.com/AUTHOR/REPOSITORY` or `AUTHOR__REPOSITORY`, else global]
    #[arg(long, value_enum, conflicts_with_all = ["source", "author"])]
    pub(super) location: Option<LocationName>,
    /// Source of the skills, such as github: they become SOURCE/AUTHOR/NAME.
    #[arg(long, requires = "author")]
    pub(super) source: Option<String>,
    /// Author of the skills.
    #[arg(long, requires = "source")]
    pub(super) author: Option<String>,
}

impl Home {
    /// Source and author; none: those that the path of a folder tells.
    pub(super) fn named(self) -> Option<(String, String)> {
        let location = self
            .location
            .map(|l| ("local".to_owned(), l.author().to_owned()));
        self.source.zip(self.author).or(location)
    }
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Folders to look for skills in.
    #[arg(required = true, value_name = "DIR")]
    pub(super) folders: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) home: Home,
    /// What changed, kept with each version.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) summary: String,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    pub(super) strict: bool,
    /// Store nothing, and say of each skill what would become of it.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Publish {
    /// Folder of the skill.
    #[arg(value_name = "DIR")]
    pub(super) folder: PathBuf,
    /// Id to publish it as, SOURCE/AUTHOR/NAME. [default: by --location and its name]
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) home: Home,
    /// What changed, kept with the version.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) summary: String,
    /// Publish the version without making it the active one.
    #[arg(long)]
    pub(super) no_activate: bool,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    pub(super) strict: bool,
    /// Store nothing, and say what would become of the skill.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Validate {
    /// Folders to look for skills in.
    #[arg(required = true, value_name = "DIR")]
    pub(super) folders: Vec<PathBuf>,
    /// Mend each SKILL.md first, where there is one way to do it.
    #[arg(long)]
    pub(super) fix: bool,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only skills of this source.
    #[arg(long)]
    pub(super) source: Option<String>,
    /// Only skills of this author.
    #[arg(long, requires = "source")]
    pub(super) author: Option<String>,
    /// Only skills of this category.
    #[arg(long)]
    pub(super) category: Option<String>,
    /// Only skills with this tag; repeat it for several.
    #[arg(long = "tag", value_name = "TAG")]
    pub(super) tags: Vec<String>,
    /// Only skills about this technology.
    #[arg(long)]
    pub(super) technology: Option<String>,
    /// Only skills of this location.
    #[arg(long, value_enum)]
    pub(super) location: Option<LocationName>,
    /// Only skills whose files have warnings; `show` lists them.
    #[arg(long)]
    pub(super) with_problems: bool,
    /// Only skills that require this one, by its id or its short name.
    #[arg(long, value_name = "SKILL")]
    pub(super) requires: Option<String>,
    /// The most skills to list. [default: all]
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct OfSkill {
    /// The skill: its id or its short name.
    pub(super) skill: String,
}

#[derive(Debug, Args)]
pub(super) struct OfVersion {
    /// The skill: its id or its short name.
    pub(super) skill: String,
    /// A version: its number, or its semantic version. [default: the active one]
    #[arg(long, value_name = "VERSION")]
    pub(super) at: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Read {
    #[command(flatten)]
    pub(super) of: OfVersion,
    /// Path of the file inside the skill.
    #[arg(default_value = "")]
    pub(super) path: String,
    /// The bytes as they are, also to a terminal.
    #[arg(long)]
    pub(super) raw: bool,
}

#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The skill: its id or its short name.
    pub(super) skill: String,
    /// The older version: its number, or its semantic version. [default: the one before the newer]
    #[arg(long, value_name = "VERSION")]
    pub(super) from: Option<String>,
    /// The newer version: its number, or its semantic version. [default: the active one]
    #[arg(long, value_name = "VERSION")]
    pub(super) to: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct OfNamed {
    /// The skill: its id or its short name.
    pub(super) skill: String,
    /// The version: its number, or its semantic version.
    pub(super) version: String,
}

/// A version as the command line names it: `3` is a number, `1.2.0` a semantic version.
pub(super) fn version(text: Option<String>) -> (u32, String) {
    match text {
        None => (0, String::new()),
        Some(text) => text
            .parse()
            .map_or((0, text), |number| (number, String::new())),
    }
}

#[derive(Debug, Args)]
pub(super) struct Watch {
    /// Go on after this token. [default: from now on]
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) resume: String,
    /// End after so many events. [default: do not end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=1000))]
    pub(super) max_events: Option<i32>,
    /// End after so many seconds. [default: do not end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=3600))]
    pub(super) max_seconds: Option<i32>,
    /// Only events of these skills, by id.
    #[arg(value_name = "ID")]
    pub(super) skills: Vec<String>,
}
