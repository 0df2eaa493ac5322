//! What stays out of a skill that is on no disk.

use super::*;

fn skillignores(folders: &[(&str, &str)]) -> Patterns {
    let mut patterns = Patterns::default();
    for (folder, text) in folders {
        patterns.add(folder, text.as_bytes());
    }
    patterns
}

#[test]
fn the_nearest_patterns_decide_what_becomes_of_a_path() {
    let patterns = skillignores(&[
        ("", "*.log\nnotes/\n!target/\n!.env\nb:c\n"),
        ("docs", "!keep.log\ndraft.md\n"),
        ("docs/deep", "!draft.md\n"),
    ]);
    let taken = |path: &str| Inclusion::In(path.parse().expect("a path"));
    let wrong = |path: &str| Inclusion::Invalid(path.parse::<FilePath>().expect_err("no path"));
    let ignored = "`.skillignore` leaves it out";
    let rubbish = "tools make it; `!NAME` in .skillignore brings it back";
    let secret = "programs keep secrets in files of this name";
    for (path, expected) in [
        ("SKILL.md", taken("SKILL.md")),
        ("a.log", Inclusion::Out("a.log", ignored)),
        ("scripts/a.log", Inclusion::Out("scripts/a.log", ignored)),
        ("notes/mine/a.md", Inclusion::Out("notes", ignored)),
        ("docs/keep.log", taken("docs/keep.log")),
        ("docs/other.log", Inclusion::Out("docs/other.log", ignored)),
        ("docs/draft.md", Inclusion::Out("docs/draft.md", ignored)),
        (
            "docs/some/draft.md",
            Inclusion::Out("docs/some/draft.md", ignored),
        ),
        ("docs/deep/draft.md", taken("docs/deep/draft.md")),
        ("draft.md", taken("draft.md")),
        // Rubbish comes back, and a secret does not.
        ("target/goals.md", taken("target/goals.md")),
        (
            "node_modules/x/a.js",
            Inclusion::Out("node_modules", rubbish),
        ),
        (".env", Inclusion::Out(".env", secret)),
        ("id_rsa/notes.md", taken("id_rsa/notes.md")),
        // No path is wrong, even where patterns leave it out; but of what stays out with its
        // folder nothing more is asked.
        ("b:c", wrong("b:c")),
        ("d:e/a.md", wrong("d:e")),
        ("docs/d:e", wrong("docs/d:e")),
        ("notes/b:c", Inclusion::Out("notes", ignored)),
    ] {
        assert_eq!(patterns.take(path), expected, "{path}");
    }
}
