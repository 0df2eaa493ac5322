//! `list_projects`: what the account may see.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::arguments::Arguments;
use super::client::Client;
use super::cursor;
use super::error::{Subject, Trouble};
use super::page::{self, Page};
use super::value::{add, at, one_line};
use handler::{Output, ToolError};

/// Projects of a page.
const PROJECTS_PER_PAGE: u64 = 100;
/// The subject of tokens.
const SUBJECT: &str = "projects";

pub(super) async fn run(
    client: &Client,
    given: &Arguments<'_>,
    until: Instant,
) -> Result<Output, ToolError> {
    let start = cursor::read(SUBJECT, given.next_page_token()?)?;
    let page = fetch(client, start, PROJECTS_PER_PAGE, until)
        .await
        .map_err(|trouble| trouble.about(Subject::Projects))?;
    let token = page.token(SUBJECT);
    let text = format!(
        "{}\n\n{}\n{}",
        page.heading("projects"),
        lines(&page),
        page::footing(token.as_deref())
    );
    let members = page
        .values
        .iter()
        .map(|project| {
            json!({
                "key": at(project, "/key"),
                "name": one_line(&at(project, "/name")),
                "type": at(project, "/projectTypeKey"),
            })
        })
        .collect();
    Ok(Output::structured(
        text,
        page::structured("projects", members, page.total, token),
    ))
}

/// Some of the projects. Data Center sends all of them each time.
pub(super) async fn fetch(
    client: &Client,
    start: u64,
    size: u64,
    until: Instant,
) -> Result<Page, Trouble> {
    if client.is_cloud() {
        let (position, count) = (start.to_string(), size.to_string());
        let query = [
            ("startAt", position.as_str()),
            ("maxResults", &count),
            ("orderBy", "key"),
        ];
        let answer = client
            .get(client.api(), &["project", "search"], &query, until)
            .await?;
        return Page::counted(answer, "values", start);
    }
    match client.get(client.api(), &["project"], &[], until).await? {
        Value::Array(mut projects) => {
            // In an order, so that pages fit together.
            projects.sort_by_cached_key(|project| at(project, "/key"));
            Ok(Page::of(projects, start, size))
        }
        _ => Err(Trouble::NotJson { page: false }),
    }
}

/// A line for each.
pub(super) fn lines(page: &Page) -> String {
    let mut out = String::new();
    for project in &page.values {
        let (key, name) = (at(project, "/key"), one_line(&at(project, "/name")));
        add(&mut out, format_args!("- {key}: {name}\n"));
    }
    out
}
