//! What others changed in a folder, and folders that are not ours.

use super::*;

#[test]
fn what_we_did_not_install_is_neither_overwritten_nor_removed() {
    let machine = Machine::new();
    machine.write("refunds/notes.md", "mine");
    let one = files(ONE);
    let record = version("github/acme/refunds", 1, &one);
    for force in [false, true] {
        let refused = machine.install_with(&record, &one, Method::Copy, force);
        assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        let refused = machine.uninstall("github/acme/refunds", true, force);
        assert!(
            matches!(refused, Err(Error::NotInstalled { .. })),
            "{refused:?}"
        );
    }
    let elsewhere = machine.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    symlink(&elsewhere, machine.directory().join("linked")).expect("a link");
    let record = version("github/acme/linked", 1, &one);
    let refused = machine.install_with(&record, &one, Method::Copy, true);
    assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
    assert_eq!(machine.there(), expected(&[("refunds/notes.md", "mine")]));
    assert_eq!(tree(&elsewhere, ""), expected(&[]));
}

#[test]
fn what_somebody_changed_is_given_up_by_force_alone() {
    let machine = Machine::new();
    let (one, two) = (files(ONE), files(TWO));
    let first = version("github/acme/refunds", 1, &one);
    machine.install(&first, &one).expect("installed");
    machine.write("refunds/SKILL.md", "Mine");
    let details = Some("changed since it was installed: SKILL.md".to_owned());
    let told = ("github/acme/refunds".to_owned(), "warning", details);
    assert_eq!(machine.health(), [told]);
    let second = version("github/acme/refunds", 2, &two);
    let refused = machine.install(&second, &two).expect_err("refused");
    let path = machine.directory().join("refunds");
    assert_eq!(
        refused.to_string(),
        format!(
            "`{}` was changed since it was installed: SKILL.md",
            path.display()
        )
    );
    machine
        .uninstall("github/acme/refunds", false, false)
        .expect_err("refused");
    assert_eq!(machine.there()["refunds/SKILL.md"], "Mine");
    machine
        .install_with(&second, &two, Method::Copy, true)
        .expect("by force");
    assert_eq!(machine.there()["refunds/SKILL.md"], "Two");
    // What is missing is no change that could be lost.
    fs::remove_file(path.join("SKILL.md")).expect("removed");
    let told = (
        "github/acme/refunds".to_owned(),
        "error",
        Some("missing: SKILL.md".to_owned()),
    );
    assert_eq!(machine.health(), [told]);
    machine.install(&second, &two).expect("mended");
    assert_eq!(machine.health()[0].1, "healthy");
    fs::remove_dir_all(&path).expect("removed");
    assert_eq!(machine.health()[0].2.as_deref(), Some("missing: ."));
    machine
        .uninstall("github/acme/refunds", false, false)
        .expect("removed");
}

#[test]
fn a_link_in_the_place_of_a_folder_is_a_change_and_what_it_leads_to_stays() {
    let machine = Machine::new();
    let one = files(ONE);
    let record = version("github/acme/refunds", 1, &one);
    machine.install(&record, &one).expect("installed");
    let elsewhere = machine.folder.path().join("elsewhere");
    fs::rename(machine.directory().join("refunds"), &elsewhere).expect("moved");
    symlink(&elsewhere, machine.directory().join("refunds")).expect("a link");
    machine
        .uninstall("github/acme/refunds", true, false)
        .expect_err("refused");
    machine
        .uninstall("github/acme/refunds", true, true)
        .expect("by force");
    assert_eq!(machine.there(), expected(&[]));
    assert_eq!(tree(&elsewhere, ""), expected(ONE));
}

#[test]
fn what_others_put_into_the_folder_stays_with_the_skill_and_after_it() {
    let machine = Machine::new();
    let (one, two) = (files(ONE), files(TWO));
    machine
        .install(&version("github/acme/refunds", 1, &one), &one)
        .expect("installed");
    machine.write("refunds/data/cache.json", "{}");
    assert_eq!(machine.health()[0].1, "healthy");
    let second = version("github/acme/refunds", 2, &two);
    machine
        .install_with(&second, &two, Method::Symlink, false)
        .expect("replaced");
    let with_data = expected(&[
        ("refunds/SKILL.md", "Two"),
        ("refunds/references/a.md", "A"),
        ("refunds/data/cache.json", "{}"),
    ]);
    assert_eq!(machine.there(), with_data);
    let removed = machine
        .uninstall("github/acme/refunds", false, false)
        .expect("removed");
    assert_eq!(removed.kept, 1);
    let data = expected(&[("refunds/data/cache.json", "{}")]);
    assert_eq!(machine.there(), data);
    let other = version("github/other/refunds", 1, &one);
    let refused = machine.install(&other, &one);
    assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
    machine.install(&second, &two).expect("again");
    assert_eq!(machine.there(), with_data);
    // A file of the next version would take the place of one of somebody's.
    let three = files(&[("SKILL.md", "Three"), ("data/cache.json", "theirs")]);
    let third = version("github/acme/refunds", 3, &three);
    let refused = machine.install(&third, &three);
    assert!(matches!(refused, Err(Error::Changed { .. })), "{refused:?}");
    let removed = machine
        .uninstall("github/acme/refunds", true, false)
        .expect("removed");
    assert_eq!((removed.kept, machine.there()), (0, expected(&[])));
}

#[test]
fn a_copy_that_links_lead_to_serves_all_of_them_and_is_mended_by_force_alone() {
    let machine = Machine::new();
    let one = files(ONE);
    let record = version("github/acme/refunds", 1, &one);
    let record = Record {
        method: Method::Symlink,
        ..record
    };
    let (home, other) = (machine.home(), machine.folder.path().join("other"));
    machine
        .install_with(&record, &one, Method::Symlink, false)
        .expect("installed");
    home.install(&other, record.clone(), &one, false, NEVER)
        .expect("installed");
    assert_eq!(home.list().expect("a list").len(), 2);
    machine
        .uninstall("github/acme/refunds", true, false)
        .expect("removed");
    assert_eq!(tree(&other, ".repertoire").len(), 2);
    fs::write(other.join("refunds/SKILL.md"), "Mine").expect("written");
    let refused = machine.install_with(&record, &one, Method::Symlink, false);
    assert!(matches!(refused, Err(Error::Changed { .. })), "{refused:?}");
    machine
        .install_with(&record, &one, Method::Symlink, true)
        .expect("mended");
    assert_eq!(
        fs::read_to_string(other.join("refunds/SKILL.md")).expect("text"),
        "One"
    );
}
