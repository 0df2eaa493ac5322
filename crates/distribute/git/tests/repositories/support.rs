//! Repositories to fetch, and servers that serve them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use egress::Egress;
use repertoire_git::{
    CommitSkills, Earlier, Error, Limits, Remote, RemoteOptions, Repository, Update,
};
use tempfile::TempDir;

pub(crate) const SKILL: &str = "---\nname: x\ndescription: For a test.\n---\nDo it.\n";

/// A repository that is fetched.
pub(crate) struct Origin {
    folder: TempDir,
}

impl Origin {
    pub(crate) fn new() -> Self {
        let origin = Self {
            folder: TempDir::new().expect("a folder"),
        };
        origin.git(&["init", "-q", "-b", "main"]);
        for (key, value) in [
            ("user.name", "T"),
            ("user.email", "t@example.org"),
            ("commit.gpgsign", "false"),
            ("gc.auto", "0"),
            ("receive.denyCurrentBranch", "ignore"),
        ] {
            origin.git(&["config", key, value]);
        }
        origin
    }

    /// With commits of these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let origin = Self::new();
        origin.commit(files);
        origin
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    /// What `git` prints, given something to read.
    pub(crate) fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        use std::io::Write as _;
        let mut child = Command::new("git")
            .args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git");
        child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(input)
            .expect("written");
        let output = child.wait_with_output().expect("an end");
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .expect("text")
            .trim()
            .to_owned()
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> String {
        self.write(files);
        self.commit_all()
    }

    pub(crate) fn commit_all(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The id of a blob.
    pub(crate) fn blob(&self, content: &[u8]) -> String {
        self.git_with(&["hash-object", "-w", "--stdin"], content)
    }

    /// A tree as it is written, with whatever names.
    pub(crate) fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut raw = Vec::new();
        for (mode, name, id) in entries {
            raw.extend_from_slice(mode.as_bytes());
            raw.push(b' ');
            raw.extend_from_slice(name);
            raw.push(0);
            for at in (0..id.len()).step_by(2) {
                raw.push(u8::from_str_radix(&id[at..at + 2], 16).expect("an id"));
            }
        }
        self.git_with(
            &["hash-object", "-t", "tree", "--literally", "-w", "--stdin"],
            &raw,
        )
    }

    /// Makes `main` a commit of a tree.
    pub(crate) fn commit_tree(&self, tree: &str) -> String {
        let commit = self.git(&["commit-tree", tree, "-m", "x"]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
        commit
    }
}

pub(crate) fn options(url: &str) -> RemoteOptions {
    RemoteOptions {
        url: url.to_owned(),
        reference: String::new(),
        credential: None,
        ssh_key: None,
        known_hosts: None,
        permits_files: true,
        egress: Egress::permitting(&["0.0.0.0/0", "::/0"]).expect("networks"),
    }
}

pub(crate) fn remote(url: &str) -> Remote {
    Remote::new(options(url)).expect("a remote")
}

pub(crate) fn remote_ref(url: &str, reference: &str) -> Remote {
    let options = RemoteOptions {
        reference: reference.to_owned(),
        ..options(url)
    };
    Remote::new(options).expect("a remote")
}

pub(crate) fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        silence: Duration::from_secs(10),
        ..Limits::default()
    }
}

/// What is kept of a remote.
pub(crate) struct Kept {
    pub(crate) folder: TempDir,
    pub(crate) repository: Repository,
}

impl Kept {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self {
            repository: Repository::new(folder.path()),
            folder,
        }
    }

    pub(crate) fn try_update(
        &self,
        remote: &Remote,
        earlier: Option<&Update>,
    ) -> Result<Update, Error> {
        self.update_within(remote, earlier, &limits())
    }

    pub(crate) fn update_within(
        &self,
        remote: &Remote,
        earlier: Option<&Update>,
        limits: &Limits,
    ) -> Result<Update, Error> {
        let earlier = earlier.map(|update| Earlier {
            commit: update.tip.commit.clone(),
            committed_at: update.tip.committed_at,
        });
        let stop = Arc::new(AtomicBool::new(false));
        self.repository
            .update(remote, earlier.as_ref(), limits, stop)
    }

    pub(crate) fn update(&self, remote: &Remote, earlier: Option<&Update>) -> Update {
        self.try_update(remote, earlier).expect("an update")
    }

    pub(crate) fn find(&self, update: &Update) -> CommitSkills {
        self.find_below(update, "").expect("skills")
    }

    pub(crate) fn find_below(&self, update: &Update, below: &str) -> Result<CommitSkills, Error> {
        let commit = &update.tip.commit;
        let stop = AtomicBool::new(false);
        self.repository
            .find(commit, below, (200_000, 50_000), &stop)
    }

    /// Paths of the skills.
    pub(crate) fn paths(&self, update: &Update) -> Vec<String> {
        let skills = self.find(update).skills;
        skills.into_iter().map(|skill| skill.path).collect()
    }

    /// Files of a skill, and its problems as `severity rule file`.
    pub(crate) fn read(&self, update: &Update, path: &str) -> (Vec<String>, Vec<String>) {
        let skills = self.find(update).skills;
        let skill = skills.iter().find(|skill| skill.path == path);
        let tree = &skill.expect("the skill").tree;
        let stop = AtomicBool::new(false);
        let read = self.repository.read(tree, &stop).expect("files");
        let problems = read.problems.iter();
        (
            read.files
                .keys()
                .map(|path| path.as_str().to_owned())
                .collect(),
            problems
                .map(|problem| {
                    let severity = format!("{:?}", problem.severity).to_lowercase();
                    format!("{severity} {} {}", problem.rule, problem.file)
                })
                .collect(),
        )
    }

    pub(crate) fn pack_folder(&self) -> PathBuf {
        self.folder.path().join("repository/objects/pack")
    }

    pub(crate) fn packs(&self) -> usize {
        let files = fs::read_dir(self.pack_folder()).expect("packs");
        let paths = files.map(|file| file.expect("a file").path());
        paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "pack"))
            .count()
    }
}
