//! Arguments of several commands on skills. The comments are their help.

use clap::{Args, ValueEnum};

/// A location of this machine's skills.
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
    /// Location: the skills become local/LOCATION/NAME. [default: the author that the path names,
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
    /// Source and author; none: they follow from the path of a folder.
    pub(super) fn named(self) -> Option<(String, String)> {
        let location = self
            .location
            .map(|l| ("local".to_owned(), l.author().to_owned()));
        self.source.zip(self.author).or(location)
    }
}

#[derive(Debug, Args)]
pub(super) struct OfSkill {
    /// The skill: its id or its short name.
    pub(super) skill: String,
}

#[derive(Debug, Args)]
pub(super) struct OfId {
    /// The skill: its full id.
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
pub(super) struct OfNamed {
    /// The skill: its full id.
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
