//! Checks the files of a skill as a whole, before any is read.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::findings::Findings;
use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem};

/// The most bytes of a `SKILL.md`. The largest body seen has 293 KB; a larger file
/// is refused before it costs memory.
pub(super) const MAX_SKILL_MD_BYTES: usize = 1024 * 1024;

/// Checks the files and finds the one that holds the instructions.
pub(super) fn check<'a>(
    files: &'a BTreeMap<FilePath, Bytes>,
    findings: &mut Findings,
) -> Option<(&'a FilePath, &'a Bytes)> {
    check_size(files, findings);
    check_collisions(files, findings);
    entry(files, findings)
}

fn check_size(files: &BTreeMap<FilePath, Bytes>, findings: &mut Findings) {
    if files.len() > MAX_FILES {
        let message = format!(
            "The skill has {} files; at most {MAX_FILES} are taken",
            files.len()
        );
        findings.push(Problem::error("too-many-files", "", 0, message));
    }
    let bytes: u64 = files.values().map(|content| content.len() as u64).sum();
    if bytes > MAX_SKILL_BYTES {
        let message = format!("The skill has {bytes} bytes; at most {MAX_SKILL_BYTES} are taken");
        findings.push(Problem::error("skill-too-large", "", 0, message));
    }
}

/// Refuses two paths that some disk would take for one, and a file where another path
/// needs a folder: they cannot be written out everywhere.
fn check_collisions(files: &BTreeMap<FilePath, Bytes>, findings: &mut Findings) {
    let mut seen: HashMap<String, &FilePath> = HashMap::with_capacity(files.len());
    for path in files.keys() {
        if let Some(other) = seen.insert(path.collision_key(), path) {
            let message = format!(
                "Some disks take this for the same file as `{}`",
                other.as_str()
            );
            findings.push(Problem::error("path-collision", path.as_str(), 0, message));
        }
    }
    for path in files.keys() {
        // By the same keys: `A` and `a/b` collide where case does not count.
        let key = path.collision_key();
        let folders = key.match_indices('/').filter_map(|(at, _)| key.get(..at));
        for folder in folders {
            if let Some(file) = seen.get(folder) {
                let message = format!("`{}` is a file, so nothing can be inside it", file.as_str());
                findings.push(Problem::error(
                    "path-inside-file",
                    path.as_str(),
                    0,
                    message,
                ));
            }
        }
    }
}

fn entry<'a>(
    files: &'a BTreeMap<FilePath, Bytes>,
    findings: &mut Findings,
) -> Option<(&'a FilePath, &'a Bytes)> {
    let is_exact = |path: &FilePath| path.as_str() == FilePath::SKILL_MD;
    let is_variant = |path: &FilePath| path.as_str().eq_ignore_ascii_case(FilePath::SKILL_MD);
    // The exact name first: a skill may have both on a disk where case counts.
    let found = files
        .iter()
        .find(|(path, _)| is_exact(path))
        .or_else(|| files.iter().find(|(path, _)| is_variant(path)));
    let Some((path, content)) = found else {
        let below = files
            .keys()
            .find(|path| path.file_name().eq_ignore_ascii_case(FilePath::SKILL_MD));
        let message = match below {
            Some(path) => format!(
                "There is no `SKILL.md` at the top; there is one at `{}`",
                path.as_str()
            ),
            None => "There is no `SKILL.md`".to_owned(),
        };
        findings.push(Problem::error("skill-md-missing", "", 0, message));
        return None;
    };
    findings.turn_to(path.as_str());
    if !is_exact(path) {
        let message = format!("`{}` is spelled `SKILL.md` in the standard", path.as_str());
        findings.warning("skill-md-case", 0, message);
    }
    if content.len() > MAX_SKILL_MD_BYTES {
        let message = format!(
            "The file has {} bytes; at most {MAX_SKILL_MD_BYTES} are read. Move what is not always \
             needed into files beside it",
            content.len()
        );
        findings.error("skill-md-too-large", 0, message);
        return None;
    }
    Some((path, content))
}
