//! Archives of skills, as strangers make them.

use super::*;
use crate::archive::unpack;

#[test]
fn the_skill_is_at_the_root_or_in_the_one_folder_that_there_is() {
    let skill = SKILL.as_bytes();
    for archive in [
        tar_gz(&[("SKILL.md", skill), ("a/b.md", b"b")]),
        tar_gz(&[("./SKILL.md", skill), ("./a/b.md", b"b")]),
        tar_gz(&[("top/SKILL.md", skill), ("top/a/b.md", b"b")]),
        zip(&[
            ("SKILL.md", skill),
            ("a/b.md", b"b"),
            ("__MACOSX/._x", b"x"),
        ]),
        zip(&[("top/SKILL.md", skill), ("top/a/b.md", b"b")]),
    ] {
        let files = unpack(&archive).expect("files");
        let expected = vec![("SKILL.md", SKILL.to_owned()), ("a/b.md", "b".to_owned())];
        assert_eq!(texts(&files), expected);
    }
    let files = unpack(&zip(&[("one/SKILL.md", skill), ("two/x", b"x")])).expect("files");
    let found: Vec<_> = texts(&files).into_iter().map(|(path, _)| path).collect();
    assert_eq!(found, ["one/SKILL.md", "two/x"]);
}

#[test]
fn a_hostile_path_is_a_problem_and_no_file() {
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "C:\\x",
        ".git/config",
        "aux",
        "a. ",
        "b\u{202e}c",
    ] {
        for archive in [
            tar_gz(&[("SKILL.md", SKILL.as_bytes()), (path, b"x")]),
            zip(&[("SKILL.md", SKILL.as_bytes()), (path, b"x")]),
        ] {
            let files = unpack(&archive).expect("files");
            assert_eq!(texts(&files), [("SKILL.md", SKILL.to_owned())], "{path}");
            assert_eq!(files.problems.len(), 1, "{path}");
            assert_eq!(files.problems[0].rule, "path-invalid", "{path}");
        }
    }
}

#[test]
fn links_and_special_files_are_left_out_and_told() {
    let packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(packer);
    for (name, kind) in [
        ("link", tar::EntryType::Symlink),
        ("hard", tar::EntryType::Link),
        ("fifo", tar::EntryType::Fifo),
        ("device", tar::EntryType::Char),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_path(name).expect("a path");
        header.set_entry_type(kind);
        header.set_link_name("/etc/passwd").expect("a target");
        header.set_size(0);
        header.set_cksum();
        archive.append(&header, &b""[..]).expect("an entry");
    }
    let archive = archive
        .into_inner()
        .expect("a tar")
        .finish()
        .expect("a gzip");
    let files = unpack(&archive).expect("files");
    let rules: Vec<_> = files
        .problems
        .iter()
        .map(|problem| problem.rule.as_str())
        .collect();
    assert_eq!((files.files.len(), rules), (0, vec!["file-not-regular"; 4]));
}

#[test]
fn bombs_are_stopped_before_they_are_large() {
    let large = vec![0; 32 << 20];
    for bomb in [
        zip(&[("SKILL.md", &large)]),
        tar_gz(&[("SKILL.md", &large)]),
        // Within the bytes of a skill, and a thousand times its size.
        zip(&[("SKILL.md", &large[..12 << 20])]),
    ] {
        let error = unpack(&bomb).expect_err("refused");
        assert!(matches!(error, Error::TooLarge(_)), "{error}");
    }
    let names: Vec<_> = (0..10_000).map(|at| format!("f{at}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    for bomb in [zip(&many), tar_gz(&many)] {
        let error = unpack(&bomb).expect_err("refused");
        assert!(matches!(error, Error::TooLarge(_)), "{error}");
    }
}

#[test]
fn what_is_no_archive_or_ends_early_is_told() {
    let whole = [
        tar_gz(&[("SKILL.md", SKILL.as_bytes())]),
        zip(&[("SKILL.md", SKILL.as_bytes())]),
    ];
    for archive in whole {
        // Wherever it ends: half a skill is none.
        for length in 0..archive.len() {
            let error = unpack(&archive[..length]).expect_err("it ends early");
            assert!(error.is_transient(), "{length}: {error}");
        }
    }
    for (other, told) in [
        (&b""[..], "it is neither a zip nor a .tar.gz"),
        (b"<html>", "it is neither a zip nor a .tar.gz"),
        (b"PK", "it ends early, or is damaged"),
        (b"\x1f\x8b", "it ends early, or is damaged"),
    ] {
        let error = unpack(other).expect_err("no archive");
        let expected = format!("an archive cannot be read: {told}");
        assert!(
            matches!(&error, Error::Unavailable(why) if *why == expected),
            "{error:?}"
        );
    }
}

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";

/// Every problem as its rule and its file.
fn told(files: &Files) -> Vec<(&str, &str)> {
    let problems = files.problems.iter();
    problems
        .map(|problem| (problem.rule.as_str(), problem.file.as_str()))
        .collect()
}

#[test]
fn what_is_no_part_of_a_skill_is_left_out_as_of_a_folder() {
    let inside: [(&str, &[u8]); 10] = [
        ("SKILL.md", SKILL.as_bytes()),
        (".skillignore", b"/notes\n!target/\n!.env\n"),
        (".env", b"A=1"),
        ("keys/id_rsa", b"x"),
        ("node_modules/a.js", b"x"),
        ("node_modules/b.js", b"x"),
        ("notes/.skillignore", b"SKILL.md\n"),
        ("target/goals.md", b"x"),
        ("model.bin", POINTER),
        ("docs/a.pyc", b"x"),
    ];
    for archive in [tar_gz(&inside), zip(&inside)] {
        let files = unpack(&archive).expect("files");
        let paths: Vec<_> = texts(&files).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [".skillignore", "SKILL.md", "target/goals.md"]);
        assert_eq!(
            told(&files),
            [
                ("file-left-out", ".env"),
                ("file-left-out", "docs/a.pyc"),
                ("file-left-out", "keys/id_rsa"),
                ("file-lfs-pointer", "model.bin"),
                ("file-left-out", "node_modules"),
                ("file-left-out", "notes"),
            ]
        );
    }
}

#[test]
fn patterns_that_are_too_many_refuse_the_skill() {
    let patterns = vec![b'#'; 100_000];
    let archive = zip(&[
        ("SKILL.md", SKILL.as_bytes()),
        ("a/.skillignore", &patterns),
    ]);
    let files = unpack(&archive).expect("files");
    assert_eq!(told(&files), [("patterns-too-large", "a/.skillignore")]);
}
