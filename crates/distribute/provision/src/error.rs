//! Errors on the caller's machine.

use std::path::PathBuf;

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
