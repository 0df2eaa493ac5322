//! `get_sprints`: the sprints of a board.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::arguments::Arguments;
use super::client::Client;
use super::cursor;
use super::error::Subject;
use super::page::{self, Page};
use super::value::{add, at, cut, one_line, when};
use handler::{Output, ToolError};

/// Sprints of a page, which is what Jira sends at most.
const PAGE: &str = "50";
/// Characters of a goal.
const GOAL_CHARS: usize = 1000;

pub(super) async fn run(
    client: &Client,
    given: &Arguments<'_>,
    until: Instant,
) -> Result<Output, ToolError> {
    let board = given.board_id()?;
    let state = given.state()?;
    let subject = format!("board {board} {state}");
    let start = cursor::read(&subject, given.next_page_token()?)?;
    let (id, position) = (board.to_string(), start.to_string());
    let mut query = vec![("startAt", position.as_str()), ("maxResults", PAGE)];
    if !state.is_empty() {
        query.push(("state", &state));
    }
    let page = client
        .get("rest/agile/1.0/board", &[&id, "sprint"], &query, until)
        .await
        .and_then(|answer| Page::counted(answer, "values", start))
        .map_err(|trouble| trouble.about(Subject::Board(board)))?;
    let token = page.token(&subject);
    let members = page.values.iter().map(member).collect();
    let lines = page.values.iter().map(line);
    let text = page::text(&page.heading("sprints"), lines, token.as_deref());
    let mut structured = page::structured("sprints", members, page.total, token);
    structured.insert("board_id".to_owned(), board.into());
    Ok(Output::structured(text, structured))
}

/// `12 [active] Sprint 3 — 2025-01-01 09:00 Z to 2025-01-14 17:00 Z; goal: …`
fn line(sprint: &Value) -> String {
    let mut out = format!(
        "{} [{}] {}",
        at(sprint, "/id"),
        at(sprint, "/state"),
        one_line(&at(sprint, "/name"))
    );
    let mut parts = Vec::new();
    let (start, end) = (at(sprint, "/startDate"), at(sprint, "/endDate"));
    if !start.is_empty() || !end.is_empty() {
        parts.push(format!("{} to {}", date(&start), date(&end)));
    }
    let completed = at(sprint, "/completeDate");
    if !completed.is_empty() {
        parts.push(format!("completed {}", when(&completed)));
    }
    let goal = one_line(&at(sprint, "/goal"));
    if !goal.is_empty() {
        parts.push(format!("goal: {}", cut(&goal, GOAL_CHARS)));
    }
    if !parts.is_empty() {
        add(&mut out, format_args!(" — {}", parts.join("; ")));
    }
    out
}

fn date(text: &str) -> String {
    match text {
        "" => "(no date)".to_owned(),
        text => when(text).into_owned(),
    }
}

fn member(sprint: &Value) -> Value {
    let mut member = json!({
        "id": sprint.get("id"),
        "name": at(sprint, "/name"),
        "state": at(sprint, "/state"),
    });
    if let Some(map) = member.as_object_mut() {
        for (name, pointer) in [
            ("start", "/startDate"),
            ("end", "/endDate"),
            ("completed", "/completeDate"),
            ("goal", "/goal"),
        ] {
            let value = cut(&at(sprint, pointer), GOAL_CHARS);
            if !value.is_empty() {
                map.insert(name.to_owned(), value.into());
            }
        }
    }
    member
}
