//! How much is looked at and held of a place, and that what is over a limit costs no more.

use std::collections::BTreeSet;
use std::time::SystemTime;

use super::*;
use crate::find::{Found, find};
use crate::look::{Look, Looked};

/// A look at the folders of a project, without anybody who keeps it in step.
struct Looking {
    look: Look,
    registry: Registry,
    _folder: TempDir,
    root: PathBuf,
}

impl Looking {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path(), "project");
        let root = place.project.join(".claude/skills");
        let registry = registry();
        let look = Look::new(
            &place,
            registry.clone(),
            limits,
            Arc::default(),
            Arc::<LocalSkills>::default(),
        );
        Self {
            look,
            registry,
            _folder: folder,
            root,
        }
    }

    /// Looks long after everything was written, so that all of it is quiet.
    fn look(&mut self) -> Looked {
        let clock = SystemTime::from(self.registry.now()) + Duration::from_secs(60);
        self.look.look(Instant::now(), clock, &Stop::never())
    }
}

/// A folder with this many files that no skill has, beside its SKILL.md.
fn ignored(folder: &Path, files: usize) {
    write(folder, "large");
    fs::write(folder.join(".gitignore"), "*.log\n").expect("a file");
    for at in 0..files {
        fs::write(folder.join(format!("{at}.log")), "").expect("a file");
    }
}

fn found(root: &Path, max: usize) -> Found {
    find(root, max, &mut BTreeSet::new())
}

#[test]
fn a_search_says_how_much_it_visited_and_whether_there_was_more() {
    let root = tempfile::tempdir().expect("a folder");
    let at = |path: &str| root.path().join(path);
    write(&at("a"), "a");
    // Another spelling is found by going through the folder, which is counted too.
    write(&at("b"), "b");
    fs::rename(at("b/SKILL.md"), at("b/Skill.md")).expect("renamed");
    fs::write(at("b/x"), "x").expect("a file");
    fs::write(at("b/y"), "y").expect("a file");
    write(&at("group/c"), "c");
    fs::write(at("note.txt"), "x").expect("a file");
    // Four in the root, three in `b`, one in `group`.
    for (max, visited, is_cut, skills) in [(7, 7, true, 2), (8, 8, false, 3), (9, 8, false, 3)] {
        let found = found(root.path(), max);
        let came = (found.visited, found.is_cut, found.skills.len());
        assert_eq!(came, (visited, is_cut, skills), "{max}");
    }
    // Where nothing may be looked at, nothing is missed of what is not there.
    assert!(found(root.path(), 0).is_cut);
    assert!(!found(&at("gone"), 0).is_cut);
}

#[test]
fn a_place_is_looked_at_as_far_as_it_may_be_and_no_further() {
    // Two folders in the root; each of them, and the file in it.
    for (entries, shown) in [(5, 1), (6, 2), (7, 2)] {
        let limits = Limits {
            entries,
            ..Limits::default()
        };
        let mut looking = Looking::new(limits);
        write(&looking.root.join("a"), "a");
        write(&looking.root.join("b"), "b");
        let looked = looking.look();
        assert_eq!(looking.look.skills().len(), shown, "{entries}");
        assert_eq!(looked.skipped.len(), 2 - shown, "{:?}", looked.skipped);
    }
}

#[test]
fn a_skill_that_is_too_large_takes_what_was_looked_at_of_it() {
    let max = 2 * model::MAX_FILES;
    // The root, all that may be looked at of `a`, and all of `b`.
    let all = 2 + max + 2;
    for (entries, is_shown) in [(all - 1, false), (all, true), (all + 1, true)] {
        let limits = Limits {
            entries,
            ..Limits::default()
        };
        let mut looking = Looking::new(limits);
        ignored(&looking.root.join("a"), max);
        write(&looking.root.join("b"), "b");
        let looked = looking.look();
        assert_eq!(looking.look.skills().len(), usize::from(is_shown));
        let first = looked.skipped.first().expect("a folder");
        assert!(first.folder.ends_with("a"));
        assert!(
            first.reason.contains(&format!("more than {max} files")),
            "{first:?}"
        );
    }
}
