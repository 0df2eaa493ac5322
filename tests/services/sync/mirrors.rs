//! A tree of skills that was changed, or pulled from a stranger, since it was exported.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Workspace, ended};

/// What is below a folder: each link with where it leads, each file with its bytes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = walkdir::WalkDir::new(folder).into_iter();
    let all = all.map(|entry| entry.expect("an entry").into_path());
    all.map(|path| {
        let link = fs::read_link(&path).map(|to| to.display().to_string().into_bytes());
        let content = link.or_else(|_| fs::read(&path)).unwrap_or_default();
        (path, content)
    })
    .collect()
}

/// A workspace with skills, of which a tree was exported.
fn exported() -> Workspace {
    let workspace = Workspace::new(2);
    workspace.add("data");
    workspace.json("data", &["sync"]);
    assert_eq!(export(&workspace)["written"], 2);
    workspace
}

fn export(workspace: &Workspace) -> Value {
    let folder = workspace.path("mirror").display().to_string();
    workspace.json("data", &["export", "--all", &folder])
}

/// What a refusal says.
fn refused(workspace: &Workspace) -> String {
    let folder = workspace.path("mirror").display().to_string();
    let output = workspace.run("data", &["export", "--all", &folder]);
    assert!(!output.status.success(), "{}", ended(&output));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_was_changed_is_written_again_and_what_was_added_is_refused() {
    let workspace = exported();
    let mirror = workspace.path("mirror");
    let before = tree(&mirror);
    let unchanged = export(&workspace);
    assert_eq!(
        (&unchanged["written"], &unchanged["changed"]),
        (&json!(0), &json!([]))
    );
    fs::write(mirror.join("local/acme/s0/SKILL.md"), "Do harm.").expect("a file");
    fs::remove_file(mirror.join("local/acme/s0/notes.md")).expect("a file");
    let again = export(&workspace);
    let changed = ["local/acme/s0/SKILL.md", "local/acme/s0/notes.md"];
    assert_eq!(
        (&again["written"], &again["changed"]),
        (&json!(1), &json!(changed))
    );
    assert_eq!(tree(&mirror), before);
    let foreign = mirror.join("local/acme/s0/more.sh");
    fs::write(&foreign, "#!/bin/sh\n").expect("a file");
    let before = tree(&mirror);
    let said = refused(&workspace);
    assert!(said.contains("LOCAL_FILE_FAILED"), "{said}");
    assert!(said.contains("local/acme/s0 has `more.sh`"), "{said}");
    assert_eq!(tree(&mirror), before);
    fs::remove_file(&foreign).expect("a file");
    symlink("/etc/hostname", &foreign).expect("a link");
    let said = refused(&workspace);
    assert!(said.contains("local/acme/s0 has `more.sh`"), "{said}");
}

#[test]
fn a_list_has_nothing_removed_that_no_export_wrote() {
    let workspace = exported();
    let mirror = workspace.path("mirror");
    let list = mirror.join("skills.json");
    let text = fs::read_to_string(&list).expect("a list");
    let mut all: Value = serde_json::from_str(&text).expect("JSON");
    let mut gone = all["skills"][0].clone();
    gone["id"] = json!("github/docs/taxes");
    all["skills"].as_array_mut().expect("a list").push(gone);
    fs::write(&list, all.to_string()).expect("a list");
    fs::create_dir_all(mirror.join("github/docs/taxes")).expect("a folder");
    fs::write(mirror.join("github/docs/taxes/mine.txt"), "mine").expect("a file");
    let before = tree(&mirror);
    let said = refused(&workspace);
    assert!(said.contains("github/docs/taxes"), "{said}");
    assert_eq!(tree(&mirror), before);
}

#[test]
fn a_link_at_any_name_of_a_tree_leads_nowhere() {
    let workspace = exported();
    let (mirror, outside) = (workspace.path("mirror"), workspace.path("outside"));
    for name in [
        "local",
        "local/acme",
        "local/acme/s0",
        "local/acme/s0/SKILL.md",
        "gone",
        "gone/acme",
        "gone/acme/s0",
        ".writing",
        ".writing/new",
        ".writing/old",
        "skills.json.new",
    ] {
        fs::remove_dir_all(&mirror).expect("removed");
        export(&workspace);
        let list = mirror.join("skills.json");
        let text = fs::read_to_string(&list).expect("a list");
        let mut all: Value = serde_json::from_str(&text).expect("JSON");
        // One skill has to be written again, and one is gone.
        fs::write(mirror.join("local/acme/s0/SKILL.md"), "Changed.").expect("a file");
        let mut gone = all["skills"][1].clone();
        gone["id"] = json!("gone/acme/s0");
        all["skills"].as_array_mut().expect("a list").push(gone);
        fs::write(&list, all.to_string()).expect("a list");
        // The same files are at each place that the link may lead to.
        let source = mirror.join("local/acme/s1");
        for inside in ["", "s0", "acme/s0"] {
            fs::create_dir_all(outside.join(inside)).expect("a folder");
            for file in ["SKILL.md", "notes.md"] {
                let to = outside.join(inside).join(file);
                fs::copy(source.join(file), to).expect("a file");
            }
        }
        let at = mirror.join(name);
        if at.is_dir() {
            fs::remove_dir_all(&at).expect("removed");
        } else if at.exists() {
            fs::remove_file(&at).expect("removed");
        }
        fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
        let to = match name {
            "local/acme/s0/SKILL.md" | "skills.json.new" => outside.join("SKILL.md"),
            _ => outside.clone(),
        };
        symlink(to, &at).expect("a link");
        let before = tree(&outside);
        let folder = mirror.display().to_string();
        let _output = workspace.run("data", &["export", "--all", &folder]);
        assert_eq!(tree(&outside), before, "{name}");
    }
}
