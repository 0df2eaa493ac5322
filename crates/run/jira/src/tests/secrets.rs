//! The token goes to Jira, and nowhere else.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::double::{Double, Reply};
use super::{call, connection, data, jira, site};

/// What was logged.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The secrets, as a text may hold them.
fn secrets() -> [&'static str; 2] {
    [data::TOKEN, data::BASIC.trim_start_matches("Basic ")]
}

#[tokio::test]
async fn the_token_is_in_no_answer_no_error_no_debug_and_no_log() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut texts = Vec::new();
    for is_cloud in [true, false] {
        let site = site(is_cloud).await;
        // Data Center is never shown the form of Cloud.
        let quoted = secrets()[..=usize::from(is_cloud)].join(" and ");
        let quoting = |status| {
            Reply::new(status, &json!({"errorMessages": [&quoted], "errors": {"jql": &quoted}, "message": &quoted}))
                .header("Location", &format!("/login?token={quoted}"))
                .header("X-Echo", &quoted)
        };
        for status in [302, 400, 401, 403, 404, 500] {
            site.double.next([quoting(status)]);
            let error = call(&site.jira, "search_issues", json!({"jql": "project = ABC"})).await;
            let error = error.expect_err("refused");
            texts.push(format!("{error} {error:?}"));
        }
        // An issue that somebody wrote the token into.
        let mut issue = data::issue(is_cloud);
        issue["fields"]["summary"] = quoted.clone().into();
        site.double.next([Reply::new(200, &issue)]);
        let output = call(&site.jira, "get_issue", json!({"issue_key": "ABC-1"})).await;
        let output = output.expect("an answer");
        let title = if is_cloud {
            "# ABC-1 (removed) and (removed)"
        } else {
            "# ABC-1 (removed)"
        };
        assert_eq!(output.text.lines().next(), Some(title));
        texts.push(format!("{output:?}"));
        // The same in letters that only JSON knows.
        let escape = |secret: &str| -> String {
            let letters = secret.chars().map(|c| format!("\\u{:04x}", u32::from(c)));
            letters.collect()
        };
        let hidden = secrets().iter().fold(issue.to_string(), |json, secret| {
            json.replace(secret, &escape(secret))
        });
        let reply = Reply::raw(200, "application/json", hidden.as_bytes());
        site.double.next([reply]);
        let again = call(&site.jira, "get_issue", json!({"issue_key": "ABC-1"})).await;
        assert_eq!(again, Ok(output));
        texts.push(format!("{:?}", site.jira));
        texts.push(format!("{:?}", connection(&site.double.url, is_cloud)));
    }
    let double = Double::start(true).await;
    let closed = jira(Some(connection(
        &double.url.replace("http:", "https:"),
        true,
    )));
    let error = call(&closed, "list_projects", json!({}))
        .await
        .expect_err("refused");
    texts.push(format!("{error:?}"));
    let logged = || String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    // Whether anybody listens is remembered for each place in the code, by whichever test
    // came there first: on a busy machine one without a subscriber, while this was set.
    let site = site(true).await;
    for _ in 0..50 {
        if logged().contains("Jira did not answer the question") {
            break;
        }
        tracing::callsite::rebuild_interest_cache();
        let quoted = secrets().join(" and ");
        site.double
            .next([Reply::new(500, &json!({"message": quoted}))]);
        let error = call(&site.jira, "search_issues", json!({"jql": "project = ABC"})).await;
        texts.push(format!("{:?}", error.expect_err("refused")));
    }
    let logged = logged();
    assert!(
        logged.contains("Jira did not answer the question"),
        "{logged}"
    );
    texts.push(logged);
    for text in texts {
        for secret in secrets() {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
