//! What a folder looks like from outside.

use std::os::unix::fs::MetadataExt as _;

use super::*;

/// When something last changed at a path, by the file system.
fn changed(path: &Path) -> (i64, i64) {
    let meta = fs::metadata(path).expect("a file");
    (meta.ctime(), meta.ctime_nsec())
}

/// The same of a stamp.
fn newest(stamp: &Stamp) -> (i64, i64) {
    let since = stamp.newest.duration_since(std::time::UNIX_EPOCH);
    let since = since.expect("a time after 1970");
    let seconds = i64::try_from(since.as_secs()).expect("seconds");
    (seconds, since.subsec_nanos().into())
}

#[test]
fn a_stamp_counts_what_is_no_part_of_the_skill_as_well() {
    let folder = folder(&[
        ("SKILL.md", SKILL),
        (".gitignore", "*.log\n"),
        ("a.log", "x"),
        ("node_modules/x/index.js", "x"),
    ]);
    // The folder itself, three files, and a folder that is not looked into.
    for max in [5, 6] {
        assert_eq!(stamp(folder.path(), max).expect("a stamp").entries, 5);
    }
    let stamped = stamp(folder.path(), 4);
    assert!(matches!(stamped, Err(TooMany::Entries(4))), "{stamped:?}");
}

#[test]
fn a_stamp_is_another_one_where_anything_changed_and_the_same_elsewhere() {
    let place = folder(&[("SKILL.md", SKILL), ("docs/a.md", "a")]);
    let at = |path: &str| place.path().join(path);
    let hash = || stamp(place.path(), 100).expect("a stamp").hash;
    let mut seen = vec![hash()];
    assert_eq!(hash(), seen[0], "nothing changed");
    let mut is_new = |change: &str| {
        let now = hash();
        assert!(!seen.contains(&now), "{change}");
        seen.push(now);
    };
    // It stays the same file in the same place.
    fs::write(at("docs/a.md"), "longer").expect("a file");
    is_new("a file was written");
    fs::rename(at("docs/a.md"), at("docs/b.md")).expect("renamed");
    is_new("a file was renamed");
    fs::write(at("c.md"), "c").expect("a file");
    is_new("a file was added");
    fs::remove_dir_all(at("docs")).expect("removed");
    is_new("a folder was removed");
}

#[test]
fn a_stamp_tells_the_newest_change_wherever_it_was() {
    let place = folder(&[("a.md", "a"), ("z.md", "z")]);
    let (first, last) = (place.path().join("a.md"), place.path().join("z.md"));
    // A file system tells moments apart only so far.
    let tries = (0..1_000_000).take_while(|_| changed(&first) <= changed(&last));
    for _ in tries {
        fs::write(&first, "newer").expect("a file");
    }
    assert!(
        changed(&first) > changed(&last),
        "it changed after the other"
    );
    let found = stamp(place.path(), 100).expect("a stamp");
    assert_eq!(newest(&found), changed(&first));
}

#[test]
fn a_stamp_names_the_folders_of_the_skill_and_no_others() {
    let place = folder(&[
        ("SKILL.md", SKILL),
        ("docs/more/a.md", "a"),
        ("node_modules/x/index.js", "x"),
        ("scripts/a.py", "a"),
    ]);
    let found = stamp(place.path(), 100).expect("a stamp");
    let inside = ["docs", "docs/more", "scripts"].map(|path| place.path().join(path));
    let expected: Vec<_> = [place.path().to_owned()]
        .into_iter()
        .chain(inside)
        .collect();
    assert_eq!(found.folders, expected);
}

#[test]
fn a_stamp_does_not_look_deeper_than_a_read() {
    let deep = vec!["d"; MAX_DEPTH + 1].join("/");
    let place = folder(&[(&format!("{deep}/a.md"), "a")]);
    let found = stamp(place.path(), 100).expect("a stamp");
    // The folder itself, and those below it.
    assert_eq!(
        (found.entries, found.folders.len()),
        (1 + MAX_DEPTH, 1 + MAX_DEPTH)
    );
}
