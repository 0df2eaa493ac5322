//! Export of all skills as a tree of files, and as a Git repository: a way out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use provision::Source as _;
use serde::{Deserialize, Serialize};

use super::connect::{Client, pages};
use super::output::{self, Done, Failed, GOOD, Output, counted};
use super::served::Served;
use contract::v1;
use model::{Code, SkillId, VersionNumber};
use store::AtomicFile;

/// The file with the list of exported skills.
const LIST: &str = "skills.json";
/// The folder in which a skill is written before it is moved to its own. No id begins with a
/// dot.
const WORK: &str = ".writing";
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
    id: String,
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

/// Reads the list of an earlier export; empty where the folder is empty, or does not exist.
fn earlier(folder: &Path) -> Result<List, Failed> {
    let list = folder.join(LIST);
    match fs::read(&list) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            Failed::file(format!(
                "{} is no list of an export: {error}",
                list.display()
            ))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
            // An export removes skills that are gone, so it must not get a folder of other files.
            if entries.any(|entry| entry.file_name() != ".git") {
                let message = format!(
                    "{} has files, and no {LIST} of an earlier export",
                    folder.display()
                );
                return Err(Failed::file(message).hint("name an empty or new folder"));
            }
            Ok(List::default())
        }
        Err(error) => Err(at(&list)(error)),
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
                id: skill.id,
                version_number: info.version_number,
                semantic_version: info.semantic_version,
                digest: info.digest,
                created_at: info.created_at.map_or(0, |time| time.seconds),
            });
        }
        Ok(page.next_page_token)
    })
    .await?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

pub(super) async fn all(client: &Client, folder: PathBuf, options: Tree, output: &Output) -> Done {
    let before = earlier(&folder)?;
    let namespace = options.namespace.clone().unwrap_or_default();
    let skills = wanted(client, &namespace).await?;
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let work = folder.join(WORK);
    if work.exists() {
        // Of an export that was killed.
        fs::remove_dir_all(&work).map_err(at(&work))?;
    }
    if before.skills.is_empty() {
        // Before the first skill: an export that is killed now can be repeated, as the folder is
        // one with a list.
        write_list(&folder, &before)?;
    }
    // Before anything is written: on a file system without case a new skill's folder may be
    // that of a removed one.
    let removed = remove_gone(&folder, &before, &skills)?;
    let bar = output::bar(skills.len() as u64, "skills");
    let mut written = 0;
    for entry in &skills {
        let to = folder.join(&entry.id);
        let is_same = before.skills.contains(entry) && to.is_dir();
        if !is_same {
            write(client, entry, &to, &work).await?;
            written += 1;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    // The date of the commit: with today's the same skills would make another commit.
    let newest = skills.iter().map(|entry| entry.created_at).max();
    let newest = newest.unwrap_or(0);
    let count = skills.len();
    write_list(&folder, &List { skills })?;
    let commit = options
        .git
        .then(|| commit(&folder, count, newest, &options));
    let commit = commit.transpose()?;
    output.value(&serde_json::json!({
        "path": folder.display().to_string(),
        "skills": count,
        "written": written,
        "removed": removed,
        "commit": commit,
    }))?;
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

/// Writes the list, whole or not at all.
fn write_list(folder: &Path, list: &List) -> Done {
    let path = folder.join(LIST);
    let text = serde_json::to_string_pretty(list).map_err(Failed::fault)? + "\n";
    let file = AtomicFile::new(&path).map_err(at(&path))?;
    file.file().write_all(text.as_bytes()).map_err(at(&path))?;
    file.persist(true).map_err(at(&path))
}

/// Removes the skills that an earlier export wrote and that no longer exist, with folders that
/// become empty. Returns how many.
fn remove_gone(folder: &Path, before: &List, now: &[Entry]) -> Result<usize, Failed> {
    let there: BTreeSet<&str> = now.iter().map(|entry| entry.id.as_str()).collect();
    let gone = before.skills.iter();
    let gone = gone.filter(|entry| !there.contains(entry.id.as_str()));
    let mut removed = 0;
    for entry in gone {
        // The list may have been edited or pulled: only a valid id is a safe path.
        let Ok(id) = entry.id.parse::<SkillId>() else {
            continue;
        };
        let path = folder.join(id.as_str());
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(at(&path))?;
            removed += 1;
        }
        for above in path.ancestors().skip(1).take(2) {
            // Fails where it is not empty, as it should.
            fs::remove_dir(above).ok();
        }
    }
    Ok(removed)
}

/// Writes a skill to `work`, and moves it to its own folder: one that is there is complete.
async fn write(client: &Client, entry: &Entry, to: &Path, work: &Path) -> Done {
    let id: SkillId = entry.id.parse().map_err(Failed::fault)?;
    let number = VersionNumber::new(entry.version_number);
    let number = number.ok_or_else(|| Failed::fault("a version without a number"))?;
    let archive = Served(client).archive(&id, number).await?;
    let files = install::unpack(&archive.bytes).map_err(Failed::file)?;
    let digests = files
        .iter()
        .map(|(path, content)| (path, model::Digest::of(content)));
    let digest = model::bundle_digest(digests).to_string();
    if digest != entry.digest {
        let message = format!("'{id}' is not what the server has: its digest is {digest}");
        return Err(Failed::new(Code::DataDamaged, message));
    }
    for (path, content) in files {
        let file = work.join(path.as_str());
        let folder = file.parent().unwrap_or(work);
        fs::create_dir_all(folder).map_err(at(folder))?;
        fs::write(&file, &content).map_err(at(&file))?;
    }
    // A rename does not replace a folder with files in it.
    if to.exists() {
        fs::remove_dir_all(to).map_err(at(to))?;
    }
    let above = to.parent().unwrap_or(to);
    fs::create_dir_all(above).map_err(at(above))?;
    fs::rename(work, to).map_err(at(to))
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
