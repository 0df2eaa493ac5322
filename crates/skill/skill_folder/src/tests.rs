//! Folders as they are found on disks.

mod limits;
mod patterns;
mod stamps;

use tempfile::TempDir;

use super::*;

const SKILL: &str = "---\nname: x\ndescription: For a test.\n---\nDo it.\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn taken(read: &SkillFiles) -> Vec<&str> {
    read.files.keys().map(FilePath::as_str).collect()
}

fn reported<'a>(read: &'a SkillFiles, rule: &str) -> Vec<&'a str> {
    let problems = read.problems.iter().filter(|problem| problem.rule == rule);
    problems.map(|problem| problem.file.as_str()).collect()
}

#[test]
fn secrets_rubbish_and_what_ignore_files_name_are_left_out_and_told() {
    let folder = folder(&[
        ("SKILL.md", SKILL),
        (".env", "A=1"),
        (".env.example", "A="),
        ("keys/server.pem", "x"),
        ("keys/id_rsa", "x"),
        (".venv/bin/python", "x"),
        ("node_modules/x/index.js", "x"),
        ("target/debug/x", "x"),
        ("scripts/__pycache__/a.pyc", "x"),
        ("scripts/a.py", "x"),
        (".DS_Store", "x"),
        (".git/config", "x"),
        (".gitignore", "*.log\n/build\n!keep.log\n"),
        ("a.log", "x"),
        ("keep.log", "x"),
        ("build/x", "x"),
        ("docs/build/x", "x"),
        ("docs/.gitignore", "draft.md\n"),
        ("docs/draft.md", "x"),
        ("docs/final.md", "x"),
    ]);
    let read = read(folder.path());
    assert_eq!(
        taken(&read),
        [
            ".env.example",
            ".gitignore",
            "SKILL.md",
            "docs/.gitignore",
            "docs/build/x",
            "docs/final.md",
            "keep.log",
            "scripts/a.py",
        ]
    );
    let mut left_out = reported(&read, LEFT_OUT);
    left_out.sort_unstable();
    assert_eq!(
        left_out,
        [
            ".DS_Store",
            ".env",
            ".git",
            ".venv",
            "a.log",
            "build",
            "docs/draft.md",
            "keys/id_rsa",
            "keys/server.pem",
            "node_modules",
            "scripts/__pycache__",
            "target",
        ]
    );
    assert!(!read.is_refused());
}

#[test]
fn a_skillignore_comes_first_and_brings_rubbish_back_but_no_secret() {
    let folder = folder(&[
        ("SKILL.md", SKILL),
        (".gitignore", "data.csv\n"),
        (".skillignore", "!target/\n!data.csv\n!.env\nnotes/\n"),
        ("data.csv", "x"),
        ("target/goals.md", "x"),
        ("notes/mine.md", "x"),
        (".env", "A=1"),
    ]);
    let read = read(folder.path());
    assert_eq!(
        taken(&read),
        [
            ".gitignore",
            ".skillignore",
            "SKILL.md",
            "data.csv",
            "target/goals.md"
        ]
    );
    assert_eq!(reported(&read, LEFT_OUT), [".env", "notes"]);
}

#[test]
fn the_patterns_of_a_repository_hold_in_the_skills_below_it() {
    let folder = folder(&[
        (".git/config", "x"),
        (".gitignore", "*.tmp\nold/\n"),
        ("skills/one/SKILL.md", SKILL),
        ("skills/one/a.tmp", "x"),
        ("old/two/SKILL.md", SKILL),
    ]);
    let found = find(folder.path()).expect("folders");
    assert_eq!(found.folders, [folder.path().join("skills/one")]);
    let left_out: Vec<_> = found
        .left_out
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    assert_eq!(
        left_out,
        [folder.path().join(".git"), folder.path().join("old")]
    );
    let read = read(&folder.path().join("skills/one"));
    assert_eq!(
        (taken(&read), reported(&read, LEFT_OUT)),
        (vec!["SKILL.md"], vec!["a.tmp"])
    );
    // Whoever names a folder wants it.
    let named = find(&folder.path().join("old")).expect("folders");
    assert_eq!(named.folders, [folder.path().join("old/two")]);
}

#[cfg(unix)]
#[test]
fn every_path_that_no_skill_can_have_is_reported() {
    let folder = folder(&[
        ("SKILL.md", SKILL),
        ("aux.txt", "x"),
        ("a\u{200b}.md", "x"),
        ("b:c", "x"),
        ("d.md", "x"),
    ]);
    let read = read(folder.path());
    assert_eq!(
        reported(&read, "path-invalid"),
        ["aux.txt", "a\u{200b}.md", "b:c"]
    );
    assert_eq!(taken(&read), ["SKILL.md", "d.md"]);
    assert!(read.is_refused());
}

#[test]
fn folders_that_are_too_deep_are_told() {
    let deep = vec!["d"; MAX_DEPTH + 1].join("/");
    let last = vec!["d"; MAX_DEPTH].join("/");
    let folder = folder(&[("SKILL.md", SKILL), (&format!("{deep}/SKILL.md"), SKILL)]);
    let found = find(folder.path()).expect("folders");
    assert_eq!(found.folders, [folder.path().to_owned()]);
    let expected = (folder.path().join(&last), TOO_DEEP.to_owned());
    assert_eq!(found.left_out, [expected]);
    let read = read(folder.path());
    assert_eq!(reported(&read, "path-invalid"), [&last]);
    assert!(read.is_refused());
}

#[test]
fn patterns_that_are_too_many_refuse_the_skill() {
    for (file, shown) in [
        (".skillignore", ".skillignore"),
        ("docs/.skillignore", "docs/.skillignore"),
        (".gitignore", ".gitignore"),
    ] {
        let line = "# a pattern of no file\n";
        let folder = folder(&[
            ("SKILL.md", SKILL),
            ("docs/a.md", "x"),
            (file, &line.repeat(4000)),
        ]);
        let read = read(folder.path());
        assert_eq!(reported(&read, "patterns-too-large"), [shown]);
        assert!(read.is_refused(), "{file}");
    }
}

#[test]
fn a_pointer_to_a_large_file_is_left_out_and_told() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let folder = folder(&[("SKILL.md", SKILL), ("model.bin", pointer)]);
    let read = read(folder.path());
    assert_eq!(
        (taken(&read), reported(&read, "file-lfs-pointer")),
        (vec!["SKILL.md"], vec!["model.bin"])
    );
    assert!(!read.is_refused());
}

#[test]
fn no_link_is_followed_wherever_it_is_on_the_way() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("secret", "x"), (".skillignore", "SKILL.md\n")]);
    let folder = folder(&[("SKILL.md", SKILL), ("in/a.md", "a")]);
    let at = |path: &str| folder.path().join(path);
    symlink(outside.path(), at("out")).expect("a link");
    symlink(outside.path().join("secret"), at("in/secret")).expect("a link");
    symlink(outside.path().join(".skillignore"), at(".skillignore")).expect("a link");
    let top = RootFolder::open(&absolute(folder.path())).expect("a folder");
    for path in [
        "out/secret",
        "in/secret",
        "in",
        "gone",
        "in/../SKILL.md",
        "/etc/passwd",
    ] {
        let read = top.read(path.as_ref(), 100);
        assert!(matches!(read, Err(Unread::NoFile(_))), "{path}: {read:?}");
    }
    assert_eq!(top.read("in/a.md".as_ref(), 1).expect("bytes"), b"a");
    let large = top.read("in/a.md".as_ref(), 0);
    assert!(matches!(large, Err(Unread::TooLarge)), "{large:?}");
    let read = read(folder.path());
    assert_eq!(taken(&read), ["SKILL.md", "in/a.md"]);
    assert_eq!(
        reported(&read, "file-not-regular"),
        [".skillignore", "in/secret", "out"]
    );
}

#[test]
fn a_search_that_nobody_wants_ends() {
    let folder = folder(&[("a/SKILL.md", SKILL), ("b/SKILL.md", SKILL)]);
    let asked = std::cell::Cell::new(0);
    let is_wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 3
    };
    let found = find_while(folder.path(), &is_wanted).expect("folders");
    assert_eq!((found.is_none(), asked.get()), (true, 3));
}

#[test]
fn a_folder_that_became_a_link_gives_none_of_its_files() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("one/SKILL.md", SKILL), ("one/.skillignore", "x\n")]);
    let folder = folder(&[("skills/one/SKILL.md", SKILL), ("skills/one/a.md", "a")]);
    let one = Path::new("skills/one");
    let before = read_below(folder.path(), one);
    assert_eq!(taken(&before), ["SKILL.md", "a.md"]);
    assert!(!before.is_refused());
    fs::rename(folder.path().join("skills"), folder.path().join("old")).expect("moved");
    symlink(outside.path(), folder.path().join("skills")).expect("a link");
    let after = read_below(folder.path(), one);
    assert!(after.files.is_empty() && after.is_refused(), "{after:?}");
}

#[test]
fn a_folder_is_itself_behind_a_link_and_another_one_made_anew() {
    let place = folder(&[("a/SKILL.md", SKILL)]);
    let at = |path: &str| place.path().join(path);
    let first = inode(&at("a")).expect("a folder");
    std::os::unix::fs::symlink(at("a"), at("b")).expect("a link");
    assert_eq!(inode(&at("b")), Some(first));
    fs::rename(at("a"), at("old")).expect("moved");
    fs::create_dir(at("a")).expect("a folder");
    assert_ne!(inode(&at("a")), Some(first));
    assert_eq!(
        (inode(&at("old/SKILL.md")), inode(&at("gone"))),
        (None, None)
    );
}

#[test]
fn folders_are_found_the_shortest_path_first_however_skill_md_is_written() {
    let place = folder(&[
        ("a/b/SKILL.md", SKILL),
        ("b/skill.md", SKILL),
        ("z/Skill.MD", SKILL),
        ("none/SKILL.txt", SKILL),
    ]);
    let found = find(place.path()).expect("folders");
    assert_eq!(
        found.folders,
        ["b", "z", "a/b"].map(|path| place.path().join(path))
    );
    assert_eq!(found.left_out, []);
}

#[test]
fn what_is_above_the_repository_of_a_skill_says_nothing_of_its_files() {
    let place = folder(&[
        (".gitignore", "*.tmp\n"),
        ("repository/.git/config", "x"),
        ("repository/.gitignore", "*.log\n"),
        ("repository/one/SKILL.md", SKILL),
        ("repository/one/a.log", "x"),
        ("repository/one/a.tmp", "x"),
    ]);
    let read = read_below(place.path(), Path::new("repository/one"));
    assert_eq!(
        (taken(&read), reported(&read, LEFT_OUT)),
        (vec!["SKILL.md", "a.tmp"], vec!["a.log"])
    );
}

#[test]
fn a_folder_with_the_name_of_a_secret_is_read() {
    let place = folder(&[
        ("SKILL.md", SKILL),
        ("id_rsa/notes.md", "x"),
        ("server.pem/.netrc", "x"),
        ("server.pem/a.md", "x"),
    ]);
    let read = read(place.path());
    assert_eq!(
        (taken(&read), reported(&read, LEFT_OUT)),
        (
            vec!["SKILL.md", "id_rsa/notes.md", "server.pem/a.md"],
            vec!["server.pem/.netrc"]
        )
    );
}

#[cfg(not(target_vendor = "apple"))]
#[test]
fn a_pipe_in_the_place_of_patterns_says_nothing_and_nobody_waits_for_it() {
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let place = folder(&[("SKILL.md", SKILL)]);
    let pipe = place.path().join(SKILLIGNORE);
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let (done, waits) = mpsc::channel();
    let root = place.path().to_owned();
    std::thread::spawn(move || done.send(read(&root)));
    let read = waits.recv_timeout(Duration::from_secs(60));
    let read = read.expect("a read that does not wait for a writer of the pipe");
    assert_eq!(taken(&read), ["SKILL.md"]);
    let problems: Vec<_> = read.problems.iter().map(|problem| &problem.rule).collect();
    assert_eq!(problems, ["file-not-regular"]);
}
