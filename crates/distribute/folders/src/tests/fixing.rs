//! A SKILL.md is mended where there is one way to do it, and nothing else is.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

/// Rules whose problems were mended in a folder.
fn mended(folder: &Path) -> Vec<String> {
    let mended = fix(folder).expect("mended").into_iter();
    mended.map(|problem| problem.rule).collect()
}

fn text(folder: &Path) -> String {
    fs::read_to_string(folder.join("SKILL.md")).expect("a text")
}

#[test]
fn a_text_is_replaced_whole_with_the_permissions_that_it_had() {
    let good = skill("pdf", "One.");
    let place = folder(&[("pdf/SKILL.md", &format!("\n\n{good}"))]);
    let at = place.path().join("pdf");
    let private = fs::Permissions::from_mode(0o640);
    fs::set_permissions(at.join("SKILL.md"), private).expect("set");
    assert_eq!(mended(&at), ["front-matter-not-first"]);
    assert_eq!(text(&at), good);
    let found = fs::metadata(at.join("SKILL.md")).expect("a file");
    assert_eq!(found.permissions().mode() & 0o777, 0o640);
    assert_eq!(names(&at), ["SKILL.md"]);
    assert_eq!(mended(&at), [""; 0]);
    assert_eq!(text(&at), good);
}

#[test]
fn a_name_that_is_spelled_otherwise_becomes_the_one_of_the_standard() {
    let good = skill("pdf", "One.");
    let place = folder(&[("pdf/skill.md", &good)]);
    let at = place.path().join("pdf");
    assert_eq!(mended(&at), ["skill-md-case"]);
    assert_eq!((names(&at), text(&at)), (vec!["SKILL.md".into()], good));
}

#[test]
fn the_name_of_the_folder_decides_how_a_skill_without_a_usable_name_is_called() {
    let nameless = skill("pdf", "One.").replace("name: pdf\n", "name: PDF Tools\n");
    let place = folder(&[("pdf-tools/SKILL.md", &nameless)]);
    let at = place.path().join("pdf-tools");
    let told = mended(&at);
    assert!(!told.is_empty());
    assert!(text(&at).contains("\nname: pdf-tools\n"), "{}", text(&at));
}

#[test]
fn what_is_no_file_or_no_text_is_left_alone() {
    let place = folder(&[("other/SKILL.md", &format!("\n\n{}", skill("pdf", "One.")))]);
    let other = text(&place.path().join("other"));
    // A link to the file of somebody else.
    let linked = place.path().join("linked");
    fs::create_dir(&linked).expect("a folder");
    symlink("../other/SKILL.md", linked.join("SKILL.md")).expect("a link");
    assert_eq!(mended(&linked), [""; 0]);
    assert!(linked.join("SKILL.md").is_symlink());
    assert_eq!(text(&linked), other);
    let bytes = place.path().join("bytes");
    fs::create_dir(&bytes).expect("a folder");
    fs::write(bytes.join("skill.md"), b"\n\n---\nname: \xff\n---\n").expect("written");
    assert_eq!(mended(&bytes), [""; 0]);
    assert_eq!(names(&bytes), ["skill.md"]);
    let empty = place.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    assert_eq!(mended(&empty), [""; 0]);
    let gone = fix(&place.path().join("gone")).expect_err("an error");
    assert_eq!(gone.path, place.path().join("gone"));
}

#[test]
fn a_link_of_the_right_name_is_not_replaced_by_a_file_of_a_similar_one() {
    let place = folder(&[("pdf/skill.md", &skill("pdf", "One."))]);
    let at = place.path().join("pdf");
    symlink("elsewhere.md", at.join("SKILL.md")).expect("a link");
    assert_eq!(mended(&at), [""; 0]);
    assert!(at.join("SKILL.md").is_symlink());
    assert_eq!(names(&at), ["SKILL.md", "skill.md"]);
}

#[test]
fn a_disk_that_refuses_leaves_the_text_and_nothing_beside_it() {
    let broken = format!("\n\n{}", skill("pdf", "One."));
    let place = folder(&[("pdf/SKILL.md", &broken)]);
    let at = place.path().join("pdf");
    // What a process of the same number once left behind.
    let beside = at.join(format!(".SKILL.md.{}", std::process::id()));
    fs::write(&beside, "Left.").expect("written");
    let refused = fix(&at).expect_err("a refusal");
    assert_eq!(refused.path, at.join("SKILL.md"));
    assert_eq!(text(&at), broken);
    assert_eq!(names(&at), ["SKILL.md"]);
    assert_eq!(mended(&at), ["front-matter-not-first"]);
}
