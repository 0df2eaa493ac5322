//! Trees that strangers wrote.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use repertoire_git::Error;

use super::support::{Kept, Origin, SKILL, remote};

fn skipped(kept: &Kept, update: &repertoire_git::Update) -> Vec<(String, String)> {
    kept.find(update).skipped
}

#[test]
fn a_hostile_name_refuses_its_skill_and_no_other() {
    let origin = Origin::with(&[("x", "x")]);
    let skill = origin.blob(SKILL.as_bytes());
    let good = origin.tree(&[("100644", b"SKILL.md", &skill)]);
    let bad =
        |name: &[u8]| origin.tree(&[("100644", name, &skill), ("100644", b"SKILL.md", &skill)]);
    let names: [(&str, &[u8]); 10] = [
        ("a-parent", b".."),
        ("b-git", b".git"),
        ("c-git-short", b"GIT~1"),
        ("d-slash", b"a/b"),
        ("e-absolute", b"/etc/passwd"),
        ("f-device", b"aux.txt"),
        ("g-not-utf-8", b"\xff.md"),
        ("h-twice", b"SKILL.md"),
        ("i-dot", b"."),
        ("j-line", b"a\nb"),
    ];
    let trees = names.map(|(folder, name)| (folder, bad(name)));
    let mut entries: Vec<(&str, &[u8], &str)> = trees
        .iter()
        .map(|(folder, tree)| ("40000", folder.as_bytes(), tree.as_str()))
        .collect();
    entries.push(("40000", b"k-good", &good));
    origin.commit_tree(&origin.tree(&entries));
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    let paths: Vec<_> = names
        .iter()
        .map(|(folder, _)| *folder)
        .chain(["k-good"])
        .collect();
    assert_eq!(kept.paths(&update), paths);
    for (folder, name) in names {
        let (files, problems) = kept.read(&update, folder);
        let [problem] = problems.as_slice() else {
            panic!("{folder}: {problems:?}");
        };
        assert!(
            problem.starts_with("error path-invalid "),
            "{folder} {name:?}: {problem}"
        );
        assert_eq!(files, ["SKILL.md"], "{folder}");
    }
    assert_eq!(
        kept.read(&update, "k-good"),
        (vec!["SKILL.md".to_owned()], vec![])
    );
}

#[test]
fn a_folder_with_a_hostile_name_is_told_and_not_looked_into() {
    let origin = Origin::with(&[("x", "x")]);
    let skill = origin.blob(SKILL.as_bytes());
    let good = origin.tree(&[("100644", b"SKILL.md", &skill)]);
    let root = origin.tree(&[
        ("40000", b"..", &good),
        ("40000", b".git", &good),
        ("40000", b"a", &good),
        ("40000", b"a", &good),
        ("40000", b"b\xff", &good),
        ("40000", b"c/d", &good),
        ("120000", b"e", &skill),
    ]);
    origin.commit_tree(&root);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    assert_eq!(kept.paths(&update), ["a"]);
    let at: Vec<_> = skipped(&kept, &update)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(at, ["..", ".git", "a", "b\u{fffd}", "c/d"]);
}

#[test]
fn links_submodules_and_pointers_to_large_files_are_left_out_and_told() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n";
    let origin = Origin::with(&[
        ("one/SKILL.md", SKILL),
        ("one/model.bin", pointer),
        ("one/.env", "A=1"),
        ("two/x", "x"),
        ("three/x", "x"),
    ]);
    std::os::unix::fs::symlink("/etc/passwd", origin.path().join("one/passwd")).expect("a link");
    std::os::unix::fs::symlink("../one/SKILL.md", origin.path().join("two/SKILL.md"))
        .expect("a link");
    origin.git(&["add", "-A"]);
    let commit = origin.git(&["rev-parse", "HEAD"]);
    for at in ["one/module", "three/SKILL.md"] {
        let entry = format!("160000,{commit},{at}");
        origin.git(&["update-index", "--add", "--cacheinfo", &entry]);
    }
    origin.git(&["commit", "-q", "-m", "x"]);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    assert_eq!(kept.paths(&update), ["one"]);
    assert_eq!(
        skipped(&kept, &update),
        [
            ("one/module", "it is a submodule, which is not fetched"),
            (
                "three/SKILL.md",
                "it is a submodule, where a file is wanted"
            ),
            ("two/SKILL.md", "it is a link, where a file is wanted"),
        ]
        .map(|(path, why)| (path.to_owned(), why.to_owned()))
    );
    let (files, problems) = kept.read(&update, "one");
    assert_eq!(files, ["SKILL.md"]);
    assert_eq!(
        problems,
        [
            "info file-left-out one/.env",
            "warning file-lfs-pointer one/model.bin",
            "warning file-not-regular one/module",
            "warning file-not-regular one/passwd",
        ]
        .map(|problem| problem.replace(" one/", " "))
    );
}

#[test]
fn what_a_skillignore_says_and_what_tools_make_is_left_out_and_told() {
    let origin = Origin::with(&[
        ("one/SKILL.md", SKILL),
        ("one/.skillignore", "/notes\n*.log\n!target/\n!.env\n[\n"),
        ("one/.gitignore", "*.csv\n"),
        ("one/a.csv", "x"),
        ("one/a.log", "x"),
        ("one/.env", "A=1"),
        ("one/notes/a.md", "x"),
        ("one/docs/notes/a.md", "x"),
        ("one/docs/.skillignore", "!keep.log\n"),
        ("one/docs/keep.log", "x"),
        ("one/docs/other.log", "x"),
        ("one/target/goals.md", "x"),
        ("one/docs/a.pyc", "x"),
        ("one/docs/.DS_Store", "x"),
        ("one/node_modules/x.js", "x"),
    ]);
    origin.git(&["add", "-A", "-f"]);
    origin.commit_all();
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    let (files, problems) = kept.read(&update, "one");
    assert_eq!(
        files,
        [
            ".gitignore",
            ".skillignore",
            "SKILL.md",
            "a.csv",
            "docs/.skillignore",
            "docs/keep.log",
            "docs/notes/a.md",
            "target/goals.md",
        ]
    );
    let mut left_out: Vec<_> = problems
        .iter()
        .map(|problem| {
            problem
                .strip_prefix("info file-left-out ")
                .unwrap_or(problem)
        })
        .collect();
    left_out.sort_unstable();
    assert_eq!(
        left_out,
        [
            ".env",
            "a.log",
            "docs/.DS_Store",
            "docs/a.pyc",
            "docs/other.log",
            "node_modules",
            "notes",
        ]
    );
}

#[test]
fn a_skillignore_that_is_too_large_refuses_its_skill_alone() {
    let patterns = "# a pattern of no file\n".repeat(4000);
    let origin = Origin::with(&[
        ("one/SKILL.md", SKILL),
        ("one/docs/.skillignore", &patterns),
        ("two/SKILL.md", SKILL),
    ]);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    let (_, problems) = kept.read(&update, "one");
    assert_eq!(problems, ["error patterns-too-large docs/.skillignore"]);
    let (files, problems) = kept.read(&update, "two");
    assert_eq!((files, problems), (vec!["SKILL.md".to_owned()], Vec::new()));
}

#[test]
fn ten_thousand_files_are_listed_and_read() {
    let origin = Origin::new();
    let mut stream = String::from(
        "commit refs/heads/main\ncommitter T <t@example.org> 1700000000 +0000\ndata 1\nx\n",
    );
    for number in 0..10_000 {
        let (skill, file) = (number / 100, number % 100);
        let name = if file == 0 {
            "SKILL.md".to_owned()
        } else {
            format!("{file}.txt")
        };
        let text = format!("{number} {SKILL}");
        write!(
            stream,
            "M 100644 inline skills/{skill:03}/{name}\ndata {}\n{text}\n",
            text.len()
        )
        .expect("text");
    }
    origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    let kept = Kept::new();
    let start = Instant::now();
    let update = kept.update(&remote(&origin.url()), None);
    let cloned = start.elapsed();
    let start = Instant::now();
    let found = kept.find(&update);
    let listed = start.elapsed();
    assert_eq!(found.skills.len(), 100);
    let stop = AtomicBool::new(false);
    let mut files = 0;
    let start = Instant::now();
    for skill in &found.skills {
        files += kept
            .repository
            .read(&skill.tree, &stop)
            .expect("files")
            .files
            .len();
    }
    let read = start.elapsed();
    assert_eq!(files, 10_000);
    println!("10,000 files: cloned in {cloned:?}, listed in {listed:?}, read in {read:?}");
    let start = Instant::now();
    assert!(
        kept.update(&remote(&origin.url()), Some(&update))
            .is_unchanged
    );
    println!("looked at again in {:?}", start.elapsed());
    // More than the limits allow.
    let commit = &update.tip.commit;
    let few = kept.repository.find(commit, "", (5_000, 1_000), &stop);
    assert!(matches!(few, Err(Error::TooLarge(_))), "{few:?}");
    let few = kept.repository.find(commit, "", (50_000, 99), &stop);
    assert!(matches!(few, Err(Error::TooLarge(_))), "{few:?}");
}

#[test]
fn a_skill_with_too_many_files_or_bytes_is_refused() {
    let origin = Origin::with(&[("x", "x")]);
    let skill = origin.blob(SKILL.as_bytes());
    let large = origin.blob(&vec![7; 17 << 20]);
    let mut names = vec!["SKILL.md".to_owned()];
    names.extend((0..2048).map(|number| format!("a{number:04}")));
    let entries: Vec<(&str, &[u8], &str)> = names
        .iter()
        .map(|name| ("100644", name.as_bytes(), skill.as_str()))
        .collect();
    let many = origin.tree(&entries);
    let large = origin.tree(&[
        ("100644", b"SKILL.md", &skill),
        ("100644", b"large", &large),
    ]);
    let root = origin.tree(&[("40000", b"large", &large), ("40000", b"many", &many)]);
    origin.commit_tree(&root);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    assert_eq!(
        kept.read(&update, "large").1,
        ["error skill-too-large large"]
    );
    assert_eq!(kept.read(&update, "many").1, ["error too-many-files a2047"]);
}

#[test]
fn trees_that_hold_each_other_many_times_or_are_too_deep_end() {
    let origin = Origin::with(&[("x", "x")]);
    let skill = origin.blob(SKILL.as_bytes());
    let mut bomb = origin.tree(&[("100644", b"SKILL.md", &skill)]);
    for _ in 0..8 {
        let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let mut entries: Vec<(&str, &[u8], &str)> = names
            .iter()
            .map(|name| ("40000", name.as_bytes(), bomb.as_str()))
            .collect();
        entries.push(("100644", b"SKILL.md", &skill));
        bomb = origin.tree(&entries);
    }
    let mut deep = origin.tree(&[("100644", b"SKILL.md", &skill)]);
    for _ in 0..100 {
        deep = origin.tree(&[("40000", b"d", &deep)]);
    }
    let root = origin.tree(&[("40000", b"bomb", &bomb), ("40000", b"deep", &deep)]);
    origin.commit_tree(&root);
    let kept = Kept::new();
    let update = kept.update(&remote(&origin.url()), None);
    let all = kept.find_below(&update, "");
    assert!(matches!(all, Err(Error::TooLarge(_))), "{all:?}");
    let stop = AtomicBool::new(false);
    let read = kept.repository.read(&bomb, &stop).expect("files");
    let rules: Vec<_> = read
        .problems
        .iter()
        .map(|problem| problem.rule.as_str())
        .collect();
    assert_eq!(rules, ["too-many-files"]);
    let deep = kept.find_below(&update, "deep").expect("skills");
    assert_eq!(
        (deep.skills.len(), deep.skipped[0].1.as_str()),
        (0, skill_folder::TOO_DEEP)
    );
}
