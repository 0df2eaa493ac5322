//! Repositories that behave.

use super::server::{Does, Server};
use super::support::{Kept, Origin, SKILL, remote, remote_ref};
use std::fmt::Write as _;

use repertoire_git::{Error, Remote};

#[test]
fn a_clone_lists_skills_the_shortest_path_first_and_reads_them() {
    let origin = Origin::with(&[
        ("README.md", "x"),
        ("skills/refunds/SKILL.md", SKILL),
        ("skills/refunds/scripts/run.py", "print(1)\n"),
        ("skills/refunds/nested/deep/skill.md", SKILL),
        ("a/SKILL.md", SKILL),
        ("node_modules/x/SKILL.md", SKILL),
    ]);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    assert_eq!(update.tip.commit, origin.git(&["rev-parse", "HEAD"]));
    assert_eq!(update.tip.reference, "refs/heads/main");
    assert!(!update.is_unchanged && update.descends);
    let found = kept.find(&update);
    assert_eq!(
        kept.paths(&update),
        ["a", "skills/refunds", "skills/refunds/nested/deep"]
    );
    assert_eq!(
        found.skipped,
        [("node_modules".to_owned(), "tools make it".to_owned())]
    );
    assert_eq!(
        found.skills[1].tree,
        origin.git(&["rev-parse", "HEAD:skills/refunds"])
    );
    let (files, problems) = kept.read(&update, "skills/refunds");
    assert_eq!(
        files,
        ["SKILL.md", "nested/deep/skill.md", "scripts/run.py"]
    );
    assert!(problems.is_empty(), "{problems:?}");
    let below = kept
        .find_below(&update, "skills/refunds/nested")
        .expect("skills");
    assert_eq!(below.skills.len(), 1);
    let missing = kept.find_below(&update, "other");
    assert_eq!(
        missing,
        Err(Error::Refused(
            "the repository has no folder `other`".to_owned()
        ))
    );
}

#[test]
fn a_repository_may_be_a_skill_itself() {
    let origin = Origin::with(&[("SKILL.md", SKILL), ("a.txt", "x")]);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    assert_eq!(kept.paths(&update), [""]);
    assert_eq!(kept.read(&update, "").0, ["SKILL.md", "a.txt"]);
}

#[test]
fn an_update_is_fetched_and_follows_what_was_there() {
    for is_http in [false, true] {
        let origin = Origin::with(&[("one/SKILL.md", SKILL), ("two/SKILL.md", SKILL)]);
        let server = Server::start(Does::Serves(origin.path().to_owned()));
        let url = if is_http {
            server.url(".git")
        } else {
            origin.url()
        };
        let remote = remote(&url);
        let kept = Kept::new();
        let first = kept.update(&remote, None);
        let before = kept.find(&first);
        // Nothing new: no pack is fetched, and only where the commit is known it is the same.
        let again = kept.update(&remote, Some(&first));
        assert!(again.is_unchanged);
        assert!(!kept.update(&remote, None).is_unchanged);
        assert_eq!(kept.packs(), 1);
        for number in 0..5 {
            origin.commit(&[("two/more.txt", &format!("{number}"))]);
        }
        let second = kept.update(&remote, Some(&first));
        assert!(!second.is_unchanged && second.descends, "{url}");
        assert_eq!(second.tip.commit, origin.git(&["rev-parse", "HEAD"]));
        let after = kept.find(&second);
        assert_eq!(before.skills[0], after.skills[0]);
        assert_ne!(before.skills[1].tree, after.skills[1].tree);
        assert_eq!(kept.read(&second, "two").0, ["SKILL.md", "more.txt"]);
        assert_eq!(kept.packs(), 2);
    }
}

#[test]
fn it_follows_too_where_nothing_was_kept_and_where_a_side_branch_was_merged() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let first = Kept::new().update(&remote(&origin.url()), None);
    origin.git(&["checkout", "-q", "-b", "side"]);
    origin.commit(&[("side.txt", "x")]);
    origin.git(&["checkout", "-q", "main"]);
    origin.commit(&[("main.txt", "x")]);
    origin.git(&["merge", "-q", "--no-ff", "-m", "x", "side"]);
    let second = Kept::new().update(&remote(&origin.url()), Some(&first));
    assert!(second.descends);
}

#[test]
fn an_old_commit_is_found_behind_thousands_without_all_of_the_history() {
    let origin = Origin::new();
    // A long history, of which most is older than what was seen.
    let mut stream = String::new();
    for number in 0..3000 {
        let time = 1_600_000_000 + number * 86_400;
        write!(
            stream,
            "commit refs/heads/main\ncommitter T <t@example.org> {time} +0000\ndata 1\nx\n\
             M 100644 inline one/SKILL.md\ndata {}\n{SKILL}{number:04}\n",
            SKILL.len() + 4
        )
        .expect("text");
    }
    origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    let tip = origin.git(&["rev-parse", "main"]);
    let old = origin.git(&["rev-parse", "main~100"]);
    origin.git(&["update-ref", "refs/heads/main", &old]);
    let kept = Kept::new();
    let first = kept.update(&remote(&origin.url()), None);
    origin.git(&["update-ref", "refs/heads/main", &tip]);
    let second = kept.update(&remote(&origin.url()), Some(&first));
    assert!(second.descends);
    let here = kept.folder.path().join("repository");
    let here = here.to_str().expect("a path");
    let commits = origin.git(&[
        "--git-dir",
        here,
        "rev-list",
        "--count",
        "refs/repertoire/tip",
    ]);
    let commits: usize = commits.parse().expect("a number");
    assert!((101..=103).contains(&commits), "{commits}");
}

#[test]
fn a_forced_push_is_seen_as_another_history() {
    for is_http in [false, true] {
        let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
        origin.commit(&[("a.txt", "1")]);
        let server = Server::start(Does::Serves(origin.path().to_owned()));
        let url = if is_http {
            server.url(".git")
        } else {
            origin.url()
        };
        let remote = remote(&url);
        let kept = Kept::new();
        let first = kept.update(&remote, None);
        origin.git(&["commit", "-q", "--amend", "-m", "another"]);
        let second = kept.update(&remote, Some(&first));
        assert_eq!(second.tip.commit, origin.git(&["rev-parse", "HEAD"]));
        assert!(!second.descends && !second.is_unchanged);
        // Back to an older commit, long before.
        origin.git(&["reset", "-q", "--hard", "HEAD~1"]);
        let third = kept.update(&remote, Some(&second));
        assert_eq!(third.tip.commit, origin.git(&["rev-parse", "HEAD"]));
        assert!(!third.descends);
        assert_eq!(kept.paths(&third), ["one"]);
    }
}

#[test]
fn a_push_back_to_a_commit_that_is_older_than_a_day_is_another_history() {
    let origin = Origin::new();
    let stream = [1_600_000_000, 1_700_000_000].map(|time| {
        format!(
            "commit refs/heads/main\ncommitter T <t@example.org> {time} +0000\ndata 1\nx\n\
             M 100644 inline one/SKILL.md\ndata {}\n{SKILL}\n",
            SKILL.len()
        )
    });
    origin.git_with(&["fast-import", "--quiet"], stream.concat().as_bytes());
    let kept = Kept::new();
    let remote = remote(&origin.url());
    let first = kept.update(&remote, None);
    let old = origin.git(&["rev-parse", "main~1"]);
    origin.git(&["update-ref", "refs/heads/main", &old]);
    let second = kept.update(&remote, Some(&first));
    assert_eq!(
        (second.tip.commit.as_str(), second.descends),
        (old.as_str(), false)
    );
    assert_eq!(kept.paths(&second), ["one"]);
}

#[test]
fn a_renamed_skill_keeps_its_tree_and_a_deleted_one_is_gone() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL), ("two/SKILL.md", "other")]);
    let kept = Kept::new();
    let remote = remote(&origin.url());
    let first = kept.update(&remote, None);
    let before = kept.find(&first);
    origin.git(&["mv", "one", "uno"]);
    origin.git(&["rm", "-q", "-r", "two"]);
    origin.commit_all();
    let second = kept.update(&remote, Some(&first));
    let after = kept.find(&second);
    assert_eq!(kept.paths(&second), ["uno"]);
    assert_eq!(after.skills[0].tree, before.skills[0].tree);
}

#[test]
fn a_branch_a_tag_and_a_whole_ref_are_found_and_what_is_none_is_told() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let first = origin.git(&["rev-parse", "HEAD"]);
    origin.git(&["tag", "-a", "v1", "-m", "x"]);
    origin.git(&["branch", "both"]);
    origin.commit(&[("a.txt", "x")]);
    origin.git(&["tag", "both"]);
    let tip = |reference: &str| {
        let remote = remote_ref(&origin.url(), reference);
        Kept::new().try_update(&remote, None).map(|update| {
            let is_tag = update.tip.is_tag();
            (update.tip.commit, update.tip.reference, is_tag)
        })
    };
    let head = origin.git(&["rev-parse", "HEAD"]);
    let is = |commit: &str, name: &str, is_tag| Ok((commit.to_owned(), name.to_owned(), is_tag));
    assert_eq!(tip("main"), is(&head, "refs/heads/main", false));
    assert_eq!(tip("v1"), is(&first, "refs/tags/v1", true));
    assert_eq!(tip("refs/tags/v1"), is(&first, "refs/tags/v1", true));
    // A branch comes first.
    assert_eq!(tip("both"), is(&first, "refs/heads/both", false));
    assert_eq!(
        tip("other"),
        Err(Error::Refused(
            "the repository has no branch and no tag `other`".to_owned()
        ))
    );
}

#[test]
fn an_empty_repository_says_so() {
    let origin = Origin::new();
    let error = Kept::new().try_update(&remote(&origin.url()), None);
    assert!(matches!(error, Err(Error::Refused(_))), "{error:?}");
}

#[test]
fn a_tag_that_moves_is_followed() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    origin.git(&["tag", "v1"]);
    let kept = Kept::new();
    let remote = remote_ref(&origin.url(), "v1");
    let first = kept.update(&remote, None);
    origin.commit(&[("a.txt", "x")]);
    origin.git(&["tag", "-f", "v1"]);
    let second = kept.update(&remote, Some(&first));
    assert!(second.tip.is_tag() && !second.is_unchanged);
    assert_eq!(second.tip.commit, origin.git(&["rev-parse", "HEAD"]));
}

#[test]
fn a_repository_of_sha_256_is_fetched() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let origin = Origin::new();
    origin.git(&["init", "-q", "-b", "main", "--object-format=sha256", path]);
    origin.write(&[("SKILL.md", SKILL)]);
    std::fs::copy(
        origin.path().join("SKILL.md"),
        folder.path().join("SKILL.md"),
    )
    .expect("a copy");
    let user = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
    origin.git(&["-C", path, "add", "-A"]);
    origin.git(&[&["-C", path], &user[..], &["commit", "-q", "-m", "x"]].concat());
    let kept = Kept::new();
    let remote = remote(&format!("file://{path}"));
    let update = kept.update(&remote, None);
    assert_eq!(
        (update.tip.commit.len(), kept.paths(&update)),
        (64, vec![String::new()])
    );
    assert!(kept.update(&remote, Some(&update)).is_unchanged);
}

#[test]
fn a_hundred_fetches_do_not_pile_up() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let kept = Kept::new();
    let remote = remote(&origin.url());
    let mut last = kept.update(&remote, None);
    let mut most = 0;
    for number in 0..100 {
        origin.commit(&[("one/a.txt", &format!("{number}"))]);
        last = kept.update(&remote, Some(&last));
        assert!(last.descends, "{number}");
        most = most.max(kept.packs());
    }
    assert!(most <= 51, "{most}");
    let names = std::fs::read_dir(kept.folder.path()).expect("a folder");
    let names: Vec<_> = names
        .map(|name| name.expect("a name").file_name())
        .collect();
    assert_eq!(names, ["repository"]);
    assert_eq!(kept.read(&last, "one").0, ["SKILL.md", "a.txt"]);
}

type Breaks = fn(&Kept);

#[test]
fn what_is_broken_here_is_cloned_anew() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let remote = remote(&origin.url());
    let breaks: [(&str, Breaks); 5] = [
        ("no packs", |kept| {
            std::fs::remove_dir_all(kept.pack_folder()).expect("removed");
        }),
        ("no head", |kept| {
            std::fs::remove_file(kept.folder.path().join("repository/HEAD")).expect("removed");
        }),
        ("an empty folder", |kept| {
            std::fs::remove_dir_all(kept.folder.path().join("repository")).expect("removed");
            std::fs::create_dir(kept.folder.path().join("repository")).expect("a folder");
        }),
        ("no index", |kept| {
            for file in std::fs::read_dir(kept.pack_folder()).expect("packs") {
                let path = file.expect("a file").path();
                if path.extension().is_some_and(|ending| ending == "idx") {
                    std::fs::remove_file(path).expect("removed");
                }
            }
        }),
        ("a lock and half a pack", |kept| {
            std::fs::write(kept.folder.path().join("repository/shallow.lock"), "")
                .expect("written");
            std::fs::write(kept.pack_folder().join(".tmp1234"), "PACK").expect("written");
        }),
    ];
    for (what, breaks) in breaks {
        let kept = Kept::new();
        let first = kept.update(&remote, None);
        breaks(&kept);
        origin.commit(&[("one/a.txt", what)]);
        let second = kept.update(&remote, Some(&first));
        assert!(second.descends, "{what}");
        assert_eq!(kept.read(&second, "one").0, ["SKILL.md", "a.txt"], "{what}");
    }
}

#[test]
fn a_redirect_is_followed_and_capped() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let server = Server::start(Does::Serves(origin.path().to_owned()));
    let base = format!("http://127.0.0.1:{}", server.port);
    let redirecting = Server::start(Does::Redirects(base));
    let kept = Kept::new();
    let update = kept.update(&remote(&redirecting.url(".git")), None);
    assert_eq!(kept.paths(&update), ["one"]);
    let circle = Server::start(Does::Redirects(String::new()));
    let error = kept.try_update(&remote(&circle.url(".git")), None);
    assert_eq!(
        error,
        Err(Error::Refused(
            "the server redirects more than 5 times".to_owned()
        ))
    );
    assert_eq!(circle.seen().len(), 6);
}

#[test]
fn the_url_that_is_shown_has_no_secret() {
    let shown = |url: &str| Remote::new(super::support::options(url)).map(|remote| remote.url());
    assert_eq!(
        shown("git@example.org:acme/x.git"),
        Ok("ssh://git@example.org:22/acme/x.git".to_owned())
    );
    let error = shown("https://me:hunter2hunter2@example.org/x").expect_err("refused");
    assert_eq!(
        error.to_string(),
        "`https://example.org/x` cannot be fetched: it has credentials in it; take them out, and name a credential instead"
    );
}
