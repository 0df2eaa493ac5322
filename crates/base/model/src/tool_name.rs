//! Names of tools, and the one rule by which their spellings are compared.

use std::fmt;
use std::sync::Arc;

use crate::ToolConfig;

/// Returns what all spellings of a tool's name have in common: models write capitals, and hyphens
/// or blanks for underscores. A `*` stays, so a pattern of names is folded by the same rule.
#[must_use]
pub fn fold_tool(name: &str) -> String {
    let letters = name.trim().chars().flat_map(char::to_lowercase);
    letters
        .map(|c| {
            if c == '-' || c.is_whitespace() {
                '_'
            } else {
                c
            }
        })
        .collect()
}

/// The name of a tool as its skill declares it. Only [`find_tool`] makes one, so the spelling
/// of a caller ends where the tool is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the tool that a caller means, in whatever spelling, under the name that it is declared
/// by. Of tools whose names differ by spelling alone it is the first.
#[must_use]
pub fn find_tool<'a>(tools: &'a [ToolConfig], spelled: &str) -> Option<(ToolName, &'a ToolConfig)> {
    let folded = fold_tool(spelled);
    let tool = tools.iter().find(|tool| fold_tool(&tool.name) == folded)?;
    Some((ToolName(tool.name.as_str().into()), tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<ToolConfig> {
        let tools = names.iter().map(|name| ToolConfig {
            name: (*name).to_owned(),
            description: String::new(),
            method: String::new(),
            args: Vec::new(),
        });
        tools.collect()
    }

    #[test]
    fn a_tool_is_found_by_any_spelling_of_its_name_and_keeps_its_own() {
        let tools = tools(&["Sql-Query", "sql_query", "other"]);
        for spelled in [
            "Sql-Query",
            "sql_query",
            "SQL QUERY",
            " sql-query\t",
            "sQl_QueRy",
        ] {
            let (name, tool) = find_tool(&tools, spelled).expect("a tool");
            assert_eq!(
                (name.as_str(), tool.name.as_str()),
                ("Sql-Query", "Sql-Query"),
                "{spelled}"
            );
        }
        for spelled in ["", "sqlquery", "sql__query", "sql_query_", "sql.query"] {
            assert!(find_tool(&tools, spelled).is_none(), "{spelled}");
        }
    }

    #[test]
    fn a_folded_name_folds_to_itself() {
        for name in ["\u{130}-X ", "ΑΣ", "ẞ*_-Ǆ", "mcp__A-b", ""] {
            let folded = fold_tool(name);
            assert_eq!(fold_tool(&folded), folded, "{name}");
        }
    }
}
