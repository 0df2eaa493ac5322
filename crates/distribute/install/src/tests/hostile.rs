//! What a stranger put into the folder of skills, before or while we work: nothing outside of it
//! changes, and nothing in it that is not ours.

use super::*;

/// The names below a folder of skills that a change makes, replaces or removes.
const NAMES: [&str; 8] = [
    ".repertoire",
    ".repertoire/new",
    ".repertoire/old",
    ".repertoire/new/refunds",
    ".repertoire/old/refunds",
    ".repertoire/installed.json",
    ".repertoire/installed.json.new",
    "refunds",
];

/// A machine, and a folder outside of its skills that has all that a change removes.
fn machine() -> Machine {
    let machine = Machine::new();
    for path in ["new/mail", "old/mail", "refunds/SKILL.md", "SKILL.md"] {
        machine.write(&format!("../outside/{path}"), "theirs");
    }
    machine.write("../outside/installed.json", &pending(&machine, "refunds"));
    fs::create_dir_all(machine.directory()).expect("a folder");
    machine
}

/// A record of a stranger, by which the folder of a skill is to be removed.
fn pending(machine: &Machine, slug: &str) -> String {
    let id = format!("github/acme/{slug}");
    let found = fs::metadata(machine.folder.path()).expect("a folder");
    let inode = std::os::unix::fs::MetadataExt::ino(&found);
    serde_json::json!({
        "format": 1,
        "pending": {"id": id, "record": null, "put": false, "begun_in": [1, inode]},
    })
    .to_string()
}

fn outside(machine: &Machine) -> BTreeMap<String, String> {
    tree(&machine.folder.path().join("outside"), "")
}

/// All that is done to a folder of skills, one after the other. What is refused is refused.
fn everything(machine: &Machine) {
    let _listed = machine.home().list();
    for (number, text) in [(1, ONE), (2, TWO)] {
        for method in [Method::Copy, Method::Symlink] {
            let files = files(text);
            let record = version("github/acme/refunds", number, &files);
            let _installed = machine.install_with(&record, &files, method, true);
        }
    }
    let _removed = machine.uninstall("github/acme/refunds", true, true);
    let _opened = Directory::open(&machine.directory(), NEVER);
}

#[test]
fn a_link_of_any_name_leads_nowhere() {
    for name in NAMES {
        for (to, is_relative) in [
            ("outside", false),
            ("outside", true),
            ("outside/installed.json", false),
            ("gone", false),
        ] {
            let machine = machine();
            let at = machine.directory().join(name);
            fs::create_dir_all(at.parent().expect("a folder")).expect("made");
            let up = "../".repeat(1 + name.matches('/').count());
            let to = if is_relative {
                PathBuf::from(format!("{up}{to}"))
            } else {
                machine.folder.path().join(to)
            };
            symlink(&to, &at).expect("a link");
            let before = outside(&machine);
            everything(&machine);
            assert_eq!(outside(&machine), before, "{name} -> {}", to.display());
            assert!(!machine.folder.path().join("gone").exists(), "{name}");
        }
    }
}

#[test]
fn the_folder_of_skills_is_no_link_when_it_is_changed() {
    let machine = machine();
    fs::remove_dir(machine.directory()).expect("empty");
    symlink(machine.folder.path().join("outside"), machine.directory()).expect("a link");
    let before = outside(&machine);
    everything(&machine);
    assert_eq!(outside(&machine), before);
}

#[test]
fn a_list_changes_nothing_and_a_change_that_did_not_begin_here_is_not_finished() {
    let machine = machine();
    machine.write("mine/SKILL.md", "mine");
    machine.write(".repertoire/installed.json", &pending(&machine, "mine"));
    let before = tree(&machine.directory(), "");
    assert_eq!(machine.home().list().expect("a list"), []);
    assert_eq!(tree(&machine.directory(), ""), before);
    let one = files(ONE);
    let refused = machine.install(&version("github/acme/refunds", 1, &one), &one);
    let refused = refused.expect_err("a refusal");
    assert!(matches!(refused, Error::NotBegunHere { .. }), "{refused}");
    assert_eq!(
        refused.to_string(),
        format!(
            "`{}` names a change of 'github/acme/mine' that did not begin in this folder",
            machine
                .directory()
                .join(".repertoire/installed.json")
                .display()
        )
    );
    assert_eq!(tree(&machine.directory(), ""), before);
}

#[test]
fn what_others_put_next_to_the_skills_stays() {
    let machine = machine();
    machine.write("mine/SKILL.md", "mine");
    machine.write(".repertoire/mine.txt", "mine");
    machine.write(".repertoire/installed.json.new/mine.txt", "mine");
    let before = tree(&machine.directory(), "");
    everything(&machine);
    assert_eq!(tree(&machine.directory(), ""), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_becomes_a_link_while_a_skill_is_written_leads_nowhere() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::sync::atomic::{AtomicBool, Ordering};
    for name in [".repertoire", ".repertoire/new", ".repertoire/old"] {
        let machine = machine();
        let (at, link) = (
            machine.directory().join(name),
            machine.directory().join("link"),
        );
        fs::create_dir_all(&at).expect("a folder");
        symlink(machine.folder.path().join("outside"), &link).expect("a link");
        let (before, done) = (outside(&machine), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Refused where a change has removed one of the two.
                    let _refused = renameat_with(CWD, &at, CWD, &link, RenameFlags::EXCHANGE);
                    let _there = fs::create_dir(&at);
                }
            });
            for _ in 0..25 {
                everything(&machine);
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(outside(&machine), before, "{name}");
    }
}
