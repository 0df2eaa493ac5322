//! Errors of installed skills, and how a caller sees each.

use std::io;
use std::path::{Path, PathBuf};

use model::{Code, Digest, Failure, SkillId, one_of, shown};

/// Paths that a message names.
const MAX_NAMED_PATHS: usize = 3;

/// A call on installed skills failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The skill is not installed.
    #[error("Skill '{}' is not installed", shown(skill, 200))]
    NotInstalled {
        /// The skill, as it was asked for.
        skill: String,
        /// Installed skills with similar names.
        near: Vec<String>,
    },
    /// A file or folder that we did not install has its name.
    #[error("`{}` exists already, and was not installed by Repertoire", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// Another skill of this directory has the folder.
    #[error("`{}` is the folder of '{other}', which is installed", path.display())]
    FolderTaken {
        /// The folder.
        path: PathBuf,
        /// The skill that has it.
        other: SkillId,
    },
    /// Somebody changed what was installed.
    #[error("`{}` was changed since it was installed: {}", path.display(), named(changed))]
    Changed {
        /// The folder.
        path: PathBuf,
        /// What was changed in it.
        changed: Vec<String>,
    },
    /// The files are not those of the version.
    #[error(
        "The files of '{id}' are not those that were asked for: their digest is {found}, not {expected}"
    )]
    DigestDiffers {
        /// The skill.
        id: SkillId,
        /// The digest of the version.
        expected: Digest,
        /// The digest of the files.
        found: Digest,
    },
    /// The skill, or one of its files, has a name that no file may have.
    #[error("'{}' cannot be written to a disk: {reason}", shown(name, 200))]
    Unwritable {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A directory outside of those that may be written to.
    #[error(
        "`{}` is not below a folder that skills may be installed to",
        shown(path, 300)
    )]
    OutsideRoots {
        /// The directory, as it was asked for.
        path: String,
    },
    /// A record names a change that did not begin in this directory.
    #[error("`{}` names a change of '{id}' that did not begin in this folder", record.display())]
    NotBegunHere {
        /// The record.
        record: PathBuf,
        /// The skill.
        id: SkillId,
    },
    /// The directory has as many skills as it may have.
    #[error("`{}` has {} skills, the maximum", path.display(), super::MAX_SKILLS)]
    Full {
        /// The directory.
        path: PathBuf,
    },
    /// The folder of a skill holds more files of others than are carried along.
    #[error("`{}` holds more than {max} files in addition to the skill's own", path.display())]
    TooMuchData {
        /// The folder.
        path: PathBuf,
        /// Files that are carried along.
        max: usize,
    },
    /// Another process changes the directory, and did not end in time.
    #[error("Another process installs skills to `{}`", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A record or a lock file cannot be parsed.
    #[error("`{}` cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An archive is not that of a skill.
    #[error("The archive of the skill cannot be unpacked: {reason}")]
    Archive {
        /// What is wrong with it.
        reason: String,
    },
    /// The disk refused.
    #[error("`{}`: {cause}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

/// The first three of some paths, and how many more there are.
pub(crate) fn named(paths: &[String]) -> String {
    let first = paths
        .iter()
        .take(MAX_NAMED_PATHS)
        .map(|path| shown(path, 120));
    let first: Vec<_> = first.collect();
    match paths.len().saturating_sub(MAX_NAMED_PATHS) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

impl Error {
    /// A file that cannot be parsed.
    pub(crate) fn unreadable(path: &Path, reason: String) -> Self {
        let path = path.to_owned();
        Self::Unreadable { path, reason }
    }

    /// An error of the disk, with the path.
    pub(crate) fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { path, cause }
    }

    /// A skill is not among those that are installed.
    #[must_use]
    pub fn not_installed<'a>(skill: &str, installed: impl Iterator<Item = &'a SkillId>) -> Self {
        let asked = skill
            .rsplit('/')
            .next()
            .unwrap_or(skill)
            .to_ascii_lowercase();
        let near = installed.filter(|id| {
            let slug = id.slug().to_ascii_lowercase();
            !asked.is_empty() && (slug.contains(&asked) || asked.contains(&slug))
        });
        let mut near: Vec<String> = near.map(ToString::to_string).collect();
        // One that is in several folders is named once.
        near.dedup();
        near.truncate(MAX_NAMED_PATHS);
        Self::NotInstalled {
            skill: skill.to_owned(),
            near,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let new = |code| Self::new(code, message.clone());
        match error {
            Error::NotInstalled { skill, near } => {
                let failure = new(Code::SkillNotInstalled).detail("skill_id", shown(&skill, 200));
                match one_of(&near) {
                    Some(names) => failure.suggest(format!("Did you mean {names}?")),
                    None => failure.suggest("List what is installed: `repertoire installed`, or the tool `list_installed`"),
                }
            }
            Error::NotOurs { path } => new(Code::SkillInstallFailed)
                .detail("path", path.display())
                .suggest("Move the folder away, or rename it, and install again"),
            Error::FolderTaken { path, other } => new(Code::ConflictDetected)
                .detail("path", path.display())
                .detail("conflicting_skill", other)
                .suggest("Uninstall the other skill, or install this one to another directory"),
            Error::Changed { path, .. } => new(Code::SkillInstallFailed)
                .detail("path", path.display())
                .suggest("Save a copy of the changes, then call again with `force`, which discards them"),
            Error::DigestDiffers { id, expected, found } => new(Code::SkillInstallFailed)
                .detail("skill_id", id)
                .detail("expected_digest", expected)
                .detail("digest", found)
                .suggest("Do not use it: the server, or a proxy, sends other bytes than it announced"),
            Error::Unwritable { name, .. } => new(Code::SkillInstallFailed)
                .detail("name", shown(&name, 200))
                .suggest("Ask its author for another name"),
            Error::OutsideRoots { .. } => new(Code::InvalidParameter)
                .field("target_directory", message.clone())
                .suggest("Omit it to install to the operator's folder, or name a folder below `install.roots`"),
            Error::NotBegunHere { record, id } => new(Code::SkillInstallFailed)
                .detail("path", record.display())
                .detail("skill_id", id)
                .suggest("The file may have come with a repository, or with a copy of the folder: save what you need of `old` next to it, remove `pending` from it, and call again"),
            Error::Full { .. } => {
                new(Code::SkillInstallFailed).suggest("Uninstall unused skills")
            }
            Error::TooMuchData { .. } => new(Code::SkillInstallFailed)
                .suggest("Move them elsewhere, or uninstall the skill with `remove_data`"),
            Error::Busy { .. } => new(Code::Overloaded).suggest("Call again in a moment"),
            Error::Unreadable { .. } | Error::Disk { .. } => new(Code::LocalFileFailed)
                .suggest("Fix what the file system reports, and call again"),
            Error::Archive { .. } => new(Code::SkillInstallFailed)
                .suggest("Install it again; if that does not help, the server cannot be trusted"),
        }
    }
}
