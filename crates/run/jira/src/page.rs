//! A page of a list, and the token of the next one.

use serde_json::{Map, Value, json};

use super::cursor;
use super::error::Trouble;
use super::value::capital;

/// Members of a list from a position on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Page {
    pub(super) values: Vec<Value>,
    /// Position of the first one.
    start: u64,
    /// Number of members of the whole list, where Jira sends it.
    pub(super) total: Option<u64>,
    /// Position of the next page's first one.
    pub(super) next: Option<u64>,
}

impl Page {
    /// A page that Jira made, with its members below `name`.
    pub(super) fn counted(mut answer: Value, name: &str, asked: u64) -> Result<Self, Trouble> {
        let Some(Value::Array(values)) = answer.get_mut(name).map(Value::take) else {
            return Err(Trouble::NotJson { page: false });
        };
        let number = |name: &str| answer.get(name).and_then(Value::as_u64);
        let start = number("startAt").unwrap_or(asked);
        let total = number("total");
        let end = start + count(&values);
        let is_last = answer.get("isLast").and_then(Value::as_bool);
        // An empty page is the end, whatever it says: the next one would be the same.
        let more = !values.is_empty()
            && match (is_last, total) {
                (Some(is_last), _) => !is_last,
                (None, Some(total)) => end < total,
                (None, None) => false,
            };
        Ok(Self {
            values,
            start,
            total,
            next: more.then_some(end),
        })
    }

    /// A page of a list that Jira sends as a whole.
    pub(super) fn of(list: Vec<Value>, start: u64, size: u64) -> Self {
        let total = count(&list);
        let skip = usize::try_from(start).unwrap_or(usize::MAX);
        let take = usize::try_from(size).unwrap_or(usize::MAX);
        let values: Vec<Value> = list.into_iter().skip(skip).take(take).collect();
        let end = start + count(&values);
        Self {
            next: (!values.is_empty() && end < total).then_some(end),
            values,
            start,
            total: Some(total),
        }
    }

    /// The first line of a text: `Projects 1 to 50 of 230.`
    pub(super) fn heading(&self, many: &str) -> String {
        let Some(last) = count(&self.values).checked_sub(1) else {
            return format!("No {many} that the account of this server may see.");
        };
        let (first, last) = (self.start + 1, self.start + last + 1);
        let of = self
            .total
            .map_or_else(String::new, |total| format!(" of {total}"));
        format!("{} {first} to {last}{of}.", capital(many))
    }

    /// The token of the next page.
    pub(super) fn token(&self, subject: &str) -> Option<String> {
        self.next.map(|next| cursor::write(subject, next))
    }
}

/// The text of a page: its heading, a line for each member, and how to get the next page.
pub(super) fn text(
    heading: &str,
    lines: impl Iterator<Item = String>,
    token: Option<&str>,
) -> String {
    let mut text = format!("{heading}\n\n");
    let start = text.len();
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    if text.len() > start {
        text.push('\n');
    }
    text + &footing(token)
}

/// The last line of a text.
pub(super) fn footing(token: Option<&str>) -> String {
    match token {
        Some(token) => format!(
            "There are more: repeat the call with the same arguments and next_page_token \"{token}\"."
        ),
        None => "There are no more.".to_owned(),
    }
}

/// Members and position of a page, as JSON for programs.
pub(super) fn structured(
    name: &str,
    members: Vec<Value>,
    total: Option<u64>,
    token: Option<String>,
) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("count".to_owned(), json!(members.len()));
    map.insert(name.to_owned(), Value::Array(members));
    if let Some(total) = total {
        map.insert("total".to_owned(), json!(total));
    }
    map.insert("has_more".to_owned(), json!(token.is_some()));
    if let Some(token) = token {
        map.insert("next_page_token".to_owned(), json!(token));
    }
    map
}

fn count(values: &[Value]) -> u64 {
    values.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(page: &Page) -> (usize, Option<u64>, Option<u64>) {
        (page.values.len(), page.total, page.next)
    }

    #[test]
    fn a_page_ends_where_jira_says_or_where_nothing_comes() {
        for (answer, expected) in [
            (
                json!({"values": [1, 2], "startAt": 4, "isLast": false}),
                (2, None, Some(6)),
            ),
            (
                json!({"values": [1, 2], "isLast": true, "total": 9}),
                (2, Some(9), None),
            ),
            (
                json!({"values": [1, 2], "startAt": 0, "total": 3}),
                (2, Some(3), Some(2)),
            ),
            (
                json!({"values": [], "isLast": false, "total": 3}),
                (0, Some(3), None),
            ),
        ] {
            let page = Page::counted(answer.clone(), "values", 0).expect("a page");
            assert_eq!(places(&page), expected, "{answer}");
        }
        assert!(Page::counted(json!({"values": 1}), "values", 0).is_err());
        assert!(Page::counted(json!([]), "values", 0).is_err());
    }

    #[test]
    fn a_whole_list_is_handed_out_in_parts_and_says_which() {
        let list = || vec![json!(1), json!(2), json!(3)];
        let page = Page::of(list(), 0, 2);
        assert_eq!(places(&page), (2, Some(3), Some(2)));
        assert_eq!(page.heading("projects"), "Projects 1 to 2 of 3.");
        let page = Page::of(list(), 2, 2);
        assert_eq!(places(&page), (1, Some(3), None));
        assert_eq!(page.heading("projects"), "Projects 3 to 3 of 3.");
        let page = Page::of(list(), u64::MAX, 2);
        assert_eq!(places(&page), (0, Some(3), None));
        assert_eq!(
            page.heading("projects"),
            "No projects that the account of this server may see."
        );
    }
}
