//! Folders on disk as places with skills.

mod limits;
mod problems;
#[cfg(target_os = "linux")]
mod waits;

use std::fs;

use tempfile::TempDir;

use super::testing::{is_unchanged, listing, paths, texts, work};
use super::*;

const SKILL: &str = "---\nname: x\ndescription: For a test.\n---\nDo it.\n";

fn write(root: &std::path::Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

#[tokio::test]
async fn a_folder_lists_its_skills_and_says_when_nothing_changed() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "one/SKILL.md", SKILL);
    write(root.path(), "deep/two/SKILL.md", SKILL);
    write(root.path(), "deep/two/a.md", "a");
    write(root.path(), "node_modules/x/SKILL.md", SKILL);
    let place = Directory::new(root.path()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["one", "deep/two"]);
    assert_eq!(found.skipped[0].0, "node_modules");
    assert!(is_unchanged(&place, &found.mark, &work).await);
    let read = place.read(&found.items[1], &work).await.expect("files");
    assert_eq!(
        texts(&read),
        [("SKILL.md", SKILL.to_owned()), ("a.md", "a".to_owned())]
    );

    write(root.path(), "one/b.md", "b");
    let error = place
        .read(&found.items[0], &work)
        .await
        .expect_err("changed");
    assert!(error.is_transient(), "{error}");
    let again = listing(&place, Some(&found.mark), &work).await;
    assert_ne!(again.items[0].fingerprint, found.items[0].fingerprint);
    assert_eq!(again.items[1], found.items[1]);
}

#[tokio::test]
async fn a_folder_that_is_gone_or_none_is_an_error_and_no_empty_list() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "file", "x");
    for path in ["gone", "file"] {
        let place = Directory::new(root.path().join(path)).expect("a place");
        let error = place.look(None, &work).await.expect_err("refused");
        assert!(matches!(error, Error::Refused(_)), "{error}");
    }
    assert!(Directory::new("relative").is_err());
}

#[tokio::test]
async fn no_item_leads_out_of_the_folder() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "in/SKILL.md", SKILL);
    write(root.path(), "out/SKILL.md", SKILL);
    let place = Directory::new(root.path().join("in")).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["."]);
    for handle in ["../out", "/etc", "a/../../out"] {
        let item = Item {
            handle: handle.to_owned(),
            ..found.items[0].clone()
        };
        let error = place.read(&item, &work).await.expect_err("refused");
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_may_not_be_read_is_a_problem_of_its_skill_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "one/SKILL.md", SKILL);
    write(root.path(), "two/SKILL.md", SKILL);
    write(root.path(), "two/locked.md", "x");
    let locked = root.path().join("two/locked.md");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o0)).expect("a file");
    let may_read_all = fs::read(&locked).is_ok();
    let place = Directory::new(root.path()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["one", "two"]);
    let read = place.read(&found.items[1], &work).await.expect("files");
    // Who is root reads it.
    let rules: Vec<_> = read
        .problems
        .iter()
        .map(|problem| problem.rule.as_str())
        .collect();
    let expected: &[&str] = if may_read_all {
        &[]
    } else {
        &["file-unreadable"]
    };
    assert_eq!(rules, expected);
}

#[tokio::test]
async fn a_search_that_nobody_wants_ends() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "one/a.md", "a");
    work.stop.cancel();
    let ended = crate::directory::list(root.path(), &work);
    assert!(matches!(ended, Err(Error::Stopped)), "{ended:?}");
}

#[tokio::test]
async fn a_link_on_the_way_to_a_skill_makes_it_no_item_of_the_folder() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    let outside = TempDir::new().expect("a folder");
    write(root.path(), "skills/one/SKILL.md", SKILL);
    write(outside.path(), "one/SKILL.md", SKILL);
    let place = Directory::new(root.path()).expect("a place");
    let found = listing(&place, None, &work).await;
    let skills = root.path().join("skills");
    fs::remove_dir_all(&skills).expect("removed");
    std::os::unix::fs::symlink(outside.path(), &skills).expect("a link");
    let read = place.read(&found.items[0], &work).await;
    assert!(
        matches!(&read, Err(Error::Invalid(why)) if why == "this is no item of the folder"),
        "{read:?}"
    );
}

#[test]
fn skills_are_in_order_by_how_deep_they_are_and_then_by_path() {
    let item = |path: &str| Item {
        path: path.to_owned(),
        ..Item::default()
    };
    let mut listing = Listing {
        items: ["a/b/c", "z", "b/a", "a/c", "m"].map(item).into(),
        ..Listing::default()
    };
    listing.sort();
    assert_eq!(paths(&listing), ["m", "z", "a/c", "b/a", "a/b/c"]);
}

#[test]
fn only_a_place_that_is_unavailable_is_worth_another_try() {
    let why = || "why".to_owned();
    let address = Error::Address {
        address: why(),
        what: why(),
    };
    let limited = Error::RateLimited {
        after: std::time::Duration::from_secs(1),
        limit: None,
    };
    for error in [
        Error::Invalid(why()),
        Error::NotBuilt("git"),
        Error::Refused(why()),
        address,
        Error::TooLarge(why()),
        limited,
        Error::Stopped,
    ] {
        assert!(!error.is_transient(), "{error:?}");
    }
    assert!(Error::Unavailable(why()).is_transient());
}

#[tokio::test]
async fn what_panics_on_what_a_place_sent_makes_that_invalid() {
    let done = run_blocking(|| Ok(7)).await;
    assert!(matches!(done, Ok(7)), "{done:?}");
    let done = run_blocking::<()>(|| panic!("it cannot be dealt with, as a test has it")).await;
    let expected = "what it sent could not be dealt with: that is a fault of this server";
    assert!(
        matches!(&done, Err(Error::Invalid(why)) if why == expected),
        "{done:?}"
    );
}
