//! What one more of something takes: the files that somebody writes by hand, counted on an
//! example of each, as CONTRIBUTING.md lists them. Tests, pages and what is rendered come on
//! top.

use std::collections::BTreeSet;
use std::path::Path;

struct Addition {
    /// As the heading in CONTRIBUTING.md calls it.
    what: &'static str,
    /// Files that it may take.
    max: usize,
    /// Words by which files name the example.
    names: &'static [&'static str],
    /// The files that name it, and its own.
    files: &'static [&'static str],
}

const ADDITIONS: [Addition; 4] = [
    Addition {
        what: "an rpc",
        max: 6,
        names: &["RevealHint", "reveal_hint"],
        files: &[
            // Its command.
            "crates/app/cli/src/learn.rs",
            "crates/faces/grpc/src/learning.rs",
            "crates/learn/learning/src/open.rs",
            "proto/repertoire/v1/learning.proto",
            "tests/interop/test_parity.py",
        ],
    },
    Addition {
        what: "a command",
        max: 3,
        names: &["Similar"],
        files: &[
            "crates/app/cli/src/args.rs",
            "crates/app/cli/src/lib.rs",
            "crates/app/cli/src/similar.rs",
        ],
    },
    Addition {
        what: "a field of a skill",
        max: 8,
        names: &["homepage", "homepage_url"],
        files: &[
            "crates/base/model/src/skill.rs",
            "crates/faces/grpc/src/convert.rs",
            "crates/skill/skill_md/src/front_matter.rs",
            "crates/skill/skill_md/src/keys.rs",
            "proto/repertoire/v1/skill.proto",
        ],
    },
    Addition {
        what: "a kind of source",
        max: 7,
        names: &["Github", "SOURCE_KIND_GITHUB"],
        files: &[
            "crates/app/cli/src/sources.rs",
            "crates/app/server/src/remote_sources.rs",
            "crates/distribute/remote_sources/src/github.rs",
            "crates/distribute/remote_sources/src/lib.rs",
            "crates/distribute/sync/src/namespace.rs",
            "crates/distribute/sync/src/source.rs",
            "proto/repertoire/v1/sync.proto",
        ],
    },
];

/// Files of the product, and the cases that are played on every face.
fn is_by_hand(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let is_test = parts.iter().any(|part| part.starts_with("tests"));
    path == "tests/interop/test_parity.py" || !is_test && !parts.contains(&"examples")
}

#[test]
fn one_more_of_something_takes_the_files_that_contributing_names() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["crates", "proto", "src", "tests/interop"].map(|folder| top.join(folder));
    let entries = folders.iter().flat_map(|folder| {
        let walk = walkdir::WalkDir::new(folder).into_iter();
        walk.filter_entry(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    });
    let mut texts = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").into_path();
        let ending = path.extension().unwrap_or_default();
        let name = path
            .strip_prefix(top)
            .expect("below it")
            .to_string_lossy()
            .into_owned();
        if ["rs", "proto", "py"].iter().any(|it| ending == *it) && is_by_hand(&name) {
            texts.push((name, std::fs::read_to_string(&path).expect("a file")));
        }
    }
    let contributing = std::fs::read_to_string(top.join("CONTRIBUTING.md")).expect("a file");
    for Addition {
        what,
        max,
        names,
        files,
    } in ADDITIONS
    {
        let names_it = |text: &String| {
            let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            words.any(|word| names.contains(&word))
        };
        let named = texts.iter().filter(|(_, text)| names_it(text));
        let found: BTreeSet<&str> = named.map(|(name, _)| name.as_str()).collect();
        let expected: BTreeSet<&str> = files.iter().copied().collect();
        let unknown: Vec<_> = found.difference(&expected).collect();
        assert_eq!(unknown, Vec::<&&str>::new(), "{what} takes these files too");
        let gone: Vec<_> = files
            .iter()
            .filter(|file| !top.join(file).exists())
            .collect();
        assert_eq!(gone, Vec::<&&str>::new(), "{what}");
        assert!(files.len() <= max, "{what} takes more than {max} files");
        assert!(
            contributing.contains(&format!("\n## To add {what}\n")),
            "{what}"
        );
    }
}
