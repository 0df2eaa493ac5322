//! Nothing outside of the folder changes, whatever lies in it, and whenever.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// All that is below a folder: what each name leads to, with the bytes of files.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let meta = path.symlink_metadata().expect("metadata");
        let mode = meta.permissions().mode();
        let said = if meta.is_symlink() {
            format!("link {}", fs::read_link(&path).expect("a link").display())
        } else if meta.is_dir() {
            found.extend(tree(&path));
            format!("folder {mode:o}")
        } else {
            let links = std::os::unix::fs::MetadataExt::nlink(&meta);
            let text = fs::read_to_string(&path).expect("text");
            format!("file {mode:o} {links} {text}")
        };
        found.insert(path, said);
    }
    found
}

/// A folder with a stranger's links in it, and what they lead to.
struct Place {
    folder: TempDir,
}

/// How a link leads out: to a folder by its whole path and by a relative one, to a file, nowhere.
const LINKS: [&str; 4] = ["dir", "../dir", "file", "gone"];

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let place = Self { folder };
        for path in ["root/mine", "dir/three", "dir/two/three/deep", "file"] {
            let path = place.path(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, "theirs").expect("written");
        }
        place
    }

    fn path(&self, inside: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().expect("a folder");
        folder.join(inside)
    }

    fn root(&self) -> RootFolder {
        RootFolder::open(&self.path("root")).expect("a folder")
    }

    /// Puts a link below the root.
    fn link(&self, to: &str, inside: &str) {
        let at = self.path("root").join(inside);
        fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        let to = match to.strip_prefix("../") {
            Some(to) => {
                let up = "../".repeat(inside.split('/').count());
                PathBuf::from(format!("{up}{to}"))
            }
            None => self.path(to),
        };
        symlink(to, at).expect("a link");
    }

    /// What nobody may change.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut all = tree(&self.path(""));
        all.retain(|path, _| !path.starts_with(self.path("root")));
        all
    }
}

/// Something that is done to a path below a root.
type Operation = fn(&RootFolder, &Path) -> io::Result<()>;

const OPERATIONS: &[(&str, Operation)] = &[
    ("make", |root, path| root.folder(path, true).map(drop)),
    ("write", |root, path| root.write_new(path, b"new", true)),
    ("replace", |root, path| root.replace(path, b"new")),
    ("link", |root, path| root.link(Path::new("mine"), path)),
    ("rename", |root, path| root.rename(path, Path::new("gone"))),
    ("move", |root, path| root.rename(Path::new("mine"), path)),
    ("carry", |root, path| root.carry(path, Path::new("new"))),
    ("bring", |root, path| root.carry(Path::new("mine"), path)),
    ("remove", RootFolder::remove),
    ("remove empty", RootFolder::remove_empty),
    ("list", |root, path| {
        root.folder(path, false)?.files(100).map(drop)
    }),
    ("sync", |root, path| root.folder(path, false)?.sync()),
    ("read", |root, path| Ok(root.read(path, 100).map(drop)?)),
    ("ask", |root, path| root.kind(path).map(drop)),
];

#[test]
fn a_link_at_any_name_of_a_path_leads_nowhere_whatever_is_done() {
    for (what, operation) in OPERATIONS {
        for link in LINKS {
            for at in ["one", "one/two", "one/two/three"] {
                let place = Place::new();
                place.link(link, at);
                let before = place.outside();
                let done = operation(&place.root(), Path::new("one/two/three"));
                assert_eq!(place.outside(), before, "{what} {at} -> {link}");
                // The last name is the link itself, which may be renamed, replaced and removed.
                if at != "one/two/three" {
                    let error = done.expect_err("a refusal");
                    let name = at.rsplit('/').next().expect("a name");
                    let said = format!("`{name}` is a link, or no folder");
                    assert_eq!(error.to_string(), said, "{what} {at} -> {link}");
                }
            }
        }
    }
}

#[test]
fn what_a_link_leads_to_is_neither_read_nor_taken_for_a_folder() {
    for link in LINKS {
        let place = Place::new();
        place.link(link, "one");
        let root = place.root();
        let one = Path::new("one");
        assert_eq!(root.kind(one).expect("a kind"), Some(Kind::Link));
        assert!(matches!(root.read(one, 100), Err(Unread::NoFile(_))));
        root.folder(one, true).expect_err("no folder");
        let files = root.files(100).expect("a list");
        let expected = [("mine", Kind::File), ("one", Kind::Link)];
        assert_eq!(
            files,
            Some(expected.map(|(path, kind)| (path.into(), kind)).into())
        );
        assert_eq!(root.files(1).expect("a list"), None);
        RootFolder::open(&place.path("root/one")).expect_err("a link on the way");
        RootFolder::make(&place.path("root/one/new")).expect_err("a link on the way");
    }
}

#[test]
fn a_folder_is_removed_with_all_in_it_and_links_in_it_lead_nowhere() {
    let place = Place::new();
    for (link, at) in [("dir", "one/two/a"), ("../dir", "one/b"), ("file", "one/c")] {
        place.link(link, at);
    }
    let (before, root) = (place.outside(), place.root());
    root.write_new(Path::new("one/two/file"), b"new", false)
        .expect("written");
    for _ in 0..2 {
        root.remove(Path::new("one")).expect("removed");
        assert_eq!(root.names().expect("names"), ["mine"]);
    }
    assert_eq!(place.outside(), before);
    let deep = "d/".repeat(400);
    root.folder(Path::new(&deep), true).expect("made");
    let error = root.remove(Path::new("d")).expect_err("too deep");
    assert_eq!(error.to_string(), "it has too many folders in one another");
}

#[test]
fn a_file_is_new_or_replaced_whole() {
    let place = Place::new();
    let (root, mine) = (place.root(), Path::new("mine"));
    let taken = root
        .write_new(mine, b"new", false)
        .expect_err("it is there");
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    place.link("file", "mine.new");
    root.replace(mine, b"new").expect("replaced");
    assert_eq!(root.read(mine, 3).expect("bytes"), b"new");
    assert!(matches!(root.read(mine, 2), Err(Unread::TooLarge)));
    root.replace(Path::new("a/b"), b"new").expect("replaced");
    root.write_new(Path::new("a/c"), b"#!", true).expect("new");
    root.carry(Path::new("a/c"), Path::new("d/e"))
        .expect("carried");
    root.sync().expect("synced");
    let mode = fs::metadata(place.path("root/d/e")).expect("a file");
    assert_eq!(mode.permissions().mode() & 0o111, 0o111);
    let names = root.files(100).expect("a list").expect("few");
    let names: Vec<_> = names.iter().map(|(path, _)| path.as_path()).collect();
    assert_eq!(names, ["a/b", "a/c", "d/e", "mine"].map(Path::new));
    // What a folder has its name is not ours.
    fs::create_dir(place.path("root/f.new")).expect("a folder");
    root.replace(Path::new("f"), b"new").expect_err("a folder");
}

#[test]
fn a_path_that_a_person_names_is_resolved_as_far_as_it_exists() {
    let place = Place::new();
    place.link("dir", "one");
    place.link("gone", "two");
    for (path, real) in [
        ("root/one/two", "dir/two"),
        ("root/one/new/er", "dir/new/er"),
        ("root/one/../file", "file"),
        ("new", "new"),
    ] {
        let found = resolved(&place.path(path)).expect("a path");
        assert_eq!(found, place.path(real), "{path}");
    }
    for path in ["root/two", "root/two/x", "root/new/../../x"] {
        resolved(&place.path(path)).expect_err(path);
    }
    let error = RootFolder::open(Path::new("one")).expect_err("no whole path");
    assert_eq!(error.to_string(), "`one` is no whole path");
}

fn a_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just("one"),
        3 => Just("two"),
        2 => Just("three"),
        2 => Just("mine"),
        1 => Just(".."),
        1 => Just("."),
        1 => Just(""),
        1 => Just("deep"),
    ]
}

fn a_path() -> impl Strategy<Value = String> {
    prop::collection::vec(a_name(), 1..5).prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_calls_on_any_paths_change_what_is_outside(
        links in prop::collection::vec((0..LINKS.len(), a_path()), 0..4),
        calls in prop::collection::vec((0..OPERATIONS.len(), a_path()), 1..8),
    ) {
        let place = Place::new();
        for (link, at) in &links {
            let at = place.path("root").join(at.trim_start_matches('/'));
            // Where it can be: not all of these paths are of a new name below the root.
            let parent = at.parent().filter(|parent| parent.starts_with(place.path("root")));
            let made = parent.map(fs::create_dir_all);
            if made.is_some_and(|made| made.is_ok()) && !at.to_string_lossy().contains("..") {
                let _taken = symlink(place.path(LINKS[*link].trim_start_matches("../")), at);
            }
        }
        let before = place.outside();
        let root = place.root();
        for (call, path) in &calls {
            let _refused = OPERATIONS[*call].1(&root, Path::new(path));
        }
        prop_assert_eq!(place.outside(), before);
    }
}

/// A stranger changes a folder into a link and back while each call is made.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    const EXCHANGES: usize = 4_000;
    let place = Place::new();
    place.link("dir", "link");
    let (root, before) = (place.root(), place.outside());
    fs::create_dir_all(place.path("root/one/two")).expect("a folder");
    let (one, link) = (place.path("root/one"), place.path("root/link"));
    std::thread::scope(|scope| {
        let exchanging = scope.spawn(|| {
            for _ in 0..EXCHANGES {
                let exchanged = renameat_with(CWD, &one, CWD, &link, RenameFlags::EXCHANGE);
                exchanged.expect("exchanged");
            }
        });
        while !exchanging.is_finished() {
            for (_, operation) in OPERATIONS {
                for path in ["one/two/three", "one/three", "one/two"] {
                    let _refused = operation(&root, Path::new(path));
                }
                // The next call has a file to move again.
                let _there = root.write_new(Path::new("mine"), b"mine", false);
            }
        }
    });
    assert_eq!(place.outside(), before);
}
