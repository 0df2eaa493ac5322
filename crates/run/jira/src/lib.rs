//! The tools of the bundled skill `jira`: questions to a Jira, Cloud or Data
//! Center, and never a change.
//!
//! Rules:
//!
//! * The address of Jira and the account are the operator's settings. Arguments become
//!   values of parameters or, once checked, one segment of a path; JQL is handed
//!   on as it came.
//! * One host is called. A redirect is a failure, for the credentials would go
//!   along.
//! * Whatever Jira sends is bounded before it is held in memory, and omissions are
//!   reported. Credentials are removed from its texts.
//! * Waits end before the caller's do, so that the caller hears why.
//!
//! Not here: whether the skill is loaded, arguments against the schema, the files
//! of the skill (the gate).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod adf;
mod arguments;
mod changelog;
mod client;
mod config;

mod cursor;
mod error;
mod issue;
mod page;
mod projects;
mod search;
mod sprints;
mod status;
#[cfg(test)]
mod tests;
mod value;

pub use config::{Config, Connection, Site, SiteError};

use std::time::Duration;

use tokio::time::Instant;

use self::arguments::Arguments;
use self::client::Client;
use handler::{Handler, Invocation, LOAD_CORE, Output, ToolError, Work};
use model::SkillId;

/// The skill that comes with the server.
const BUNDLED: (&str, &str) = ("repertoire", "jira");
/// Methods that its tools name.
const METHODS: [&str; 6] = [
    LOAD_CORE,
    "search_issues",
    "get_issue",
    "list_projects",
    "get_sprints",
    "get_changelog",
];
/// The longest wait for a call.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Time of the caller's that is reserved for the answer.
const ANSWER_MARGIN: Duration = Duration::from_millis(250);

/// Runs the tools of `jira`.
#[derive(Debug)]
pub struct Jira {
    skills: Vec<SkillId>,
    client: Option<Client>,
}

impl Jira {
    /// Makes the handler of the tools; without a connection they report what is missing.
    ///
    /// # Errors
    /// No client can be made, as where the machine has no root certificates.
    pub fn new(config: Config) -> Result<Self, ClientError> {
        let bundled = SkillId::new(SkillId::BUILTIN, BUNDLED.0, BUNDLED.1).ok();
        let mut skills: Vec<SkillId> = bundled.into_iter().collect();
        for skill in config.skills {
            if skills.iter().all(|known| known.key() != skill.key()) {
                skills.push(skill);
            }
        }
        let client = config.connection.map(Client::new).transpose()?;
        Ok(Self { skills, client })
    }

    async fn run(&self, invocation: Invocation) -> Result<Output, ToolError> {
        let given = Arguments::new(&invocation.arguments);
        let time = invocation.timeout.min(MAX_TIMEOUT);
        // The margin takes a tenth of a short wait at most, so that most of it is left for Jira.
        let until = Instant::now() + time.saturating_sub(ANSWER_MARGIN.min(time / 10));
        let Some(client) = &self.client else {
            return match invocation.method.as_str() {
                // Loading the skill answers all the same: that is how an agent learns that its
                // operator has to set something.
                LOAD_CORE => Ok(status::not_connected()),
                _ => Err(error::not_connected()),
            };
        };
        match invocation.method.as_str() {
            LOAD_CORE => Ok(status::connected(client, until).await),
            "search_issues" => search::run(client, &given, until).await,
            "get_issue" => issue::run(client, &given, until).await,
            "list_projects" => projects::run(client, &given, until).await,
            "get_sprints" => sprints::run(client, &given, until).await,
            "get_changelog" => changelog::run(client, &given, until).await,
            other => Err(ToolError::failed(format!("jira has no method `{other}`"))),
        }
    }
}

impl Handler for Jira {
    fn serves(&self, skill: &SkillId, method: &str) -> bool {
        METHODS.contains(&method) && self.skills.iter().any(|known| known.key() == skill.key())
    }

    fn skills(&self) -> Vec<SkillId> {
        self.skills.clone()
    }

    fn call(&self, invocation: Invocation) -> Work<'_, Result<Output, ToolError>> {
        Box::pin(self.run(invocation))
    }
}

/// No client of HTTP can be made.
#[derive(Debug, thiserror::Error)]
#[error("no client for Jira can be created: {0}")]
pub struct ClientError(String);
