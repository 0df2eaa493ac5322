//! What is in the Jira of the tests.

use serde_json::{Value, json};

pub(super) const USER: &str = "ada@acme.example";
pub(super) const TOKEN: &str = "planted-token-0123456789";
/// `ada@acme.example:planted-token-0123456789`
pub(super) const BASIC: &str = "Basic YWRhQGFjbWUuZXhhbXBsZTpwbGFudGVkLXRva2VuLTAxMjM0NTY3ODk=";
pub(super) const BEARER: &str = "Bearer planted-token-0123456789";

/// Five issues.
pub(super) fn issues(is_cloud: bool) -> Vec<Value> {
    (1..=5).map(|number| member(number, is_cloud)).collect()
}

fn member(number: u32, is_cloud: bool) -> Value {
    let assignee = match number {
        2 => json!(null),
        _ => person("Ada Lovelace", is_cloud),
    };
    json!({
        "id": (10_000 + number).to_string(),
        "key": format!("ABC-{number}"),
        "self": "https://elsewhere.example/rest/api/3/issue/10001",
        "fields": {
            "summary": format!("Summary {number}"),
            "status": {"name": "In Progress", "statusCategory": {"key": "indeterminate", "name": "In Progress"}},
            "assignee": assignee,
            "updated": "2025-03-04T05:06:07.000+0100",
            "priority": {"name": "High", "id": "2"},
        },
    })
}

fn person(name: &str, is_cloud: bool) -> Value {
    if is_cloud {
        json!({"accountId": "5b10", "accountType": "atlassian", "displayName": name, "active": true})
    } else {
        json!({"name": "ada", "key": "JIRAUSER1", "displayName": name, "active": true})
    }
}

/// A whole issue.
pub(super) fn issue(is_cloud: bool) -> Value {
    let text = |text: &str| {
        if is_cloud {
            json!({"type": "doc", "version": 1, "content": [
                {"type": "paragraph", "content": [{"type": "text", "text": text}]},
            ]})
        } else {
            json!(text)
        }
    };
    let comments: Vec<Value> = (1..=12)
        .map(|number| {
            json!({
                "id": number.to_string(),
                "author": person("Grace Hopper", is_cloud),
                "body": text(&format!("Comment {number}")),
                "created": format!("2025-03-{number:02}T00:00:00.000+0000"),
            })
        })
        .collect();
    let mut issue = member(1, is_cloud);
    issue["names"] = json!({"summary": "Summary", "customfield_10016": "Story Points", "customfield_10099": "Nothing"});
    let more = json!({
        "issuetype": {"name": "Bug"},
        "created": "2025-03-01T00:00:00.000+0000",
        "labels": ["ui", "login"],
        "description": text("It *fails*."),
        "customfield_10016": 5.0,
        "customfield_10099": null,
        "issuelinks": [
            {"type": {"inward": "is blocked by", "outward": "blocks"}, "outwardIssue": member(2, is_cloud)},
            {"type": {"inward": "is blocked by", "outward": "blocks"}, "inwardIssue": member(3, is_cloud)},
        ],
        "subtasks": [member(4, is_cloud)],
        "comment": {"comments": comments, "maxResults": 12, "total": 12, "startAt": 0},
    });
    for (field, value) in more.as_object().expect("an object") {
        issue["fields"][field] = value.clone();
    }
    issue
}

/// 130 changes, one a minute.
pub(super) fn changes() -> Vec<Value> {
    (0..130)
        .map(|number| {
            json!({
                "id": number.to_string(),
                "author": person("Ada Lovelace", true),
                "created": format!("2025-03-01T{:02}:{:02}:00.000+0000", number / 60, number % 60),
                "items": [
                    {"field": "status", "fieldtype": "jira", "from": "1", "fromString": "To Do", "to": "3", "toString": "In Progress"},
                    {"field": "assignee", "fieldtype": "jira", "from": null, "fromString": null, "to": "5b10", "toString": "Ada"},
                ],
            })
        })
        .collect()
}

/// 130 projects.
pub(super) fn projects() -> Vec<Value> {
    (0..130)
        .map(|number| {
            json!({
                "id": (20_000 + number).to_string(),
                "key": format!("P{number:03}"),
                "name": format!("Project {number}"),
                "projectTypeKey": "software",
            })
        })
        .collect()
}

/// 60 sprints: closed, then one active, then one future.
pub(super) fn sprints() -> Vec<Value> {
    (1..=60)
        .map(|id| {
            let state = match id {
                59 => "active",
                60 => "future",
                _ => "closed",
            };
            let mut sprint = json!({"id": id, "state": state, "name": format!("Sprint {id}"), "originBoardId": 7});
            if id < 60 {
                sprint["startDate"] = "2025-03-01T09:00:00.000Z".into();
                sprint["endDate"] = "2025-03-15T09:00:00.000Z".into();
                sprint["goal"] = "Ship\nit".into();
            }
            sprint
        })
        .collect()
}
