//! Scans the folders of a place.
//!
//! [`FolderScanner::look`] finds the folders of skills, compares each with its last state, reads
//! those that changed and have been quiet, and selects the skills that are shown. It does all of
//! that for one folder before the next, so that the contents of a skill that is not shown are
//! dropped at once. It blocks, and its clock is handed in; `overlay` decides when it is called.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::agent_folders::{AgentFolders, Root};
use super::find;
use super::selection::{Read, Selection};
use executor::Stop;
use folders::{Inode, SkillFiles, Stamp, TooMany, inode};
use model::{MAX_FILES, Problem, Severity};
use registry::{Bundle, LocalPast, LocalSkill, LocalSkills, Registry};

/// How long a folder must be unchanged before it is read: an editor may be writing.
// Which events a save has depends on the editor and the system, so the stamp of the folder decides.
pub(super) const QUIET_INTERVAL: Duration = Duration::from_millis(80);
/// Folders above a root that are watched: those that it is in may be made anew.
const MAX_WATCHED_PARENTS: usize = 3;

/// Files and folders that are visited of one skill: as many as it may have files, and about as many
/// folders and files that are no part of it. So one that is too large takes no more than this from
/// the budget of the others.
const MAX_ENTRIES: usize = 2 * MAX_FILES;

/// Bounds of one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Skills.
    pub skills: usize,
    /// Bytes of all their files.
    pub bytes: u64,
    /// Files and folders that are visited in one scan. A folder that is read is visited once more,
    /// which does not count: the skills that are shown would else depend on which were just read.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            skills: 500,
            bytes: 64 * 1024 * 1024,
            entries: 20_000,
        }
    }
}

/// A folder that is not shown, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The folder.
    pub folder: PathBuf,
    /// Why.
    pub reason: String,
}

/// The state of a folder with a skill.
#[derive(Debug)]
struct KnownFolder {
    author: &'static str,
    /// Its last stamp; none: it could not be visited.
    stamp: Option<Stamp>,
    /// Since when it has had that stamp.
    since: Instant,
    /// It was read with that stamp.
    is_read: bool,
    read: Option<Result<Read, String>>,
    /// Since when it has been gone.
    gone: Option<Instant>,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// The skills, if they changed.
    pub(super) skills: Option<Arc<LocalSkills>>,
    /// The folders that are not shown.
    pub(super) skipped: Vec<Skipped>,
    /// Something was not quiet: scan again soon.
    pub(super) again: bool,
    /// It was stopped; the rest is empty.
    pub(super) is_stopped: bool,
    /// The folders to watch.
    pub(super) folders: BTreeMap<PathBuf, Inode>,
}

/// The folders of a place, as of the last scan.
#[derive(Debug)]
pub(super) struct FolderScanner {
    roots: Vec<Root>,
    limits: Limits,
    registry: Registry,
    known: BTreeMap<PathBuf, KnownFolder>,
    past: Arc<Mutex<LocalPast>>,
    skills: Arc<LocalSkills>,
}

impl FolderScanner {
    /// A scanner before its first scan. `past` and `skills` are those of an earlier scanner, if
    /// there was one.
    pub(super) fn new(
        place: &AgentFolders,
        registry: Registry,
        limits: Limits,
        past: Arc<Mutex<LocalPast>>,
        skills: Arc<LocalSkills>,
    ) -> Self {
        Self {
            roots: place.roots(),
            limits,
            registry,
            known: BTreeMap::new(),
            past,
            skills,
        }
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.folder.as_path())
    }

    /// The skills that are shown.
    #[cfg(test)]
    pub(super) fn skills(&self) -> &LocalSkills {
        &self.skills
    }

    /// The folders of which contents are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> impl Iterator<Item = &Path> {
        let is_held = |known: &KnownFolder| matches!(known.read, Some(Ok(Read::Shown(_))));
        let held = self.known.iter().filter(move |(_, known)| is_held(known));
        held.map(|(folder, _)| folder.as_path())
    }

    /// Scans all folders. Blocks.
    pub(super) fn look(&mut self, now: Instant, clock: SystemTime, stop: &Stop) -> ScanResult {
        let mut looked = ScanResult::default();
        let mut left = self.limits.entries;
        let mut seen = BTreeSet::new();
        let mut order = Vec::new();
        for root in &self.roots {
            above(&root.folder, &mut looked.folders);
            let found = find::find(&root.folder, left, &mut seen);
            left = left.saturating_sub(found.visited);
            if found.is_cut {
                looked.skip(&root.folder, "there is more in it than is looked at");
            }
            for (folder, reason) in &found.unreadable {
                looked.skip(folder, &format!("it cannot be read: {reason}"));
            }
            watch(&mut looked.folders, &found.folders);
            order.extend(found.skills.into_iter().map(|folder| (folder, root.author)));
        }
        let there: BTreeSet<&PathBuf> = order.iter().map(|(folder, _)| folder).collect();
        self.known.retain(|folder, known| {
            if there.contains(folder) {
                known.gone = None;
                return true;
            }
            // A folder that is renamed, or replaced by a tool, is away for a moment.
            let since = *known.gone.get_or_insert(now);
            let is_gone = now.duration_since(since) >= QUIET_INTERVAL;
            looked.again |= !is_gone;
            !is_gone
        });
        // Those are shown for that moment, after all others: they must not take the name of a
        // folder that exists.
        let kept = self.known.iter().filter(|(_, known)| known.gone.is_some());
        let kept: Vec<PathBuf> = kept.map(|(folder, _)| folder.clone()).collect();
        let mut chosen = Selection::new(self.limits);
        for (folder, author) in &order {
            // Nothing is lost: folders that were read stay known, and those that were not reached
            // do not count as gone.
            if stop.is_set() {
                return ScanResult::stopped();
            }
            let stamp = folders::stamp(folder, left.min(MAX_ENTRIES));
            let visited = match &stamp {
                Ok(stamp) => {
                    watch(&mut looked.folders, &stamp.folders);
                    stamp.entries
                }
                Err(TooMany::Entries(max)) => *max,
                Err(TooMany::Unreadable { entries, .. }) => *entries,
            };
            left = left.saturating_sub(visited);
            self.follow(folder, author, stamp, (now, clock), &mut looked, stop);
            self.choose(folder, &mut chosen, now, &mut looked, stop);
        }
        for folder in &kept {
            self.choose(folder, &mut chosen, now, &mut looked, stop);
        }
        if stop.is_set() {
            return ScanResult::stopped();
        }
        let refused = looked.skipped.iter().filter_map(|skipped| {
            let name = skipped.folder.file_name()?.to_string_lossy().to_lowercase();
            let (folder, reason) = (skipped.folder.display(), &skipped.reason);
            Some((name, format!("`{folder}` is no skill: {reason}")))
        });
        let skills = chosen.into_skills().with_refused(refused.collect());
        if !is_same(&skills, &self.skills) {
            self.skills = Arc::new(skills);
            looked.skills = Some(Arc::clone(&self.skills));
        }
        looked
    }

    /// Updates the state of a folder by its stamp, and reads it if it changed and is quiet.
    fn follow(
        &mut self,
        folder: &Path,
        author: &'static str,
        stamp: Result<Stamp, TooMany>,
        (now, clock): (Instant, SystemTime),
        looked: &mut ScanResult,
        stop: &Stop,
    ) {
        let known = self.known.entry(folder.to_owned());
        let known = known.or_insert_with(|| KnownFolder {
            author,
            stamp: None,
            since: now,
            is_read: false,
            read: None,
            gone: None,
        });
        let stamp = match stamp {
            Ok(stamp) => stamp,
            Err(error @ TooMany::Entries(max)) => {
                known.stamp = None;
                known.is_read = false;
                known.read = Some(Err(if max == MAX_ENTRIES {
                    error.to_string()
                } else {
                    // It may be small: those before it used up the budget.
                    let max = self.limits.entries;
                    format!("with it there are more than {max} files and folders")
                }));
                return;
            }
            Err(TooMany::Unreadable { error, .. }) => {
                // It changes during the visit, or a file in it may not be read. If that stays so
                // it is a fault of the skill: its last version would else be served for good.
                watch(&mut looked.folders, &[folder.to_owned()]);
                let was_readable = known.stamp.take().is_some();
                if was_readable {
                    known.since = now;
                }
                known.is_read = false;
                let cause = error.io_error().map(std::io::Error::kind);
                let is_gone = cause == Some(std::io::ErrorKind::NotFound);
                let stays = !is_gone && now.duration_since(known.since) >= QUIET_INTERVAL;
                if known.read.is_none() || stays {
                    known.read = Some(Err(format!("it cannot be read: {error}")));
                } else {
                    looked.again |= was_readable || !is_gone;
                }
                return;
            }
        };
        if known.stamp.as_ref() != Some(&stamp) {
            known.is_read = false;
            known.since = now;
            known.stamp = Some(stamp);
        }
        if known.is_read {
            return;
        }
        let newest = known.stamp.as_ref().map(|stamp| stamp.newest);
        let age = newest.and_then(|newest| clock.duration_since(newest).ok());
        // Or by the times of its files: at the first scan of a place nothing has been watched yet,
        // and folders that are old need no wait.
        let is_quiet = now.duration_since(known.since) >= QUIET_INTERVAL
            || age.is_some_and(|age| age >= QUIET_INTERVAL);
        if !is_quiet {
            looked.again = true;
            return;
        }
        self.read(folder, now, looked, stop);
    }

    /// Reads a folder, and accepts the result if the folder is the same before and after.
    fn read(&mut self, folder: &Path, now: Instant, looked: &mut ScanResult, stop: &Stop) {
        let Some(known) = self.known.get_mut(folder) else {
            return;
        };
        known.is_read = false;
        let before = match &known.read {
            Some(Ok(Read::Shown(skill))) => Some(skill),
            _ => None,
        };
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let author = known.author;
        let read = read(&self.registry, folder, author, before, &mut past, stop);
        drop(past);
        // The error of a read that was stopped is no fault of the skill.
        if stop.is_set() {
            looked.again = true;
            return;
        }
        // A file may have been written during the read, and half of it be in the result.
        match folders::stamp(folder, MAX_ENTRIES) {
            Ok(after) if known.stamp.as_ref() == Some(&after) => {
                known.is_read = true;
                known.read = Some(read.map(Read::Shown));
            }
            after => {
                known.stamp = after.ok();
                known.since = now;
                looked.again = true;
            }
        }
    }

    /// Selects the skill of a folder if it fits, and drops its contents if not.
    fn choose(
        &mut self,
        folder: &Path,
        chosen: &mut Selection,
        now: Instant,
        looked: &mut ScanResult,
        stop: &Stop,
    ) {
        // Twice if it was left out before and fits now: it is read in between.
        for is_again in [false, true] {
            let Some(known) = self.known.get_mut(folder) else {
                return;
            };
            let read = match &known.read {
                None => return,
                Some(Err(reason)) => return looked.skip(folder, reason),
                Some(Ok(read)) => read,
            };
            let facts = read.facts();
            if let Err(reason) = chosen.fits(&facts) {
                known.read = Some(Ok(Read::LeftOut(facts)));
                if let Some(reason) = reason {
                    looked.skip(folder, &reason);
                }
                return;
            }
            if let Read::Shown(skill) = read {
                if let Some(reason) = skill.held() {
                    looked.skip(folder, &format!("it is held for review: {reason}"));
                }
                return chosen.take(folder, facts, Arc::clone(skill));
            }
            // One that changes is read when it is quiet, and one that is gone cannot be read.
            if is_again || !known.is_read || known.gone.is_some() {
                return;
            }
            self.read(folder, now, looked, stop);
        }
    }
}

impl ScanResult {
    fn stopped() -> Self {
        Self {
            again: true,
            is_stopped: true,
            ..Self::default()
        }
    }

    fn skip(&mut self, folder: &Path, reason: &str) {
        self.skipped.push(Skipped {
            folder: folder.to_owned(),
            reason: reason.to_owned(),
        });
    }
}

/// The same versions of the same skills, and the same refusals.
fn is_same(a: &LocalSkills, b: &LocalSkills) -> bool {
    a.len() == b.len()
        && a.refused() == b.refused()
        && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// Reads the skill of a folder.
fn read(
    registry: &Registry,
    folder: &Path,
    author: &str,
    before: Option<&Arc<LocalSkill>>,
    past: &mut LocalPast,
    stop: &Stop,
) -> Result<Arc<LocalSkill>, String> {
    let SkillFiles { files, problems } = folders::read_local(folder);
    if let Some(problem) = refusal(problems) {
        return Err(format!("{}: {}", problem.file, problem.message));
    }
    let bundle = Bundle {
        id: None,
        files,
        folder: folders::name(folder),
        strict: false,
    };
    let read = registry.read_local(&bundle, author, before, past, stop);
    read.map_err(|error| match error {
        registry::Error::Invalid { problems } => match refusal(problems) {
            None => "it is no skill".to_owned(),
            Some(problem) if problem.line == 0 => problem.message,
            Some(Problem {
                file,
                line,
                message,
                ..
            }) => format!("{file}:{line}: {message}"),
        },
        error => error.to_string(),
    })
}

fn refusal(problems: Vec<Problem>) -> Option<Problem> {
    let mut problems = problems.into_iter();
    problems.find(|problem| problem.severity == Severity::Error)
}

/// Adds folders to those that are watched.
pub(super) fn watch(watched: &mut BTreeMap<PathBuf, Inode>, folders: &[PathBuf]) {
    let there = folders
        .iter()
        .filter_map(|folder| Some((folder.clone(), inode(folder)?)));
    watched.extend(there);
}

/// The folders above a root, in which it may come and go.
pub(super) fn above(root: &Path, watched: &mut BTreeMap<PathBuf, Inode>) {
    let there = root
        .ancestors()
        .enumerate()
        .skip(1)
        .filter_map(|(depth, folder)| Some((depth, folder, inode(folder)?)));
    // The nearest that exists, however far: a root may be made with all that it is in.
    for (at, (depth, folder, inode)) in there.enumerate() {
        if at > 0 && depth > MAX_WATCHED_PARENTS || folder.parent().is_none() {
            break;
        }
        watched.insert(folder.to_owned(), inode);
    }
}
