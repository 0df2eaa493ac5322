//! `get_issue`: one issue, for reading.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::arguments::Arguments;
use super::client::Client;
use super::error::{Subject, Trouble};
use super::value::{add, at, cut, list, members, one_line, text, when};
use handler::{Output, ToolError};

/// Characters of a description or a comment.
const LONG_CHARS: usize = 20_000;
/// Characters of another field.
const FIELD_CHARS: usize = 1000;
/// Comments that are shown, the newest.
const MAX_COMMENTS: usize = 10;
/// Times of work have a tool of their own in Jira and are many.
const WANTED: &str = "*all,-worklog";

/// Fields of the head, and what it calls them.
const HEAD: [(&str, &str); 16] = [
    ("issuetype", "Type"),
    ("status", "Status"),
    ("resolution", "Resolution"),
    ("priority", "Priority"),
    ("assignee", "Assignee"),
    ("reporter", "Reporter"),
    ("created", "Created"),
    ("updated", "Updated"),
    ("resolutiondate", "Resolved"),
    ("duedate", "Due"),
    ("parent", "Parent"),
    ("labels", "Labels"),
    ("components", "Components"),
    ("fixVersions", "Fix versions"),
    ("versions", "Affects versions"),
    ("attachment", "Attachments"),
];
/// Fields that have a section, or say nothing to a reader.
const ELSEWHERE: [&str; 18] = [
    "summary",
    "description",
    "comment",
    "issuelinks",
    "subtasks",
    "project",
    "watches",
    "votes",
    "lastViewed",
    "workratio",
    "progress",
    "aggregateprogress",
    "statuscategorychangedate",
    "statusCategory",
    "thumbnail",
    "security",
    "issuerestriction",
    "worklog",
];

pub(super) async fn run(
    client: &Client,
    given: &Arguments<'_>,
    until: Instant,
) -> Result<Output, ToolError> {
    let key = given.issue_key()?;
    let query = [("fields", WANTED), ("expand", "names")];
    let answer = client
        .get(client.api(), &["issue", &key], &query, until)
        .await
        .and_then(|answer| match answer.get("fields") {
            Some(Value::Object(_)) => Ok(answer),
            _ => Err(Trouble::NotJson { page: false }),
        })
        .map_err(|trouble| trouble.about(Subject::Issue(&key)))?;
    Ok(output(client, &answer))
}

/// A value that programs can use: plain values as they are, others in words.
pub(super) fn plain(value: &Value, chars: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::Array(values) => values.iter().map(|value| plain(value, chars)).collect(),
        Value::String(_) | Value::Object(_) => cut(&text(value), chars).into(),
    }
}

fn output(client: &Client, issue: &Value) -> Output {
    // Jira answers with the issue's key of today, if it was moved.
    let key = at(issue, "/key");
    let url = client.site().browse(&key);
    let mut out = format!("# {key} {}\n\n", one_line(&at(issue, "/fields/summary")));
    let mut structured = Map::new();
    structured.insert("key".to_owned(), key.into());
    head(issue, url.as_deref(), &mut out);
    if let Some(url) = url {
        structured.insert("url".to_owned(), url.into());
    }
    let description = cut(&at(issue, "/fields/description"), LONG_CHARS);
    section(&mut out, "Description", &description);

    let links: Vec<Value> = list(issue, "/fields/issuelinks").iter().map(link).collect();
    section(&mut out, "Links", &lines(&links));
    let subtasks: Vec<Value> = list(issue, "/fields/subtasks").iter().map(other).collect();
    section(&mut out, "Subtasks", &lines(&subtasks));
    section(&mut out, "Other fields", &others(issue));
    let comments = comments(issue, &mut out);

    let mut shown = Map::new();
    for (field, value) in members(issue, "fields") {
        let is_apart = ["description", "comment", "issuelinks", "subtasks"];
        let value = plain(value, FIELD_CHARS);
        let is_empty = value.is_null() || value == "" || value == json!([]);
        if !is_apart.contains(&field.as_str()) && !is_empty {
            shown.insert(field.clone(), value);
        }
    }
    structured.insert("fields".to_owned(), shown.into());
    structured.insert("description".to_owned(), description.into());
    structured.insert("links".to_owned(), links.into());
    structured.insert("subtasks".to_owned(), subtasks.into());
    structured.extend(comments);
    Output::structured(out.trim_end().to_owned(), structured)
}

fn head(issue: &Value, url: Option<&str>, out: &mut String) {
    for (field, label) in HEAD {
        let value = at(issue, &format!("/fields/{field}"));
        let value = match field {
            "assignee" if value.is_empty() => "unassigned".to_owned(),
            "created" | "updated" | "resolutiondate" => when(&value).into_owned(),
            _ => cut(&one_line(&value), FIELD_CHARS),
        };
        if !value.is_empty() {
            add(out, format_args!("- {label}: {value}\n"));
        }
    }
    if let Some(url) = url {
        add(out, format_args!("- Address: {url}\n"));
    }
}

fn section(out: &mut String, title: &str, text: &str) {
    if !text.is_empty() {
        add(out, format_args!("\n## {title}\n\n{}\n", text.trim_end()));
    }
}

/// An issue that another one names.
fn other(issue: &Value) -> Value {
    json!({
        "key": at(issue, "/key"),
        "status": at(issue, "/fields/status"),
        "summary": one_line(&at(issue, "/fields/summary")),
    })
}

/// `blocks ABC-2`: the words depend on the direction.
fn link(link: &Value) -> Value {
    let (there, words) = match link.get("outwardIssue") {
        Some(issue) => (issue, "/type/outward"),
        None => (
            link.get("inwardIssue").unwrap_or(&Value::Null),
            "/type/inward",
        ),
    };
    let mut member = other(there);
    if let Some(map) = member.as_object_mut() {
        map.insert("relation".to_owned(), at(link, words).into());
    }
    member
}

fn lines(issues: &[Value]) -> String {
    let lines: Vec<String> = issues
        .iter()
        .map(|issue| {
            let relation = at(issue, "/relation");
            let space = if relation.is_empty() { "" } else { " " };
            format!(
                "- {relation}{space}{} [{}] {}",
                at(issue, "/key"),
                at(issue, "/status"),
                at(issue, "/summary")
            )
        })
        .collect();
    lines.join("\n")
}

/// Fields that this site has besides, by the names that it gave them.
fn others(issue: &Value) -> String {
    let mut lines = Vec::new();
    for (field, value) in members(issue, "fields") {
        let is_shown = HEAD.iter().any(|(name, _)| name == field);
        if is_shown || ELSEWHERE.contains(&field.as_str()) {
            continue;
        }
        let value = cut(&text(value), FIELD_CHARS);
        if value.is_empty() {
            continue;
        }
        let label = match issue.pointer("/names").and_then(|names| names.get(field)) {
            Some(Value::String(name)) if name != field => format!("{name} ({field})"),
            _ => field.clone(),
        };
        lines.push(format!("- {label}: {}", value.replace('\n', "\n  ")));
    }
    lines.join("\n")
}

/// The newest comments, and how many there are.
fn comments(issue: &Value, out: &mut String) -> Map<String, Value> {
    let all = list(issue, "/fields/comment/comments");
    let total = issue
        .pointer("/fields/comment/total")
        .and_then(Value::as_u64)
        .unwrap_or_default()
        .max(all.len() as u64);
    let shown: Vec<Value> = all
        .iter()
        // Jira sends the oldest first.
        .skip(all.len().saturating_sub(MAX_COMMENTS))
        .map(|comment| {
            json!({
                "author": at(comment, "/author"),
                "created": at(comment, "/created"),
                "body": cut(&at(comment, "/body"), LONG_CHARS),
            })
        })
        .collect();
    let mut text = String::new();
    for comment in &shown {
        let (author, created) = (at(comment, "/author"), at(comment, "/created"));
        let (created, body) = (when(&created), at(comment, "/body"));
        add(
            &mut text,
            format_args!("### {author}, {created}\n\n{body}\n\n"),
        );
    }
    let title = if total > shown.len() as u64 {
        format!("Comments (the last {} of {total})", shown.len())
    } else {
        "Comments".to_owned()
    };
    section(out, &title, &text);
    let mut map = Map::new();
    map.insert("comments".to_owned(), shown.into());
    map.insert("comments_total".to_owned(), total.into());
    map
}
