//! Repositories of GitHub, and where they stand.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use super::double::Asked;
use super::*;

pub(super) fn id(letter: char) -> String {
    String::from(letter).repeat(40)
}

fn repository(name: &str, id: u64, owner: u64) -> Json {
    json!({
        "id": id, "full_name": name, "html_url": format!("https://github.com/{name}"),
        "owner": {"id": owner, "login": name.split('/').next()},
        "archived": name.contains("archived"), "fork": name.contains("fork"),
        "default_branch": "main", "stargazers_count": 7, "forks_count": 2, "open_issues_count": 1,
        "license": {"spdx_id": "MIT"}, "pushed_at": "2026-11-01T00:00:00Z",
    })
}

pub(super) fn entry(path: &str, mode: &str, kind: &str, sha: char) -> Json {
    json!({"path": path, "mode": mode, "type": kind, "sha": id(sha), "size": SKILL.len()})
}

/// One repository at commit `c`, with a skill in a folder.
pub(super) fn hub(asked: &Asked) -> Reply {
    let path = asked.path.split('?').next().expect("a path");
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let reply = match parts.as_slice() {
        ["repos", owner, name] => Reply::json(&repository(&format!("{owner}/{name}"), 1, 10)),
        ["repos", _, _, "branches", "main"] if asked.header("if-none-match") == Some("\"c\"") => {
            Reply::new(304, "")
        }
        ["repos", _, _, "branches", "main"] => {
            let commit = json!({"sha": id('c'), "commit": {"tree": {"sha": id('a')}}});
            Reply::json(&json!({"commit": commit})).header("etag", "\"c\"")
        }
        ["repos", _, _, "git", "trees", tree] if *tree == id('a') => {
            Reply::json(&json!({"truncated": false, "tree": [
                entry("README.md", "100644", "blob", '1'),
                entry("skills", "040000", "tree", 'd'),
                entry("skills/refunds", "040000", "tree", 'e'),
                entry("skills/refunds/SKILL.md", "100644", "blob", 'f'),
                entry("skills/refunds/tests", "040000", "tree", '9'),
                entry("skills/linked", "040000", "tree", '8'),
                entry("skills/linked/SKILL.md", "120000", "blob", '7'),
            ]}))
        }
        ["repos", _, _, "git", "trees", tree] if *tree == id('e') => Reply::json(&json!({"tree": [
            entry("SKILL.md", "100644", "blob", 'f'),
            entry("link", "120000", "blob", '7'),
            entry("module", "160000", "commit", '6'),
        ]})),
        ["repos", _, _, "git", "blobs", _] => {
            let content = STANDARD.encode(SKILL);
            let (first, rest) = content.split_at(20);
            Reply::json(&json!({"encoding": "base64", "content": format!("{first}\n{rest}\n")}))
        }
        _ => Reply::missing(),
    };
    reply
        .header("x-ratelimit-limit", 60_u64)
        .header("x-ratelimit-remaining", 41_u64)
        .header("x-ratelimit-reset", 1_800_000_000_u64)
}

fn place(double: &Double, change: impl FnOnce(&mut GitHubOptions)) -> GitHub {
    let mut options = GitHubOptions {
        api: double.url.clone(),
        ..GitHubOptions::default()
    };
    change(&mut options);
    GitHub::new(options, None, loopback()).expect("a place")
}

pub(super) fn named(double: &Double) -> GitHub {
    place(double, |options| {
        options.repositories = vec!["acme/skills".to_owned()];
    })
}

#[tokio::test]
async fn a_repository_lists_its_skills_with_what_it_has_to_show_and_gives_their_files() {
    let (double, (_folder, work)) = (Double::start(hub).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["acme/skills/skills/refunds"]);
    let item = &found.items[0];
    assert_eq!(
        (item.fingerprint.clone(), item.author.as_deref()),
        (id('e'), Some("acme"))
    );
    let facts = item.facts.clone().expect("facts");
    assert_eq!(
        (
            facts.stars,
            facts.forks,
            facts.open_issues,
            facts.license.as_str()
        ),
        (7, 2, 1, "MIT")
    );
    assert_eq!((facts.has_tests, facts.has_examples), (true, false));
    assert_eq!(
        found.skipped,
        [(
            "acme/skills/skills/linked/SKILL.md".to_owned(),
            "it is a link, or no file".to_owned()
        )]
    );
    assert_eq!(found.revision, id('c'));
    assert_eq!(
        found.rate_limit.map(|limit| (limit.remaining, limit.limit)),
        Some((41, 60))
    );
    let read = place.read(item, &work).await.expect("files");
    assert_eq!(texts(&read), [("SKILL.md", SKILL.to_owned())]);
    let left_out: Vec<_> = read
        .problems
        .iter()
        .map(|problem| problem.file.as_str())
        .collect();
    assert_eq!(left_out, ["link", "module"]);
}

#[tokio::test]
async fn a_commit_that_was_listed_is_not_listed_again_unless_what_was_kept_is_gone() {
    let (double, (folder, work)) = (Double::start(hub).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    double.asked();
    assert!(is_unchanged(&place, &found.mark, &work).await);
    assert_eq!(
        double.paths(),
        ["/repos/acme/skills", "/repos/acme/skills/branches/main"]
    );
    // Without the mark the listing is whole, and still needs no tree.
    let again = listing(&place, None, &work).await;
    assert_eq!(
        (again.items, double.paths().len()),
        (found.items.clone(), 2)
    );
    std::fs::remove_file(folder.path().join("github-listed.json")).expect("a file");
    assert!(is_unchanged(&place, &found.mark, &work).await);
    assert_eq!(double.paths().len(), 3);
}

#[tokio::test]
async fn a_tree_that_is_cut_off_is_walked_folder_by_folder() {
    let cut = |asked: &Asked| {
        if asked.path.contains("/git/trees/") && asked.path.ends_with("?recursive=1") {
            return Reply::json(&json!({"truncated": true, "tree": []}));
        }
        let tree = asked
            .path
            .rsplit('/')
            .next()
            .and_then(|sha| sha.chars().next());
        match tree.filter(|_| asked.path.contains("/git/trees/")) {
            Some('a') => Reply::json(&json!({"tree": [entry("skills", "040000", "tree", 'd')]})),
            Some('d') => Reply::json(&json!({"tree": [entry("refunds", "040000", "tree", 'e')]})),
            _ => hub(asked),
        }
    };
    let (double, (_folder, work)) = (Double::start(cut).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["acme/skills/skills/refunds"]);
    assert_eq!(found.items[0].fingerprint, id('e'));
}

#[tokio::test]
async fn the_repositories_of_an_organisation_come_page_by_page_without_forks_and_archives() {
    let pages = |asked: &Asked| match asked.path.as_str() {
        "/orgs/acme/repos?per_page=100&sort=full_name" => {
            let page = json!([
                repository("acme/one", 1, 10),
                repository("acme/a-fork", 2, 10)
            ]);
            let next = "</orgs/acme/repos?page=2>; rel=\"next\", </x>; rel=\"last\"";
            Reply::json(&page).header("link", next)
        }
        "/orgs/acme/repos?page=2" => Reply::json(&json!([
            repository("acme/two", 3, 10),
            repository("acme/archived", 4, 10)
        ])),
        _ => hub(asked),
    };
    let (double, (_folder, work)) = (Double::start(pages).await, work());
    let place = place(&double, |options| {
        options.owners = vec!["acme".to_owned()];
    });
    let found = listing(&place, None, &work).await;
    assert_eq!(
        paths(&found),
        ["acme/one/skills/refunds", "acme/two/skills/refunds"]
    );
}

#[tokio::test]
async fn a_topic_that_a_search_cannot_tell_whole_is_refused() {
    for (count, incomplete, is_transient) in [(1001, false, false), (1, true, true)] {
        let search = move |asked: &Asked| {
            assert!(
                asked
                    .path
                    .starts_with("/search/repositories?q=topic:agent-skills"),
                "{}",
                asked.path
            );
            let items = [repository("acme/one", 1, 10)];
            Reply::json(
                &json!({"total_count": count, "incomplete_results": incomplete, "items": items}),
            )
        };
        let (double, (_folder, work)) = (Double::start(search).await, work());
        let place = place(&double, |options| {
            options.topics = vec!["agent-skills".to_owned()];
        });
        let error = place.look(None, &work).await.expect_err("not whole");
        assert_eq!(error.is_transient(), is_transient, "{error}");
    }
}

#[tokio::test]
async fn another_repository_or_owner_under_the_same_name_is_a_break_in_history() {
    for (id, owner, told) in [
        (2, 10, "another repository is called acme/skills now"),
        (1, 11, "acme/skills belongs to another owner now, acme"),
    ] {
        let (double, (folder, work)) = (Double::start(hub).await, work());
        let place = named(&double);
        let found = listing(&place, None, &work).await;
        assert_eq!(found.break_in_history, None);
        double.now(move |asked| match asked.path.as_str() {
            "/repos/acme/skills" => Reply::json(&repository("acme/skills", id, owner)),
            _ => hub(asked),
        });
        std::fs::remove_file(folder.path().join("github-listed.json")).expect("a file");
        let again = listing(&place, Some(&found.mark), &work).await;
        assert_eq!(again.break_in_history.as_deref(), Some(told));
    }
}

#[tokio::test]
async fn a_repository_that_was_renamed_keeps_the_paths_of_its_skills() {
    let (double, (_folder, work)) = (Double::start(hub).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    double.now(|asked| match asked.path.as_str() {
        "/repos/acme/skills" => Reply::new(301, "").header("location", "/repositories/1"),
        "/repositories/1" => Reply::json(&repository("acme/new-name", 1, 10)),
        _ => hub(asked),
    });
    let again = listing(&place, Some(&found.mark), &work).await;
    assert_eq!(
        (paths(&again), again.break_in_history.clone()),
        (paths(&found), None)
    );
    place.read(&again.items[0], &work).await.expect("files");
}

#[tokio::test]
async fn both_limits_of_github_say_when_to_come_back() {
    let date = "Wed, 25 Nov 2026 12:00:00 GMT";
    let primary = Reply::new(403, "")
        .header("date", date)
        .header("x-ratelimit-limit", 60_u64)
        .header("x-ratelimit-remaining", 0_u64)
        .header("x-ratelimit-reset", 1_795_608_600_u64);
    let secondary = Reply::new(403, "").header("retry-after", 30_u64);
    let plain = Reply::new(429, "");
    for (reply, seconds) in [(primary, 600), (secondary, 30), (plain, 60)] {
        let double = Double::start(move |_| reply.clone()).await;
        let (_folder, work) = work();
        let error = named(&double).look(None, &work).await.expect_err("a limit");
        assert!(
            matches!(&error, Error::RateLimited { after, .. } if after.as_secs() == seconds),
            "{error:?}"
        );
    }
}

#[test]
fn options_that_name_nothing_or_lead_elsewhere_are_refused() {
    let wrong = |change: fn(&mut GitHubOptions)| {
        let mut options = GitHubOptions::default();
        change(&mut options);
        let made = GitHub::new(options, None, Egress::public());
        assert!(matches!(made, Err(Error::Invalid(_))), "{made:?}");
    };
    wrong(|_| {});
    wrong(|options| options.repositories = vec!["acme".to_owned()]);
    wrong(|options| options.repositories = vec!["acme/../user".to_owned()]);
    wrong(|options| options.owners = vec!["a/b?c".to_owned()]);
    wrong(|options| {
        options.repositories = vec!["a/b".to_owned()];
        options.branch = Some("../x".to_owned());
    });
}

/// An organisation with more repositories than a mark has room for; those of `stolen` belong to
/// another owner.
fn crowd(stolen: bool) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |_| {
        let one = |at: u64| {
            let name = format!("acme/{}{at}", "x".repeat(90));
            let mut one = repository(&name, at, if stolen { 11 } else { 10 });
            one["default_branch"] = Json::Null;
            one
        };
        Reply::json(&(0..700).map(one).collect())
    }
}

#[tokio::test]
async fn a_break_in_history_is_told_until_its_listing_was_taken_however_many_there_are() {
    let (double, (folder, work)) = (Double::start(crowd(false)).await, work());
    let place = place(&double, |options| options.owners = vec!["acme".to_owned()]);
    let found = listing(&place, None, &work).await;
    assert_eq!(
        (found.skipped.len(), found.break_in_history.clone()),
        (700, None)
    );
    assert!(found.mark.len() < 1024);
    double.now(crowd(true));
    // Nobody takes any of these listings, so the mark stays, and what it stands for.
    for mark in [Some(&found.mark), None, Some(&found.mark), None] {
        let again = listing(&place, mark.map(String::as_str), &work).await;
        let is_told = again.break_in_history.is_some();
        assert_eq!(is_told, mark.is_some(), "{:?}", again.break_in_history);
    }
    let taken = listing(&place, Some(&found.mark), &work).await;
    assert!(is_unchanged(&place, &taken.mark, &work).await);

    // Nothing in the folder matters: without it nobody knows, and that is told.
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        std::fs::remove_file(entry.expect("a file").path()).expect("removed");
    }
    let unknown = listing(&place, Some(&taken.mark), &work).await;
    let why = "the owner of its repositories is no longer known";
    assert_eq!(unknown.break_in_history.as_deref(), Some(why));
    assert_eq!(unknown.mark, taken.mark);
}

#[tokio::test]
async fn a_look_that_a_limit_ends_goes_on_where_it_ended() {
    let names: Vec<_> = (0..9).map(|at| format!("acme/r{at}")).collect();
    let double = Double::start(|_| Reply::missing()).await;
    let (_folder, work) = work();
    let place = place(&double, |options| options.repositories.clone_from(&names));
    // Five requests an hour: 9 repositories, 9 branches and 9 trees are 27 requests.
    let mut asked = Vec::new();
    let found = loop {
        let left = std::sync::atomic::AtomicUsize::new(5);
        double.now(move |asked| {
            let spent = left.fetch_update(
                std::sync::atomic::Ordering::SeqCst,
                std::sync::atomic::Ordering::SeqCst,
                |left| left.checked_sub(1),
            );
            match spent {
                Ok(_) => hub(asked),
                Err(_) => Reply::new(429, "").header("retry-after", 3600_u64),
            }
        });
        let look = place.look(None, &work).await;
        let here = double.paths();
        assert!(here.len() <= 6, "{here:?}");
        asked.extend(here.into_iter().take(5));
        assert!(asked.len() <= 27, "{asked:?}");
        match look {
            Ok(Look::Listing(found)) => break found,
            Err(Error::RateLimited { .. }) => {}
            other => panic!("{other:?}"),
        }
    };
    let expected: Vec<_> = names
        .iter()
        .map(|name| format!("{name}/skills/refunds"))
        .collect();
    assert_eq!(
        (paths(&found), asked.len()),
        (expected.iter().map(String::as_str).collect(), 27)
    );
    // It is over: the next one asks anew.
    double.now(hub);
    assert!(is_unchanged(&place, &found.mark, &work).await);
    assert_eq!(double.paths().len(), 18);
}
