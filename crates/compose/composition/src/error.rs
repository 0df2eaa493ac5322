//! What can go wrong with sets of skills, and what each means to a caller.

use std::collections::BTreeSet;

use super::Finding;
use model::{Code, Failure, FieldProblem};

/// A call on sets of skills failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The skills do not go together.
    #[error("{}", invalid(errors))]
    Invalid {
        /// All that is wrong.
        errors: Vec<Finding>,
    },
    /// A value is wrong.
    #[error("{message}")]
    Parameter {
        /// Field of the request.
        field: &'static str,
        /// What is wrong with it.
        message: String,
        /// What to do next.
        step: &'static str,
    },
    /// A skill could not be found or read.
    #[error(transparent)]
    Lookup(#[from] lookup::Error),
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
}

fn invalid(errors: &[Finding]) -> String {
    match errors {
        [] => "The skills cannot be composed".to_owned(),
        [one] => format!("The skills cannot be composed: {}", one.message),
        [first, more @ ..] => format!(
            "The skills cannot be composed: {} (and {} more)",
            first.message,
            more.len()
        ),
    }
}

/// The step that resolves a finding, by its code.
fn step(code: super::FindingCode) -> &'static str {
    use super::FindingCode as Code;
    match code {
        Code::UnknownSkill => "Find a skill by what it is to do: the answer has the names",
        Code::InvalidReference => {
            "Write a version as NAME@1.2.0, NAME@3, NAME@^1.2 or NAME@sha256:…; without one it is the active version"
        }
        Code::VersionUnsatisfied => {
            "List the versions of the skill, and ask for one that all rules take"
        }
        Code::MissingRequiredSkill => {
            "Add the skills that are required, or set `resolve` to have them added"
        }
        Code::IncompatibleSkills | Code::ForbiddenCombination => {
            "Leave out one of the skills that do not go together"
        }
        Code::RequirementsUnsolvable => {
            "Change one of the facts: ask for other versions, or for fewer skills"
        }
        Code::TooManySkills | Code::TooManyTools => "Ask for fewer skills, or name versions",
        Code::LockMismatch => {
            "Compose without the lock, review the changes, and store the new lock"
        }
        _ => "ValidateSkillSet lists all that is wrong",
    }
}

/// Characters of a detail that are sure to come through.
const DETAIL_CHARS: usize = 500;

/// Codes and skills of the first errors as a JSON array; the fields say what they mean, in
/// the same order.
fn structured(errors: &[Finding]) -> String {
    let (mut listed, mut chars) = (Vec::new(), "[]".len());
    for error in errors {
        let skill = error.skills.first().map_or("", |skill| &**skill);
        let one = serde_json::json!({"code": error.code.name(), "skill": skill}).to_string();
        // Cut between two errors, as a detail that is cut inside of one is no JSON.
        chars += one.chars().count() + 1;
        if chars > DETAIL_CHARS {
            break;
        }
        listed.push(one);
    }
    format!("[{}]", listed.join(","))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Invalid { errors } => {
                let mut failure = Failure::new(Code::SkillSetInvalid, message);
                let mut steps: Vec<&str> = Vec::new();
                for step in errors.iter().map(|error| step(error.code)) {
                    if !steps.contains(&step) {
                        steps.push(step);
                        failure = failure.suggest(step);
                    }
                }
                let codes: BTreeSet<_> = errors.iter().map(|error| error.code).collect();
                let codes: Vec<_> = codes.into_iter().map(super::FindingCode::name).collect();
                failure = failure.detail("errors", codes.join(","));
                failure = failure.detail("validation_errors", structured(&errors));
                failure.fields = errors
                    .into_iter()
                    .map(|error| FieldProblem {
                        field: match error.position {
                            Some(position) => format!("skills[{position}]"),
                            None => "skills".to_owned(),
                        },
                        message: error.line(),
                        rule: error.code.name(),
                    })
                    .collect();
                failure
            }
            Error::Parameter {
                field,
                message,
                step,
            } => Failure::new(Code::InvalidParameter, message.clone())
                .field(field, message)
                .suggest(step),
            Error::Lookup(error) => error.into(),
            Error::Registry(error) => error.into(),
            Error::Work(error) => error.into(),
        }
    }
}
