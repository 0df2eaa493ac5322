//! `get_changelog`: what changed in an issue, oldest first.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::arguments::Arguments;
use super::client::Client;
use super::cursor;
use super::error::{Subject, Trouble};
use super::page::{self, Page};
use super::value::{at, cut, list, one_line, when};
use handler::{Output, ToolError};

/// Changes of a page.
const CHANGES_PER_PAGE: u64 = 100;
/// Characters of a value. Descriptions change as a whole.
const VALUE_CHARS: usize = 300;

pub(super) async fn run(
    client: &Client,
    given: &Arguments<'_>,
    until: Instant,
) -> Result<Output, ToolError> {
    let key = given.issue_key()?;
    let subject = format!("changelog {key}");
    let start = cursor::read(&subject, given.next_page_token()?)?;
    let page = fetch(client, &key, start, until)
        .await
        .map_err(|trouble| trouble.about(Subject::Issue(&key)))?;
    let token = page.token(&subject);
    let members: Vec<Value> = page.values.iter().map(member).collect();
    let heading = format!("# History of {key}\n\n{}", page.heading("changes"));
    let text = page::text(&heading, members.iter().map(line), token.as_deref());
    let mut structured = page::structured("changes", members, page.total, token);
    structured.insert("key".to_owned(), key.into());
    Ok(Output::structured(text, structured))
}

/// Some of the changes. Data Center sends all of them each time, with the issue.
async fn fetch(client: &Client, key: &str, start: u64, until: Instant) -> Result<Page, Trouble> {
    if client.is_cloud() {
        let (position, count) = (start.to_string(), CHANGES_PER_PAGE.to_string());
        let query = [("startAt", position.as_str()), ("maxResults", &count)];
        let answer = client
            .get(client.api(), &["issue", key, "changelog"], &query, until)
            .await?;
        return Page::counted(answer, "values", start);
    }
    let query = [("fields", "summary"), ("expand", "changelog")];
    let mut answer = client
        .get(client.api(), &["issue", key], &query, until)
        .await?;
    match answer.pointer_mut("/changelog/histories").map(Value::take) {
        Some(Value::Array(mut entries)) => {
            // Moments of one server have one form and zone, so texts are in order.
            entries.sort_by_cached_key(|entry| at(entry, "/created"));
            Ok(Page::of(entries, start, CHANGES_PER_PAGE))
        }
        _ => Err(Trouble::NotJson { page: false }),
    }
}

fn member(entry: &Value) -> Value {
    let changes: Vec<Value> = list(entry, "/items")
        .iter()
        .map(|item| {
            json!({
                "field": at(item, "/field"),
                "from": side(item, "from"),
                "to": side(item, "to"),
            })
        })
        .collect();
    json!({
        "created": at(entry, "/created"),
        "author": at(entry, "/author"),
        "changes": changes,
    })
}

/// The value in words, or where there are none, its id.
fn side(item: &Value, name: &str) -> String {
    let words = at(item, &format!("/{name}String"));
    let value = if words.is_empty() {
        at(item, &format!("/{name}"))
    } else {
        words
    };
    cut(&value, VALUE_CHARS)
}

/// `2025-01-31 10:20 +0000 Ada: status: To Do → Done; …`
fn line(member: &Value) -> String {
    let created = at(member, "/created");
    let author = match at(member, "/author") {
        author if author.is_empty() => "(nobody)".to_owned(),
        author => author,
    };
    let changes: Vec<String> = list(member, "/changes")
        .iter()
        .map(|change| {
            let shown = |name: &str| match one_line(&at(change, name)) {
                text if text.is_empty() => "(none)".to_owned(),
                text => text,
            };
            format!(
                "{}: {} → {}",
                at(change, "/field"),
                shown("/from"),
                shown("/to")
            )
        })
        .collect();
    format!("- {} {author}: {}", when(&created), changes.join("; "))
}
