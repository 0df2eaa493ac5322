//! Solutions of exercises whose verdict is known: `tests/learning/solutions`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A solution, and what grading must make of it.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownSolution {
    /// Its file, or the folder of its files.
    pub name: String,
    /// `pass`, `fail`, `error` or `pending`.
    pub verdict: String,
    /// Texts by their paths in the folder; the text of a single file by an empty path.
    pub files: BTreeMap<String, String>,
}

/// The solutions of an exercise; none where it has no file of them.
#[must_use]
pub fn known_solutions(exercise: &str) -> Vec<KnownSolution> {
    let text = fs::read_to_string(folder().join(format!("{exercise}.txt")));
    text.map_or_else(|_| Vec::new(), |text| read(&text))
}

/// The exercises that have a file of solutions.
#[must_use]
pub fn exercises_with_solutions() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("a folder");
    let id = |name: &str| name.strip_suffix(".txt").map(str::to_owned);
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_str().and_then(id).expect("a name"))
        .collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/learning/solutions")
}

/// Every file begins with a line `=== PATH: VERDICT` and ends with a line break; those of a
/// folder stand one after the other.
fn read(text: &str) -> Vec<KnownSolution> {
    let mut known: Vec<KnownSolution> = Vec::new();
    let text = format!("\n{}", text.strip_suffix('\n').expect("a line break"));
    for part in text.split("\n=== ").skip(1) {
        let (title, text) = part.split_once('\n').expect(part);
        let (path, verdict) = title.rsplit_once(": ").expect(title);
        let is_verdict = ["pass", "fail", "error", "pending"].contains(&verdict);
        assert!(is_verdict, "{title}");
        let (name, path) = path.split_once('/').unwrap_or((path, ""));
        if known.last().is_none_or(|last| last.name != name) {
            known.push(KnownSolution {
                name: name.to_owned(),
                verdict: verdict.to_owned(),
                files: BTreeMap::new(),
            });
        }
        let solution = known.last_mut().expect("a solution");
        assert_eq!(solution.verdict, verdict, "{title}");
        let before = solution.files.insert(path.to_owned(), format!("{text}\n"));
        assert_eq!(before, None, "{title}");
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_are_one_solution_and_a_file_by_itself_is_one() {
        let text = "=== a.js: fail\na === b\n\n=== b/x/y.md: pass\n\r\n=== b/z.md: pass\nz\n";
        let files = |files: &[(&str, &str)]| {
            let files = files.iter();
            files
                .map(|(path, text)| ((*path).into(), (*text).into()))
                .collect()
        };
        let one_text = KnownSolution {
            name: "a.js".into(),
            verdict: "fail".into(),
            files: files(&[("", "a === b\n\n")]),
        };
        let folder = KnownSolution {
            name: "b".into(),
            verdict: "pass".into(),
            files: files(&[("x/y.md", "\r\n"), ("z.md", "z\n")]),
        };
        assert_eq!(read(text), [one_text, folder]);
    }
}
