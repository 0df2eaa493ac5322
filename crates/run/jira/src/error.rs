//! Failures of requests, in words for the caller.

use std::io;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::client::MAX_BODY;
use super::value::{capital, cut, list, members, one_line};
use handler::{ToolError, ToolErrorKind};

/// Messages of Jira's that are shown.
const MAX_MESSAGES: usize = 5;
/// Characters of each.
const MESSAGE_CHARS: usize = 300;

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// Jira refused it.
    #[error("status {}", status.as_u16())]
    Status {
        status: StatusCode,
        /// In its words.
        messages: Vec<String>,
        retry_after: Option<Duration>,
        /// It wants to see a person first.
        captcha: bool,
    },
    /// Jira does not know the account.
    #[error("signed out")]
    SignedOut,
    /// Jira is somewhere else.
    #[error("redirect")]
    Redirect(Option<String>),
    /// The answer is too large.
    #[error("answer too large")]
    TooLarge,
    /// The answer is not of Jira's API.
    #[error("answer is not JSON")]
    NotJson { page: bool },
    /// It took too long.
    #[error("timeout")]
    Timeout,
    /// No trust in the connection.
    #[error("TLS: {0}")]
    Tls(String),
    /// No connection.
    #[error("no connection")]
    Unreachable(Option<io::ErrorKind>),
}

/// The subject of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    /// The account itself.
    Account,
    /// Issues of a query.
    Query,
    /// An issue.
    Issue(&'a str),
    /// The sprints of a board.
    Board(u64),
    /// Projects.
    Projects,
}

impl Subject<'_> {
    /// Its name in a sentence.
    fn name(self) -> String {
        match self {
            Self::Account => "the account".to_owned(),
            Self::Query => "this query".to_owned(),
            Self::Issue(key) => format!("the issue {key}"),
            Self::Board(id) => format!("the board {id}"),
            Self::Projects => "the projects".to_owned(),
        }
    }

    /// The argument for it.
    fn field(self) -> &'static str {
        match self {
            Self::Account | Self::Projects => "",
            Self::Query => "jql",
            Self::Issue(_) => "issue_key",
            Self::Board(_) => "board_id",
        }
    }

    /// How to ask for less.
    fn narrow(self) -> &'static str {
        match self {
            Self::Query => {
                "Ask for fewer fields with `fields`, or for fewer issues with `max_results`"
            }
            Self::Issue(_) => {
                "Ask for the fields you need with jira_search: jql `key = …` and `fields`"
            }
            Self::Board(_) => "Ask for one `state`",
            Self::Account | Self::Projects => {
                "Ask the operator to check what answers at tools.jira.url"
            }
        }
    }
}

/// There is no Jira.
pub(super) fn not_connected() -> ToolError {
    ToolError::unavailable("Jira is not connected: the operator of this server has configured none")
        .suggest("Tell the user; a repeated call will not help")
        .suggest("Write the JQL for the user to run in Jira, and say that it was not run")
        .suggest("The operator sets tools.jira.url, tools.jira.user (Cloud) and tools.jira.token")
}

impl Trouble {
    /// Time to wait before the request is repeated, if that can help.
    pub(super) fn wait(&self, pause: Duration) -> Option<Duration> {
        match self {
            Self::Status {
                status,
                retry_after,
                ..
            } => match status.as_u16() {
                429 | 503 => Some(retry_after.unwrap_or(pause)),
                // These come from a proxy in front of Jira, which does not know when Jira will be
                // back.
                502 | 504 => Some(pause),
                _ => None,
            },
            _ => None,
        }
    }

    /// The failure of a tool that asked for `subject`.
    pub(super) fn about(self, subject: Subject<'_>) -> ToolError {
        let operator = |text: &str| format!("Tell the user that the operator {text}");
        match self {
            Self::Status {
                status,
                messages,
                retry_after,
                captcha,
            } => refused(status, &messages, retry_after, captcha, subject),
            Self::SignedOut => ToolError::denied("Jira does not accept the operator's token: it was refused or has expired",
            )
            .suggest(operator(
                "has to renew tools.jira.token (and check tools.jira.user); another query will not help",
            )),
            Self::Redirect(host) => {
                let location = host.map_or_else(String::new, |host| format!(" to {host}"));
                ToolError::failed(format!("Jira answered with a redirect{location}, which is not followed, since the token would go along"),
                )
                .suggest(operator("should check tools.jira.url, and that the token is still good"))
            }
            Self::TooLarge => ToolError::failed(format!(
                    "Jira's answer about {} is larger than {} MiB and was not read to its end",
                    subject.name(),
                    MAX_BODY / (1024 * 1024)
                ),
            )
            .suggest(subject.narrow()),
            Self::NotJson { page } => {
                let what = if page {
                    "a web page, perhaps one to sign in,"
                } else {
                    "something else"
                };
                ToolError::failed(format!("What answers at tools.jira.url sent {what} instead of the JSON of Jira's API"),
                )
                .suggest(operator("should check tools.jira.url, and that the token is still good"))
            }
            Self::Timeout => ToolError::timeout("Jira did not answer in time")
                .suggest(subject.narrow())
                .suggest("Try once more, later or with a longer timeout"),
            Self::Tls(reason) => ToolError::unavailable(format!("There is no trusted connection to Jira: {}", cut(&one_line(&reason), MESSAGE_CHARS)),
            )
            .suggest(operator("should check the certificate of Jira, and that this machine trusts who issued it")),
            Self::Unreachable(reason) => {
                let reason = reason.map_or_else(
                    || "its name cannot be resolved, or the connection broke".to_owned(),
                    |reason| reason.to_string(),
                );
                ToolError::unavailable(format!("Jira cannot be reached: {reason}"))
                    .suggest("Try again later")
                    .suggest(operator("should check tools.jira.url if this lasts"))
            }
        }
    }
}

/// Converts a status that refuses.
fn refused(
    status: StatusCode,
    messages: &[String],
    retry_after: Option<Duration>,
    captcha: bool,
    subject: Subject<'_>,
) -> ToolError {
    let quoted = if messages.is_empty() {
        String::new()
    } else {
        format!(": {}", messages.join(" "))
    };
    let code = status.as_u16();
    let mut error = match code {
        400 => ToolError::invalid(format!("Jira refuses {}{quoted}", subject.name()))
            .field(subject.field())
            .suggest(match subject {
                Subject::Query => "Correct the query: check names of fields and values, quotes and parentheses; jira_jql_reference has the rules",
                Subject::Board(_) => "Only Scrum boards have sprints; for others search with jira_search",
                _ => "Check the arguments",
            }),
        403 if captcha => ToolError::denied("Jira wants a person to sign in before it accepts the account again",
        )
        .suggest("Tell the user that the operator has to sign in to Jira once with the account of tools.jira"),
        403 => ToolError::denied(format!("The account of this server may not see {}{quoted}", subject.name()),
        )
        .suggest("Tell the user; a Jira administrator can give the account the permission to browse"),
        404 => match subject {
            Subject::Issue(_) | Subject::Board(_) => ToolError::failed(format!("{} does not exist, or the account of this server may not see it", capital(&subject.name())),
            )
            .field(subject.field())
            .suggest(match subject {
                Subject::Issue(_) => "Check the key, or look for the issue with jira_search",
                _ => "Check the number in the board's web address",
            }),
            _ => no_api(code),
        },
        405 | 410 => no_api(code),
        429 => ToolError::unavailable("Jira is asked too often by this account")
            .suggest("Wait for the stated time, then ask for less: fewer fields, a narrower query"),
        _ if status.is_server_error() => ToolError::unavailable(format!("Jira has trouble of its own (status {code}){quoted}"),
        )
        .suggest("Try again later"),
        _ => ToolError::failed(format!("Jira did not answer about {} (status {code}){quoted}", subject.name()),
        ),
    };
    if error.kind == ToolErrorKind::Unavailable {
        error.retry_after = retry_after;
        if let Some(wait) = retry_after {
            let seconds = wait.as_secs();
            error.message = format!(
                "{}; it may be asked again in {seconds} seconds",
                error.message
            );
        }
    }
    error
}

fn no_api(code: u16) -> ToolError {
    ToolError::failed(format!("There is no such API of Jira at tools.jira.url (status {code})"),
    )
    .suggest("Tell the user that the operator should check tools.jira.url, and tools.jira.user: it is set for Cloud, and not for Data Center")
}

/// Reads Jira's messages from an answer that refuses something.
pub(super) fn messages(body: &Value) -> Vec<String> {
    let listed = list(body, "/errorMessages")
        .iter()
        .filter_map(Value::as_str);
    let fields = members(body, "errors");
    let fields = fields.filter_map(|(field, text)| Some(format!("{field}: {}", text.as_str()?)));
    let mut found: Vec<String> = listed.map(str::to_owned).chain(fields).collect();
    if found.is_empty() {
        let message = body.get("message").and_then(Value::as_str);
        found.extend(message.map(str::to_owned));
    }
    found.retain(|text| !text.trim().is_empty());
    let more = found.len().saturating_sub(MAX_MESSAGES);
    let mut shown: Vec<String> = found
        .iter()
        .take(MAX_MESSAGES)
        .map(|text| cut(&one_line(text), MESSAGE_CHARS))
        .collect();
    if more > 0 {
        shown.push(format!("({more} more messages)"));
    }
    shown
}
