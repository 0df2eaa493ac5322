//! What is installed is there as a whole, and nothing else was touched.

mod changed;
mod formats;
mod hostile;
mod killed;
mod priorities;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use model::{Digest, FilePath, Skill, SkillId, VersionNumber, bundle_digest};

pub(super) type Files = Vec<(FilePath, Bytes)>;

pub(super) fn id(text: &str) -> SkillId {
    text.parse().expect("an id")
}

pub(super) fn files(files: &[(&str, &str)]) -> Files {
    let file = |(path, text): &(&str, &str)| {
        (
            path.parse().expect("a path"),
            Bytes::from((*text).to_owned()),
        )
    };
    files.iter().map(file).collect()
}

/// A version of a skill, with the record of it.
pub(super) fn version(of: &str, number: u32, files: &Files) -> Record {
    let skill = serde_json::json!({
        "name": "A skill", "description": "Does.", "chars": 10 * number, "front_matter": {},
    });
    let skill: Skill = serde_json::from_value(skill).expect("a skill");
    let digest = bundle_digest(files.iter().map(|(path, text)| (path, Digest::of(text))));
    let number = VersionNumber::new(number).expect("a number");
    let semantic = semver::Version::new(1, 0, number.get().into());
    Record::of(
        &id(of),
        (number, semantic, digest),
        &skill,
        files,
        Timestamp::UNIX_EPOCH,
    )
}

/// A machine with a directory of skills.
pub(super) struct Machine {
    pub(super) folder: TempDir,
}

pub(super) const NEVER: &dyn Fn() -> bool = &|| true;

impl Machine {
    pub(super) fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a folder"),
        }
    }

    pub(super) fn home(&self) -> Home {
        Home::new(self.folder.path().join("home"), vec![self.directory()])
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.folder.path().join("skills")
    }

    pub(super) fn install(&self, record: &Record, files: &Files) -> Result<Placed, Error> {
        self.install_with(record, files, Method::Copy, false)
    }

    pub(super) fn install_with(
        &self,
        record: &Record,
        files: &Files,
        method: Method,
        force: bool,
    ) -> Result<Placed, Error> {
        let record = Record {
            method,
            ..record.clone()
        };
        self.home()
            .install(&self.directory(), record, files, force, NEVER)
    }

    pub(super) fn uninstall(&self, skill: &str, data: bool, force: bool) -> Result<Removed, Error> {
        self.home()
            .uninstall(&self.directory(), &id(skill), data, force, NEVER)
    }

    /// All that is in the directory but what is ours, links with what they lead to.
    pub(super) fn there(&self) -> BTreeMap<String, String> {
        tree(&self.directory(), ".repertoire")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.directory().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(super) fn health(&self) -> Vec<(String, &'static str, Option<String>)> {
        let all = self.home().list().expect("a list").into_iter();
        all.map(|placed| {
            let health = placed.health();
            (
                placed.record.id.to_string(),
                health.status().name(),
                health.details(),
            )
        })
        .collect()
    }
}

pub(super) fn tree(folder: &Path, but: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name == but {
            continue;
        }
        if path.is_dir() {
            let inside = tree(&path, but).into_iter();
            found.extend(inside.map(|(inner, text)| (format!("{name}/{inner}"), text)));
        } else {
            found.insert(name, fs::read_to_string(path).expect("text"));
        }
    }
    found
}

pub(super) fn expected(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    files.iter().map(owned).collect()
}

const ONE: &[(&str, &str)] = &[("SKILL.md", "One"), ("scripts/pay.sh", "#!/bin/sh\n")];
const TWO: &[(&str, &str)] = &[("SKILL.md", "Two"), ("references/a.md", "A")];

#[test]
fn a_skill_is_installed_replaced_and_removed_as_a_whole() {
    for method in [Method::Copy, Method::Symlink] {
        let machine = Machine::new();
        let (one, two) = (files(ONE), files(TWO));
        let first = version("github/acme/refunds", 1, &one);
        let placed = machine
            .install_with(&first, &one, method, false)
            .expect("installed");
        assert_eq!(placed.path(), machine.directory().join("refunds"));
        assert_eq!(placed.record, Record { method, ..first });
        let script = fs::metadata(placed.path().join("scripts/pay.sh")).expect("a file");
        assert_eq!(script.permissions().mode() & 0o111, 0o111);
        let told = |status| vec![("github/acme/refunds".to_owned(), status, None)];
        assert_eq!(machine.health(), told("healthy"));
        let second = version("github/acme/refunds", 2, &two);
        machine
            .install_with(&second, &two, method, false)
            .expect("replaced");
        let there = [
            ("refunds/SKILL.md", "Two"),
            ("refunds/references/a.md", "A"),
        ];
        assert_eq!(machine.there(), expected(&there));
        assert_eq!(machine.health(), told("healthy"));
        let removed = machine
            .uninstall("GitHub/acme/REFUNDS", false, false)
            .expect("removed");
        assert_eq!((removed.record.number, removed.kept), (second.number, 0));
        assert_eq!(machine.there(), expected(&[]));
        assert_eq!(machine.home().list().expect("a list"), []);
        // No copy is left that nothing leads to.
        let kept = tree(&machine.folder.path().join("home/contents"), "");
        assert_eq!(kept, expected(&[]));
        let again = machine.uninstall("github/acme/refunds", false, false);
        let again = again.expect_err("it is gone").to_string();
        assert_eq!(again, "Skill 'github/acme/refunds' is not installed");
    }
}

#[test]
fn two_skills_of_one_slug_cannot_share_a_folder() {
    let machine = Machine::new();
    let one = files(ONE);
    machine
        .install(&version("github/acme/refunds", 1, &one), &one)
        .expect("installed");
    for other in ["github/other/refunds", "github/other/Refunds"] {
        let refused = machine.install_with(&version(other, 1, &one), &one, Method::Copy, true);
        let refused = refused.expect_err("refused");
        assert!(matches!(refused, Error::FolderTaken { .. }), "{refused:?}");
    }
    assert_eq!(machine.there().len(), ONE.len());
}

#[test]
fn files_that_are_not_those_of_the_version_are_never_written() {
    let machine = Machine::new();
    let (one, two) = (files(ONE), files(TWO));
    let record = version("github/acme/refunds", 1, &one);
    let refused = machine.install(&record, &two);
    assert!(
        matches!(refused, Err(Error::DigestDiffers { .. })),
        "{refused:?}"
    );
    let collide = files(&[("SKILL.md", "x"), ("a.md", "x"), ("A.md", "x")]);
    let record = version("github/acme/refunds", 1, &collide);
    let refused = machine.install(&record, &collide);
    assert!(
        matches!(refused, Err(Error::Unwritable { .. })),
        "{refused:?}"
    );
    // A file and a folder of one name.
    let collide = files(&[("SKILL.md", "x"), ("a", "x"), ("a/b", "x")]);
    let record = version("github/acme/refunds", 1, &collide);
    machine.install(&record, &collide).expect_err("refused");
    assert_eq!(machine.there(), expected(&[]));
    assert_eq!(machine.home().list().expect("a list"), []);
}

#[test]
fn no_field_of_a_record_leads_out_of_its_directory() {
    for (slug, accepted) in [
        ("con", false),
        ("aux.txt", false),
        ("a.", false),
        ("fine", true),
    ] {
        let machine = Machine::new();
        let one = files(ONE);
        let record = version(&format!("github/acme/{slug}"), 1, &one);
        assert_eq!(machine.install(&record, &one).is_ok(), accepted, "{slug}");
    }
    // The record of a repository that somebody else wrote.
    let outside = "../../outside";
    for (field, value) in [
        ("id", outside.to_owned()),
        ("id", "github/acme/..".to_owned()),
        (
            "files",
            format!(r#"[{{"path": "{outside}", "digest": "DIGEST", "size": 1}}]"#),
        ),
        (
            "files",
            r#"[{"path": "/etc/passwd", "digest": "DIGEST", "size": 1}]"#.to_owned(),
        ),
    ] {
        let machine = Machine::new();
        machine.write("../outside", "theirs");
        let one = files(ONE);
        let mut record = serde_json::to_value(version("github/acme/x", 1, &one)).expect("JSON");
        let digest = Digest::of(b"").to_string();
        let value = value.replace("DIGEST", &digest);
        record[field] = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
        for state in [
            serde_json::json!({"format": 1, "skills": [record]}),
            serde_json::json!({"format": 1, "pending": {"id": record["id"], "record": record, "put": false}}),
            serde_json::json!({"format": 1, "left": [record["id"]], "skills": [record]}),
        ] {
            machine.write(".repertoire/installed.json", &state.to_string());
            let listed = machine.home().list();
            assert!(
                matches!(listed, Err(Error::Unreadable { .. })),
                "{listed:?}"
            );
        }
        let left = fs::read_to_string(machine.folder.path().join("outside"));
        assert_eq!(left.expect("text"), "theirs");
    }
    // A directory that is asked for.
    let machine = Machine::new();
    let roots = [machine.folder.path().join("root")];
    fs::create_dir_all(roots[0].join("in")).expect("a folder");
    symlink(machine.folder.path(), roots[0].join("out")).expect("a link");
    let real = roots[0].canonicalize().expect("a folder");
    for good in ["", "in", "in/new/skills"] {
        assert_eq!(
            below(&roots, Path::new(good)).expect("below"),
            real.join(good),
            "{good}"
        );
    }
    for bad in [
        "..",
        "../root2",
        "out",
        "out/skills",
        "in/../../x",
        "new/../../x",
        "/etc",
        "out/../x",
    ] {
        let refused = below(&roots, Path::new(bad));
        assert!(
            matches!(refused, Err(Error::OutsideRoots { .. })),
            "{bad}: {refused:?}"
        );
    }
    assert!(below(&[], Path::new("x")).is_err());
}

#[test]
fn a_directory_that_another_process_changes_is_waited_for() {
    let machine = Machine::new();
    let one = files(ONE);
    let open = Directory::open(&machine.directory(), NEVER).expect("open");
    let record = version("github/acme/refunds", 1, &one);
    let refused = machine.install(&record, &one);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    assert_eq!(list(&machine.directory()).expect("a list"), []);
    drop(open);
    machine.install(&record, &one).expect("installed");
}

#[test]
fn many_at_once_change_one_directory_one_after_the_other() {
    let machine = Machine::new();
    let patience = std::sync::atomic::AtomicUsize::new(0);
    let give_up = || patience.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 100_000;
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let (machine, give_up) = (&machine, &give_up);
            scope.spawn(move || {
                for round in 1..6 {
                    // All of them the same skill, and one of their own.
                    for of in [
                        "github/acme/same".to_owned(),
                        format!("github/acme/own-{thread}"),
                    ] {
                        let text = format!("{thread} {round}");
                        let files = files(&[("SKILL.md", &text), ("a.md", &text)]);
                        let record = version(&of, round, &files);
                        let home = machine.home();
                        let placed =
                            home.install(&machine.directory(), record, &files, false, give_up);
                        placed.expect("installed");
                    }
                }
            });
        }
    });
    let all = machine.health();
    assert_eq!(all.len(), 9);
    assert!(
        all.iter().all(|(_, status, _)| *status == "healthy"),
        "{all:?}"
    );
    let there = machine.there();
    assert_eq!(there["same/SKILL.md"], there["same/a.md"]);
    assert_eq!(tree(&machine.directory().join(".repertoire"), "").len(), 1);
}

#[test]
fn a_directory_that_is_named_twice_has_its_skills_once() {
    let machine = Machine::new();
    let text = files(&[("SKILL.md", "one")]);
    let record = version("local/me/pdf", 1, &text);
    machine.install(&record, &text).expect("installed");
    let twice = vec![machine.directory(), machine.directory()];
    let home = Home::new(machine.folder.path().join("home"), twice);
    assert_eq!(
        home.directories().expect("directories"),
        [machine.directory()]
    );
    let all = home.list().expect("a list").into_iter();
    let all: Vec<Record> = all.map(|placed| placed.record).collect();
    assert_eq!(all, [record]);
}
