//! What the tools do with a Jira that answers, and with one that does not.

mod data;
mod documents;
mod double;
mod failures;
mod secrets;

use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};

use self::double::Double;
use super::*;
use handler::ToolErrorKind;
use model::{Digest, Principal, VersionNumber};

/// A Jira to ask, and the double that answers.
struct Site {
    jira: Jira,
    double: Double,
}

fn connection(url: &str, is_cloud: bool) -> Connection {
    let user = is_cloud.then(|| data::USER.to_owned());
    let mut connection = Connection::new(
        url.parse().expect("a site"),
        user,
        SecretString::from(data::TOKEN),
    );
    connection.pause = Duration::ZERO;
    connection
}

fn jira(connection: Option<Connection>) -> Jira {
    let config = Config {
        connection,
        skills: Vec::new(),
    };
    Jira::new(config).expect("a client")
}

async fn site(is_cloud: bool) -> Site {
    let double = Double::start(is_cloud).await;
    Site {
        jira: jira(Some(connection(&double.url, is_cloud))),
        double,
    }
}

async fn call(jira: &Jira, method: &str, arguments: Value) -> Result<Output, ToolError> {
    let Value::Object(arguments) = arguments else {
        panic!("not an object")
    };
    let invocation = Invocation {
        id: "1".to_owned(),
        skill: "builtin/repertoire/jira".parse().expect("an id"),
        version: VersionNumber::FIRST,
        digest: Digest::of(b""),
        tool: None,
        method: method.to_owned(),
        arguments,
        context: Default::default(),
        timeout: Duration::from_secs(30),
        idempotency_key: String::new(),
        caller: Principal::token("test"),
        progress: None,
    };
    jira.call(invocation).await
}

impl Site {
    async fn call(&self, method: &str, arguments: Value) -> Output {
        call(&self.jira, method, arguments)
            .await
            .expect("an answer")
    }

    /// All pages of a tool: the members of each, and whether it told a total.
    async fn pages(&self, method: &str, name: &str, arguments: Value) -> Vec<(usize, Value)> {
        let mut arguments = arguments;
        let mut found = Vec::new();
        loop {
            let output = self.call(method, arguments.clone()).await;
            let map = output.structured.expect("an object");
            let members = map[name].as_array().expect("members");
            assert_eq!(map["count"], members.len());
            found.push((members.len(), map.get("total").cloned().unwrap_or_default()));
            let token = map.get("next_page_token").cloned();
            assert_eq!(map["has_more"], token.is_some());
            let Some(token) = token else {
                assert!(
                    output.text.ends_with("There are no more."),
                    "{}",
                    output.text
                );
                return found;
            };
            let told = format!("next_page_token {token}.");
            assert!(output.text.ends_with(&told), "{}", output.text);
            arguments["next_page_token"] = token;
        }
    }
}

#[test]
fn the_bundled_skill_is_always_served_and_others_by_the_operators_word() {
    let triage: SkillId = "local/user/triage".parse().expect("an id");
    let jira = Jira::new(Config {
        connection: None,
        skills: vec![
            triage.clone(),
            "Builtin/Repertoire/Jira".parse().expect("an id"),
        ],
    })
    .expect("no client is needed");
    let bundled: SkillId = "builtin/repertoire/jira".parse().expect("an id");
    assert_eq!(jira.skills(), [bundled.clone(), triage.clone()]);
    for method in METHODS {
        assert!(jira.serves(&bundled, method) && jira.serves(&triage, method));
    }
    assert!(!jira.serves(&bundled, "load_details"));
    let other = "builtin/repertoire/xlsx".parse().expect("an id");
    assert!(!jira.serves(&other, "search_issues"));
}

#[tokio::test]
async fn cloud_is_searched_page_by_page_with_the_token_that_it_gave() {
    let site = site(true).await;
    let arguments = json!({"jql": "project = ABC ORDER BY key", "max_results": 2});
    let first = site.call("search_issues", arguments.clone()).await;
    assert_eq!(
        first.text,
        "2 issues on this page.\n\n\
         ABC-1 [In Progress] Summary 1 — Ada Lovelace, updated 2025-03-04 05:06 +0100; priority: High\n\
         ABC-2 [In Progress] Summary 2 — unassigned, updated 2025-03-04 05:06 +0100; priority: High\n\n\
         There are more: repeat the call with the same arguments and next_page_token \"page-from-2\"."
    );
    let url = format!("{}/browse/ABC-2", site.double.url);
    let structured = first.structured.expect("an object");
    assert_eq!(
        structured["issues"][1],
        json!({"key": "ABC-2", "url": url, "fields": {
            "summary": "Summary 2", "status": "In Progress", "assignee": null,
            "updated": "2025-03-04T05:06:07.000+0100", "priority": "High",
        }})
    );
    let sizes = site.pages("search_issues", "issues", arguments).await;
    assert_eq!(
        sizes,
        [(2, json!(null)), (2, json!(null)), (1, json!(null))]
    );
    let asked = site.double.asked();
    let asked: Vec<_> = asked
        .iter()
        .map(|asked| {
            (
                asked.method.as_str(),
                asked.path.as_str(),
                asked.parameter("nextPageToken"),
            )
        })
        .collect();
    let path = "/rest/api/3/search/jql";
    assert_eq!(
        asked,
        [
            ("GET", path, String::new()),
            ("GET", path, String::new()),
            ("GET", path, "page-from-2".to_owned()),
            ("GET", path, "page-from-4".to_owned()),
        ]
    );
}

#[tokio::test]
async fn data_center_is_searched_by_place_behind_a_token_of_the_same_query() {
    let site = site(false).await;
    let arguments = json!({"jql": "project = ABC", "max_results": 2});
    let first = site.call("search_issues", arguments.clone()).await;
    assert!(
        first.text.starts_with("Issues 1 to 2 of 5.\n\nABC-1 "),
        "{}",
        first.text
    );
    let sizes = site.pages("search_issues", "issues", arguments).await;
    assert_eq!(sizes, [(2, json!(5)), (2, json!(5)), (1, json!(5))]);
    let token = first.structured.expect("an object")["next_page_token"].clone();
    let other = json!({"jql": "project = X", "next_page_token": token});
    let error = call(&site.jira, "search_issues", other)
        .await
        .expect_err("refused");
    assert_eq!(
        (error.kind, error.field.as_str()),
        (ToolErrorKind::Invalid, "next_page_token")
    );
}

#[tokio::test]
async fn a_query_is_handed_on_as_it_came_and_a_long_one_in_a_body() {
    for is_cloud in [true, false] {
        let site = site(is_cloud).await;
        let short = "summary ~ \"a&b=c #1\" OR project = 'Ä/../x'";
        let long = format!("key IN ({})", vec!["ABC-1"; 500].join(", "));
        for jql in [short, &long] {
            site.call(
                "search_issues",
                json!({"jql": jql, "fields": "summary, customfield_10016"}),
            )
            .await;
        }
        let asked = site.double.asked();
        let told: Vec<_> = asked
            .iter()
            .map(|asked| {
                (
                    asked.method.as_str(),
                    asked.parameter("jql"),
                    asked.parameter("fields"),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (
                    "GET",
                    short.to_owned(),
                    "summary,customfield_10016".to_owned()
                ),
                (
                    "POST",
                    long.clone(),
                    "[\"summary\",\"customfield_10016\"]".to_owned()
                ),
            ]
        );
    }
}

#[tokio::test]
async fn an_issue_is_told_whole_and_says_what_it_leaves_out() {
    for is_cloud in [true, false] {
        let site = site(is_cloud).await;
        let issue = site.call("get_issue", json!({"issue_key": "abc-1"})).await;
        let comments: Vec<String> = (3..=12)
            .map(|number| {
                format!("\n\n### Grace Hopper, 2025-03-{number:02} 00:00 +0000\n\nComment {number}")
            })
            .collect();
        let comments = comments.concat();
        assert_eq!(
            issue.text,
            format!(
                "# ABC-1 Summary 1\n\n\
                 - Type: Bug\n- Status: In Progress\n- Priority: High\n- Assignee: Ada Lovelace\n\
                 - Created: 2025-03-01 00:00 +0000\n- Updated: 2025-03-04 05:06 +0100\n- Labels: ui, login\n\
                 - Address: {}/browse/ABC-1\n\n\
                 ## Description\n\nIt *fails*.\n\n\
                 ## Links\n\n- blocks ABC-2 [In Progress] Summary 2\n- is blocked by ABC-3 [In Progress] Summary 3\n\n\
                 ## Subtasks\n\n- ABC-4 [In Progress] Summary 4\n\n\
                 ## Other fields\n\n- Story Points (customfield_10016): 5.0\n\n\
                 ## Comments (the last 10 of 12){comments}",
                site.double.url
            )
        );
        let structured = issue.structured.expect("an object");
        assert_eq!(structured["fields"]["customfield_10016"], json!(5.0));
        assert_eq!(structured["fields"].get("customfield_10099"), None);
        assert_eq!(structured["comments_total"], json!(12));
        assert_eq!(structured["comments"][0]["body"], json!("Comment 3"));
        assert_eq!(
            structured["links"][0],
            json!({"key": "ABC-2", "status": "In Progress", "summary": "Summary 2", "relation": "blocks"})
        );
    }
}

#[tokio::test]
async fn projects_sprints_and_changes_come_in_pages_of_either_jira() {
    for (is_cloud, projects) in [
        // Cloud has pages of 50 here, whatever is asked for.
        (
            true,
            vec![(50, json!(130)), (50, json!(130)), (30, json!(130))],
        ),
        (false, vec![(100, json!(130)), (30, json!(130))]),
    ] {
        let site = site(is_cloud).await;
        assert_eq!(
            site.pages("list_projects", "projects", json!({})).await,
            projects
        );
        assert_eq!(
            site.pages("get_sprints", "sprints", json!({"board_id": 7}))
                .await,
            [(50, json!(null)), (10, json!(null))]
        );
        assert_eq!(
            site.pages("get_changelog", "changes", json!({"issue_key": "ABC-1"}))
                .await,
            [(100, json!(130)), (30, json!(130))]
        );
    }
}

#[tokio::test]
async fn a_sprint_and_a_change_are_a_line_each() {
    let site = site(true).await;
    let sprints = site
        .call(
            "get_sprints",
            json!({"board_id": 7, "state": "active,future"}),
        )
        .await;
    assert_eq!(
        sprints.text,
        "Sprints 1 to 2.\n\n\
         59 [active] Sprint 59 — 2025-03-01 09:00 Z to 2025-03-15 09:00 Z; goal: Ship it\n\
         60 [future] Sprint 60\n\n\
         There are no more."
    );
    let changes = site
        .call("get_changelog", json!({"issue_key": "ABC-1"}))
        .await;
    assert!(
        changes.text.starts_with(
            "# History of ABC-1\n\nChanges 1 to 100 of 130.\n\n\
             - 2025-03-01 00:00 +0000 Ada Lovelace: status: To Do → In Progress; assignee: (none) → Ada\n"
        ),
        "{}",
        changes.text
    );
    let structured = changes.structured.expect("an object");
    assert_eq!(
        structured["changes"][0],
        json!({"created": "2025-03-01T00:00:00.000+0000", "author": "Ada Lovelace", "changes": [
            {"field": "status", "from": "To Do", "to": "In Progress"},
            {"field": "assignee", "from": "", "to": "Ada"},
        ]})
    );
}

#[tokio::test]
async fn level_two_begins_with_the_site_the_account_and_some_projects() {
    for (is_cloud, kind) in [(true, "Jira Cloud"), (false, "Jira Data Center")] {
        let site = site(is_cloud).await;
        let core = site.call(LOAD_CORE, json!({})).await;
        let projects: Vec<String> = (0..50)
            .map(|number| format!("- P{number:03}: Project {number}\n"))
            .collect();
        let projects = projects.concat();
        assert_eq!(
            core,
            Output::text(format!(
                "## Jira Skill Activated\n\n\
                 - Site: {} ({kind})\n\
                 - Status: connected, signed in as Ada Lovelace; `currentUser()` is this account\n\
                 - Access: read only, and only what this account may see\n\n\
                 ### Projects\n\n\
                 Projects 1 to 50 of 130. The list is cut here: `jira_list_projects` has all.\n\n{projects}",
                site.double.url
            ))
        );
    }
}

#[tokio::test]
async fn without_a_jira_level_two_says_so_and_the_tools_refuse() {
    let none = jira(None);
    let core = call(&none, LOAD_CORE, json!({})).await.expect("level 2");
    assert!(
        core.text
            .starts_with("## Jira Skill Activated\n\n- Status: not connected.")
    );
    assert!(core.text.contains("tools.jira.url") && core.text.contains("Write JQL"));
    for method in &METHODS[1..] {
        let error = call(&none, method, json!({"jql": "x"}))
            .await
            .expect_err("refused");
        assert_eq!(error, super::error::not_connected());
    }
}
