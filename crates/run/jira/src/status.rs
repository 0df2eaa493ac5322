//! `load_core`: what the instructions begin with, which is the state of the
//! connection and the names of projects.

use std::time::Duration;

use futures_util::join;
use serde_json::Value;
use tokio::time::Instant;

use super::client::Client;
use super::error::{Subject, Trouble};
use super::value::{add, at};
use super::{projects, value};
use handler::Output;

/// Projects that are named; each costs the agent tokens.
const MAX_PROJECTS: u64 = 50;
/// Loading a skill does not wait longer for Jira.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

const TITLE: &str = "## Jira Skill Activated\n\n";

/// There is no Jira.
pub(super) fn not_connected() -> Output {
    Output::text(format!(
        "{TITLE}\
         - Status: not connected. The operator of this server has configured no Jira, so every tool that asks Jira will refuse.\n\
         - What still works: the instructions and `jira_jql_reference`. Write JQL for the user to run, and say that it was not run.\n\
         - For the operator: set `tools.jira.url`, `tools.jira.token` and, for Jira Cloud, `tools.jira.user`, and restart.\n"
    ))
}

/// The state of the connection. A Jira that does not answer is reported here and is no
/// failure: the instructions are worth reading without it.
pub(super) async fn connected(client: &Client, until: Instant) -> Output {
    let until = until.min(Instant::now() + STATUS_TIMEOUT);
    // Both at once, since the load waits for both.
    let (account, projects) = join!(
        client.get(client.api(), &["myself"], &[], until),
        projects::fetch(client, 0, MAX_PROJECTS, until)
    );
    let kind = if client.is_cloud() {
        "Jira Cloud"
    } else {
        "Jira Data Center"
    };
    let mut out = format!("{TITLE}- Site: {} ({kind})\n", client.site());
    match account.and_then(|account| name(&account)) {
        Ok(name) => {
            add(
                &mut out,
                format_args!(
                    "- Status: connected, signed in as {name}; `currentUser()` is this account\n"
                ),
            );
        }
        Err(trouble) => {
            let error = trouble.about(Subject::Account);
            add(
                &mut out,
                format_args!(
                    "- Status: configured, but not usable now. {}.\n",
                    error.message
                ),
            );
            for step in error.suggestions {
                add(&mut out, format_args!("- {step}.\n"));
            }
        }
    }
    out.push_str("- Access: read only, and only what this account may see\n\n");
    match projects {
        Ok(page) => {
            out.push_str("### Projects\n\n");
            out.push_str(&page.heading("projects"));
            if page.next.is_some() {
                out.push_str(" The list is cut here: `jira_list_projects` has all.");
            }
            out.push_str("\n\n");
            out.push_str(&projects::lines(&page));
        }
        Err(trouble) => {
            let message = trouble.about(Subject::Projects).message;
            add(
                &mut out,
                format_args!("### Projects\n\nNot known: {message}.\n"),
            );
        }
    }
    Output::text(out)
}

fn name(account: &Value) -> Result<String, Trouble> {
    match at(account, "/displayName") {
        name if name.is_empty() => Err(Trouble::NotJson { page: false }),
        name => Ok(value::one_line(&name)),
    }
}
