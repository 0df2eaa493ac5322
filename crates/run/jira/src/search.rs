//! `search_issues`: a page of the issues of a query.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::arguments::Arguments;
use super::client::Client;
use super::cursor;
use super::error::{Subject, Trouble};
use super::page::{self, Page};
use super::value::{add, at, cut, members, one_line, text, when};
use handler::{Output, ToolError};

/// Issues of a page by default.
const DEFAULT_ISSUES_PER_PAGE: u64 = 50;
/// Issues of a page at most; Jira may send fewer.
const MAX: u64 = 100;
/// Fields by default.
const FIELDS: [&str; 6] = [
    "summary",
    "status",
    "assignee",
    "priority",
    "issuetype",
    "updated",
];
/// Characters of a field in a list.
const FIELD_CHARS: usize = 500;
/// Bytes of JQL that go into an address; longer queries go into a body.
const MAX_ADDRESS_JQL_BYTES: usize = 1500;

pub(super) async fn run(
    client: &Client,
    given: &Arguments<'_>,
    until: Instant,
) -> Result<Output, ToolError> {
    let jql = given.jql()?;
    let size = given.max_results(DEFAULT_ISSUES_PER_PAGE, MAX)?;
    let token = given.next_page_token()?;
    let mut fields = given.fields()?;
    if fields.is_empty() {
        fields = FIELDS.to_vec();
    }
    let (answer, start) = if client.is_cloud() {
        let answer = ask(client, jql, size, ("nextPageToken", token), &fields, until).await;
        (answer, 0)
    } else {
        let start = cursor::read(jql, token)?;
        let position = start.to_string();
        let answer = ask(client, jql, size, ("startAt", &position), &fields, until).await;
        (answer, start)
    };
    let found = answer.and_then(|answer| found(client, answer, jql, start));
    let found = found.map_err(|trouble| trouble.about(Subject::Query))?;
    Ok(output(client, &found))
}

/// The result of a search.
struct IssuePage {
    issues: Vec<Value>,
    /// Names of fields, where these were requested.
    names: Map<String, Value>,
    heading: String,
    total: Option<u64>,
    token: Option<String>,
}

async fn ask(
    client: &Client,
    jql: &str,
    size: u64,
    (position, from): (&str, &str),
    fields: &[&str],
    until: Instant,
) -> Result<Value, Trouble> {
    let segments: &[&str] = if client.is_cloud() {
        &["search", "jql"]
    } else {
        &["search"]
    };
    // `customfield_10016` means nothing to a reader, but its name does. Other fields are called
    // what they are.
    let wants_names = fields
        .iter()
        .any(|field| field.starts_with("customfield_") || field.starts_with('*'));
    // Escaping may triple its length, and the server of Data Center (Tomcat) takes 8 KiB for the
    // request line and all headers together.
    if jql.len() <= MAX_ADDRESS_JQL_BYTES {
        let size = size.to_string();
        let fields = fields.join(",");
        let mut query = vec![("jql", jql), ("maxResults", &size), ("fields", &fields)];
        if !from.is_empty() {
            query.push((position, from));
        }
        if wants_names {
            query.push(("expand", "names"));
        }
        return client.get(client.api(), segments, &query, until).await;
    }
    let mut body = json!({"jql": jql, "maxResults": size, "fields": fields});
    if let Some(body) = body.as_object_mut() {
        if !from.is_empty() {
            let from = match from.parse::<u64>() {
                Ok(number) if !client.is_cloud() => json!(number),
                // A token of Cloud that is all digits stays a text.
                _ => json!(from),
            };
            body.insert(position.to_owned(), from);
        }
        if wants_names {
            let names = if client.is_cloud() {
                json!("names")
            } else {
                json!(["names"])
            };
            body.insert("expand".to_owned(), names);
        }
    }
    client.search(client.api(), segments, &body, until).await
}

fn found(client: &Client, mut answer: Value, jql: &str, start: u64) -> Result<IssuePage, Trouble> {
    let names = match answer.get_mut("names").map(Value::take) {
        Some(Value::Object(names)) => names,
        _ => Map::new(),
    };
    if !client.is_cloud() {
        let page = Page::counted(answer, "issues", start)?;
        return Ok(IssuePage {
            heading: page.heading("issues"),
            total: page.total,
            token: page.token(jql),
            issues: page.values,
            names,
        });
    }
    let is_last = answer.get("isLast").and_then(Value::as_bool) == Some(true);
    let token = answer
        .get("nextPageToken")
        .and_then(Value::as_str)
        .filter(|token| !is_last && !token.is_empty())
        .map(str::to_owned);
    // Cloud counts nothing, so the heading has the length of the page.
    let page = Page::counted(answer, "issues", 0)?;
    let heading = match page.values.len() {
        0 if token.is_some() => "No issues on this page.".to_owned(),
        0 => page.heading("issues"),
        1 => "1 issue on this page.".to_owned(),
        count => format!("{count} issues on this page."),
    };
    Ok(IssuePage {
        issues: page.values,
        names,
        heading,
        total: None,
        token,
    })
}

fn output(client: &Client, found: &IssuePage) -> Output {
    let issues = found.issues.iter();
    let lines = issues.clone().map(|issue| line(issue, &found.names));
    let members = issues.map(|issue| member(client, issue)).collect();
    Output {
        text: page::text(&found.heading, lines, found.token.as_deref()),
        structured: Some(page::structured(
            "issues",
            members,
            found.total,
            found.token.clone(),
        )),
    }
}

/// `KEY [status] summary — assignee, updated …; other: value`
fn line(issue: &Value, names: &Map<String, Value>) -> String {
    let mut out = at(issue, "/key");
    let empty = Map::new();
    let fields = issue
        .get("fields")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    if let Some(status) = fields.get("status") {
        add(&mut out, format_args!(" [{}]", text(status)));
    }
    if let Some(summary) = fields.get("summary") {
        add(&mut out, format_args!(" {}", one_line(&text(summary))));
    }
    let mut ends = Vec::new();
    if let Some(assignee) = fields.get("assignee") {
        ends.push(match text(assignee) {
            name if name.is_empty() => "unassigned".to_owned(),
            name => name,
        });
    }
    if let Some(updated) = fields.get("updated").and_then(Value::as_str) {
        ends.push(format!("updated {}", when(updated)));
    }
    let mut parts = Vec::new();
    if !ends.is_empty() {
        parts.push(ends.join(", "));
    }
    for (field, value) in fields {
        if matches!(
            field.as_str(),
            "status" | "summary" | "assignee" | "updated"
        ) {
            continue;
        }
        let value = one_line(when(&text(value)).as_ref());
        if !value.is_empty() {
            let name = names.get(field).and_then(Value::as_str).unwrap_or(field);
            parts.push(format!("{name}: {}", cut(&value, FIELD_CHARS)));
        }
    }
    if !parts.is_empty() {
        add(&mut out, format_args!(" — {}", parts.join("; ")));
    }
    out
}

fn member(client: &Client, issue: &Value) -> Value {
    let key = at(issue, "/key");
    let mut fields = Map::new();
    for (field, value) in members(issue, "fields") {
        fields.insert(field.clone(), super::issue::plain(value, FIELD_CHARS));
    }
    let mut member = json!({"key": key, "fields": fields});
    if let (Some(url), Some(map)) = (client.site().browse(&key), member.as_object_mut()) {
        map.insert("url".to_owned(), url.into());
    }
    member
}
