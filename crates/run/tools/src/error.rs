//! Errors of sessions and tools, and what each means to a caller.

use super::ToolError;
use super::arguments::ArgumentProblem;
use model::{Code, Failure, FieldProblem, SkillId};
use registry::Near;

/// A call on sessions or tools failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No session of this id, or it has ended.
    #[error("There is no session '{shown}', or it has ended")]
    NoSession {
        /// Beginning of the id.
        shown: String,
    },
    /// A session and a set of skills at once.
    #[error("a session has its own skills: leave out `skills` and `lock`, or the session")]
    SessionAndSkills,
    /// The session has as many skills as one may have.
    #[error("A session has {} skills at most", super::session::MAX_SKILLS)]
    SessionFull,
    /// The contexts of a session's skills are larger than they may be.
    #[error("The contexts of a session have {bytes} bytes of JSON at most")]
    ContextTooLarge {
        /// How large they may be.
        bytes: usize,
    },
    /// The skill is not loaded in the session. The words are those that agents
    /// of skill systems are trained on.
    #[error(
        "The '{tool}' tool requires the '{skill}' skill to be loaded first.\n\
         Please use load_skill('{skill}') before using this tool."
    )]
    NotLoaded {
        /// The tool.
        tool: String,
        /// Shortest name of the skill.
        skill: String,
        /// Its id.
        id: SkillId,
    },
    /// No skill has such a tool.
    #[error("There is no tool '{tool}'")]
    NoTool {
        /// Name in the request.
        tool: String,
        /// Tools that may have been meant, each with its skill.
        near: Vec<Near>,
    },
    /// Several loaded skills have a tool of this name.
    #[error("'{tool}' is a tool of {}", skills.join(" and "))]
    Ambiguous {
        /// The tool.
        tool: String,
        /// Their ids.
        skills: Vec<String>,
    },
    /// The skill has no such resource.
    #[error("{}", no_resource(skill, resource, resources))]
    NoResource {
        /// The skill.
        skill: SkillId,
        /// Name in the request.
        resource: String,
        /// Resources that there are.
        resources: Vec<String>,
    },
    /// A loaded skill forbids the call.
    #[error("{reason}")]
    Forbidden {
        /// Which one, and how.
        reason: String,
    },
    /// Arguments do not keep to the tool's schema.
    #[error("the arguments of '{tool}' are wrong")]
    Arguments {
        /// The tool.
        tool: String,
        /// The tool with its arguments, such as `sql_query(query: string)`.
        signature: String,
        /// The mistakes.
        problems: Vec<ArgumentProblem>,
    },
    /// Nothing runs the method.
    #[error("Nothing runs '{tool}' of '{skill}' at present")]
    Unserved {
        /// The tool or resource.
        tool: String,
        /// The skill.
        skill: SkillId,
        /// Next step for the caller.
        step: String,
    },
    /// The session has as many calls in work as one may have.
    #[error("The session has {limit} running calls of tools, the maximum")]
    Quota {
        /// How many.
        limit: usize,
    },
    /// The result is larger than results may be.
    #[error(
        "The result of '{tool}' has {bytes} bytes, more than the {limit} that results may have"
    )]
    ResultTooLarge {
        /// The tool.
        tool: String,
        /// Bytes it has.
        bytes: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// The tool took too long.
    #[error("'{tool}' did not answer within {seconds} s")]
    TooLate {
        /// The tool.
        tool: String,
        /// How long was waited.
        seconds: f64,
    },
    /// Records of calls cannot be written.
    #[error("Calls of tools are refused while their records cannot be written")]
    JournalFull,
    /// The handler says so.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A skill could not be found or read.
    #[error(transparent)]
    Lookup(#[from] lookup::Error),
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Permissions could not be looked at.
    #[error(transparent)]
    Composition(#[from] composition::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// A fault of the server, in words for its log.
    #[error("a fault of the server: {0}")]
    Internal(String),
}

fn no_resource(skill: &SkillId, resource: &str, resources: &[String]) -> String {
    if resources.is_empty() {
        format!("'{skill}' has no resources")
    } else {
        let there = resources.join(", ");
        format!("'{skill}' has no resource '{resource}'; there are {there}")
    }
}

impl Error {
    /// The beginning of an id is enough for its owner to know it.
    pub(super) fn no_session(id: &str) -> Self {
        Self::NoSession {
            shown: super::shown(id),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let plain = |code| Self::new(code, message.clone());
        match error {
            Error::NoSession { .. } => plain(Code::SessionNotFound)
                .suggest("Load the skill again without a session; the answer names a new one"),
            Error::SessionAndSkills => {
                Failure::new(Code::InvalidParameter, message.clone()).field("session_id", message)
            }
            Error::SessionFull => plain(Code::SessionFull)
                .suggest("Unload a skill that is no longer needed, or begin another session"),
            Error::ContextTooLarge { .. } => plain(Code::InvalidParameter)
                .field("context", message.clone())
                .suggest("Keep large things in files, and their names in the context"),
            // The message says what to do, and agents get these words alone.
            Error::NotLoaded { tool, id, .. } => plain(Code::SkillNotLoaded)
                .detail("tool", tool)
                .detail("skill_id", id),
            Error::NoTool { near, .. } => plain(Code::ToolNotFound)
                .did_you_mean(&near)
                .suggest("Loading a skill names its tools"),
            Error::Ambiguous { .. } => plain(Code::ToolAmbiguous)
                .field("skill_id", message.clone())
                .suggest("Name the tool's skill, by `skill_id`"),
            Error::NoResource { skill, .. } => plain(Code::ResourceNotFound)
                .detail("skill_id", skill)
                .suggest("Loading the skill names its resources"),
            Error::Forbidden { .. } => plain(Code::ToolForbidden)
                .suggest("Do without it, or without the skill that forbids it, if the task allows"),
            Error::Arguments {
                problems,
                signature,
                ..
            } => {
                let fields = problems.into_iter().map(|problem| FieldProblem {
                    field: problem.field,
                    message: problem.message,
                    rule: problem.rule,
                });
                Self::invalid(fields.collect()).suggest(format!("It is called as {signature}"))
            }
            Error::Unserved { skill, step, .. } => plain(Code::ToolUnavailable)
                .detail("skill_id", skill)
                .suggest(step),
            Error::Quota { .. } => {
                plain(Code::ToolQuota).suggest("Wait for one of the calls to end")
            }
            Error::ResultTooLarge { .. } => {
                plain(Code::ToolResultTooLarge).suggest("Ask for less at once")
            }
            Error::TooLate { .. } => {
                plain(Code::Timeout).suggest("Allow more time, or ask for less at once")
            }
            Error::JournalFull => plain(Code::StoreUnavailable)
                .suggest("Free space on the server's disk; its log has the cause"),
            Error::Tool(error) => error.into(),
            Error::Lookup(error) => error.into(),
            Error::Registry(error) => error.into(),
            Error::Composition(error) => error.into(),
            Error::Store(error) => registry::Error::Store(error).into(),
            Error::Internal(_) => Self::fault(message),
        }
    }
}
