//! Reasons to refuse an install, and what each means to a caller.

use checks::Opposed;
use model::{Code, Failure, SkillId, TrustTier, shown};
use trust::{Report, Verdict};

use super::Budget;

/// An install, or a query about installs, failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is installed.
    #[error("Skill '{id}' is installed already, as version {semantic} in `{path}`")]
    AlreadyInstalled {
        /// The skill.
        id: SkillId,
        /// The version that is.
        semantic: semver::Version,
        /// Its folder, as callers see it.
        path: String,
    },
    /// It is less trusted than the operator demands.
    #[error("Skill '{id}' is {}, and this server installs what is {} at least", tier.name(), min.name())]
    TrustTier {
        /// The skill.
        id: SkillId,
        /// Its tier.
        tier: TrustTier,
        /// The tier that is demanded.
        min: TrustTier,
    },
    /// It conflicts with installed skills.
    #[error("{}", at_odds(id, conflicts))]
    Conflict {
        /// The skill.
        id: SkillId,
        /// The conflicts, the worst first.
        conflicts: Vec<Opposed>,
    },
    /// Installed skills could not be compared with it.
    #[error(transparent)]
    Checks(#[from] checks::Error),
    /// The scan found something.
    #[error("{}", report.describe(&format!("Skill '{id}'")))]
    Risk {
        /// The skill.
        id: SkillId,
        /// The findings.
        report: Box<Report>,
    },
    /// It does not fit the budget.
    #[error("With '{id}' the installed skills would have {} characters, of {} that they may have", budget.projected(), budget.limit)]
    Budget {
        /// The skill.
        id: SkillId,
        /// Its effect on the budget.
        budget: Budget,
    },
    /// The files on disk do not allow it.
    #[error(transparent)]
    Install(#[from] install::Error),
    /// There is no such skill.
    #[error(transparent)]
    Lookup(#[from] lookup::Error),
    /// There is no such version, or it may not be handed out.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
}

/// Characters of a detail.
const DETAIL_CHARS: usize = 400;

fn at_odds(id: &SkillId, conflicts: &[Opposed]) -> String {
    let Some(first) = conflicts.first() else {
        return format!("Skill '{id}' is at odds with what is installed");
    };
    let (with, what) = (&first.with.member.id, &first.conflict.description);
    let more = match conflicts.len() {
        0 | 1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    format!("Skill '{id}' is at odds with '{with}', which is installed: {what}{more}")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let new = |code| Self::new(code, message.clone());
        match error {
            Error::AlreadyInstalled { id, semantic, path } => new(Code::SkillAlreadyInstalled)
                .detail("skill_id", id)
                .detail("installed_version", semantic)
                .detail("installed_path", path)
                .suggest("Use it: it is available")
                .suggest("For another version name it, or uninstall this one first; with `force` it is reinstalled"),
            Error::TrustTier { id, tier, min } => new(Code::TrustTierInsufficient)
                .detail("skill_id", id)
                .detail("trust_tier", tier.name())
                .detail("min_trust_tier", min.name())
                .suggest("Search for a skill of a higher tier")
                .suggest("The operator can lower `install.min_trust_tier`"),
            Error::Conflict { id, conflicts } => {
                let others: Vec<&str> =
                    conflicts.iter().map(|opposed| opposed.with.member.id.as_str()).collect();
                let is_blocked = conflicts.iter().any(Opposed::is_blocking);
                let mut failure = new(Code::ConflictDetected)
                    .detail("skill_id", id)
                    .detail("conflicting_skills", shown(&others.join(", "), DETAIL_CHARS));
                let first = conflicts.first().map(|opposed| &opposed.conflict.resolutions);
                for step in first.into_iter().flatten() {
                    failure = failure.suggest(*step);
                }
                failure.suggest(if is_blocked {
                    "Call again with `skip_conflict_check` if it is meant all the same"
                } else {
                    "Call again with `force` or `skip_conflict_check` if it is meant all the same"
                })
            }
            Error::Checks(error) => error.into(),
            Error::Risk { id, report } => {
                let mut failure = new(Code::SecurityRiskDetected)
                    .detail("skill_id", id)
                    .detail("verdict", report.verdict.name());
                failure.problems = report.problems();
                if report.verdict == Verdict::Failed {
                    failure.suggest("Use another skill; search for the task to find one")
                } else {
                    failure.suggest("Review the findings, and call again with `force` if they are harmless")
                }
            }
            Error::Budget { id, budget } => new(Code::BudgetExceeded)
                .detail("skill_id", id)
                .detail("current_usage", budget.current)
                .detail("skill_size", budget.size)
                .detail("budget_limit", budget.limit)
                .suggest("Uninstall unused skills: `list_installed` has the size of each")
                .suggest("Call again with `force`, or ask the operator to raise `install.budget_chars`"),
            Error::Install(error) => error.into(),
            Error::Lookup(error) => error.into(),
            Error::Registry(error) => error.into(),
            Error::Work(error) => error.into(),
        }
    }
}
