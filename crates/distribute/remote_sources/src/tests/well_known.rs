//! Indexes at well-known places.

use model::Digest;
use serde_json::json;

use super::double::Asked;
use super::*;

const INDEX: &str = "/.well-known/agent-skills/index.json";

fn site(asked: &Asked) -> Reply {
    let archive = tar_gz(&[("SKILL.md", SKILL.as_bytes()), ("a.md", b"a")]);
    match asked.path.as_str() {
        INDEX if asked.header("if-none-match") == Some("\"one\"") => Reply::new(304, ""),
        INDEX => Reply::json(&json!({"skills": [
            {"name": "one", "type": "skill-md", "description": "x", "url": "one/SKILL.md", "digest": Digest::of(SKILL.as_bytes()).to_string()},
            {"name": "two", "type": "archive", "description": "x", "url": "/two.tar.gz", "digest": Digest::of(&archive).to_string()},
            {"name": "three", "type": "skill-md", "url": "/three", "digest": Digest::of(b"other").to_string()},
            {"name": "one", "type": "skill-md", "url": "/x", "digest": Digest::of(b"").to_string()},
            {"name": "no-digest", "type": "skill-md", "url": "/x"},
            {"name": "odd", "type": "song", "url": "/x", "digest": Digest::of(b"").to_string()},
            {"name": "file", "type": "skill-md", "url": "file:///etc/passwd", "digest": Digest::of(b"").to_string()},
        ]})).header("etag", "\"one\""),
        "/.well-known/agent-skills/one/SKILL.md" => Reply::fine(SKILL),
        "/two.tar.gz" => Reply::fine(archive),
        "/three" => Reply::fine("changed"),
        _ => Reply::missing(),
    }
}

#[tokio::test]
async fn an_index_of_0_2_is_listed_read_and_known_by_its_tag() {
    let (double, (_folder, work)) = (Double::start(site).await, work());
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["one", "three", "two"]);
    let skipped: Vec<_> = found
        .skipped
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(skipped, ["one", "no-digest", "odd", "file"]);
    assert!(is_unchanged(&place, &found.mark, &work).await);

    let one = place.read(&found.items[0], &work).await.expect("files");
    assert_eq!(texts(&one), [("SKILL.md", SKILL.to_owned())]);
    let two = place.read(&found.items[2], &work).await.expect("files");
    assert_eq!(
        texts(&two),
        [("SKILL.md", SKILL.to_owned()), ("a.md", "a".to_owned())]
    );
    let error = place
        .read(&found.items[1], &work)
        .await
        .expect_err("another digest");
    assert!(
        error
            .to_string()
            .contains("is not what the index has the digest of"),
        "{error}"
    );
}

#[tokio::test]
async fn an_index_without_a_tag_is_known_by_what_it_says() {
    let (double, (_folder, work)) = (
        Double::start(|asked| site(asked).without("etag")).await,
        work(),
    );
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["one", "three", "two"]);
    double.asked();
    assert!(is_unchanged(&place, &found.mark, &work).await);
    let asked = double.asked();
    assert_eq!((asked.len(), asked[0].header("if-none-match")), (1, None));

    // A tag that is another one says nothing; what the index says does.
    double.now(|asked| {
        let reply = site(asked).without("etag");
        reply.header("etag", "\"two\"")
    });
    assert!(is_unchanged(&place, &found.mark, &work).await);
    let digest = Digest::of(b"changed").to_string();
    let changed = json!({"skills": [
        {"name": "one", "type": "skill-md", "url": "one/SKILL.md", "digest": digest},
    ]});
    double.now(move |_| Reply::json(&changed));
    let again = listing(&place, Some(&found.mark), &work).await;
    let items = again.items.iter();
    let items: Vec<_> = items
        .map(|item| (item.path.as_str(), item.fingerprint.as_str()))
        .collect();
    assert_eq!(
        (items, again.skipped),
        (vec![("one", digest.as_str())], vec![])
    );
    assert_ne!(again.mark, found.mark);
}

fn old(file: &'static str) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| {
        let tag = format!("\"{}\"", Digest::of(file.as_bytes()).hex());
        match asked.path.as_str() {
            "/.well-known/skills/index.json" => Reply::json(&json!({"skills": [
                {"name": "one", "description": "x", "files": ["SKILL.md", "a b.md"]},
                {"name": "..", "files": ["SKILL.md"]},
                {"name": "bad", "files": ["../../x"]},
            ]})),
            "/.well-known/skills/one/SKILL.md" => Reply::fine(SKILL),
            "/.well-known/skills/one/a%20b.md" if asked.header("if-none-match") == Some(&tag) => {
                Reply::new(304, "")
            }
            "/.well-known/skills/one/a%20b.md" => Reply::fine(file).header("etag", tag),
            _ => Reply::missing(),
        }
    }
}

#[tokio::test]
async fn an_index_of_0_1_is_read_where_there_is_no_other_and_its_files_are_looked_at() {
    let (double, (_folder, work)) = (Double::start(old("a")).await, work());
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!((paths(&found), found.skipped.len()), (vec!["one"], 2));
    assert!(is_unchanged(&place, &found.mark, &work).await);
    let read = place.read(&found.items[0], &work).await.expect("files");
    assert_eq!(
        texts(&read),
        [("SKILL.md", SKILL.to_owned()), ("a b.md", "a".to_owned())]
    );
    double.now(old("other"));
    let error = place
        .read(&found.items[0], &work)
        .await
        .expect_err("changed");
    assert!(error.is_transient(), "{error}");
    let again = listing(&place, Some(&found.mark), &work).await;
    assert_ne!(again.items[0].fingerprint, found.items[0].fingerprint);
}

#[tokio::test]
async fn an_index_of_100_000_skills_is_refused_as_a_whole() {
    let digest = Digest::of(b"").to_string();
    let entry = |at: usize| json!({"name": format!("s{at}"), "type": "skill-md", "url": "x", "digest": digest});
    let skills: Vec<_> = (0..100_000).map(entry).collect();
    let index = json!({ "skills": skills });
    let double = Double::start(move |_| Reply::json(&index)).await;
    let (_folder, mut work) = work();
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    let error = place.look(None, &work).await.expect_err("too many");
    assert!(
        matches!(&error, Error::TooLarge(why) if why.contains("100000")),
        "{error}"
    );
    work.limits.skills = 100_000;
    assert_eq!(listing(&place, None, &work).await.items.len(), 100_000);
}

#[tokio::test]
async fn a_skill_at_a_private_address_is_not_asked_for_and_no_token_goes_elsewhere() {
    let other = Double::start(|_| Reply::fine(SKILL)).await;
    let url = format!("{}/SKILL.md", other.url);
    let digest = Digest::of(SKILL.as_bytes()).to_string();
    let index = json!({"skills": [
        {"name": "a", "type": "skill-md", "url": "http://10.0.0.1/", "digest": digest},
        {"name": "b", "type": "skill-md", "url": url, "digest": digest},
    ]});
    let double = Double::start(move |_| Reply::json(&index)).await;
    let (_folder, work) = work();
    let token = secrecy::SecretString::from("secret");
    let place = WellKnown::new(&double.url, Some(&token), loopback()).expect("a place");
    let found = listing(&place, None, &work).await;
    let error = place
        .read(&found.items[0], &work)
        .await
        .expect_err("refused");
    assert!(matches!(error, Error::Address { .. }), "{error}");
    place.read(&found.items[1], &work).await.expect("files");
    assert_eq!(other.asked()[0].header("authorization"), None);
}

#[tokio::test]
async fn an_index_of_0_1_with_more_files_than_a_limit_has_requests_is_listed_in_the_end() {
    let files = |asked: &Asked| match asked.path.as_str() {
        "/.well-known/skills/index.json" => {
            let entry = |at: usize| json!({"name": format!("s{at}"), "files": ["SKILL.md"]});
            Reply::json(&json!({"skills": (0..10).map(entry).collect::<Vec<_>>()}))
        }
        path if path.ends_with("/SKILL.md") => Reply::fine(SKILL),
        _ => Reply::missing(),
    };
    let (double, (_folder, work)) = (Double::start(files).await, work());
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    let whole = listing(&place, None, &work).await;
    double.asked();
    let mut looks = 0;
    let found = loop {
        let left = std::sync::Mutex::new(5);
        double.now(move |asked| {
            let mut left = left.lock().expect("a lock");
            if *left == 0 {
                return Reply::new(503, "").header("retry-after", 60_u64);
            }
            *left -= 1;
            files(asked)
        });
        looks += 1;
        match place.look(None, &work).await {
            Ok(Look::Listing(found)) => break found,
            Err(Error::RateLimited { .. }) if looks < 5 => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((found.items, found.skipped), (whole.items, whole.skipped));
    let read = double.paths();
    let again = read.iter().filter(|path| path.ends_with("s0/SKILL.md"));
    // That there is no index of 0.2 is asked each time.
    assert_eq!((again.count(), looks), (1, 3));
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_asked_for_again() {
    let (double, (_folder, work)) = (Double::start(|_| Reply::fine("<html>")).await, work());
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    let error = place.look(None, &work).await.expect_err("no JSON");
    assert!(error.is_transient(), "{error}");
    double.now(site);
    assert_eq!(
        paths(&listing(&place, None, &work).await),
        ["one", "three", "two"]
    );
}
