//! Remotes that mean harm, or break.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use egress::Egress;
use repertoire_git::{Credential, Error, Limits, Remote, RemoteOptions};

use super::server::{Does, Server};
use super::support::{Kept, Origin, SKILL, limits, options, remote};

/// Text that does not compress much.
fn noise(bytes: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        write!(text, "{state:016x}").expect("text");
    }
    text
}

fn words(error: Result<repertoire_git::Update, Error>) -> String {
    format!("{:?}", error.expect_err("an error"))
}

#[test]
fn urls_that_are_no_repositories_or_run_something_are_refused() {
    for url in [
        "",
        "-oProxyCommand=x",
        "--upload-pack=x",
        "ext::sh -c true",
        "ext::x@y:z",
        "git://example.org/x",
        "ftp://example.org/x",
        "fd::3",
        "/etc",
        "../x",
        "C:\\x",
        "https://user@example.org/x",
        "https://user:pw@example.org/x",
        "https://:pw@example.org/x",
        "ssh://user:pw@example.org/x",
        "ssh://-oProxyCommand=x/y",
        "ssh://user@-oProxyCommand=x/y",
        "ssh://-x@example.org/y",
        "-oProxyCommand=x@example.org:y",
        "user@-oProxyCommand=x:y",
        "user@example.org:-x",
        "ssh://example.org/-x",
        "ssh://example.org/",
        "user:pw@example.org:x",
        "https://example.org/-x",
        "https://example.org/x?y=z",
        "https://example.org/x\ny",
    ] {
        let refused = Remote::new(options(url)).map(|remote| remote.url());
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{url}: {refused:?}"
        );
        let error = refused.expect_err("refused").to_string();
        assert!(!error.contains("pw"), "{error}");
    }
    let no_files = RemoteOptions {
        permits_files: false,
        ..options("file:///srv/x")
    };
    assert!(matches!(Remote::new(no_files), Err(Error::Invalid(_))));
    for reference in ["-x", "a..b", "a b", "x:y", "^x", "refs/heads/*", "a\nb"] {
        let reference = RemoteOptions {
            reference: reference.to_owned(),
            ..options("https://example.org/x")
        };
        assert!(matches!(Remote::new(reference), Err(Error::Invalid(_))));
    }
    for url in [
        "https://example.org/acme/x.git",
        "http://example.org:8080/x",
        "ssh://git@example.org:2222/x",
        "git@example.org:acme/x.git",
        "git@[::1]:x",
        "ssh://git@[::1]:22/~me/x",
    ] {
        Remote::new(options(url)).expect(url);
    }
}

fn permitting(url: &str, networks: &[&str]) -> Remote {
    let options = RemoteOptions {
        egress: Egress::permitting(networks).expect("networks"),
        ..options(url)
    };
    Remote::new(options).expect("a remote")
}

#[test]
fn addresses_that_are_not_permitted_are_not_called() {
    let origin = Origin::with(&[("SKILL.md", SKILL)]);
    let server = Server::start(Does::Serves(origin.path().to_owned()));
    let port = server.port;
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        let remote = permitting(&format!("http://{host}:{port}/.git"), &[]);
        let error = Kept::new().try_update(&remote, None);
        // As it was asked for: not where a name leads.
        let told = match host {
            "2130706433" | "0x7f.1" => "127.0.0.1",
            "[::ffff:127.0.0.1]" => "[::ffff:7f00:1]",
            host => host,
        };
        assert!(
            matches!(&error, Err(Error::Address { address, .. }) if address == told),
            "{host}: {error:?}"
        );
    }
    let ssh = permitting(&format!("ssh://git@127.0.0.1:{port}/x"), &[]);
    let error = Kept::new().try_update(&ssh, None);
    assert_eq!(
        error,
        Err(Error::Address {
            address: "127.0.0.1".to_owned(),
            what: "a loopback address".to_owned()
        })
    );
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[test]
fn a_redirect_to_an_address_that_is_not_permitted_is_not_followed() {
    let origin = Origin::with(&[("SKILL.md", SKILL)]);
    let inner = Server::start(Does::Serves(origin.path().to_owned()));
    let port = inner.port;
    for base in [
        format!("http://127.0.0.2:{port}"),
        format!("http://[::1]:{port}"),
        "http://169.254.169.254".to_owned(),
        "http://10.0.0.1".to_owned(),
    ] {
        let server = Server::start(Does::Redirects(base.clone()));
        let remote = permitting(&server.url(".git"), &["127.0.0.1"]);
        let error = Kept::new().try_update(&remote, None);
        assert!(
            matches!(error, Err(Error::Address { .. })),
            "{base}: {error:?}"
        );
    }
    for base in ["file:///etc", "ftp://127.0.0.1", "http://me:pw@127.0.0.1"] {
        let server = Server::start(Does::Redirects(base.to_owned()));
        let error = words(Kept::new().try_update(&remote(&server.url(".git")), None));
        assert!(
            error.starts_with("Refused") && !error.contains("pw"),
            "{base}: {error}"
        );
    }
    assert_eq!(inner.seen(), Vec::<String>::new());
}

#[test]
fn what_a_server_answers_is_told_by_what_can_be_done() {
    let update = |answer: &'static str| {
        let server = Server::start(Does::Answers(answer));
        let credential = Some(Credential::Token("s3cret-s3cret-s3cret".into()));
        let options = RemoteOptions {
            credential,
            ..options(&server.url("x"))
        };
        let remote = Remote::new(options).expect("a remote");
        let error = Kept::new().try_update(&remote, None).expect_err("an error");
        assert!(!format!("{error:?} {remote:?}").contains("s3cret"));
        error
    };
    let refused = |words: &str| Error::Refused(words.to_owned());
    assert_eq!(
        update("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        refused("the server has no such repository, or not for the caller (404)")
    );
    assert_eq!(
        update("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"),
        refused("the server asks for credentials, which are not sent over http; take https")
    );
    assert_eq!(
        update("HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"),
        Error::RateLimited {
            after: Duration::from_secs(7)
        }
    );
    assert_eq!(
        update("HTTP/1.1 403 Slow\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n"),
        Error::RateLimited {
            after: Duration::from_secs(86_400)
        }
    );
    assert_eq!(
        update("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"),
        Error::Unavailable("the server answered 502".to_owned())
    );
    assert_eq!(
        update("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"),
        refused("what is at the URL is no repository that can be fetched")
    );
}

#[test]
fn a_server_that_wants_to_know_who_asks_is_not_answered_by_the_machine() {
    let answer =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(Does::Answers(answer));
    let error = Kept::new().try_update(&remote(&server.url("x")), None);
    assert_eq!(
        error,
        Err(Error::Refused(
            "the server wants to know who asks; name a credential".to_owned()
        ))
    );
}

#[test]
fn a_credential_is_not_sent_to_where_a_server_redirects() {
    let answer =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    let thief = Server::start(Does::Answers(answer));
    let base = format!("http://127.0.0.1:{}", thief.port);
    let server = Server::start(Does::Redirects(base));
    let options = RemoteOptions {
        credential: Some(Credential::Token("s3cret-s3cret-s3cret".into())),
        ..options(&server.url("x"))
    };
    let remote = Remote::new(options).expect("a remote");
    let error = words(Kept::new().try_update(&remote, None));
    assert!(
        error.contains("redirects to another one that asks"),
        "{error}"
    );
    assert_eq!((server.seen().len(), thief.seen().len()), (1, 1));
}

#[test]
fn a_pack_that_is_a_bomb_is_refused_before_it_is_inflated() {
    let origin = Origin::with(&[("SKILL.md", SKILL)]);
    origin.git(&["config", "core.bigFileThreshold", "1m"]);
    let bomb = std::fs::File::create(origin.path().join("bomb")).expect("a file");
    bomb.set_len(120 << 20).expect("a size");
    origin.commit_all();
    let kept = Kept::new();
    let start = Instant::now();
    let error = words(kept.try_update(&remote(&origin.url()), None));
    assert!(error.starts_with("TooLarge"), "{error}");
    println!("a bomb of 120 MiB was refused in {:?}", start.elapsed());
    let kept = kept.folder.path().join("repository.next");
    assert!(!kept.exists());
}

#[test]
fn more_bytes_or_objects_than_the_limits_are_refused() {
    let origin = Origin::with(&[("SKILL.md", SKILL), ("noise", &noise(4 << 20))]);
    let server = Server::start(Does::Serves(origin.path().to_owned()));
    for url in [origin.url(), server.url(".git")] {
        let few = Limits {
            bytes: 1 << 20,
            ..limits()
        };
        let error = Kept::new().update_within(&remote(&url), None, &few);
        assert_eq!(
            error,
            Err(Error::TooLarge(
                "the repository has more than 1 MiB to fetch, which is the limit".to_owned()
            ))
        );
    }
    let slow = Does::Drips(
        origin.path().to_owned(),
        64 << 10,
        Duration::from_millis(20),
    );
    let server = Server::start(slow);
    let few = Limits {
        objects: 3,
        ..limits()
    };
    let error = Kept::new().update_within(&remote(&server.url(".git")), None, &few);
    assert_eq!(
        error,
        Err(Error::TooLarge(
            "the repository has 4 objects to fetch, at most 3 are allowed".to_owned()
        ))
    );
}

#[test]
fn a_list_of_refs_without_an_end_is_refused() {
    let server = Server::start(Does::Floods);
    let start = Instant::now();
    let error = words(Kept::new().try_update(&remote(&server.url("x")), None));
    assert!(error.starts_with("TooLarge"), "{error}");
    println!("a flood of refs was refused in {:?}", start.elapsed());
}

#[test]
fn a_history_that_is_too_much_does_not_keep_the_tip_away() {
    let origin = Origin::with(&[("SKILL.md", SKILL)]);
    let kept = Kept::new();
    let url = remote(&origin.url());
    let first = kept.update(&url, None);
    for number in 0..6 {
        let text = noise((1 << 20) + number * 7);
        let text: String = text.chars().skip(number).collect();
        origin.commit(&[("noise", &format!("{number}{text}").repeat(1))]);
        origin.git(&["rm", "-q", "--cached", "noise"]);
        origin.git(&["commit", "-q", "-m", "x"]);
    }
    let few = Limits {
        bytes: 600 << 10,
        ..limits()
    };
    let second = kept
        .update_within(&url, Some(&first), &few)
        .expect("an update");
    assert_eq!(second.tip.commit, origin.git(&["rev-parse", "HEAD"]));
    assert!(!second.descends);
}

#[test]
fn a_pack_that_ends_too_early_is_unavailable_and_leaves_what_was_there() {
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let kept = Kept::new();
    let good = Server::start(Does::Serves(origin.path().to_owned()));
    let first = kept.update(&remote(&good.url(".git")), None);
    origin.commit(&[("noise", &noise(200_000))]);
    for bytes in [400, 5_000, 60_000] {
        let server = Server::start(Does::Dies(origin.path().to_owned(), bytes));
        let error = kept.try_update(&remote(&server.url(".git")), Some(&first));
        assert!(matches!(error, Err(Error::Unavailable(_))), "{error:?}");
        assert_eq!(kept.read(&first, "one").0, ["SKILL.md"]);
    }
    let second = kept.update(&remote(&good.url(".git")), Some(&first));
    assert!(second.descends);
}

#[test]
fn a_server_that_is_silent_is_given_up() {
    let server = Server::start(Does::IsSilent);
    let start = Instant::now();
    let short = Limits {
        silence: Duration::from_millis(300),
        ..limits()
    };
    let error = Kept::new().update_within(&remote(&server.url("x")), None, &short);
    assert_eq!(
        error,
        Err(Error::Unavailable(
            "the server sent nothing for 0.3 s".to_owned()
        ))
    );
    // One that falls silent within a pack.
    let origin = Origin::with(&[("SKILL.md", SKILL), ("noise", &noise(1 << 20))]);
    let slow = Does::Drips(origin.path().to_owned(), 100_000, Duration::from_secs(600));
    let server = Server::start(slow);
    let kept = Kept::new();
    let error = kept.update_within(&remote(&server.url(".git")), None, &short);
    assert_eq!(
        error,
        Err(Error::Unavailable(
            "the server sent nothing for 0.3 s".to_owned()
        ))
    );
    // It is not asked a second time.
    assert_eq!(server.seen().len(), 5, "{:?}", server.seen());
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_server_that_does_not_greet_over_ssh_is_given_up() {
    if Command::new("ssh").arg("-V").output().is_err() {
        return testing::skip("ssh is not installed (`tests/packages`)");
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let start = Instant::now();
    let short = Limits {
        silence: Duration::from_millis(300),
        ..limits()
    };
    let error = Kept::new().update_within(
        &remote(&format!("ssh://git@127.0.0.1:{port}/x")),
        None,
        &short,
    );
    assert_eq!(
        error,
        Err(Error::Unavailable(
            "the server sent nothing for 0.3 s".to_owned()
        ))
    );
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_server_that_drips_bytes_is_given_up_when_the_time_is_over() {
    let origin = Origin::with(&[("SKILL.md", SKILL), ("noise", &noise(1 << 20))]);
    let slow = Does::Drips(origin.path().to_owned(), 1000, Duration::from_millis(20));
    let server = Server::start(slow);
    let start = Instant::now();
    let short = Limits {
        time: Duration::from_millis(800),
        ..limits()
    };
    let error = Kept::new().update_within(&remote(&server.url(".git")), None, &short);
    assert_eq!(
        error,
        Err(Error::Unavailable(
            "fetching took longer than 0.8 s, and was given up".to_owned()
        ))
    );
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[test]
fn a_stop_ends_a_server_that_drips_and_one_that_is_silent() {
    let origin = Origin::with(&[("SKILL.md", SKILL), ("noise", &noise(1 << 20))]);
    let slow = Does::Drips(origin.path().to_owned(), 1000, Duration::from_millis(20));
    for (does, requests) in [(slow, 3), (Does::IsSilent, 1)] {
        let server = Server::start(does);
        let stop = Arc::new(AtomicBool::new(false));
        let kept = Kept::new();
        let url = remote(&server.url(".git"));
        std::thread::scope(|scope| {
            let flag = Arc::clone(&stop);
            let update = scope.spawn(|| kept.repository.update(&url, None, &limits(), flag));
            while server.seen().len() < requests {
                std::thread::yield_now();
            }
            let start = Instant::now();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(update.join().expect("an end"), Err(Error::Stopped));
            assert!(start.elapsed() < Duration::from_secs(2));
        });
    }
}
