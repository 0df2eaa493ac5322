//! Errors on the caller's machine.

use std::path::{Path, PathBuf};

use install::AGENTS;
use model::{Code, Failure, SkillId, shown};
use trust::{Report, Verdict};

/// A call failed on the caller's machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No agent has this name.
    #[error("No agent is called '{}'", shown(name, 100))]
    UnknownAgent {
        /// The name.
        name: String,
    },
    /// A folder cannot be named in a lock.
    #[error("'{}' is not a folder to install to", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A folder is outside of the project.
    #[error("{}, which is outside of this project", leads_out(name, entry.as_ref(), path))]
    LeadsOut {
        /// Its name in the lock: of an agent, or a path.
        name: String,
        /// The lock, and the skill whose entry names it.
        entry: Option<(PathBuf, SkillId)>,
        /// Where it leads.
        path: PathBuf,
    },
    /// There is no lock.
    #[error("There is no `{}`", path.display())]
    NoLock {
        /// The lock.
        path: PathBuf,
    },
    /// No skill was named, and there is no lock of any kind.
    #[error(
        "Nothing says which skills to install: there is neither a skills.lock nor a skills-lock.json here"
    )]
    NothingNamed,
    /// The scan found something.
    #[error("{}", report.describe(&format!("Skill '{id}'")))]
    Risk {
        /// The skill.
        id: SkillId,
        /// The findings.
        report: Box<Report>,
    },
    /// The files are no skill.
    #[error("The files of '{id}' are not a skill")]
    NoSkill {
        /// The skill.
        id: SkillId,
    },
    /// The skills are too large in total.
    #[error("These skills have more than {max} bytes together")]
    TooLarge {
        /// Bytes of one call.
        max: usize,
    },
}

/// What leads where.
fn leads_out(name: &str, entry: Option<&(PathBuf, SkillId)>, path: &Path) -> String {
    let (name, path) = (shown(name, 200), path.display().to_string());
    let to = format!("'{name}' leads to `{}`", shown(&path, 300));
    match entry {
        Some((lock, id)) => format!("The entry of '{id}' in `{}`: {to}", lock.display()),
        None => to,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let new = |code| Self::new(code, message.clone());
        match error {
            Error::UnknownAgent { .. } => {
                let known: Vec<_> = AGENTS.iter().map(|agent| agent.name).collect();
                new(Code::InvalidParameter).suggest(format!(
                    "Name one of {}, or a folder with --dir",
                    known.join(", ")
                ))
            }
            Error::NoFolder { .. } => {
                new(Code::InvalidParameter).suggest("Name a folder, such as ./skills")
            }
            Error::LeadsOut { path, .. } => new(Code::InvalidParameter)
                .detail("path", path.display())
                .suggest("If you mean that folder, name it yourself with --dir; else ask who wrote the entry or the link"),
            Error::NoLock { .. } | Error::NothingNamed => new(Code::LocalFileFailed)
                .suggest("Install a skill by its name first: repertoire install NAME"),
            Error::Risk { id, report } => {
                let failed = report.verdict == Verdict::Failed;
                let mut failure = new(Code::SecurityRiskDetected)
                    .detail("skill_id", id)
                    .detail("verdict", report.verdict.name());
                failure.problems = report.problems();
                failure.suggest(if failed {
                    "Use another skill; search for the task to find one"
                } else {
                    "Review the findings, and call again with --force if they are harmless"
                })
            }
            Error::NoSkill { id } => new(Code::SkillInvalid).detail("skill_id", id),
            Error::TooLarge { .. } => {
                new(Code::SkillInstallFailed).suggest("Install fewer of them at once")
            }
        }
    }
}
