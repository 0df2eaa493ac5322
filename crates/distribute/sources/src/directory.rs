//! A folder on disk with skills in it.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

use super::{Error, Fetch, Files, Item, Listing, Look, Work, run_blocking};
use model::{Digest, FilePath, Problem, Severity, bundle_digest};

/// Rules of files that could not be read, or not all of them, as [`skill_folder::read`] names them.
const UNREADABLE: &str = "file-unreadable";

/// Rule of a file that stands for one in Large File Storage, as [`skill_folder::read`] names it.
const POINTER: &str = "file-lfs-pointer";

/// A folder on disk. Skills are found and read as the command line does it.
///
/// Every look reads every file, as times of files do not tell what is in them; what was read
/// is not kept.
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
            // Whoever drops this wants no more of it.
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

/// Waits for what a thread for disks does, but no longer than anybody wants it.
async fn on_disk<T: Send + 'static>(
    work: &Work,
    done: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::time::timeout(work.limits.time, run_blocking(done));
    tokio::select! {
        () = work.stop.cancelled() => Err(Error::Stopped),
        done = done => match done {
            Ok(done) => done,
            Err(_) => Err(Error::Unavailable("the folder was not read in time".to_owned())),
        },
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
    // A folder that vanished on the way is there or not at the next look.
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
        let read = whole(root, &path)?;
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
            fingerprint: print(&read),
            handle: path.clone(),
            path,
            ..Item::default()
        });
    }
    for (folder, why) in found.left_out {
        let path = folder.strip_prefix(root).unwrap_or(&folder).display();
        listing.skipped.push((path.to_string(), why));
    }
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

/// The files of a skill, unless one of them vanished meanwhile: half a skill is none. One that
/// may not be read is a problem of the skill, and so is a SKILL.md that stands for another file:
/// it will at the next look as well.
fn whole(root: &Path, path: &str) -> Result<skill_folder::SkillFiles, Error> {
    let inside = Path::new(if path == "." { "" } else { path });
    let folder = root.join(inside);
    let mut read = skill_folder::read_below(root, inside);
    let is_skill_md = |path: &str| path.eq_ignore_ascii_case(FilePath::SKILL_MD);
    let has_skill_md = read.files.keys().any(|path| is_skill_md(path.as_str()));
    for problem in &mut read.problems {
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

/// Stands for the bytes of a skill, and for what keeps it from being one.
fn print(read: &skill_folder::SkillFiles) -> String {
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
    let below = Path::new(&item.handle);
    let is_inside = below.components().all(|part| {
        matches!(
            part,
            std::path::Component::Normal(_) | std::path::Component::CurDir
        )
    });
    if !is_inside {
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
    // A folder on the way may have become a link since.
    let (place, top) = (
        skill_folder::absolute(&folder),
        skill_folder::absolute(root),
    );
    if !place.starts_with(top) {
        return Err(wrong());
    }
    let read = whole(root, &item.handle)?;
    if print(&read) != item.fingerprint {
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
