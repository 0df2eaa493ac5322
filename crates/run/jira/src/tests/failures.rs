//! What goes wrong at Jira, and what the caller hears.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::super::client::MAX_BODY;
use super::double::{Double, Reply};
use super::{ToolError, ToolErrorKind, call, connection, data, jira, site};
use handler::LOAD_CORE;

fn said(status: u16, message: &str) -> Reply {
    Reply::new(status, &json!({"errorMessages": [message], "errors": {}}))
}

/// The failure of a search that Jira answers so.
async fn failure(is_cloud: bool, replies: Vec<Reply>) -> ToolError {
    let site = site(is_cloud).await;
    site.double.next(replies);
    let error = call(&site.jira, "search_issues", json!({"jql": "project = ABC"})).await;
    error.expect_err("refused")
}

#[tokio::test]
async fn each_refusal_of_jira_has_its_kind_and_useful_words() {
    use ToolErrorKind::{Denied, Failed, Invalid, Unavailable};
    let html = || Reply::raw(200, "text/html;charset=UTF-8", b"<!DOCTYPE html>");
    for (reply, kind, words) in [
        (
            said(400, "Expecting ')' before the end"),
            Invalid,
            "Jira refuses this query: Expecting ')' before the end",
        ),
        (
            said(401, "no"),
            Denied,
            "Jira does not accept the operator's token: it was refused or has expired",
        ),
        // An expired token of Cloud: nothing is found, and only a header tells.
        (
            Reply::new(200, &json!({"issues": [], "isLast": true}))
                .header("X-Seraph-LoginReason", "AUTHENTICATED_FAILED"),
            Denied,
            "Jira does not accept the operator's token: it was refused or has expired",
        ),
        (
            said(403, "Not yours"),
            Denied,
            "The account of this server may not see this query: Not yours",
        ),
        (
            said(403, "").header(
                "X-Authentication-Denied-Reason",
                "CAPTCHA_CHALLENGE; login-url=https://x.example",
            ),
            Denied,
            "Jira wants a person to sign in before it accepts the account again",
        ),
        (
            html_status(404),
            Failed,
            "There is no such API of Jira at tools.jira.url (status 404)",
        ),
        (
            said(410, "removed"),
            Failed,
            "There is no such API of Jira at tools.jira.url (status 410)",
        ),
        (
            said(418, "tea"),
            Failed,
            "Jira did not answer about this query (status 418): tea",
        ),
        (
            said(500, "Internal"),
            Unavailable,
            "Jira has trouble of its own (status 500): Internal",
        ),
        (
            Reply::raw(302, "text/html", b"")
                .header("Location", "https://id.example/login?os_destination=secret"),
            Failed,
            "Jira answered with a redirect to id.example, which is not followed, since the token would go along",
        ),
        (
            html(),
            Failed,
            "What answers at tools.jira.url sent a web page, perhaps one to sign in, instead of the JSON of Jira's API",
        ),
        (
            Reply::raw(200, "application/json", b"{\"issues\": ["),
            Failed,
            "What answers at tools.jira.url sent something else instead of the JSON of Jira's API",
        ),
        (
            Reply::new(200, &json!({"issues": "none"})),
            Failed,
            "What answers at tools.jira.url sent something else instead of the JSON of Jira's API",
        ),
        (
            Reply::raw(200, "application/json", &vec![b' '; MAX_BODY + 1]),
            Failed,
            "Jira's answer about this query is larger than 4 MiB and was not read to its end",
        ),
    ] {
        let error = failure(true, vec![reply]).await;
        assert_eq!((error.kind, error.message.as_str()), (kind, words));
        assert!(
            !error.suggestions.is_empty() || words.contains("418"),
            "{words}"
        );
    }
}

fn html_status(status: u16) -> Reply {
    Reply::raw(status, "text/html", b"<html>")
}

#[tokio::test]
async fn an_argument_that_jira_does_not_know_is_named() {
    let site = site(true).await;
    for (method, arguments, kind, field, words) in [
        (
            "search_issues",
            json!({"jql": "nonsense = 1"}),
            ToolErrorKind::Invalid,
            "jql",
            "Jira refuses this query: Field 'nonsense' does not exist or you do not have permission to view it.",
        ),
        (
            "get_issue",
            json!({"issue_key": "ABC-9"}),
            ToolErrorKind::Failed,
            "issue_key",
            "The issue ABC-9 does not exist, or the account of this server may not see it",
        ),
        (
            "get_changelog",
            json!({"issue_key": "ABC-9"}),
            ToolErrorKind::Failed,
            "issue_key",
            "The issue ABC-9 does not exist, or the account of this server may not see it",
        ),
        (
            "get_sprints",
            json!({"board_id": 8}),
            ToolErrorKind::Invalid,
            "board_id",
            "Jira refuses the board 8: The board does not support sprints",
        ),
        (
            "get_sprints",
            json!({"board_id": 9}),
            ToolErrorKind::Failed,
            "board_id",
            "The board 9 does not exist, or the account of this server may not see it",
        ),
    ] {
        let error = call(&site.jira, method, arguments)
            .await
            .expect_err("refused");
        assert_eq!(
            (error.kind, error.field.as_str(), error.message.as_str()),
            (kind, field, words)
        );
    }
    // What is no key never becomes part of an address.
    site.double.asked();
    let wrong = json!({"issue_key": "ABC-1/../../myself"});
    assert!(call(&site.jira, "get_issue", wrong).await.is_err());
    assert!(site.double.asked().is_empty());
}

#[tokio::test]
async fn a_question_is_repeated_when_jira_asks_for_that_and_there_is_time() {
    let site = site(true).await;
    let later = |status| said(status, "busy").header("Retry-After", "0");
    site.double.next([later(429), later(503)]);
    site.call("get_issue", json!({"issue_key": "ABC-1"})).await;
    assert_eq!(site.double.asked().len(), 3);
    // Without a time: after a pause of ours.
    site.double.next([said(502, ""), said(503, "")]);
    site.call("get_issue", json!({"issue_key": "ABC-1"})).await;
    assert_eq!(site.double.asked().len(), 3);
    // Three times, and no more.
    site.double.next([later(429), later(429), later(429)]);
    let error = call(&site.jira, "list_projects", json!({}))
        .await
        .expect_err("refused");
    assert_eq!(
        (error.kind, site.double.asked().len()),
        (ToolErrorKind::Unavailable, 3)
    );
    // What is wrong stays wrong.
    site.double.next([said(500, "")]);
    assert!(call(&site.jira, "list_projects", json!({})).await.is_err());
    assert_eq!(site.double.asked().len(), 1);
}

#[tokio::test]
async fn a_wait_that_does_not_fit_is_told_instead() {
    let busy = said(429, "").header("Retry-After", "3600");
    let error = failure(true, vec![busy]).await;
    assert_eq!(
        (error.kind, error.retry_after, error.message.as_str()),
        (
            ToolErrorKind::Unavailable,
            Some(Duration::from_secs(3600)),
            "Jira is asked too often by this account; it may be asked again in 3600 seconds",
        )
    );
    let busy = said(503, "Down")
        .header("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
        .header("Retry-After", "Sun, 06 Nov 1994 09:49:37 GMT");
    let error = failure(false, vec![busy]).await;
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn an_answer_that_does_not_end_and_one_that_does_not_begin_are_given_up() {
    let double = Double::start(true).await;
    let mut impatient = connection(&double.url, true);
    impatient.request = Duration::from_millis(200);
    let impatient = jira(Some(impatient));
    for reply in [
        Reply::raw(200, "application/json", b"{\"issues\": [").hang(),
        Reply::raw(200, "application/json", b"").hang(),
    ] {
        double.next([reply]);
        let error = call(&impatient, "search_issues", json!({"jql": "project = ABC"})).await;
        let error = error.expect_err("refused");
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ToolErrorKind::Timeout, "Jira did not answer in time")
        );
    }
}

#[tokio::test]
async fn a_host_that_is_away_or_not_trusted_is_told_apart() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let away = jira(Some(connection(&url, true)));
    let error = call(&away, "list_projects", json!({}))
        .await
        .expect_err("refused");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            ToolErrorKind::Unavailable,
            "Jira cannot be reached: connection refused"
        )
    );
    // A server that knows no TLS.
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("https://{}", plain.local_addr().expect("an address"));
    let answered = tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.expect("a connection");
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .expect("sent");
        stream
    });
    let error = call(
        &jira(Some(connection(&url, true))),
        "list_projects",
        json!({}),
    )
    .await;
    answered.await.expect("no panic");
    let error = error.expect_err("refused");
    let words = "There is no trusted connection to Jira: ";
    assert!(
        error.message.starts_with(words) && error.kind == ToolErrorKind::Unavailable,
        "{error:?}"
    );
}

#[tokio::test]
async fn level_two_is_read_even_if_jira_refuses() {
    let site = site(true).await;
    let refused = said(401, "");
    site.double.next([refused.clone(), refused]);
    let core = site
        .call(LOAD_CORE, Value::Object(Default::default()))
        .await;
    assert_eq!(
        core.text,
        format!(
            "## Jira Skill Activated\n\n\
             - Site: {} (Jira Cloud)\n\
             - Status: configured, but not usable now. Jira does not accept the operator's token: it was refused or has expired.\n\
             - Tell the user that the operator has to renew tools.jira.token (and check tools.jira.user); another query will not help.\n\
             - Access: read only, and only what this account may see\n\n\
             ### Projects\n\nNot known: Jira does not accept the operator's token: it was refused or has expired.\n",
            site.double.url
        )
    );
}

#[tokio::test]
async fn a_token_that_expired_is_refused_by_the_double_as_by_jira() {
    let double = Double::start(false).await;
    let mut old = connection(&double.url, false);
    old.token = "another-token-than-the-double-knows".into();
    let error = call(&jira(Some(old)), "list_projects", json!({})).await;
    assert_eq!(error.expect_err("refused").kind, ToolErrorKind::Denied);
    assert_eq!(
        double.asked()[0].authorization,
        "Bearer another-token-than-the-double-knows"
    );
    assert_ne!(data::BEARER, "Bearer another-token-than-the-double-knows");
}
