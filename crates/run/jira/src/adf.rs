//! The Atlassian Document Format, in which Cloud keeps long texts, as plain text
//! that reads like Markdown.

use serde_json::Value;

use super::value::list as list_at;

/// Whether a value is a document.
pub(super) fn is_document(value: &Value) -> bool {
    kind(value) == "doc" && value.get("content").is_some_and(Value::is_array)
}

/// A document as text. Formatting that is no structure is left out; an unknown
/// node is shown by its content.
pub(super) fn text(document: &Value) -> String {
    blocks(content(document)).join("\n\n")
}

fn kind(node: &Value) -> &str {
    node.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn content(node: &Value) -> &[Value] {
    list_at(node, "/content")
}

fn attribute<'a>(node: &'a Value, name: &str) -> &'a str {
    node.get("attrs")
        .and_then(|attrs| attrs.get(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The first of two attributes, or the second where that is empty.
fn first_attribute<'a>(node: &'a Value, [first, second]: [&str; 2]) -> &'a str {
    match attribute(node, first) {
        "" => attribute(node, second),
        text => text,
    }
}

fn blocks(nodes: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut line = String::new();
    for node in nodes {
        // Inline nodes between blocks are a paragraph of their own.
        if let Some(text) = inline(node) {
            line.push_str(&text);
            continue;
        }
        if !line.is_empty() {
            found.push(std::mem::take(&mut line));
        }
        let text = block(node);
        if !text.is_empty() {
            found.push(text);
        }
    }
    if !line.is_empty() {
        found.push(line);
    }
    found
}

fn block(node: &Value) -> String {
    let inner = || blocks(content(node));
    match kind(node) {
        "heading" => {
            let level = node.pointer("/attrs/level").and_then(Value::as_u64);
            let level = level.and_then(|level| usize::try_from(level).ok());
            let marks = "#".repeat(level.unwrap_or(1).clamp(1, 6));
            format!("{marks} {}", inner().join(" "))
                .trim_end()
                .to_owned()
        }
        "bulletList" => list(node, |_| "- ".to_owned()),
        "orderedList" => {
            let first = node.pointer("/attrs/order").and_then(Value::as_u64);
            list(node, |position| {
                format!("{}. ", first.unwrap_or(1) + position)
            })
        }
        "taskList" => list(node, |_| String::new()),
        "decisionList" => list(node, |_| "- decided: ".to_owned()),
        "taskItem" => {
            let mark = if attribute(node, "state") == "DONE" {
                "[x]"
            } else {
                "[ ]"
            };
            format!("{mark} {}", inner().join("\n"))
        }
        "codeBlock" => format!(
            "```{}\n{}\n```",
            attribute(node, "language"),
            inner().concat()
        ),
        "blockquote" => prefixed(&inner().join("\n\n"), "> ", "> "),
        "panel" => {
            let label = match attribute(node, "panelType") {
                "" => "note",
                label => label,
            };
            prefixed(&inner().join("\n\n"), &format!("> ({label}) "), "> ")
        }
        "expand" | "nestedExpand" => {
            let mut parts = vec![attribute(node, "title").to_owned()];
            parts.retain(|title| !title.is_empty());
            parts.extend(inner());
            parts.join("\n\n")
        }
        "rule" => "---".to_owned(),
        "table" => table(node),
        "mediaSingle" | "mediaGroup" => content(node)
            .iter()
            .map(|media| match attribute(media, "alt") {
                "" => "(attachment)".to_owned(),
                name => format!("(attachment {name})"),
            })
            .collect::<Vec<_>>()
            .join("\n"),
        "blockCard" | "embedCard" => attribute(node, "url").to_owned(),
        "listItem" | "decisionItem" => inner().join("\n"),
        _ => inner().join("\n\n"),
    }
}

/// The text of an inline node; none if it is a block.
fn inline(node: &Value) -> Option<String> {
    let text = match kind(node) {
        "text" => {
            let text = node.get("text").and_then(Value::as_str).unwrap_or_default();
            marked(node, text)
        }
        "hardBreak" => "\n".to_owned(),
        "mention" => {
            let name = first_attribute(node, ["text", "id"]);
            format!("@{}", name.trim_start_matches('@'))
        }
        "emoji" => first_attribute(node, ["text", "shortName"]).to_owned(),
        "inlineCard" => attribute(node, "url").to_owned(),
        "status" => format!("[{}]", attribute(node, "text")),
        "date" => date(node),
        "mediaInline" => "(attachment)".to_owned(),
        "placeholder" => attribute(node, "text").to_owned(),
        _ => return None,
    };
    Some(text)
}

/// Adds the marks of links and code; bold and the like say nothing that is needed.
fn marked(node: &Value, text: &str) -> String {
    let mut text = text.to_owned();
    for mark in list_at(node, "/marks") {
        match kind(mark) {
            "code" => text = format!("`{text}`"),
            "link" => {
                let address = attribute(mark, "href");
                if !address.is_empty() && address != text {
                    text = format!("{text} ({address})");
                }
            }
            _ => {}
        }
    }
    text
}

/// Dates are milliseconds, as text.
fn date(node: &Value) -> String {
    let stamp = attribute(node, "timestamp");
    let moment = stamp
        .parse()
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    moment.map_or_else(
        || stamp.to_owned(),
        |moment| moment.strftime("%Y-%m-%d").to_string(),
    )
}

fn list(node: &Value, mark: impl Fn(u64) -> String) -> String {
    let mut lines = Vec::new();
    for (position, item) in (0..).zip(content(node)) {
        // A list in a list of tasks is a sibling of the tasks.
        let is_list = matches!(kind(item), "taskList" | "bulletList" | "orderedList");
        if is_list {
            lines.push(prefixed(&block(item), "  ", "  "));
        } else {
            let mark = mark(position);
            let indent = " ".repeat(mark.chars().count());
            lines.push(prefixed(&block(item), &mark, &indent));
        }
    }
    lines.join("\n")
}

fn table(node: &Value) -> String {
    let rows: Vec<String> = content(node)
        .iter()
        .map(|row| {
            let cells: Vec<String> = content(row)
                .iter()
                .map(|cell| super::value::one_line(&blocks(content(cell)).join(" ")))
                .collect();
            format!("| {} |", cells.join(" | "))
        })
        .collect();
    rows.join("\n")
}

/// Puts a prefix before each line.
fn prefixed(text: &str, first: &str, rest: &str) -> String {
    let mut out = String::new();
    for (position, line) in text.lines().enumerate() {
        if position > 0 {
            out.push('\n');
        }
        let prefix = if position == 0 { first } else { rest };
        out.push_str(if line.is_empty() {
            prefix.trim_end()
        } else {
            prefix
        });
        out.push_str(line);
    }
    out
}
