//! Repositories as places with skills.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use egress::Egress;
use futures_util::FutureExt as _;
use repertoire_remote_sources::{Git, GitOptions};
use sources::{Error, Fetch, Item, Limits, Listing, Look, Work};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

const SKILL: &str = "---\nname: x\ndescription: For a test.\n---\nDo it.\n";

struct Origin(TempDir);

impl Origin {
    fn new() -> Self {
        let origin = Self(TempDir::new().expect("a folder"));
        origin.git(&["init", "-q", "-b", "main"]);
        origin.git(&["config", "user.name", "T"]);
        origin.git(&["config", "user.email", "t@example.org"]);
        origin
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.trim().to_owned()
    }

    fn commit(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    fn place(&self, reference: &str, folder: &str) -> Git {
        let url = format!("file://{}", self.0.path().display());
        Git::new(options(&url, reference), folder).expect("a place")
    }
}

fn options(url: &str, reference: &str) -> GitOptions {
    GitOptions {
        url: url.to_owned(),
        reference: reference.to_owned(),
        credential: None,
        ssh_key: None,
        known_hosts: None,
        permits_files: true,
        egress: Egress::permitting(&["0.0.0.0/0", "::/0"]).expect("networks"),
    }
}

fn work(folder: &Path) -> Work {
    Work {
        folder: folder.to_owned(),
        limits: Limits::default(),
        stop: CancellationToken::new(),
    }
}

async fn listing(place: &Git, mark: Option<&str>, work: &Work) -> Listing {
    match place.look(mark, work).await.expect("a look") {
        Look::Listing(listing) => listing,
        Look::Unchanged { .. } => panic!("it is unchanged"),
    }
}

fn paths(listing: &Listing) -> Vec<&str> {
    let items = listing.items.iter();
    items.map(|item| item.path.as_str()).collect()
}

#[tokio::test]
async fn a_place_is_listed_read_and_unchanged_until_something_is_pushed() {
    let origin = Origin::new();
    origin.commit(&[
        ("skills/one/SKILL.md", SKILL),
        ("skills/two/SKILL.md", SKILL),
        ("x/SKILL.md", SKILL),
    ]);
    let folder = TempDir::new().expect("a folder");
    let work = work(folder.path());
    let place = origin.place("", "skills");
    let first = listing(&place, None, &work).await;
    assert_eq!(paths(&first), ["skills/one", "skills/two"]);
    // The same bytes elsewhere: the same fingerprint, another item.
    assert_eq!(first.items[0].fingerprint, first.items[1].fingerprint);
    let short = origin.git(&["rev-parse", "--short=12", "HEAD"]);
    assert_eq!((&first.revision, &first.break_in_history), (&short, &None));
    let read = place.read(&first.items[0], &work).await.expect("files");
    assert_eq!((read.files.len(), read.problems.len()), (1, 0));
    let again = place.look(Some(&first.mark), &work).await.expect("a look");
    assert_eq!(again, Look::Unchanged { rate_limit: None });
    origin.commit(&[("skills/two/a.txt", "x")]);
    let second = listing(&place, Some(&first.mark), &work).await;
    assert_eq!(second.break_in_history, None);
    assert_eq!(second.items[0], first.items[0]);
    assert_ne!(second.items[1].fingerprint, first.items[1].fingerprint);
    // What was kept is deleted: all is listed, and still follows.
    std::fs::remove_dir_all(folder.path().join("repository")).expect("removed");
    let third = listing(&place, Some(&second.mark), &work).await;
    assert_eq!(third, second);
    // A mark of another kind of place is none.
    let other = listing(&place, Some("W/\"etag\""), &work).await;
    assert_eq!(other, third);
}

#[tokio::test]
async fn what_does_not_follow_is_told() {
    let origin = Origin::new();
    origin.commit(&[("one/SKILL.md", SKILL)]);
    origin.git(&["tag", "v1"]);
    let folders = [(); 3].map(|()| TempDir::new().expect("a folder"));
    let [branch, tag, kind] = folders.each_ref().map(|folder| work(folder.path()));
    let main = origin.place("main", "");
    let v1 = origin.place("v1", "");
    let first = listing(&main, None, &branch).await;
    let tagged = listing(&v1, None, &tag).await;
    let as_branch = listing(&main, None, &kind).await;
    origin.git(&["commit", "-q", "--amend", "-m", "another"]);
    origin.git(&["tag", "-f", "v1"]);
    let told = |listing: Listing| listing.break_in_history.expect("a break");
    let second = listing(&main, Some(&first.mark), &branch).await;
    assert_eq!(told(second), "the history of main was rewritten");
    let moved = listing(&v1, Some(&tagged.mark), &tag).await;
    assert_eq!(told(moved), "the tag v1 moved");
    origin.git(&["checkout", "-q", "--detach"]);
    origin.git(&["tag", "main"]);
    origin.git(&["update-ref", "-d", "refs/heads/main"]);
    let other = listing(&main, Some(&as_branch.mark), &kind).await;
    assert_eq!(told(other), "main was a branch, and is a tag now");
}

#[tokio::test]
async fn what_is_damaged_here_is_cloned_by_the_next_look() {
    let origin = Origin::new();
    origin.commit(&[("one/SKILL.md", SKILL)]);
    let folder = TempDir::new().expect("a folder");
    let work = work(folder.path());
    let place = origin.place("", "");
    let first = listing(&place, None, &work).await;
    let gone = Item {
        handle: "0123456789012345678901234567890123456789".to_owned(),
        ..first.items[0].clone()
    };
    let error = place.read(&gone, &work).await;
    assert!(matches!(error, Err(Error::Unavailable(_))), "{error:?}");
    let second = listing(&place, Some(&first.mark), &work).await;
    assert_eq!(second.items, first.items);
    place.read(&second.items[0], &work).await.expect("files");
}

#[tokio::test]
async fn a_folder_or_a_url_that_is_none_is_refused() {
    for (url, folder) in [
        ("file:///x", "../x"),
        ("file:///x", "a/../b"),
        ("-x", ""),
        ("git@x", ""),
    ] {
        let refused = Git::new(options(url, ""), folder);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{url} {folder}");
    }
    let origin = Origin::new();
    origin.commit(&[("one/SKILL.md", SKILL)]);
    let folder = TempDir::new().expect("a folder");
    let work = work(folder.path());
    let error = origin.place("", "two").look(None, &work).await;
    assert!(matches!(error, Err(Error::Refused(_))), "{error:?}");
}

/// A server that takes a request and answers nothing; when it was asked, and when the other
/// side went.
fn silent() -> (String, oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/x", listener.local_addr().expect("an address"));
    let (asked, is_asked) = oneshot::channel();
    let (gone, is_gone) = oneshot::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read_exact(&mut [0; 16]).expect("a request");
        asked.send(()).expect("somebody waits");
        stream.read_to_end(&mut Vec::new()).ok();
        gone.send(()).ok();
    });
    (url, is_asked, is_gone)
}

#[tokio::test]
async fn dropping_the_future_ends_the_conversation() {
    let (url, is_asked, is_gone) = silent();
    let place = Git::new(options(&url, ""), "").expect("a place");
    let folder = TempDir::new().expect("a folder");
    let work = work(folder.path());
    tokio::select! {
        result = place.look(None, &work) => panic!("{result:?}"),
        asked = is_asked => asked.expect("a request"),
    }
    let gone = tokio::time::timeout(Duration::from_secs(5), is_gone).await;
    gone.expect("soon").expect("an end");
}

#[tokio::test]
async fn a_stop_ends_a_look() {
    let (url, is_asked, is_gone) = silent();
    let place = Git::new(options(&url, ""), "").expect("a place");
    let folder = TempDir::new().expect("a folder");
    let work = work(folder.path());
    let stops = async {
        is_asked.await.expect("a request");
        work.stop.cancel();
    };
    let (result, ()) = tokio::join!(place.look(None, &work), stops);
    assert!(matches!(result, Err(Error::Stopped)), "{result:?}");
    let gone = tokio::time::timeout(Duration::from_secs(5), is_gone).await;
    gone.expect("soon").expect("an end");
}

#[tokio::test]
async fn looks_and_reads_at_once_do_not_disturb_each_other() {
    let origin = Origin::new();
    origin.commit(&[("one/SKILL.md", SKILL)]);
    let folder = TempDir::new().expect("a folder");
    let work = work(folder.path());
    let place = origin.place("", "");
    let first = listing(&place, None, &work).await;
    let mut mark = first.mark.clone();
    // As many as make it clone anew in between.
    for number in 0..60 {
        origin.commit(&[("two/SKILL.md", &format!("{number}{SKILL}"))]);
        // Nobody waits for this one.
        assert!(place.look(Some(&mark), &work).now_or_never().is_none());
        let (one, other, read) = tokio::join!(
            place.look(Some(&mark), &work),
            place.look(None, &work),
            place.read(&first.items[0], &work),
        );
        let (Ok(Look::Listing(one)), Ok(Look::Listing(other))) = (&one, &other) else {
            panic!("{number}: {one:?} {other:?}");
        };
        assert_eq!(one, other);
        assert_eq!(read.expect("files").files.len(), 1);
        mark.clone_from(&one.mark);
    }
}
