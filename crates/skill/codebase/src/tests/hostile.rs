//! Files that nobody should meet: broken, huge, deep, odd. The rest is analysed.

mod bounds;

use std::fs;
use std::path::Path;

use super::super::{Analysis, ConfidenceLevel, ScanOptions};
use super::{folder, notes, of, seen, sent, stack};

const GOOD: (&str, &str) = ("go.mod", "module a\n\ngo 1.22\n");
const GOOD_STACK: &str = "go 1.22 1.0 go_mod";

/// Notes about the one file beside a good manifest, which is analysed all the same.
fn beside(path: &str, content: &str) -> Vec<String> {
    let analysis = of(&[GOOD, (path, content)]);
    assert!(stack(&analysis).contains(&GOOD_STACK.to_owned()), "{path}");
    assert_ne!(analysis.confidence_level, ConfidenceLevel::High, "{path}");
    notes(&analysis)
}

#[test]
fn a_broken_manifest_is_a_note_with_its_line() {
    let cases = [
        (
            "package.json",
            "{\n  \"name\": \"a\",\n  \"version\" 1\n}",
            "package.json:3 not JSON: expected `:`",
        ),
        (
            "Cargo.toml",
            "[package]\nname = \n",
            "Cargo.toml:2 not TOML: string values must be quoted, expected literal string",
        ),
        (
            "pom.xml",
            "<project>\n<name></project>",
            "pom.xml:2 not XML: expected 'name' tag, not 'project' at 2:7",
        ),
        (
            "pom.xml",
            "<html/>",
            "pom.xml: not a pom.xml: its root is no <project>",
        ),
        ("package.json", "[]", "package.json: not a JSON object"),
        (
            "back/go.mod",
            "what\n",
            "back/go.mod: not a go.mod: no line names the module",
        ),
        (
            "pubspec.yaml",
            "a: b\n",
            "pubspec.yaml: not a pubspec.yaml: it has no name",
        ),
    ];
    for (path, content, expected) in cases {
        assert_eq!(beside(path, content), [expected]);
    }
}

#[test]
fn deep_files_are_refused_before_they_cost_anything() {
    let deep = |open: &str, close: &str| open.repeat(50_000) + &close.repeat(50_000);
    assert_eq!(
        beside("package.json", &deep("[", "]")),
        ["package.json:1 not JSON: recursion limit exceeded"]
    );
    assert_eq!(beside("composer.json", &deep("{\"a\":", "}")).len(), 1);
    assert_eq!(
        beside("Cargo.toml", &format!("a = {}", deep("[", "]"))).len(),
        1
    );
    assert_eq!(
        beside("pyproject.toml", &format!("a{} = 1", ".a".repeat(50_000))).len(),
        1
    );
    // The XML reader keeps no stack: this is deep, but a project all the same.
    let nested = format!("<project>{}</project>", deep("<a>", "</a>"));
    assert_eq!(notes(&of(&[("pom.xml", &nested)])), Vec::<String>::new());
    assert_eq!(beside("pom.xml", &"<a>".repeat(50_000)).len(), 1);
}

#[test]
fn entities_and_crowds_of_attributes_are_refused() {
    let bomb = "<!DOCTYPE project [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\n<project><name>&b;</name></project>";
    assert_eq!(
        beside("pom.xml", bomb),
        ["pom.xml:1 not XML: XML with DTD detected"]
    );
    let attributes: Vec<String> = (0..100_000).map(|at| format!(" a{at}=''")).collect();
    let attributes = attributes.concat();
    assert_eq!(
        beside(
            "App.csproj",
            &format!("<Project>\n<a{attributes}/></Project>")
        ),
        ["App.csproj:2 an element of more than 1000 attributes"]
    );
}

#[test]
fn anchors_and_aliases_are_not_expanded() {
    let bomb = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nservices:\n  db:\n    image: postgres:16\n  x: [*b,*b,*b,*b]\n";
    let analysis = of(&[("compose.yaml", bomb)]);
    assert!(stack(&analysis).contains(&"postgresql 16 0.8 container_image".to_owned()));
    assert_eq!(notes(&analysis), Vec::<String>::new());
}

#[cfg(unix)]
fn unusual_folder() -> tempfile::TempDir {
    use std::os::unix::fs::symlink;

    let outside = Path::new("/etc");
    let folder = folder(&[GOOD, ("src/a.go", "")]);
    let at = |path: &str| folder.path().join(path);
    symlink(outside, at("outside")).expect("a link");
    symlink("/etc/passwd", at("package.json")).expect("a link");
    symlink(folder.path(), at("src/around")).expect("a link");
    symlink("nowhere", at("src/broken")).expect("a link");
    let made = std::process::Command::new("mkfifo")
        .args([at("Cargo.toml"), at(".gitignore")])
        .status();
    assert!(made.expect("mkfifo").success());
    let unusual = std::ffi::OsStr::new("odd\n\u{1b}[31m.py");
    fs::write(folder.path().join(unusual), "").expect("a file");
    folder
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_followed_and_odd_names_are_left_out() {
    let folder = unusual_folder();
    let analysis = seen(
        folder.path(),
        &ScanOptions {
            depth: 10,
            ..ScanOptions::default()
        },
    );
    assert_eq!(
        notes(&analysis),
        [
            ": 1 names that are not UTF-8 or have control characters were left out",
            "Cargo.toml: not read: this is no regular file",
            "package.json: not read: symbolic links are not followed",
        ]
    );
    assert_eq!(stack(&analysis), [GOOD_STACK]);
    assert_eq!(
        (
            analysis.stats.total_files,
            analysis.stats.directories_scanned
        ),
        (2, 2)
    );
}

#[test]
fn what_a_manifest_says_is_shown_in_one_line_and_without_addresses() {
    let manifest = serde_json::json!({
        "name": "a\u{1b}[31m\n b",
        "version": "1.0.0",
        "description": "x".repeat(10_000),
        "dependencies": {
            "react": "git+https://user:secret@example.org/react.git",
            "vue": "../vue", "svelte": "*", "angular\u{0}": "1", "express": "latest", "koa": "workspace:^2.0.0"
        }
    });
    let analysis = sent(&[("package.json", &manifest.to_string())]);
    assert_eq!(analysis.project.name.as_deref(), Some("a [31m b"));
    assert_eq!(
        analysis.project.description.as_deref().map(str::len),
        Some(500)
    );
    assert_eq!(
        stack(&analysis),
        [
            "express latest 1.0 package_json",
            "koa 2.0.0 1.0 package_json",
            "react - 1.0 package_json",
            "svelte - 1.0 package_json",
            "vue - 1.0 package_json",
            "javascript - 0.6 inferred",
            "nodejs - 0.5 inferred",
        ]
    );
}

#[test]
fn a_gitignore_that_is_odd_holds_as_far_as_it_can() {
    let many = "x\n".repeat(1_001);
    let analysis = of(&[
        GOOD,
        (".gitignore", "[z-a]\n*.py\n"),
        ("a.py", ""),
        ("sub/.gitignore", &many),
    ]);
    let found = notes(&analysis);
    assert_eq!(analysis.stats.languages_detected, Vec::<String>::new());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with(".gitignore:1 this line does not hold here: "),
        "{found:?}"
    );
    assert_eq!(
        found[1],
        "sub/.gitignore:1001 only the first 1000 lines hold here"
    );
}

/// Texts of every reader, cut anywhere and stirred, bring nothing down.
#[test]
fn no_text_brings_a_reader_down() {
    let names = [
        "package.json",
        "pnpm-workspace.yaml",
        "deno.json",
        "pyproject.toml",
        "requirements.txt",
        "Pipfile",
        "setup.cfg",
        "setup.py",
        "environment.yml",
        "Cargo.toml",
        "go.mod",
        "go.work",
        "pom.xml",
        "build.gradle",
        "settings.gradle",
        "libs.versions.toml",
        "composer.json",
        "Gemfile",
        "a.gemspec",
        "a.csproj",
        "a.sln",
        "pubspec.yaml",
        "mix.exs",
        "Package.swift",
        "Dockerfile",
        "compose.yml",
        ".nvmrc",
        "global.json",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "uv.lock",
    ];
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        ":",
        "=",
        ",",
        "\n",
        " ",
        "  ",
        "-",
        "#",
        "//",
        "/*",
        "*/",
        "é",
        "\u{feff}",
        "gem ",
        "require",
        "dependencies",
        "name",
        "version",
        "<a",
        ">",
        "</",
        "${",
        "@",
        "\\",
        "\r\n",
        "[[package]]",
        "install_requires",
        ".package(",
        "FROM ",
        "{:hex",
        "\u{0}",
    ];
    let mut state = 12_345_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 40).expect("24 bits")
    };
    for _ in 0..200 {
        let text: String = (0..30).map(|_| pieces[next() % pieces.len()]).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, text.as_str())).collect();
        let analysis: Analysis = sent(&files);
        assert!(!analysis.stack.is_empty());
    }
}
