//! Reasons not to send a statement.

use super::functions::Functions;
use handler::{ToolError, ToolErrorKind};
use model::shown;

/// A reason not to send a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// It could not be read, so that it may be corrected.
    pub(super) syntax: bool,
    /// The mistake, in words for the caller.
    pub(super) message: String,
    /// Next steps for the caller.
    pub(super) steps: Vec<String>,
}

impl Refusal {
    pub(super) fn syntax(message: impl Into<String>) -> Self {
        Self {
            syntax: true,
            message: message.into(),
            steps: vec![
                "Correct the query; sql_validate_query checks it without running it".to_owned(),
            ],
        }
    }

    pub(super) fn denied(message: impl Into<String>, step: impl Into<String>) -> Self {
        Self {
            syntax: false,
            message: message.into(),
            steps: vec![step.into()],
        }
    }

    pub(super) fn operation(name: &str, read_only: bool) -> Self {
        let name = name.to_uppercase();
        let step = match name.as_str() {
            "EXPLAIN" | "ANALYZE" => "Give the bare query to sql_explain_query",
            "SHOW" | "DESCRIBE" | "DESC" | "PRAGMA" => {
                "Call sql_list_tables or sql_describe_table for the schema"
            }
            _ => "Write the statement down for the user to run; do not look for another spelling",
        };
        let message = if read_only {
            format!("{name} operations not allowed in read-only mode.")
        } else {
            format!("{name} operations are not allowed here.")
        };
        Self::denied(message, step)
    }

    /// A function that is not on the list. `position` is a line and a column, from 1.
    pub(super) fn function(functions: &Functions, name: &str, position: (u64, u64)) -> Self {
        let near = functions.near(name);
        let instead = if near.is_empty() {
            "Compute it with listed functions, or leave it out".to_owned()
        } else {
            let near: Vec<String> = near.iter().map(|name| format!("{name}()")).collect();
            format!("Listed functions with such a name: {}", near.join(", "))
        };
        let shown = shown(name, 100);
        let at = if position == (0, 0) {
            String::new()
        } else {
            format!(" (line {}, column {})", position.0, position.1)
        };
        Self {
            syntax: false,
            message: format!(
                "The function {shown}(){at} is not on the list of functions that may be called here."
            ),
            steps: vec![
                instead,
                format!(
                    "If it only computes a value, the operator of this server can allow it: \
                     `tools.sql.functions: [{shown}]`"
                ),
            ],
        }
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        let kind = if refusal.syntax {
            ToolErrorKind::Invalid
        } else {
            ToolErrorKind::Denied
        };
        refusal.steps.into_iter().fold(
            Self::new(kind, refusal.message).field("query"),
            Self::suggest,
        )
    }
}
