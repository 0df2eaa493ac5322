//! The real ssh, on loopback.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use repertoire_git::{Error, Remote, RemoteOptions};
use tempfile::TempDir;
use testing::Port;

use super::support::{Kept, Origin, SKILL, options};

/// Lets the client say which protocol it speaks.
const VERSION_2: &str = "AcceptEnv GIT_PROTOCOL";
const SSHD: &str = "/usr/sbin/sshd";

struct Sshd {
    folder: TempDir,
    port: Port,
    child: Child,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn key(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&file)
        .status();
    assert!(made.expect("ssh-keygen").success());
    file
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("a file")
}

impl Sshd {
    /// None: there is no sshd, or no place for it.
    fn start(version: &str) -> Option<Self> {
        if !Path::new(SSHD).exists() {
            testing::skip("openssh-server is not installed (`tests/packages`)");
            return None;
        }
        // Where root starts it, it wants this folder, which is the machine's.
        let place = Path::new("/run/sshd");
        if rustix::process::geteuid().is_root() && !place.is_dir() {
            if std::env::var("CI").as_deref() != Ok("true") {
                testing::skip("sshd has no place (`mkdir /run/sshd`)");
                return None;
            }
            std::fs::create_dir_all(place).expect("a folder");
        }
        let folder = TempDir::new().expect("a folder");
        let path = folder.path();
        let host = key(path, "host");
        let client = key(path, "client");
        key(path, "stranger");
        let authorized = path.join("authorized");
        std::fs::copy(client.with_extension("pub"), &authorized).expect("a copy");
        let port = Port::hold();
        let number = port.number();
        let config = path.join("config");
        let text = format!(
            "ListenAddress 127.0.0.1\nPort {number}\nHostKey {}\nAuthorizedKeysFile {}\n\
             PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             {version}\n",
            host.display(),
            authorized.display()
        );
        std::fs::write(&config, text).expect("written");
        let mut child = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("sshd");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let listens = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains("Server listening"));
        listens.expect("it listens");
        // What it says later is read, so that it never waits.
        std::thread::spawn(move || lines.for_each(drop));
        let known = read(&host.with_extension("pub"));
        let known = format!("[127.0.0.1]:{number} {known}");
        std::fs::write(path.join("known"), known).expect("written");
        std::fs::write(path.join("nobody"), "").expect("written");
        Some(Self {
            folder,
            port,
            child,
        })
    }

    fn remote(&self, origin: &Origin, key: &str, known: &str) -> Remote {
        let user = Command::new("id").arg("-un").output().expect("id").stdout;
        let user = String::from_utf8(user).expect("text");
        let path = origin.path().display();
        let url = format!(
            "ssh://{}@127.0.0.1:{}{path}",
            user.trim(),
            self.port.number()
        );
        Remote::new(RemoteOptions {
            ssh_key: Some(self.folder.path().join(key)),
            known_hosts: Some(self.folder.path().join(known)),
            ..options(&url)
        })
        .expect("a remote")
    }
}

#[test]
fn a_repository_is_fetched_and_updated_over_ssh() {
    // The newer protocol, and the one of servers that take no word of the client's.
    for version in [VERSION_2, ""] {
        let Some(sshd) = Sshd::start(version) else {
            return;
        };
        let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
        let remote = sshd.remote(&origin, "client", "known");
        let kept = Kept::new();
        let first = kept.update(&remote, None);
        assert_eq!(first.tip.reference, "refs/heads/main");
        assert_eq!(kept.paths(&first), ["one"]);
        assert!(kept.update(&remote, Some(&first)).is_unchanged);
        origin.commit(&[("two/SKILL.md", SKILL)]);
        let second = kept.update(&remote, Some(&first));
        assert!(second.descends);
        assert_eq!(kept.paths(&second), ["one", "two"]);
        origin.git(&["commit", "-q", "--amend", "-m", "another"]);
        assert!(!kept.update(&remote, Some(&second)).descends);
    }
}

#[test]
fn a_host_that_is_not_known_and_a_key_that_is_not_let_in_are_refused() {
    let Some(sshd) = Sshd::start(VERSION_2) else {
        return;
    };
    let origin = Origin::with(&[("one/SKILL.md", SKILL)]);
    let told = |key: &str, known: &str| {
        let remote = sshd.remote(&origin, key, known);
        match Kept::new().try_update(&remote, None) {
            Err(Error::Refused(words)) => words,
            other => panic!("{other:?}"),
        }
    };
    let words = told("client", "nobody");
    assert!(
        words.starts_with("the host's key is none that is known"),
        "{words}"
    );
    let words = told("stranger", "known");
    assert!(words.contains("Permission denied"), "{words}");
    let gone = Origin::with(&[("one/SKILL.md", SKILL)]);
    let remote = sshd.remote(&gone, "client", "known");
    std::fs::remove_dir_all(gone.path()).expect("removed");
    let error = Kept::new().try_update(&remote, None);
    assert!(matches!(error, Err(Error::Refused(_))), "{error:?}");
}
