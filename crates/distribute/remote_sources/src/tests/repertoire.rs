//! Other servers of this kind.

use model::{Digest, FilePath, bundle_digest};
use serde_json::json;

use super::double::Asked;
use super::*;

fn digest() -> String {
    bundle_digest([(&FilePath::skill_md(), Digest::of(SKILL.as_bytes()))]).to_string()
}

/// A server whose log stands at `log`, with `event` since the token before.
fn server(
    log: &'static str,
    event: Option<&'static str>,
    other: &'static str,
) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| {
        let path = asked.path.split('?').next().expect("a path");
        match path {
            "/api/v1/events" => {
                let mut text = format!("id: {log}\ndata: {}\n\n", json!({"resume_token": "start"}));
                if let Some(id) = event {
                    let event =
                        json!({"event": {"skill_id": id, "type": "x"}, "resume_token": log});
                    text.extend([
                        "id: ",
                        log,
                        "\ndata: ",
                        &event.to_string(),
                        "\n\n: keep-alive\n\n",
                    ]);
                }
                Reply::fine(text)
            }
            "/api/v1/skills" if asked.path.contains("page_token=two") => Reply::json(
                &json!({"skills": [{"id": "local/acme/b"}], "next_page_token": "", "resume_token": "later"}),
            ),
            "/api/v1/skills" => Reply::json(
                &json!({"skills": [{"id": "github/acme/refunds"}], "next_page_token": "two", "resume_token": log}),
            ),
            "/api/v1/skills/github%2Facme%2Frefunds" => Reply::json(
                &json!({"skill": {"id": "github/acme/refunds", "version_number": 3, "digest": digest(), "current_version": "1.0.2"}}),
            ),
            "/api/v1/skills/local%2Facme%2Fb" => Reply::json(
                &json!({"skill": {"version_number": 1, "digest": Digest::of(other.as_bytes()).to_string(), "current_version": "1.0.0"}}),
            ),
            "/api/v1/skills/github%2Facme%2Frefunds/export"
            | "/api/v1/skills/local%2Facme%2Fb/export" => {
                Reply::fine(tar_gz(&[("SKILL.md", SKILL.as_bytes())]))
            }
            _ => Reply::missing(),
        }
    }
}

#[tokio::test]
async fn another_server_is_listed_read_and_checked() {
    let (double, (_folder, work)) = (Double::start(server("t1", None, "b")).await, work());
    let place = Repertoire::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["github/acme/refunds", "local/acme/b"]);
    assert_eq!(
        (found.mark.as_str(), found.items[0].author.as_deref()),
        ("t1", Some("acme"))
    );
    assert_eq!(found.items[0].fingerprint, digest());
    let read = place.read(&found.items[0], &work).await.expect("files");
    assert_eq!(
        (texts(&read), read.version.as_deref()),
        (vec![("SKILL.md", SKILL.to_owned())], Some("1.0.2"))
    );
    let error = place
        .read(&found.items[1], &work)
        .await
        .expect_err("another digest");
    assert!(
        error.to_string().contains("does not have the digest"),
        "{error}"
    );
}

#[tokio::test]
async fn events_say_that_nothing_changed_or_which_skills_to_ask_for() {
    let (double, (_folder, work)) = (Double::start(server("t1", None, "b")).await, work());
    let place = Repertoire::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    double.asked();
    assert!(is_unchanged(&place, &found.mark, &work).await);
    assert_eq!(
        double.paths(),
        ["/api/v1/events?resume_token=t1&max_events=1000&max_wait_seconds=1"]
    );

    // Something more happens after the events were told: the list stands later than they do.
    double.now(|asked| {
        let is_stream = asked.path.starts_with("/api/v1/events");
        let log = if is_stream { "t2" } else { "t3" };
        server(log, Some("local/acme/b"), "changed")(asked)
    });
    let again = listing(&place, Some(&found.mark), &work).await;
    assert_eq!(again.mark, "t2");
    assert_ne!(again.items[1].fingerprint, found.items[1].fingerprint);
    assert_eq!(again.items[0], found.items[0]);
    let asked = double.paths();
    assert!(
        !asked.iter().any(|path| path.contains("refunds")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_token_that_the_log_no_longer_reaches_is_no_reason_to_stop() {
    let (double, (_folder, work)) = (Double::start(server("t1", None, "b")).await, work());
    let place = Repertoire::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    double.now(|asked| {
        let is_stream = asked.path.starts_with("/api/v1/events");
        if is_stream {
            Reply::new(400, "{}")
        } else {
            server("t9", None, "b")(asked)
        }
    });
    double.asked();
    let again = listing(&place, Some(&found.mark), &work).await;
    assert_eq!((again.mark.as_str(), again.items), ("t9", found.items));
    assert!(double.paths().iter().any(|path| path.contains("refunds")));
}

#[tokio::test]
async fn a_server_that_is_no_repertoire_is_refused() {
    let (double, (_folder, work)) = (Double::start(|_| Reply::json(&json!({}))).await, work());
    let place = Repertoire::new(&double.url, None, loopback()).expect("a place");
    let error = place.look(None, &work).await.expect_err("refused");
    assert!(
        error.to_string().contains("it is not a Repertoire server"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_without_a_place_in_the_log_does_not_say_that_nothing_changed() {
    let (double, (_folder, work)) = (Double::start(server("t1", None, "b")).await, work());
    let place = Repertoire::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    for nothing in [
        "",
        ": keep-alive\n\n",
        "<html>Sign in</html>",
        "{}",
        "data: {}\n\n",
        "data: 7\n\n",
        "data: {\"resume_token\": \"\"}\n\n",
        "id: t1\n\n",
    ] {
        double.now(move |asked| match asked.path.as_str() {
            path if path.starts_with("/api/v1/events") => Reply::fine(nothing),
            _ => server("t2", None, "changed")(asked),
        });
        let again = listing(&place, Some(&found.mark), &work).await;
        assert_eq!(again.mark, "t2", "{nothing}");
        assert_ne!(again.items[1].fingerprint, found.items[1].fingerprint);
    }
}

#[tokio::test]
async fn what_happens_while_a_look_is_interrupted_is_for_the_look_after_it() {
    let (double, (_folder, work)) = (Double::start(server("t1", None, "b")).await, work());
    let place = Repertoire::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    // One skill changed, and the other one cannot be asked for: nothing is known of both.
    std::fs::remove_file(work.folder.join("repertoire-skills.json")).expect("a file");
    double.now(|asked| match asked.path.as_str() {
        path if path.contains("refunds") => Reply::new(429, "").header("retry-after", 60_u64),
        _ => server("t2", Some("local/acme/b"), "second")(asked),
    });
    let error = place.look(Some(&found.mark), &work).await;
    assert!(matches!(error, Err(Error::RateLimited { .. })), "{error:?}");
    double.asked();

    // It changes once more. What goes on is as of the first events, and so is its mark.
    double.now(server("t3", Some("local/acme/b"), "third"));
    let second = listing(&place, Some(&found.mark), &work).await;
    let print = |text: &str| Digest::of(text.as_bytes()).to_string();
    assert_eq!(
        (second.mark.as_str(), &second.items[1].fingerprint),
        ("t2", &print("second"))
    );
    let asked = double.paths();
    assert!(
        asked.len() == 1 && asked[0].contains("refunds"),
        "{asked:?}"
    );
    let third = listing(&place, Some(&second.mark), &work).await;
    assert_eq!(
        (third.mark.as_str(), &third.items[1].fingerprint),
        ("t3", &print("third"))
    );
}
