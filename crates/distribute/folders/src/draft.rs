//! Skills in folders, as they would be published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{Digest, Problem, SkillId};
use registry::{Bundle, Candidate};

use super::{Claim, Ids, SkillFiles, find, name, read};

/// A skill that was read from a folder.
#[derive(Debug)]
pub struct Draft {
    /// Its files.
    pub bundle: Bundle,
    /// The skill that they make, with all problems.
    pub candidate: Candidate,
    /// It can be published.
    pub is_valid: bool,
}

impl Draft {
    /// Reads a folder; with an id, if that is known.
    #[must_use]
    pub fn read(path: &Path, id: Option<SkillId>, strict: bool) -> Self {
        let read = read(path);
        let is_refused = read.is_refused();
        let SkillFiles { files, problems } = read;
        let bundle = Bundle {
            id,
            files,
            folder: name(path),
            strict,
        };
        let mut candidate = bundle.read();
        candidate.problems.extend(problems);
        let is_valid = !is_refused && candidate.skill.is_some() && candidate.id.is_some();
        Self {
            bundle,
            candidate,
            is_valid,
        }
    }

    /// The bundle to publish, if it is valid.
    ///
    /// # Errors
    /// All problems.
    pub fn valid(self) -> Result<(Bundle, Candidate), Vec<Problem>> {
        if self.is_valid {
            Ok((self.bundle, self.candidate))
        } else {
            Err(self.candidate.problems)
        }
    }
}

/// The skills below a folder, each with its id; none: it gets none, and has a problem with the
/// reason. Without a skill below it, the folder counts as one itself.
///
/// # Errors
/// A folder cannot be read.
pub fn drafts(
    root: &Path,
    mut ids: Ids,
    strict: bool,
) -> Result<BTreeMap<PathBuf, (Draft, Option<Claim>)>, String> {
    let mut found = find(root)?.folders;
    // For its problems: that a SKILL.md is missing is better than silence.
    if found.is_empty() {
        found.push(root.to_owned());
    }
    let drafts = found.into_iter().map(|path| {
        let mut draft = Draft::read(&path, None, strict);
        let mut claim = None;
        if draft.is_valid {
            match ids.claim(&draft.bundle, &draft.candidate, &path) {
                Ok(id) => claim = Some(id),
                Err(problems) => {
                    draft.candidate.problems.extend(problems);
                    draft.is_valid = false;
                }
            }
        }
        (path, (draft, claim))
    });
    Ok(drafts.collect())
}

/// The problems that were reported: a save that changes nothing reports nothing.
#[derive(Debug, Default)]
pub struct ReportedProblems(BTreeMap<PathBuf, (Digest, Vec<Problem>)>);

impl ReportedProblems {
    /// Leaves the drafts with something new to report.
    pub fn news<T>(&mut self, found: &mut BTreeMap<PathBuf, (Draft, T)>) {
        self.0.retain(|path, _| found.contains_key(path));
        found.retain(|path, (draft, _)| {
            let now = (draft.candidate.digest, draft.candidate.problems.clone());
            let before = self.0.insert(path.clone(), now.clone());
            before != Some(now)
        });
    }

    /// Has all reported again.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}
