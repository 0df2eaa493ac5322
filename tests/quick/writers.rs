//! What writes on the caller's machine below a folder of others.

use crate::workspace::{files, packages};

/// What writes below a folder that a stranger may have filled. `root_folder` alone does it: it
/// follows no link.
const WRITERS: [&str; 4] = [
    "crates/distribute/install/src",
    "crates/distribute/provision/src",
    "crates/app/cli/src/mirror.rs",
    "crates/app/cli/src/exercise.rs",
];

#[test]
fn what_writes_below_a_folder_of_strangers_does_it_by_descriptors() {
    let calls = [
        "fs::write",
        "create_dir",
        "remove_dir",
        "remove_file",
        "fs::rename",
        "fs::copy",
        "hard_link",
        "symlink(",
        "OpenOptions",
        "File::create",
        "File::open",
        "AtomicFile",
    ];
    let mut wrong = Vec::new();
    for (path, text) in packages().values().flat_map(files) {
        let is_writer = WRITERS
            .iter()
            .any(|writer| path.to_string_lossy().contains(writer));
        for call in calls
            .iter()
            .filter(|call| is_writer && text.contains(**call))
        {
            wrong.push(format!("{} has {call}", path.display()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
