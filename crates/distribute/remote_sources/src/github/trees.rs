//! Lists the tree of a repository, and reads the files of one skill.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::super::web::{Ask, Fetcher, redacted};
use super::super::{Error, Files, Item, RepositoryFacts, Work};
use super::repositories::Repository;
use super::{GitHub, is_object, is_repository};
use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem};
use skill_folder::{
    Inclusion, MAX_DEPTH, MAX_PATTERNS, Patterns, SKILLIGNORE, TOO_DEEP, is_no_place_of_skills,
    left_out, pointer, too_deep, too_many_patterns,
};

/// Files that are requested at once.
const FETCH_CONCURRENCY: usize = 4;
/// Trees that are requested one by one if the whole was truncated.
const MAX_TREES: usize = 5000;
/// Names of folders with tests and with examples.
const TESTS: [&str; 5] = ["test", "tests", "__tests__", "spec", "evals"];
const EXAMPLES: [&str; 2] = ["example", "examples"];

#[derive(Deserialize)]
struct Tree {
    tree: Vec<Entry>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct Entry {
    path: String,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    sha: String,
    #[serde(default)]
    size: u64,
}

#[derive(Deserialize)]
struct Blob {
    content: String,
    encoding: String,
}

/// The skills of a tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TreeContents {
    /// Files, in skills and outside of them.
    pub(super) files: usize,
    skills: Vec<Skill>,
    pub(super) skipped: Vec<(String, String)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Skill {
    /// Path of its folder; empty: the repository itself.
    path: String,
    tree: String,
    has_tests: bool,
    has_examples: bool,
}

#[derive(Serialize, Deserialize)]
struct Handle {
    repository: String,
    tree: String,
}

impl TreeContents {
    /// The skills as items of a repository that is listed under a name.
    pub(super) fn items(
        &self,
        name: &str,
        repository: &Repository,
        facts: &RepositoryFacts,
    ) -> Result<Vec<Item>, Error> {
        let item = |skill: &Skill| {
            let handle = Handle {
                repository: repository.full_name.clone(),
                tree: skill.tree.clone(),
            };
            let handle = serde_json::to_string(&handle);
            Ok(Item {
                path: match skill.path.as_str() {
                    "" => name.to_owned(),
                    path => format!("{name}/{path}"),
                },
                fingerprint: skill.tree.clone(),
                author: Some(repository.author().to_owned()),
                handle: handle.map_err(|error| Error::Invalid(error.to_string()))?,
                facts: Some(RepositoryFacts {
                    has_tests: skill.has_tests,
                    has_examples: skill.has_examples,
                    ..facts.clone()
                }),
            })
        };
        self.skills.iter().map(item).collect()
    }
}

/// Lists the skills of a tree.
pub(super) async fn list(
    fetcher: &Fetcher<'_>,
    repository: &str,
    tree: &str,
) -> Result<TreeContents, Error> {
    let entries = entries(fetcher, repository, tree, fetcher.work().limits.files).await?;
    let mut found = TreeContents::default();
    let entries = places_of_skills(entries, &mut found.skipped);
    let (mut trees, mut folders) = (BTreeMap::from([("", tree)]), BTreeSet::new());
    let (mut tests, mut examples) = (BTreeSet::new(), BTreeSet::new());
    for entry in &entries {
        let (folder, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        if entry.kind == "tree" {
            trees.insert(&entry.path, &entry.sha);
            for (names, set) in [(&TESTS[..], &mut tests), (&EXAMPLES[..], &mut examples)] {
                if names.contains(&name) {
                    set.extend(above(folder));
                }
            }
            continue;
        }
        found.files += 1;
        if name.eq_ignore_ascii_case(FilePath::SKILL_MD) {
            if entry.kind == "blob" && matches!(entry.mode.as_str(), "100644" | "100755" | "100664")
            {
                folders.insert(folder);
            } else {
                let why = "it is a link, or no file".to_owned();
                found.skipped.push((model::shown(&entry.path, 300), why));
            }
        }
    }
    // Tests and examples at the top of a repository count for all of its skills.
    let top = |names: &[&str]| trees.keys().any(|path| names.contains(path));
    let (top_tests, top_examples) = (top(&TESTS), top(&EXAMPLES));
    for folder in folders {
        let Some(sha) = trees.get(folder).filter(|sha| is_object(sha)) else {
            let why = "its folder has no tree".to_owned();
            found.skipped.push((model::shown(folder, 300), why));
            continue;
        };
        found.skills.push(Skill {
            path: folder.to_owned(),
            tree: (*sha).to_owned(),
            has_tests: top_tests || tests.contains(folder),
            has_examples: top_examples || examples.contains(folder),
        });
    }
    Ok(found)
}

/// Leaves out the entries of folders that have no skills, and reports those folders.
fn places_of_skills(entries: Vec<Entry>, skipped: &mut Vec<(String, String)>) -> Vec<Entry> {
    let mut out = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.kind == "tree") {
        let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
        let why = is_no_place_of_skills(name);
        if let Some(why) = why.or_else(|| is_last(entry).then_some(TOO_DEEP)) {
            out.insert(entry.path.clone());
            if !above(parent(&entry.path)).any(|folder| out.contains(folder)) {
                skipped.push((model::shown(&entry.path, 300), why.to_owned()));
            }
        }
    }
    let is_in = |entry: &Entry| !above(&entry.path).any(|folder| out.contains(folder));
    entries.into_iter().filter(is_in).collect()
}

/// A folder at the greatest depth: its entries are left out.
fn is_last(entry: &Entry) -> bool {
    entry.kind == "tree" && entry.path.matches('/').count() == MAX_DEPTH
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// A folder and those above it, without the top.
fn above(folder: &str) -> impl Iterator<Item = &str> {
    let first = Some(folder).filter(|folder| !folder.is_empty());
    std::iter::successors(first, |folder| Some(folder.rsplit_once('/')?.0))
}

/// All entries of a tree, with their paths below it.
async fn entries(
    fetcher: &Fetcher<'_>,
    repository: &str,
    tree: &str,
    max: usize,
) -> Result<Vec<Entry>, Error> {
    let whole = one(fetcher, repository, tree, true).await?;
    let too_many = || {
        Error::TooLarge(format!(
            "a tree of {repository} has more than {max} entries"
        ))
    };
    if !whole.truncated {
        let files = whole.tree.iter().filter(|entry| entry.kind != "tree");
        return if files.count() > max {
            Err(too_many())
        } else {
            Ok(whole.tree)
        };
    }
    // GitHub truncates beyond 100,000 entries or 7 MB. One tree at a time has no such limit, but
    // costs a request each.
    let (mut found, mut asked) = (Vec::new(), 0);
    let mut open = vec![(String::new(), tree.to_owned())];
    while let Some((above, sha)) = open.pop() {
        asked += 1;
        if asked > MAX_TREES {
            let message =
                format!("a tree of {repository} has more than {MAX_TREES} folders, and is cut off");
            return Err(Error::TooLarge(message));
        }
        let part = one(fetcher, repository, &sha, false).await?;
        if part.truncated {
            return Err(Error::TooLarge(format!(
                "a single folder of {repository} is cut off"
            )));
        }
        for mut entry in part.tree {
            entry.path = format!("{above}{}", entry.path);
            if entry.kind == "tree" && !is_last(&entry) {
                open.push((format!("{}/", entry.path), entry.sha.clone()));
            }
            found.push(entry);
            if found.len() > max {
                return Err(too_many());
            }
        }
    }
    Ok(found)
}

async fn one(
    fetcher: &Fetcher<'_>,
    repository: &str,
    sha: &str,
    deep: bool,
) -> Result<Tree, Error> {
    if !is_object(sha) {
        let sha = model::shown(sha, 80);
        return Err(Error::Unavailable(format!("`{sha}` is no id of a tree")));
    }
    let query = if deep { "?recursive=1" } else { "" };
    let url = format!("repos/{repository}/git/trees/{sha}{query}");
    fetcher.below(&url, Ask::default()).await?.there()?.json()
}

impl GitHub {
    pub(super) async fn files(&self, item: &Item, work: &Work) -> Result<Files, Error> {
        let fetcher = Fetcher::new(&self.web, work);
        let wrong = || Error::Invalid("this is no item of GitHub".to_owned());
        let handle: Handle = serde_json::from_str(&item.handle).map_err(|_| wrong())?;
        if !is_repository(&handle.repository) {
            return Err(wrong());
        }
        let entries = entries(
            &fetcher,
            &handle.repository,
            &handle.tree,
            work.limits.files,
        )
        .await?;
        let (fetcher, repository) = (&fetcher, handle.repository.as_str());
        let (mut wanted, mut files) = (Vec::new(), Files::default());
        let (patterns, mut texts) =
            read_patterns(fetcher, repository, &entries, &mut files.problems).await?;
        let mut out = BTreeSet::new();
        for entry in entries {
            let shown = model::shown(&entry.path, 200);
            if entry.kind == "tree" {
                let is_out = matches!(patterns.take(&entry.path), Inclusion::Out(..));
                if is_last(&entry) && !is_out {
                    files.problems.push(too_deep(&shown));
                }
                continue;
            }
            let path = match patterns.take(&entry.path) {
                Inclusion::In(path) => path,
                Inclusion::Out(what, why) => {
                    // One report for a folder, not one for each of its files.
                    if out.insert(what.to_owned()) {
                        files.problems.push(left_out(&model::shown(what, 200), why));
                    }
                    continue;
                }
                Inclusion::Invalid(error) => {
                    let message = error.to_string();
                    files
                        .problems
                        .push(Problem::error("path-invalid", &shown, 0, message));
                    continue;
                }
            };
            if is_file(&entry) {
                wanted.push((path, entry));
            } else {
                let message = "it is a link or a repository of its own, and was left out";
                files
                    .problems
                    .push(Problem::warning("file-not-regular", &shown, 0, message));
            }
        }
        // By the sizes in the tree, before any file is requested; `blob` checks them.
        let bytes = wanted
            .iter()
            .fold(0_u64, |all, (_, entry)| all.saturating_add(entry.size));
        if wanted.len() > MAX_FILES || bytes > MAX_SKILL_BYTES {
            let path = model::shown(&item.path, 200);
            let message =
                format!("`{path}` has more than {MAX_FILES} files or {MAX_SKILL_BYTES} bytes");
            return Err(Error::TooLarge(message));
        }
        let blobs = stream::iter(wanted).map(|(path, entry)| {
            let known = texts.remove(path.as_str());
            async move {
                let content = match known {
                    Some(known) => known,
                    None => blob(fetcher, repository, &entry).await?,
                };
                Ok::<_, Error>((path, content))
            }
        });
        let read: Vec<_> = blobs.buffered(FETCH_CONCURRENCY).try_collect().await?;
        for (path, content) in read {
            match pointer(path.as_str(), &content) {
                Some(problem) => files.problems.push(problem),
                None => _ = files.files.insert(path, content),
            }
        }
        Ok(files)
    }
}

fn is_file(entry: &Entry) -> bool {
    entry.kind == "blob" && entry.mode != "120000"
}

/// The patterns of a skill, and the bytes of their files by path: they are files of it as well.
type PatternFiles = (Patterns, BTreeMap<String, Bytes>);

/// Reads the files of patterns, before it is known which other files are wanted. Those above come
/// first, as they may leave out the folder of another one.
async fn read_patterns(
    fetcher: &Fetcher<'_>,
    repository: &str,
    entries: &[Entry],
    problems: &mut Vec<Problem>,
) -> Result<PatternFiles, Error> {
    let is_one = |entry: &&Entry| {
        let name = entry.path.rsplit('/').next();
        is_file(entry) && name == Some(SKILLIGNORE)
    };
    let mut files: Vec<_> = entries.iter().filter(is_one).collect();
    files.sort_by_key(|entry| entry.path.matches('/').count());
    let (mut patterns, mut texts) = PatternFiles::default();
    for entry in files {
        if !matches!(patterns.take(&entry.path), Inclusion::In(_)) {
            continue;
        }
        if entry.size > MAX_PATTERNS || texts.len() == MAX_FILES {
            problems.push(too_many_patterns(&model::shown(&entry.path, 200)));
            continue;
        }
        let text = blob(fetcher, repository, entry).await?;
        patterns.add(parent(&entry.path), &text);
        texts.insert(entry.path.clone(), text);
    }
    Ok((patterns, texts))
}

/// Fetches a file, of the size in the tree.
async fn blob(fetcher: &Fetcher<'_>, repository: &str, entry: &Entry) -> Result<Bytes, Error> {
    if !is_object(&entry.sha) {
        let sha = model::shown(&entry.sha, 80);
        return Err(Error::Unavailable(format!("`{sha}` is no id of a file")));
    }
    let url = format!("repos/{repository}/git/blobs/{}", entry.sha);
    let ask = Ask {
        // Base64 is 4/3 of the file, and has line ends as `\n` in JSON; the rest are other fields.
        max: entry.size.saturating_mul(2) + 64 * 1024,
        ..Ask::default()
    };
    let answer = fetcher.below(&url, ask).await?.there()?;
    let blob: Blob = answer.json()?;
    let content = match blob.encoding.as_str() {
        "base64" => {
            let text: String = blob.content.split_ascii_whitespace().collect();
            STANDARD.decode(text).ok()
        }
        "utf-8" => Some(blob.content.into_bytes()),
        _ => None,
    };
    let content = content.filter(|content| content.len() as u64 == entry.size);
    content.map(Bytes::from).ok_or_else(|| {
        let url = redacted(&answer.url);
        Error::Unavailable(format!("{url} is not the file that the tree has"))
    })
}
