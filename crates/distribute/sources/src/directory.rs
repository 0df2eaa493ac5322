//! A folder on disk with skills in it.

use std::path::{Component, Path, PathBuf};

use futures_util::future::BoxFuture;

use super::{Error, Fetch, Files, Item, Listing, Look, Work, run_blocking};
use model::{Digest, FilePath, Problem, Severity, bundle_digest};

/// The rule of a file that could not be read, as [`skill_folder::read`] names it.
const UNREADABLE: &str = "file-unreadable";

/// The rule of a pointer to a file in Large File Storage, as [`skill_folder::read`] names it.
const POINTER: &str = "file-lfs-pointer";

/// A folder on disk. Skills are found and read as the command line does it.
///
/// Every look reads every file, as the time of a file says nothing of its bytes. The bytes are
/// not kept.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The folder at an absolute path.
    ///
    /// # Errors
    /// The path is not absolute.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        if !root.is_absolute() {
            let message = format!("`{}` is not an absolute path", root.display());
            return Err(Error::Invalid(message));
        }
        Ok(Self { root })
    }
}

impl Fetch for Directory {
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Look, Error>> {
        let root = self.root.clone();
        Box::pin(async move {
            let inner = Work {
                stop: work.stop.child_token(),
                ..work.clone()
            };
            // Dropping this future does not end the thread that lists, so the guard has it stop.
            let _stops = inner.stop.clone().drop_guard();
            let listing = on_disk(work, move || list(&root, &inner)).await?;
            if mark == Some(listing.mark.as_str()) {
                return Ok(Look::Unchanged { rate_limit: None });
            }
            Ok(Look::Listing(listing))
        })
    }

    fn read<'a>(&'a self, item: &'a Item, work: &'a Work) -> BoxFuture<'a, Result<Files, Error>> {
        let (root, item) = (self.root.clone(), item.clone());
        Box::pin(on_disk(work, move || read(&root, &item)))
    }
}

/// Waits for a thread that reads the disk, until the time is over or nobody wants it any more.
async fn on_disk<T: Send + 'static>(
    work: &Work,
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let late = |_| Error::Unavailable("the folder was not read in time".to_owned());
    let read = tokio::time::timeout(work.limits.time, run_blocking(read));
    match work.stop.run_until_cancelled(read).await {
        None => Err(Error::Stopped),
        Some(read) => read.map_err(late)?,
    }
}

pub(crate) fn list(root: &Path, work: &Work) -> Result<Listing, Error> {
    let shown = root.display();
    match root.metadata() {
        Ok(data) if data.is_dir() => {}
        Ok(_) => return Err(Error::Refused(format!("`{shown}` is no folder"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Refused(format!("there is no folder `{shown}`")));
        }
        Err(error) => return Err(Error::Refused(format!("`{shown}`: {error}"))),
    }
    // Transient, since a folder that vanished during the walk is there or not at the next look.
    let is_wanted = || !work.stop.is_cancelled();
    let found = skill_folder::find_while(root, &is_wanted).map_err(Error::Unavailable)?;
    let found = found.ok_or(Error::Stopped)?;
    if found.folders.len() > work.limits.skills {
        let max = work.limits.skills;
        return Err(Error::TooLarge(format!(
            "`{shown}` has more than {max} skills"
        )));
    }
    let mut listing = Listing::default();
    let (mut files, mut bytes) = (0, 0_u64);
    for folder in &found.folders {
        if work.stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        let Some(path) = inside(root, folder) else {
            let shown = folder.strip_prefix(root).unwrap_or(folder).display();
            listing
                .skipped
                .push((shown.to_string(), "its path is not UTF-8".to_owned()));
            continue;
        };
        let read = read_whole(root, &path)?;
        files += read.files.len();
        bytes += read
            .files
            .values()
            .map(|content| content.len() as u64)
            .sum::<u64>();
        if files > work.limits.files || bytes > work.limits.bytes {
            let (files, bytes) = (work.limits.files, work.limits.bytes);
            let message = format!("`{shown}` has more than {files} files or {bytes} bytes");
            return Err(Error::TooLarge(message));
        }
        listing.items.push(Item {
            fingerprint: fingerprint(&read),
            handle: path.clone(),
            path,
            ..Item::default()
        });
    }
    for (folder, why) in found.left_out {
        let path = folder.strip_prefix(root).unwrap_or(&folder).display();
        listing.skipped.push((path.to_string(), why));
    }
    // With what was skipped: one that can be read now must not count as no change.
    let all = serde_json::to_vec(&(&listing.items, &listing.skipped)).unwrap_or_default();
    listing.mark = Digest::of(&all).to_string();
    Ok(listing)
}

/// The path of a folder below the root, `.` for the root itself.
fn inside(root: &Path, folder: &Path) -> Option<String> {
    let path = folder.strip_prefix(root).ok()?.to_str()?;
    let path = path.replace(std::path::MAIN_SEPARATOR, "/");
    Some(if path.is_empty() {
        ".".to_owned()
    } else {
        path
    })
}

/// The files of a skill. One that vanishes while it is read is an error of the look, since half a
/// skill is none. One that may not be read is a problem of the skill, and so is a SKILL.md that is
/// a pointer: they will be at the next look as well.
fn read_whole(root: &Path, path: &str) -> Result<skill_folder::SkillFiles, Error> {
    let inside = Path::new(if path == "." { "" } else { path });
    let folder = root.join(inside);
    let mut read = skill_folder::read_below(root, inside);
    let is_skill_md = |path: &str| path.eq_ignore_ascii_case(FilePath::SKILL_MD);
    let has_skill_md = read.files.keys().any(|path| is_skill_md(path.as_str()));
    for problem in &mut read.problems {
        // A warning elsewhere. Here it refuses the skill, or the check below would take the
        // SKILL.md for vanished, and with it fail the whole source at each look.
        if problem.rule == POINTER && is_skill_md(&problem.file) && !has_skill_md {
            problem.severity = Severity::Error;
        }
    }
    let gone = read.problems.iter().find(|problem| {
        let path = folder.join(&problem.file);
        problem.rule == UNREADABLE && path.symlink_metadata().is_err()
    });
    let shown = folder.display();
    if let Some(Problem { file, .. }) = gone {
        let message = format!("`{file}` in `{shown}` vanished while it was read");
        return Err(Error::Unavailable(message));
    }
    if !read.is_refused() && !has_skill_md {
        let message = format!("the SKILL.md of `{shown}` vanished while it was read");
        return Err(Error::Unavailable(message));
    }
    Ok(read)
}

/// Stands for the bytes of a skill, and for the problems that refuse it.
fn fingerprint(read: &skill_folder::SkillFiles) -> String {
    let files = read.files.iter();
    let digest = bundle_digest(files.map(|(path, content)| (path, Digest::of(content))));
    if !read.is_refused() {
        return digest.to_string();
    }
    let problems = serde_json::to_vec(&read.problems).unwrap_or_default();
    format!("{digest} {}", Digest::of(&problems))
}

fn read(root: &Path, item: &Item) -> Result<Files, Error> {
    let wrong = || Error::Invalid("this is no item of the folder".to_owned());
    // Handles are stored, and a record is no reason to read elsewhere on this machine.
    let below = Path::new(&item.handle);
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !below.components().all(is_inside) {
        return Err(wrong());
    }
    let folder = if item.handle == "." {
        root.to_owned()
    } else {
        root.join(below)
    };
    let data = folder.symlink_metadata();
    if !data.is_ok_and(|data| data.is_dir()) {
        return Err(Error::Unavailable(format!(
            "`{}` is gone",
            folder.display()
        )));
    }
    // A folder on the path may have become a link out of the root since it was listed.
    if !skill_folder::absolute(&folder).starts_with(skill_folder::absolute(root)) {
        return Err(wrong());
    }
    let read = read_whole(root, &item.handle)?;
    // Else these bytes would be published under the fingerprint of others, and the next sync
    // would see no change.
    if fingerprint(&read) != item.fingerprint {
        let folder = folder.display();
        let message = format!("`{folder}` changed since it was listed");
        return Err(Error::Unavailable(message));
    }
    Ok(Files {
        files: read.files,
        problems: read.problems,
        version: None,
    })
}
