//! What is refused in a path, in its folders, and in an exercise.

use model::Severity;

use super::*;
use crate::limits;

/// Nothing is read, and exactly these rules are broken.
#[track_caller]
fn refused(files: &Files, wanted: &[&str]) {
    let (path, problems) = read("numbers", files);
    assert_eq!(rules(&problems), wanted);
    let is_refused = problems.iter().any(|p| p.severity == Severity::Error);
    assert_eq!(path.is_none(), is_refused);
}

const PATH_RULES: &[(&str, &str, &str)] = &[
    ("name: Numbers\n", "", "path-name-missing PATH.md:1"),
    ("Numbers", "[a]", "path-name-invalid PATH.md:2"),
    ("Learn to add", "''", "path-description-missing PATH.md:3"),
    (
        "category: numbers",
        "category: Numbers!",
        "path-category-invalid PATH.md:4",
    ),
    ("beginner", "easy", "path-difficulty-invalid PATH.md:5"),
    (
        "difficulty: beginner\n",
        "",
        "path-difficulty-missing PATH.md:1",
    ),
    ("1.5", "0", "path-estimated-hours-invalid PATH.md:6"),
    (
        "estimated_hours: 1.5\n",
        "",
        "path-estimated-hours-missing PATH.md:1",
    ),
    (
        "skills_covered: [adding]",
        "skills_covered: adding",
        "path-skills-covered-invalid PATH.md:7",
    ),
    (
        "prerequisites: []",
        "prerequisites: [numbers]",
        "path-prerequisites-self PATH.md:8",
    ),
    (
        "prerequisites: []",
        "prerequisites: [Ab]",
        "path-prerequisites-invalid PATH.md:8",
    ),
    (
        "prerequisites: []",
        "prerequisites: [abc, abc]",
        "path-prerequisites-duplicate PATH.md:8",
    ),
    (
        "objectives: [Add]",
        "objectives: []",
        "path-objectives-missing PATH.md:9",
    ),
    (
        "objectives: [Add]",
        "objectives: [' ']",
        "path-objectives-invalid PATH.md:9",
    ),
    (
        "[other-numbers]",
        "[numbers]",
        "path-related-paths-self PATH.md:10",
    ),
    (
        "name: Numbers",
        "nome: Numbers\nname: Numbers",
        "path-unknown-key PATH.md:2",
    ),
    (
        "\nWhat numbers are.\n",
        "",
        "path-introduction-missing PATH.md:1",
    ),
    (
        "id: adder",
        "id: Adder",
        "achievement-id-invalid PATH.md:12",
    ),
    (
        "    icon: plus\n",
        "",
        "achievement-icon-missing PATH.md:12",
    ),
    (
        "icon: plus",
        "icon: plus\n    colour: red",
        "achievement-unknown-key PATH.md:16",
    ),
    (
        "streak_days: 2",
        "streak_days: 0",
        "achievement-when-streak-days-invalid PATH.md:16",
    ),
    (
        "streak_days: 2",
        "days: 2",
        "achievement-when-unknown-key PATH.md:16",
    ),
    (
        "{ exercise_completed: add-two, streak_days: 2 }",
        "{}",
        "achievement-when-missing PATH.md:16",
    ),
    (
        "    when: { exercise_completed: add-two, streak_days: 2 }\n",
        "",
        "achievement-when-missing PATH.md:12",
    ),
    (
        "name: Numbers",
        "name: a: b",
        "front-matter-unreadable PATH.md:2",
    ),
];

#[test]
fn rules_of_paths() {
    for (from, to, rule) in PATH_RULES {
        let mut files = files(EXERCISE);
        let changed = PATH.replacen(from, to, 1);
        assert_ne!(changed, PATH, "{from}");
        files.insert("PATH.md".to_owned(), Bytes::from(changed));
        refused(&files, &[rule]);
    }
    let twice = PATH.replace(
        "---\n\n",
        "  - { id: adder, name: b, description: c, icon: d, when: { first_tries: 1 } }\n---\n\n",
    );
    let mut changed = files(EXERCISE);
    changed.insert("PATH.md".to_owned(), Bytes::from(twice));
    refused(&changed, &["achievement-id-duplicate PATH.md:17"]);
}

#[test]
fn rules_of_folders() {
    let change = |edit: &dyn Fn(&mut Files)| {
        let mut files = files(EXERCISE);
        edit(&mut files);
        files
    };
    refused(
        &change(&|f| drop(f.remove("PATH.md"))),
        &["path-md-missing :0"],
    );
    let large = Bytes::from(vec![b'x'; limits::MAX_FILE_BYTES + 1]);
    refused(
        &change(&|f| drop(f.insert("PATH.md".to_owned(), large.clone()))),
        &["path-md-too-large PATH.md:0"],
    );
    refused(
        &change(&|f| f.retain(|path, _| path == "PATH.md")),
        &["path-exercises-missing PATH.md:0"],
    );
    refused(
        &change(&|f| drop(f.insert("notes.txt".to_owned(), Bytes::new()))),
        &["path-file-unused notes.txt:0"],
    );
    refused(
        &change(&|f| drop(f.insert("exercises/01-add-two/old.js".to_owned(), Bytes::new()))),
        &["exercise-file-unused old.js:0"],
    );
    refused(
        &change(&|f| drop(f.insert("exercises/01-add-two/a/../b".to_owned(), Bytes::new()))),
        &["exercise-file-name a/../b:0"],
    );
    refused(
        &change(&|f| drop(f.insert("exercises/01-add-two/setup.js".to_owned(), large.clone()))),
        &[
            "validation-setup-file-missing EXERCISE.md:15",
            "exercise-file-too-large setup.js:0",
        ],
    );
    refused(
        &change(&|f| drop(f.remove("exercises/01-add-two/EXERCISE.md"))),
        &[
            "path-exercises-missing PATH.md:0",
            "exercise-md-missing exercises/01-add-two:0",
        ],
    );
    for folder in ["add-two", "x1-add", "01-Add", "01-ab", "12345-add-two"] {
        let files =
            change(&|f| drop(f.insert(format!("exercises/{folder}/EXERCISE.md"), Bytes::new())));
        refused(
            &files,
            &[&format!("exercise-folder-name exercises/{folder}:0")],
        );
    }
    let copied = change(&|f| {
        let copies: Vec<_> = f
            .iter()
            .filter(|(path, _)| path.starts_with("exercises/"))
            .map(|(path, content)| (path.replace("01-add-two", "1-add-three"), content.clone()))
            .collect();
        f.extend(copies);
    });
    refused(
        &copied,
        &["exercise-number-duplicate exercises/1-add-three:0"],
    );
    let many = change(&|f| {
        for number in 0..=limits::MAX_EXERCISES {
            f.insert(format!("exercises/{number}-abc/EXERCISE.md"), Bytes::new());
        }
    });
    refused(
        &many,
        &[
            "path-exercises-too-many :0",
            "path-exercises-missing PATH.md:0",
        ],
    );
    let many = change(&|f| {
        for number in 0..limits::MAX_FILES {
            f.insert(format!("exercises/01-add-two/z{number}"), Bytes::new());
        }
    });
    let (path, problems) = read("numbers", &many);
    assert!(path.is_none());
    assert_eq!(problems[0].rule, "exercise-files-too-many");
    let (path, problems) = read("No id", &files(EXERCISE));
    assert!(path.is_none());
    assert_eq!(rules(&problems), ["path-id-invalid :0"]);
}

const EXERCISE_RULES: &[(&str, &str, &str)] = &[
    (
        "title: Add two numbers\n",
        "",
        "exercise-title-missing EXERCISE.md:1",
    ),
    ("practice", "drill", "exercise-type-invalid EXERCISE.md:3"),
    (
        "difficulty: easy\n",
        "",
        "exercise-difficulty-missing EXERCISE.md:1",
    ),
    (
        "estimated_minutes: 5",
        "estimated_minutes: -5",
        "exercise-estimated-minutes-invalid EXERCISE.md:5",
    ),
    (
        "teaches: [adding]",
        "teaches: [Adding]",
        "exercise-teaches-invalid EXERCISE.md:6",
    ),
    (
        "[counting]",
        "[adding]",
        "exercise-requires-self EXERCISE.md:7",
    ),
    (
        "https://example.org/add",
        "http://example.org",
        "exercise-related-docs-invalid EXERCISE.md:9",
    ),
    (
        "docs/learn.md",
        "docs/../x",
        "exercise-related-docs-invalid EXERCISE.md:9",
    ),
    (
        "free_hints: 1",
        "free_hints: 2",
        "exercise-hints-few EXERCISE.md:11",
    ),
    (
        "free_hints: 1",
        "free_hints: 99",
        "exercise-free-hints-invalid EXERCISE.md:10",
    ),
    (
        "title:",
        "titel: x\ntitle:",
        "exercise-unknown-key EXERCISE.md:2",
    ),
    (
        "\nWrite `add`.\n",
        "",
        "exercise-instructions-missing EXERCISE.md:1",
    ),
    (
        "when: present",
        "when: there",
        "advice-when-invalid EXERCISE.md:27",
    ),
    ("'\\+'", "'+'", "advice-pattern-invalid EXERCISE.md:27"),
    ("'\\+'", "'(?=x)'", "advice-pattern-invalid EXERCISE.md:27"),
    (
        "'\\+'",
        "'(\\w{200}){200}'",
        "advice-pattern-invalid EXERCISE.md:27",
    ),
    (
        "kind: exemplary",
        "kind: nice",
        "advice-kind-invalid EXERCISE.md:27",
    ),
    (
        "text: A plus, on: pass",
        "text: A plus, and more",
        "advice-unknown-key EXERCISE.md:27",
    ),
    ("on: pass", "on: monday", "advice-on-invalid EXERCISE.md:27"),
    (
        "setup: setup.js",
        "setup: other.js",
        "validation-setup-file-missing EXERCISE.md:15",
    ),
    (
        "  type: test\n",
        "",
        "validation-type-missing EXERCISE.md:12",
    ),
    (
        "  language: javascript\n",
        "  language: cobol\n",
        "validation-language-invalid EXERCISE.md:14",
    ),
    (
        "  setup:",
        "  setups: 1\n  setup:",
        "validation-unknown-key EXERCISE.md:15",
    ),
    (
        "description: adds",
        "description: ''",
        "case-description-missing EXERCISE.md:17",
    ),
    (
        "      input: add(1, 2)\n",
        "",
        "case-input-missing EXERCISE.md:17",
    ),
    (
        "      expected: 3\n",
        "",
        "case-expected-missing EXERCISE.md:17",
    ),
    (
        "expected: 3",
        "expected: 3\n      throws: Error",
        "case-throws-ambiguous EXERCISE.md:20",
    ),
    (
        "message: number",
        "message: '('",
        "case-throws-message-invalid EXERCISE.md:23",
    ),
    (
        "hidden: true",
        "hidden: perhaps",
        "case-hidden-invalid EXERCISE.md:24",
    ),
    (
        "weight: 2",
        "weight: 0",
        "case-weight-invalid EXERCISE.md:25",
    ),
    ("look_at:", "lookat:", "case-unknown-key EXERCISE.md:20"),
];

#[test]
fn rules_of_exercises() {
    let long = "x".repeat(limits::MAX_NAME_CHARS + 1);
    let many = format!(
        "hints: [{}]",
        vec!["more"; limits::MAX_HINTS + 1].join(", ")
    );
    let more = [
        (
            "Add two numbers",
            long.as_str(),
            "exercise-title-too-long EXERCISE.md:2",
        ),
        (
            "hints: [Think, Use a sign, The sign is a plus]",
            &many,
            "exercise-hints-too-many EXERCISE.md:11",
        ),
    ];
    for (from, to, wanted) in EXERCISE_RULES.iter().copied().chain(more) {
        let changed = EXERCISE.replacen(from, to, 1);
        assert_ne!(changed, EXERCISE, "{from}");
        let (path, problems) = read("numbers", &files(&changed));
        assert!(path.is_none(), "{from}");
        let errors = problems.iter().filter(|p| p.severity == Severity::Error);
        let errors: Vec<Problem> = errors.cloned().collect();
        assert_eq!(rules(&errors), [wanted], "{from} -> {to}");
    }
}
