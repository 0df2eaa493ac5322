//! Arguments of the tools, checked before they reach an address.

use serde_json::{Map, Value};

use handler::ToolError;

/// Characters that JQL may have. Jira's own bound is higher, and a model's query
/// that long is a mistake.
const JQL_CHARS: usize = 20_000;
/// Characters of a key; Jira's projects have at most 255 of theirs.
const KEY_CHARS: usize = 300;
/// Fields that may be asked for.
const MAX_FIELDS: usize = 100;

/// The arguments of a call. Those of null are not given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a>(&'a Map<String, Value>);

fn wrong(field: &str, message: impl Into<String>) -> ToolError {
    ToolError::invalid(message).field(field)
}

impl<'a> Arguments<'a> {
    pub(super) fn new(given: &'a Map<String, Value>) -> Self {
        Self(given)
    }

    /// A text; empty where none is given.
    fn text(self, name: &str) -> Result<&'a str, ToolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.trim()),
            Some(_) => Err(wrong(name, format!("{name} is not a text"))),
        }
    }

    fn integer(self, name: &str) -> Result<Option<i64>, ToolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_i64()
                .map(Some)
                .ok_or_else(|| wrong(name, format!("{name} is not a whole number"))),
        }
    }

    pub(super) fn jql(self) -> Result<&'a str, ToolError> {
        let jql = self.text("jql")?;
        if jql.is_empty() {
            return Err(wrong("jql", "jql is empty").suggest(
                "Write a query with a restriction, such as: project = ABC ORDER BY updated DESC",
            ));
        }
        if jql.chars().count() > JQL_CHARS {
            return Err(
                wrong("jql", format!("jql has more than {JQL_CHARS} characters"))
                    .suggest("Split the query, for example by ranges of keys or dates"),
            );
        }
        Ok(jql)
    }

    /// How many a page may hold.
    pub(super) fn max_results(self, default: u64, max: u64) -> Result<u64, ToolError> {
        match self.integer("max_results")? {
            None => Ok(default),
            Some(count) => match u64::try_from(count) {
                Ok(count @ 1..) => Ok(count.min(max)),
                _ => Err(wrong("max_results", "max_results is less than 1")),
            },
        }
    }

    pub(super) fn next_page_token(self) -> Result<&'a str, ToolError> {
        self.text("next_page_token")
    }

    /// Fields that are asked for; none: the usual ones.
    pub(super) fn fields(self) -> Result<Vec<&'a str>, ToolError> {
        let fields: Vec<&str> = self
            .text("fields")?
            .split(',')
            .map(str::trim)
            .filter(|field| !field.is_empty())
            .collect();
        if fields.len() > MAX_FIELDS {
            return Err(wrong(
                "fields",
                format!("fields names more than {MAX_FIELDS} fields"),
            ));
        }
        Ok(fields)
    }

    /// The key of an issue, in capitals.
    pub(super) fn issue_key(self) -> Result<String, ToolError> {
        let key = self.text("issue_key")?;
        if is_key(key) {
            Ok(key.to_ascii_uppercase())
        } else {
            Err(wrong("issue_key", "issue_key is not the key of an issue")
                .suggest("Give a key such as ABC-123; to find one, search with jira_search"))
        }
    }

    pub(super) fn board_id(self) -> Result<u64, ToolError> {
        match self.integer("board_id")?.map(u64::try_from) {
            Some(Ok(id @ 1..)) => Ok(id),
            _ => Err(wrong("board_id", "board_id is not the number of a board").suggest(
                "Take it from the board's web address, where it is the number after /boards/ or rapidView=",
            )),
        }
    }

    /// States of sprints, as Jira takes them; empty: all.
    pub(super) fn state(self) -> Result<String, ToolError> {
        let text = self.text("state")?.to_ascii_lowercase();
        let states: Vec<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|state| !state.is_empty())
            .collect();
        if states
            .iter()
            .all(|state| matches!(*state, "active" | "future" | "closed"))
        {
            Ok(states.join(","))
        } else {
            Err(wrong("state", "state is not active, future or closed")
                .suggest("Leave it out for all"))
        }
    }
}

/// `[A-Z][A-Z0-9_]+-[0-9]+`, in either case.
fn is_key(text: &str) -> bool {
    let Some((project, number)) = text.split_once('-') else {
        return false;
    };
    text.len() <= KEY_CHARS
        && project.len() >= 2
        && project.starts_with(|first: char| first.is_ascii_alphabetic())
        && project
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused<T>(result: Result<T, ToolError>) -> String {
        match result {
            Ok(_) => "taken".to_owned(),
            Err(error) => format!("{:?} {}", error.kind, error.field),
        }
    }

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn a_key_is_letters_a_hyphen_and_digits_and_nothing_else() {
        for key in ["ABC-1", "abc-123", "A1_B-9"] {
            assert!(is_key(key), "{key}");
        }
        for key in [
            "", "ABC", "A-1", "1A-1", "ABC-", "ABC-1/..", "ABC-1?x", "../ABC-1", "ABC-1 ", "ÄBC-1",
            "ABC-١",
        ] {
            assert!(!is_key(key), "{key}");
        }
    }

    #[test]
    fn a_wrong_argument_is_refused_by_its_name() {
        let map = object(json!({
            "jql": " ", "max_results": 0, "issue_key": "ABC-1/../2", "board_id": -1,
            "state": "open", "fields": ["summary"], "next_page_token": 5,
        }));
        let given = Arguments::new(&map);
        assert_eq!(
            [
                refused(given.jql()),
                refused(given.max_results(50, 100)),
                refused(given.issue_key()),
                refused(given.board_id()),
                refused(given.state()),
                refused(given.fields()),
                refused(given.next_page_token()),
            ],
            [
                "Invalid jql",
                "Invalid max_results",
                "Invalid issue_key",
                "Invalid board_id",
                "Invalid state",
                "Invalid fields",
                "Invalid next_page_token",
            ]
        );
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let map =
            object(json!({"max_results": 1000, "state": "Active, future", "fields": "a, b,"}));
        let given = Arguments::new(&map);
        assert_eq!(given.max_results(50, 100), Ok(100));
        assert_eq!(given.state().as_deref(), Ok("active,future"));
        assert_eq!(given.fields(), Ok(vec!["a", "b"]));
        assert_eq!(given.next_page_token(), Ok(""));
        let empty = Map::new();
        let none = Arguments::new(&empty);
        assert_eq!(none.max_results(50, 100), Ok(50));
        assert_eq!(none.state().as_deref(), Ok(""));
        assert_eq!(none.fields(), Ok(Vec::new()));
    }
}
