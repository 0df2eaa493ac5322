//! How much is looked at and held of a place, and that what is over a limit costs no more.

use std::collections::BTreeSet;
use std::time::SystemTime;

use super::*;
use crate::find::{FoundFolders, find};
use crate::folder_scanner::{FolderScanner, QUIET_INTERVAL, ScanResult};

/// A look at the folders of a project, without anybody who keeps it in step.
struct Looking {
    look: FolderScanner,
    registry: Registry,
    folder: TempDir,
    root: PathBuf,
}

impl Looking {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path(), "project");
        let root = place.project.join(".claude/skills");
        let registry = registry();
        let look = FolderScanner::new(
            &place,
            registry.clone(),
            limits,
            Arc::default(),
            Arc::<LocalSkills>::default(),
        );
        Self {
            look,
            registry,
            folder,
            root,
        }
    }

    /// Looks long after everything was written, so that all of it is quiet.
    fn look(&mut self) -> ScanResult {
        let clock = SystemTime::from(self.registry.now()) + Duration::from_secs(60);
        self.look.look(Instant::now(), clock, &Stop::never())
    }

    /// Looks, until those that are gone are no longer waited for, and says what is shown.
    fn shown(&mut self) -> Vec<String> {
        while self.look().again {
            std::thread::sleep(Duration::from_millis(20));
        }
        names(self.look.skills())
    }

    /// Names of the folders whose contents are held.
    fn held(&self) -> Vec<String> {
        let held = self.look.held().map(|folder| folder.file_name());
        held.map(|name| name.expect("a name").to_string_lossy().into_owned())
            .collect()
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

fn found(root: &Path, max: usize) -> FoundFolders {
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

#[test]
fn contents_are_held_of_what_is_shown_alone() {
    let limits = Limits {
        skills: 2,
        bytes: 4_000,
        ..Limits::default()
    };
    let mut looking = Looking::new(limits);
    let root = looking.root.clone();
    for name in ["a", "b", "c", "d"] {
        write(&root.join(name), name);
    }
    fs::write(root.join("a/data.txt"), "x".repeat(5_000)).expect("a file");
    // A copy of one that goes first, and another of its name.
    let other = looking.folder.path().join("project/.cursor/skills");
    write(&other.join("b"), "b");
    write(&other.join("c"), "other");
    assert_eq!(looking.shown(), ["local/project/b", "local/project/c"]);
    assert_eq!(looking.held(), ["b", "c"]);
    // Nothing happened: nothing is read, and the same is held.
    assert!(looking.look().skills.is_none());
    assert_eq!(looking.held(), ["b", "c"]);
    // There is room again, so what was left out is read again, though it did not change.
    fs::remove_dir_all(root.join("b")).expect("removed");
    assert_eq!(looking.shown(), ["local/project/c", "local/project/d"]);
    assert_eq!(looking.held(), ["c", "d"]);
    // Also what was a copy of another one before.
    fs::remove_dir_all(root.join("c")).expect("removed");
    assert_eq!(looking.shown(), ["local/project/b", "local/project/d"]);
    assert_eq!(looking.held(), ["d", "b"]);
    // And one that was too large, once it is not.
    fs::write(root.join("a/data.txt"), "x").expect("a file");
    assert_eq!(looking.shown(), ["local/project/a", "local/project/d"]);
    assert_eq!(looking.held(), ["a", "d"]);
}

#[test]
fn a_look_that_is_stopped_takes_nothing_away() {
    let mut looking = Looking::new(Limits::default());
    write(&looking.root.join("a"), "a");
    assert_eq!(looking.shown(), ["local/project/a"]);
    write(&looking.root.join("b"), "b");
    let stop = Stop::at(Instant::now());
    let clock = SystemTime::from(looking.registry.now()) + Duration::from_secs(60);
    let looked = looking.look.look(Instant::now(), clock, &stop);
    assert!(looked.is_stopped && looked.again && looked.skills.is_none());
    assert_eq!(names(looking.look.skills()), ["local/project/a"]);
    assert_eq!(looking.shown(), ["local/project/a", "local/project/b"]);
}

#[test]
fn skills_are_looked_for_so_deep_and_not_where_packages_are() {
    let root = tempfile::tempdir().expect("a folder");
    for path in [
        "a",
        "one/two/b",
        "one/two/three/c",
        "node_modules/d",
        "one/node_modules/e",
        ".hidden/f",
    ] {
        write(&root.path().join(path), "x");
    }
    // A link is followed in the root, where people link skills in, and no deeper.
    let elsewhere = tempfile::tempdir().expect("a folder");
    write(&elsewhere.path().join("g"), "x");
    let link = |to: &str, path: &str| {
        let to = elsewhere.path().join(to);
        std::os::unix::fs::symlink(to, root.path().join(path)).expect("a link");
    };
    link("g", "one/linked");
    let found = found(root.path(), 1_000).skills;
    assert_eq!(found, ["a", "one/two/b"].map(|path| root.path().join(path)));
}

#[test]
fn the_skills_of_a_place_have_as_many_bytes_as_they_may_to_the_last() {
    let shown = |bytes: u64| {
        let mut looking = Looking::new(Limits {
            bytes,
            ..Limits::default()
        });
        write(&looking.root.join("a"), "a");
        looking.look();
        let shown = looking.look.skills().iter().map(|skill| skill.bytes());
        shown.collect::<Vec<_>>()
    };
    let whole = shown(u64::MAX);
    assert_eq!(whole.len(), 1);
    assert_eq!(shown(whole[0]), whole);
    assert_eq!(shown(whole[0] - 1), [] as [u64; 0]);
}

#[test]
fn the_bytes_of_all_skills_of_a_place_count_together() {
    let shown = |bytes: u64| {
        let mut looking = Looking::new(Limits {
            bytes,
            ..Limits::default()
        });
        for name in ["a", "b"] {
            write(&looking.root.join(name), name);
        }
        looking.look();
        looking
            .look
            .skills()
            .iter()
            .map(|skill| skill.bytes())
            .sum()
    };
    let both: u64 = shown(u64::MAX);
    assert_eq!([both, both - 1].map(shown), [both, both / 2]);
}

#[test]
fn a_folder_is_read_once_it_has_been_quiet_and_gone_once_it_was_away_for_as_long() {
    let mut looking = Looking::new(Limits::default());
    let folder = looking.root.join("a");
    write(&folder, "a");
    let changed = [folder.clone(), folder.join("SKILL.md")].map(|path| {
        let about = fs::metadata(path).expect("a file");
        about.modified().expect("a time")
    });
    let clock = changed.into_iter().max().expect("two");
    let begun = Instant::now();
    let (none, nearly) = (Duration::ZERO, QUIET_INTERVAL * 9 / 10);
    let mut look = |passed: Duration, age: Duration| {
        let looked = looking
            .look
            .look(begun + passed, clock + age, &Stop::never());
        (looking.look.skills().len(), looked.again)
    };
    // By the clock of the files, by which it was written a moment ago.
    assert_eq!(look(none, nearly), (0, true));
    // By our own, by which it has been so since the first look.
    assert_eq!(look(nearly, none), (0, true));
    assert_eq!(look(QUIET_INTERVAL, none), (1, false));
    fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(look(2 * QUIET_INTERVAL, none), (1, true));
    assert_eq!(look(2 * QUIET_INTERVAL + nearly, none), (1, true));
    assert_eq!(look(3 * QUIET_INTERVAL, none), (0, false));
    // One that is old is read at once.
    write(&folder, "a");
    assert_eq!(
        look(4 * QUIET_INTERVAL, Duration::from_secs(60)),
        (1, false)
    );
}
