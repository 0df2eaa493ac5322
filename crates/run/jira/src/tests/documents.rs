//! Documents of Cloud as text.

use serde_json::{Value, json};

use super::super::adf;

fn read(content: &Value) -> String {
    let document = json!({"type": "doc", "version": 1, "content": content});
    assert!(adf::is_document(&document));
    adf::text(&document)
}

fn line(text: &str) -> Value {
    json!({"type": "paragraph", "content": [{"type": "text", "text": text}]})
}

#[test]
fn a_line_keeps_people_links_code_dates_and_breaks() {
    let text = read(&json!([{"type": "paragraph", "content": [
        {"type": "text", "text": "Ask ", "marks": [{"type": "strong"}]},
        {"type": "mention", "attrs": {"id": "5b10", "text": "@Ada"}},
        {"type": "text", "text": " or see "},
        {"type": "text", "text": "the page", "marks": [{"type": "link", "attrs": {"href": "https://x.example"}}]},
        {"type": "text", "text": ", "},
        {"type": "inlineCard", "attrs": {"url": "https://y.example"}},
        {"type": "hardBreak"},
        {"type": "text", "text": "make", "marks": [{"type": "code"}]},
        {"type": "text", "text": " by "},
        {"type": "date", "attrs": {"timestamp": "1735689600000"}},
        {"type": "text", "text": " "},
        {"type": "status", "attrs": {"text": "BLOCKED"}},
        {"type": "emoji", "attrs": {"shortName": ":smile:", "text": "😄"}},
    ]}]));
    assert_eq!(
        text,
        "Ask @Ada or see the page (https://x.example), https://y.example\n`make` by 2025-01-01 [BLOCKED]😄"
    );
}

#[test]
fn blocks_read_like_markdown() {
    let text = read(&json!([
        {"type": "heading", "attrs": {"level": 2}, "content": [{"type": "text", "text": "Steps"}]},
        {"type": "orderedList", "attrs": {"order": 3}, "content": [
            {"type": "listItem", "content": [line("one"), {"type": "bulletList", "content": [
                {"type": "listItem", "content": [line("inner")]},
            ]}]},
            {"type": "listItem", "content": [line("two")]},
        ]},
        {"type": "taskList", "content": [
            {"type": "taskItem", "attrs": {"state": "DONE"}, "content": [{"type": "text", "text": "did"}]},
            {"type": "taskItem", "attrs": {"state": "TODO"}, "content": [{"type": "text", "text": "do"}]},
        ]},
        {"type": "codeBlock", "attrs": {"language": "rust"}, "content": [{"type": "text", "text": "fn a() {\n\n}"}]},
        {"type": "panel", "attrs": {"panelType": "warning"}, "content": [line("hot"), line("very")]},
        {"type": "blockquote", "content": [line("said")]},
        {"type": "rule"},
        {"type": "table", "content": [
            {"type": "tableRow", "content": [
                {"type": "tableHeader", "content": [line("A")]},
                {"type": "tableHeader", "content": [line("B")]},
            ]},
            {"type": "tableRow", "content": [
                {"type": "tableCell", "content": [line("1"), line("2")]},
                {"type": "tableCell", "content": []},
            ]},
        ]},
        {"type": "expand", "attrs": {"title": "More"}, "content": [line("hidden")]},
        {"type": "mediaSingle", "content": [{"type": "media", "attrs": {"id": "1", "alt": "shot.png"}}]},
        {"type": "somethingNew", "content": [line("kept")]},
    ]));
    assert_eq!(
        text,
        "## Steps\n\n\
         3. one\n   - inner\n4. two\n\n\
         [x] did\n[ ] do\n\n\
         ```rust\nfn a() {\n\n}\n```\n\n\
         > (warning) hot\n>\n> very\n\n\
         > said\n\n\
         ---\n\n\
         | A | B |\n| 1 2 |  |\n\n\
         More\n\nhidden\n\n\
         (attachment shot.png)\n\n\
         kept"
    );
}

#[test]
fn what_is_no_document_or_a_broken_one_does_no_harm() {
    assert!(!adf::is_document(&json!({"type": "doc"})));
    assert!(!adf::is_document(&json!("doc")));
    assert_eq!(read(&json!([])), "");
    assert_eq!(
        read(
            &json!([null, 5, {"type": "heading"}, {"type": "text"}, {"type": "date", "attrs": {"timestamp": "x"}}])
        ),
        "#\n\nx"
    );
}
