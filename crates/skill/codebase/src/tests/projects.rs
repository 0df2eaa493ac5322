//! Projects as a whole: the example of the specification, kinds, signals, depth,
//! `.gitignore`, inline files.

use super::super::{ConfidenceLevel, InlineFile, Inventory, ScanOptions, analyze};
use super::{facts, folder, notes, of, project, seen, sent, stack, write};

const REACT_APP: &str = r#"{
  "name": "my-react-app",
  "version": "1.0.0",
  "private": true,
  "scripts": {"start": "vite", "build": "vite build"},
  "dependencies": {"react": "^18.2.0", "react-dom": "^18.2.0"},
  "devDependencies": {"typescript": "^5.3.0"}
}"#;

#[test]
fn the_example_of_the_specification_comes_out_as_it_says() {
    let folder = folder(&[
        ("package.json", REACT_APP),
        ("package-lock.json", "{}"),
        (".gitignore", "dist\n"),
    ]);
    // 245 files in 32 folders, of which 180 say something.
    let kinds = [
        ("ts", 60),
        ("tsx", 60),
        ("js", 30),
        ("css", 18),
        ("html", 10),
        ("svg", 62),
    ];
    let files = kinds
        .iter()
        .flat_map(|(end, count)| (0..*count).map(move |at| (end, at)));
    for (at, (end, number)) in files.enumerate() {
        let location = match at % 31 {
            0 => "src/parts".to_owned(),
            part => format!("src/parts/part{part:02}"),
        };
        write(
            folder.path(),
            &format!("{location}/file{number:02}.{end}"),
            "",
        );
    }
    write(folder.path(), "public/icon.svg", "");
    write(folder.path(), "notes.txt", "");
    let options = ScanOptions {
        depth: 5,
        ..ScanOptions::default()
    };
    let analysis = seen(folder.path(), &options);
    assert_eq!(
        stack(&analysis),
        [
            "react 18.2.0 1.0 package_json",
            "typescript 5.3.0 1.0 package_json"
        ]
    );
    assert_eq!(project(&analysis), "my-react-app 1.0.0 application npm");
    let stats = &analysis.stats;
    assert_eq!(
        stats.languages_detected,
        ["typescript", "javascript", "css", "html"]
    );
    assert_eq!(
        (
            stats.total_files,
            stats.analyzed_files,
            stats.directories_scanned
        ),
        (245, 180, 34)
    );
    assert_eq!(analysis.confidence_level, ConfidenceLevel::High);
    assert_eq!(notes(&analysis), Vec::<String>::new());
}

#[test]
fn without_dependencies_a_manifest_tells_of_the_project_only() {
    let folder = folder(&[("package.json", REACT_APP), ("src/a.ts", "")]);
    let options = ScanOptions {
        include_dependencies: false,
        ..ScanOptions::default()
    };
    let analysis = seen(folder.path(), &options);
    assert_eq!(stack(&analysis), ["typescript - 0.8 file_extension"]);
    assert_eq!(project(&analysis), "my-react-app 1.0.0 application npm");
    assert_eq!(analysis.confidence_level, ConfidenceLevel::Medium);
}

#[test]
fn quick_mode_and_depth_limit_the_folders() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"a\"\n"),
        ("one/a.py", ""),
        ("one/two/b.rb", ""),
        ("one/two/three/c.php", ""),
        ("one/two/three/four/d.go", ""),
        (".github/workflows/ci.yml", ""),
        (".hidden/e.lua", ""),
    ];
    let folder = folder(&files);
    let languages = |options: ScanOptions| {
        let stats = seen(folder.path(), &options).stats;
        (stats.languages_detected.join(" "), stats.total_files)
    };
    let depth = |depth| ScanOptions {
        depth,
        ..ScanOptions::default()
    };
    assert_eq!(languages(depth(1)), ("python".to_owned(), 3));
    assert_eq!(languages(depth(2)), ("python ruby".to_owned(), 4));
    assert_eq!(
        languages(ScanOptions::default()),
        ("php python ruby".to_owned(), 5)
    );
    assert_eq!(languages(depth(10)), ("go php python ruby".to_owned(), 6));
    assert_eq!(languages(depth(0)), languages(depth(1)));
    let quick = ScanOptions {
        quick_mode: true,
        depth: 10,
        ..ScanOptions::default()
    };
    assert_eq!(languages(quick.clone()), languages(depth(1)));
    let analysis = seen(folder.path(), &quick);
    assert_eq!(analysis.confidence_level, ConfidenceLevel::Medium);
    assert!(analysis.technology("github-actions").is_some());
}

#[test]
fn gitignore_holds_without_a_repository_and_the_nearest_rule_decides() {
    let analysis = of(&[
        (".gitignore", "*.py\n/build/\nsecret.rb\n"),
        ("a.py", ""),
        ("secret.rb", ""),
        ("build/x.php", ""),
        ("src/build/y.php", ""),
        ("src/.gitignore", "!keep.py\n*.lua\n"),
        ("src/keep.py", ""),
        ("src/other.py", ""),
        ("src/z.lua", ""),
        ("node_modules/react/package.json", "{}"),
    ]);
    assert_eq!(analysis.stats.languages_detected, ["php", "python"]);
    // Two of `.gitignore`, one of each language.
    assert_eq!(analysis.stats.total_files, 4);
}

#[test]
fn projects_of_several_packages_are_monorepos() {
    let package = |more: &str| format!(r#"{{"name": "all", "private": true{more}}}"#);
    let plain = package("");
    let workspaces = package(r#", "workspaces": {"packages": ["packages/*"]}"#);
    for files in [
        [("package.json", workspaces.as_str()), ("x", "")],
        [
            ("package.json", &plain),
            ("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n"),
        ],
        [("package.json", &plain), ("lerna.json", "{}")],
        [("package.json", &plain), ("nx.json", "{}")],
        [
            ("package.json", &plain),
            ("turbo.json", "{\"pipeline\": {}}"),
        ],
        [
            (
                "pom.xml",
                "<project><artifactId>all</artifactId><modules><module>a</module></modules></project>",
            ),
            ("x", ""),
        ],
        [
            ("settings.gradle", "include ':a', ':b'\n"),
            ("build.gradle", ""),
        ],
        [
            ("front/package.json", &plain),
            ("back/go.mod", "module back\n"),
        ],
        [
            (
                "a.slnx",
                "<Solution><Project Path=\"a.csproj\"/><Project Path=\"b.csproj\"/></Solution>",
            ),
            ("x", ""),
        ],
    ] {
        assert_eq!(of(&files).project.kind.name(), "monorepo", "{files:?}");
    }
    let one = of(&[
        ("settings.gradle", "include ':app'\n"),
        ("build.gradle", "apply plugin: 'application'\n"),
    ]);
    assert_eq!(one.project.kind.name(), "application");
}

#[test]
fn a_library_is_told_from_an_application() {
    let kind = |files: &[(&str, &str)]| of(files).project.kind.name();
    let cargo = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
    assert_eq!(
        kind(&[("Cargo.toml", cargo), ("src/lib.rs", "")]),
        "library"
    );
    assert_eq!(
        kind(&[
            ("Cargo.toml", cargo),
            ("src/lib.rs", ""),
            ("src/main.rs", "")
        ]),
        "application"
    );
    assert_eq!(kind(&[("Cargo.toml", cargo)]), "single");
    assert_eq!(
        kind(&[("go.mod", "module a\n"), ("cmd/a/main.go", "")]),
        "application"
    );
    assert_eq!(kind(&[("requirements.txt", "flask\n")]), "application");
    assert_eq!(kind(&[("requirements.txt", "numpy\n")]), "single");
    assert_eq!(kind(&[("notes.md", "")]), "unknown");
}

#[test]
fn of_two_manifests_at_the_root_the_one_with_more_files_speaks() {
    let package = r#"{"name": "assets", "devDependencies": {"vite": "5.0.0"}}"#;
    let composer = r#"{"name": "acme/site", "type": "project", "require": {"php": "8.2"}}"#;
    let both = [("package.json", package), ("composer.json", composer)];
    assert_eq!(project(&of(&both)), "acme/site - application composer");
    let files = [both[0], both[1], ("a.js", ""), ("b.js", ""), ("c.php", "")];
    let analysis = of(&files);
    assert_eq!(project(&analysis), "assets - single npm");
    let managers: Vec<&str> = analysis
        .project
        .package_managers
        .iter()
        .map(|found| found.name())
        .collect();
    assert_eq!(managers, ["npm", "composer"]);
}

#[test]
fn what_stands_beside_the_project_says_less() {
    let analysis = of(&[
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\n[dependencies]\ntokio = \"1\"\n",
        ),
        (
            "examples/web/package.json",
            r#"{"name": "web", "dependencies": {"react": "18.0.0"}}"#,
        ),
        ("tests/broken/package.json", "{"),
    ]);
    assert_eq!(
        stack(&analysis),
        [
            "rust - 1.0 cargo_toml",
            "tokio 1 1.0 cargo_toml",
            "javascript - 0.6 inferred",
            "react 18.0.0 0.6 package_json",
        ]
    );
    assert_eq!(project(&analysis), "a - single cargo");
    assert_eq!(
        notes(&analysis),
        ["tests/broken/package.json:1 not JSON: EOF while parsing an object"]
    );
    assert_eq!(analysis.confidence_level, ConfidenceLevel::High);
}

#[test]
fn signals_name_the_files_that_show_them() {
    let analysis = of(&[
        ("README.md", ""),
        ("LICENSE", ""),
        ("CLAUDE.md", ""),
        ("Dockerfile", "FROM node:20\n"),
        (
            "package.json",
            r#"{"dependencies": {"react": "18.0.0", "pg": "8"}, "devDependencies": {"prettier": "3"}}"#,
        ),
        (".eslintrc.json", "{}"),
        (".github/workflows/ci.yml", ""),
        (".github/dependabot.yml", ""),
        ("docs/guide.md", ""),
        ("infra/main.tf", ""),
        ("src/a.test.js", ""),
        ("openapi.yaml", ""),
    ]);
    assert_eq!(
        facts(&analysis),
        [
            "has_tests src/a.test.js",
            "has_docs docs/guide.md",
            "has_readme README.md",
            "has_ci .github/workflows/ci.yml",
            "has_docker Dockerfile",
            "has_deployment infra/main.tf",
            "has_linting .eslintrc.json",
            "has_formatting package.json",
            "has_database package.json",
            "has_frontend package.json",
            "has_security_scanning .github/dependabot.yml",
            "has_api_description openapi.yaml",
            "has_agent_instructions CLAUDE.md",
            "has_licence LICENSE",
        ]
    );
    assert_eq!(
        analysis.shows(super::super::Fact::Docker),
        Some("Dockerfile")
    );
}

#[test]
fn a_technology_that_another_needs_is_inferred() {
    let analysis = sent(&[("requirements.txt", "djangorestframework==3.15\n")]);
    assert_eq!(
        stack(&analysis),
        [
            "django-rest-framework 3.15 1.0 requirements",
            "python - 1.0 requirements",
            "django - 0.5 inferred",
        ]
    );
}

#[test]
fn files_that_are_sent_count_whatever_their_order_and_spelling() {
    let file = |path: &str, content: Option<&str>| InlineFile {
        path: path.to_owned(),
        content: content.map(str::to_owned),
    };
    let mut files = vec![
        file("./web\\package.json", Some(REACT_APP)),
        file("web/src/deep/er/than/three/a.ts", None),
        file("../up/package.json", Some("{}")),
        file("/etc/package.json", Some("{}")),
        file("C:/package.json", Some("{}")),
        file("a\u{7}.json", None),
        file("node_modules/x/package.json", Some("{}")),
        file("web/package.json/", Some("{\"name\": \"second\"}")),
    ];
    let options = ScanOptions::default();
    let inventory = Inventory::inline(files.clone(), &options).expect("an inventory");
    let analysis = analyze(&inventory, &options);
    assert_eq!(
        stack(&analysis),
        [
            "react 18.2.0 1.0 package_json",
            "typescript 5.3.0 1.0 package_json"
        ]
    );
    assert_eq!(project(&analysis), "my-react-app 1.0.0 application npm");
    assert_eq!(
        (
            analysis.stats.total_files,
            analysis.stats.directories_scanned
        ),
        (2, 7)
    );
    assert_eq!(
        notes(&analysis),
        [
            ": '../up/package.json': the path leads out of the codebase",
            ": '/etc/package.json': the path is not relative to the root of the codebase",
            ": 'C:/package.json': the path is not relative to the root of the codebase",
            ": 'a\\u{7}.json': the path has control characters",
            "web/package.json: sent twice: the first is read",
        ]
    );
    files.pop();
    let before = analyze(
        &Inventory::inline(files.clone(), &options).expect("an inventory"),
        &options,
    );
    files.reverse();
    let after = analyze(
        &Inventory::inline(files, &options).expect("an inventory"),
        &options,
    );
    assert_eq!(before, after);
}
