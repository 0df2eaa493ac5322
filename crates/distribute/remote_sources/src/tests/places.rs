//! Registries that speak `ClawHub`'s protocol.

use serde_json::json;

use super::double::Asked;
use super::*;

fn registry(asked: &Asked) -> Reply {
    let item = |slug: &str, version: &str| json!({"slug": slug, "displayName": slug, "tags": {"latest": version}, "updatedAt": 5, "latestVersion": {"version": version}});
    match asked.path.as_str() {
        "/.well-known/clawhub.json" => Reply::json(&json!({"apiBase": "/hub"})),
        "/hub/api/v1/skills?limit=200" => {
            Reply::json(&json!({"items": [item("refunds", "1.2.0")], "nextCursor": "two"}))
        }
        "/hub/api/v1/skills?limit=200&cursor=two" => Reply::json(
            &json!({"items": [item("b", "2.0.0"), item("", "1"), item("c", "")], "nextCursor": null}),
        ),
        "/hub/api/v1/skills/refunds" => Reply::json(
            &json!({"skill": item("refunds", "1.2.0"), "latestVersion": {"version": "1.3.0"}, "owner": {"handle": "acme"}}),
        ),
        "/hub/api/v1/download?slug=refunds&version=1.2.0" => {
            Reply::fine(zip(&[("SKILL.md", SKILL.as_bytes())]))
        }
        _ => Reply::missing(),
    }
}

#[tokio::test]
async fn a_registry_is_listed_page_by_page_and_gives_zips() {
    let (double, (_folder, work)) = (Double::start(registry).await, work());
    let place = ClawHub::new(&double.url, Vec::new(), None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(
        (paths(&found), found.skipped.len()),
        (vec!["b", "refunds"], 2)
    );
    assert_eq!(found.items[1].fingerprint, "1.2.0 5");
    assert!(is_unchanged(&place, &found.mark, &work).await);
    let read = place.read(&found.items[1], &work).await.expect("files");
    assert_eq!(
        (texts(&read), read.version.as_deref()),
        (vec![("SKILL.md", SKILL.to_owned())], Some("1.2.0"))
    );
}

#[tokio::test]
async fn named_slugs_are_asked_for_one_by_one() {
    let (double, (_folder, work)) = (Double::start(registry).await, work());
    let slugs = vec!["refunds".to_owned(), "gone".to_owned()];
    let place = ClawHub::new(&double.url, slugs, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(found.items[0].fingerprint, "1.3.0 5");
    assert_eq!(found.items[0].author.as_deref(), Some("acme"));
    assert_eq!(
        found.skipped,
        [("gone".to_owned(), "there is no such skill".to_owned())]
    );
}

#[tokio::test]
async fn a_list_of_one_page_is_known_by_its_tag() {
    let page = |asked: &Asked| match asked.path.as_str() {
        "/api/v1/skills?limit=200" if asked.header("if-none-match") == Some("\"t\"") => {
            Reply::new(304, "")
        }
        "/api/v1/skills?limit=200" => Reply::json(&json!({"items": []})).header("etag", "\"t\""),
        _ => Reply::missing(),
    };
    let (double, (_folder, work)) = (Double::start(page).await, work());
    let place = ClawHub::new(&double.url, Vec::new(), None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert!(is_unchanged(&place, &found.mark, &work).await);
}

#[tokio::test]
async fn a_registry_without_a_list_or_with_one_that_has_no_end_is_refused() {
    let (double, (_folder, work)) = (Double::start(|_| Reply::missing()).await, work());
    let place = ClawHub::new(&double.url, Vec::new(), None, loopback()).expect("a place");
    let error = place.look(None, &work).await.expect_err("refused");
    assert!(
        matches!(&error, Error::Refused(why) if why.contains("name those that are wanted")),
        "{error}"
    );
    double.now(|asked| match asked.path.as_str() {
        "/.well-known/clawhub.json" => Reply::missing(),
        _ => Reply::json(&json!({"items": [], "nextCursor": "same"})),
    });
    let error = place.look(None, &work).await.expect_err("refused");
    assert!(error.to_string().contains("round in circles"), "{error}");
}
