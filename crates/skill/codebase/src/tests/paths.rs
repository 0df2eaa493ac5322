//! Which folders may be looked at.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{ScanOptions, below, walk};

fn refusal(roots: &[PathBuf], path: &Path) -> String {
    below(roots, path).expect_err("a refusal").to_string()
}

#[test]
fn a_folder_below_a_root_is_allowed_and_given_without_links() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    fs::create_dir_all(root.join("a/b")).expect("a folder");
    let roots = [root.join("missing"), root.clone()];
    assert_eq!(
        below(&roots, &root.join("a/../a/b")).ok(),
        Some(root.join("a/b"))
    );
    assert_eq!(below(&roots, &root).ok(), Some(root.clone()));
    assert_eq!(
        below(&roots[1..], Path::new("a")).ok(),
        Some(root.join("a"))
    );
}

#[test]
fn what_is_not_there_no_folder_or_outside_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().canonicalize().expect("a path");
    let root = base.join("root");
    fs::create_dir_all(&root).expect("a folder");
    // Its name begins like the root's.
    fs::create_dir_all(base.join("root-not")).expect("a folder");
    fs::write(root.join("file"), "").expect("a file");
    let roots = [root];
    assert_eq!(
        refusal(&[], Path::new("/")),
        "no folder may be analysed here: the operator has allowed none"
    );
    assert_eq!(
        refusal(&roots, Path::new("missing")),
        "path 'missing' does not exist"
    );
    assert_eq!(
        refusal(&roots, Path::new("file")),
        "path 'file' is not a directory"
    );
    assert_eq!(
        refusal(&roots, Path::new("file/x")),
        "path 'file/x' is not a directory"
    );
    for outside in [
        "/",
        "..",
        "../root-not",
        "../missing",
        "/missing/entirely",
        "../root/../missing",
    ] {
        assert!(
            refusal(&roots, Path::new(outside))
                .ends_with("is not below a folder that may be analysed"),
            "{outside}"
        );
    }
    assert_eq!(
        refusal(&roots, Path::new("../a\nb")),
        "path '../a\\nb' is not below a folder that may be analysed"
    );
}

#[cfg(unix)]
#[test]
fn a_link_does_not_lead_out() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().canonicalize().expect("a path");
    let (root, other) = (base.join("root"), base.join("other"));
    fs::create_dir_all(root.join("inside")).expect("a folder");
    fs::create_dir_all(other.join("deep")).expect("a folder");
    symlink(&other, root.join("out")).expect("a link");
    symlink(root.join("inside"), root.join("in")).expect("a link");
    symlink(root.join("round"), root.join("round")).expect("a link");
    let roots = [root.clone()];
    let outside = |path: &str| refusal(&roots, Path::new(path)).ends_with("may be analysed");
    assert!(outside("out") && outside("out/deep") && outside("out/missing"));
    assert_eq!(
        below(&roots, Path::new("in")).ok(),
        Some(root.join("inside"))
    );
    assert!(refusal(&roots, Path::new("round")).starts_with("path 'round' cannot be read: "));
}

#[test]
fn a_walk_needs_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("a file");
    let refused = |name: &str| {
        let path = folder.path().join(name);
        let error = walk(&path, &ScanOptions::default(), &|| false).expect_err("a refusal");
        error
            .to_string()
            .replace(&folder.path().display().to_string(), "")
    };
    assert_eq!(refused("missing"), "path '/missing' does not exist");
    assert_eq!(refused("file"), "path '/file' is not a directory");
}
