//! Export of all skills as a tree of files, and as a Git repository: a way out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use clap::Args;
use provision::Source as _;
use root_folder::{Kind, RootFolder, Unread};
use serde::{Deserialize, Serialize};

use super::connect::{Client, pages};
use super::output::{self, Done, Failed, GOOD, Output, WARN, counted};
use super::served::Served;
use contract::v1;
use model::{
    Code, Digest, FilePath, MAX_FILES, MAX_SKILL_BYTES, SkillId, VersionNumber, bundle_digest,
    shown,
};

/// The file with the list of exported skills.
const LIST: &str = "skills.json";
/// The folder in which a skill is written before it is moved to its own. No id begins with a
/// dot.
const WORK: &str = ".writing";
/// Bytes of a list that are read.
const MAX_LIST_BYTES: u64 = 256 * 1024 * 1024;
const SKILLS_PER_PAGE: i32 = 500;
/// The author of commits: the same everywhere, so that the same skills make the same commit.
const AUTHOR: &str = "Repertoire";
const EMAIL: &str = "repertoire@localhost";

#[derive(Debug, Args)]
pub(super) struct Tree {
    /// Only skills of this namespace: `source`, or `source/author`.
    #[arg(long, requires = "all")]
    namespace: Option<String>,
    /// Commit the tree to a Git repository in the folder.
    #[arg(long, requires = "all")]
    git: bool,
    /// Push the commit to a remote, with your own Git and what it knows of the remote.
    #[arg(long, value_name = "URL", requires = "git")]
    push: Option<String>,
    /// The branch to push to.
    #[arg(long, default_value = "main", requires = "git")]
    branch: String,
}

/// A skill in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    id: SkillId,
    version_number: u32,
    semantic_version: String,
    digest: String,
    created_at: i64,
}

/// The skills of an export.
#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    skills: Vec<Entry>,
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> Failed + '_ {
    move |error| Failed::file(format!("cannot write {}: {error}", path.display()))
}

/// Reads the list of an earlier export; empty where the folder is empty.
fn earlier(folder: &RootFolder) -> Result<List, Failed> {
    let list = folder.path().join(LIST);
    match folder.read(Path::new(LIST), MAX_LIST_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            Failed::file(format!(
                "{} is no list of an export: {error}",
                list.display()
            ))
        }),
        Err(Unread::NoFile(error)) if error.kind() == ErrorKind::NotFound => {
            // An export removes skills that are gone, so it must not get a folder of other files.
            let names = folder.names().map_err(at(folder.path()))?;
            if names.iter().any(|name| name != ".git") {
                let message = format!(
                    "{} has files, and no {LIST} of an earlier export",
                    folder.path().display()
                );
                return Err(Failed::file(message).hint("name an empty or new folder"));
            }
            Ok(List::default())
        }
        Err(error) => Err(at(&list)(error.into())),
    }
}

/// Lists the active versions of all skills of a namespace, by id.
async fn wanted(client: &Client, namespace: &str) -> Result<Vec<Entry>, Failed> {
    let (source, author) = namespace.split_once('/').unwrap_or((namespace, ""));
    let mut request = v1::ListSkillsRequest {
        page_size: SKILLS_PER_PAGE,
        source: source.to_owned(),
        author: author.to_owned(),
        ..Default::default()
    };
    let mut found = Vec::new();
    pages(async |page_token| {
        request.page_token = page_token;
        let page = client.lookup().list_skills(request.clone()).await?;
        let page = page.into_inner();
        // Every server brings the built-in ones itself.
        let own = page.skills.into_iter();
        for skill in own.filter(|skill| !skill.id.starts_with("builtin/")) {
            let request = v1::GetVersionRequest {
                skill_id: skill.id.clone(),
                ..Default::default()
            };
            let version = client.registry().get_version(request).await?.into_inner();
            let info = version.version.and_then(|version| version.info);
            let info = info.ok_or_else(|| Failed::fault("a version without what it is"))?;
            found.push(Entry {
                // An id is a safe path, and no other text is.
                id: skill.id.parse().map_err(Failed::fault)?,
                version_number: info.version_number,
                semantic_version: info.semantic_version,
                digest: info.digest,
                created_at: info.created_at.map_or(0, |time| time.seconds),
            });
        }
        Ok(page.next_page_token)
    })
    .await?;
    found.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    Ok(found)
}

pub(super) async fn all(client: &Client, folder: PathBuf, options: Tree, output: &Output) -> Done {
    let path = root_folder::resolved(&folder).map_err(at(&folder))?;
    let mut list = match RootFolder::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => List::default(),
        root => earlier(&root.map_err(at(&folder))?)?,
    };
    let namespace = options.namespace.clone().unwrap_or_default();
    let skills = wanted(client, &namespace).await?;
    let mut mirror = Mirror {
        root: RootFolder::make(&path).map_err(at(&folder))?,
        known: BTreeMap::new(),
    };
    for entry in &list.skills {
        let digests = mirror.known.entry(entry.id.to_string()).or_default();
        digests.insert(entry.digest.clone());
    }
    // Of an export that was killed.
    mirror.remove(Path::new(WORK))?;
    // Before anything is written: on a file system without case a new skill's folder may be
    // that of a removed one.
    let removed = mirror.remove_gone(&skills)?;
    // Before the first skill, and with all that will be there: an export that is killed now can be
    // repeated, and knows what it wrote.
    let new = skills
        .iter()
        .filter(|new| !mirror.is_known(&new.id, &new.digest));
    list.skills.extend(new.cloned());
    mirror.write_list(&list)?;
    let bar = output::bar(skills.len() as u64, "skills");
    let (mut written, mut changed) = (0, Vec::new());
    for entry in &skills {
        if mirror.found(entry.id.as_str())?.digest != entry.digest {
            let files = fetch(client, entry).await?;
            changed.extend(mirror.permit(entry, &files)?);
            mirror.write(&entry.id, &files)?;
            written += 1;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    mirror.remove(Path::new(WORK))?;
    // The date of the commit: with today's the same skills would make another commit.
    let newest = skills.iter().map(|entry| entry.created_at).max();
    let newest = newest.unwrap_or(0);
    let count = skills.len();
    mirror.write_list(&List { skills })?;
    let commit = options
        .git
        .then(|| commit(&folder, count, newest, &options));
    let commit = commit.transpose()?;
    output.value(&serde_json::json!({
        "path": folder.display().to_string(),
        "skills": count,
        "written": written,
        "removed": removed,
        "changed": changed,
        "commit": commit,
    }))?;
    for path in &changed {
        output.note(&format!(
            "{WARN}written again:{WARN:#} {path}, which was changed"
        ));
    }
    output.line(&format!(
        "{GOOD}wrote{GOOD:#} {} ({}: {written} written, {removed} removed)",
        folder.display(),
        counted(count, "skill"),
    ))?;
    match commit {
        Some(commit) => output.line(&format!("{GOOD}committed{GOOD:#} {commit}")),
        None => Ok(()),
    }
}

/// The files in the folder of a skill.
#[derive(Debug, Default)]
struct Found {
    /// By path; without a digest: it is no file of a skill.
    files: BTreeMap<String, Option<Digest>>,
    /// The digest over all of them; empty: there is none.
    digest: String,
}

/// A tree of skills. What is in it may have been changed, or pulled from anywhere: it is compared
/// with what an export wrote, and nothing else is removed.
struct Mirror {
    root: RootFolder,
    /// The digests of each skill by the list: of what was written, or was to be written.
    known: BTreeMap<String, BTreeSet<String>>,
}

impl Mirror {
    fn failed(&self, inside: &Path) -> impl FnOnce(std::io::Error) -> Failed {
        let path = self.root.path().join(inside);
        move |error| at(&path)(error)
    }

    /// An export wrote these bytes of a skill.
    fn is_known(&self, id: &SkillId, digest: &str) -> bool {
        let digests = self.known.get(id.as_str());
        digests.is_some_and(|digests| digests.contains(digest))
    }

    fn remove(&self, inside: &Path) -> Done {
        self.root.remove(inside).map_err(self.failed(inside))
    }

    /// Writes the list, whole or not at all.
    fn write_list(&self, list: &List) -> Done {
        let text = serde_json::to_string_pretty(list).map_err(Failed::fault)? + "\n";
        let (list, bytes) = (Path::new(LIST), text.as_bytes());
        self.root.replace(list, bytes).map_err(self.failed(list))
    }

    /// Reads what is in the folder of a skill.
    fn found(&self, id: &str) -> Result<Found, Failed> {
        let folder = Path::new(id);
        let failed = || self.failed(folder);
        if self.root.kind(folder).map_err(failed())?.is_none() {
            return Ok(Found::default());
        }
        let folder = self.root.folder(folder, false).map_err(failed())?;
        let all = folder.files(MAX_FILES).map_err(failed())?;
        let all = all.ok_or_else(|| self.foreign(id, "more files than a skill has"))?;
        let mut found = Found::default();
        let mut digests = Vec::new();
        for (path, kind) in &all {
            let name = path.to_string_lossy();
            let known = name.parse::<FilePath>().ok();
            let read = known.filter(|_| *kind == Kind::File).and_then(|name| {
                let content = folder.read(path, MAX_SKILL_BYTES).ok()?;
                Some((name, Digest::of(&content)))
            });
            let digest = read.as_ref().map(|(_, digest)| *digest);
            found.files.insert(name.into_owned(), digest);
            digests.extend(read);
        }
        if digests.len() == all.len() && !all.is_empty() {
            let digests = digests.iter().map(|(path, digest)| (path, *digest));
            found.digest = bundle_digest(digests).to_string();
        }
        Ok(found)
    }

    /// The refusal of a folder that holds what no export wrote.
    fn foreign(&self, id: &str, what: &str) -> Failed {
        let path = self.root.path().join(id);
        let message = format!("{} has {what}, which no export wrote", path.display());
        Failed::file(message).hint("move that away, and export again")
    }

    /// Refuses to lose what no export wrote. Returns files of this version that were changed.
    fn permit(&self, entry: &Entry, files: &Files) -> Result<Vec<String>, Failed> {
        let found = self.found(entry.id.as_str())?;
        if found.files.is_empty() || self.is_known(&entry.id, &found.digest) {
            return Ok(Vec::new());
        }
        // Of another version it is not known what was changed, and what was added.
        let is_it = self.is_known(&entry.id, &entry.digest);
        let is_ours = |path: &&String| is_it && files.iter().any(|(of, _)| of.as_str() == **path);
        if let Some(path) = found.files.keys().find(|path| !is_ours(path)) {
            return Err(self.foreign(entry.id.as_str(), &format!("`{}`", shown(path, 200))));
        }
        let changed = files.iter().filter(|(path, content)| {
            found.files.get(path.as_str()) != Some(&Some(Digest::of(content)))
        });
        let changed = changed.map(|(path, _)| format!("{}/{path}", entry.id));
        Ok(changed.collect())
    }

    /// Removes the skills that an earlier export wrote and that no longer exist, with folders that
    /// become empty. Returns how many.
    fn remove_gone(&self, now: &[Entry]) -> Result<usize, Failed> {
        let there: BTreeSet<&str> = now.iter().map(|entry| entry.id.as_str()).collect();
        let gone = self.known.iter();
        let gone = gone.filter(|(id, _)| !there.contains(id.as_str()));
        let mut removed = 0;
        for (id, digests) in gone {
            let folder = Path::new(id);
            let found = self.found(id)?;
            if !found.files.is_empty() && !digests.contains(&found.digest) {
                return Err(self.foreign(id, "files that were added or changed"));
            }
            removed += usize::from(self.displace(folder).map_err(self.failed(folder))?);
            for above in folder.ancestors().skip(1).take(2) {
                // Fails where it is not empty, as it should.
                self.root.remove_empty(above).ok();
            }
        }
        Ok(removed)
    }

    /// Removes the folder of a skill, whole or not at all; false: there is none.
    fn displace(&self, folder: &Path) -> std::io::Result<bool> {
        if self.root.kind(folder)?.is_none() {
            return Ok(false);
        }
        let old = Path::new(WORK).join("old");
        self.root.rename(folder, &old)?;
        self.root.remove(&old)?;
        Ok(true)
    }

    /// Writes a skill next to the others, and moves it to its own folder: one that is there is
    /// complete.
    fn write(&self, id: &SkillId, files: &Files) -> Done {
        let (to, new) = (Path::new(id.as_str()), Path::new(WORK).join("new"));
        let written = || {
            for (path, content) in files {
                self.root
                    .write_new(&new.join(path.as_str()), content, false)?;
            }
            // A rename does not replace a folder with files in it.
            self.displace(to)?;
            self.root.rename(&new, to)
        };
        written().map_err(self.failed(to))
    }
}

/// The files of a version.
type Files = Vec<(FilePath, Bytes)>;

/// Fetches a version, and compares it with its digest.
async fn fetch(client: &Client, entry: &Entry) -> Result<Files, Failed> {
    let id = &entry.id;
    let number = VersionNumber::new(entry.version_number);
    let number = number.ok_or_else(|| Failed::fault("a version without a number"))?;
    let archive = Served(client).archive(id, number).await?;
    let files = install::unpack(&archive.bytes).map_err(Failed::file)?;
    let digests = files
        .iter()
        .map(|(path, content)| (path, Digest::of(content)));
    let digest = bundle_digest(digests).to_string();
    if digest != entry.digest {
        let message = format!("'{id}' is not what the server has: its digest is {digest}");
        return Err(Failed::new(Code::DataDamaged, message));
    }
    Ok(files)
}

/// Runs Git in the folder, and returns its stdout.
fn git<I: AsRef<OsStr>>(folder: &Path, time: i64, args: &[I]) -> Result<String, Failed> {
    // Without the `@` Git reads a small number as another date.
    let date = format!("@{time} +0000");
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(args);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), AUTHOR);
        command.env(format!("GIT_{role}_EMAIL"), EMAIL);
        command.env(format!("GIT_{role}_DATE"), &date);
    }
    let done = command.output();
    let done = done.map_err(|error| Failed::file(format!("cannot run git: {error}")))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    let words = model::shown(words.trim(), 500);
    Err(Failed::file(format!("git did not do it: {words}")))
}

/// Commits the folder, and pushes it where that was asked for. Returns the commit.
fn commit(folder: &Path, skills: usize, time: i64, options: &Tree) -> Result<String, Failed> {
    if !folder.join(".git").exists() {
        git(folder, time, &["init", "--quiet", "--initial-branch=main"])?;
    }
    // By force: a skill may have a `.gitignore`, and its files belong to the export all the same.
    git(folder, time, &["add", "--all", "--force", "."])?;
    let has_changes = !git(folder, time, &["status", "--porcelain"])?.is_empty();
    // Git refuses an empty commit; a second export of the same skills is none.
    if has_changes {
        let message = format!("Export of {}", counted(skills, "skill"));
        let args = [
            "commit",
            "--quiet",
            "--no-verify",
            "--no-gpg-sign",
            "-m",
            &message,
        ];
        git(folder, time, &args)?;
    }
    let commit = git(folder, time, &["rev-parse", "HEAD"])?;
    if let Some(remote) = &options.push {
        // `--`: a remote that begins with a hyphen is no option of Git.
        let to = format!("HEAD:refs/heads/{}", options.branch);
        git(folder, time, &["push", "--quiet", "--", remote, &to])?;
    }
    Ok(commit)
}
