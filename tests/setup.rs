//! Setting the program up: completions and manual pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory as _;
use repertoire::cli::Cli;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_repertoire");

/// The program, as somebody runs it who has set nothing and whose home is this folder.
fn program(home: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command
        .env_clear()
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::null());
    command
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn printed(home: &Path, args: &[&str]) -> String {
    let output = program(home).args(args).output().expect("the binary");
    let (code, stdout, stderr) = told(&output);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
    stdout
}

/// All commands that people see, `repertoire` first, with hyphens between their words.
fn commands() -> BTreeSet<String> {
    fn walk(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
        let name = format!("{above}{}", command.get_name());
        for command in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            walk(command, &format!("{name}-"), found);
        }
        found.insert(name);
    }
    let mut found = BTreeSet::new();
    walk(&Cli::command(), "", &mut found);
    found
}

#[test]
fn every_command_has_a_manual_page() {
    let home = TempDir::new().expect("a folder");
    let listed = printed(home.path(), &["man", "share/man1", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let folder = home.path().join("share/man1");
    let entries = std::fs::read_dir(&folder).expect("a folder");
    let pages: BTreeMap<String, String> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("a page");
            (name.into_owned(), text)
        })
        .collect();
    let names: BTreeSet<String> = commands().iter().map(|name| format!("{name}.1")).collect();
    assert_eq!(pages.keys().cloned().collect::<BTreeSet<_>>(), names);
    let listed = listed["pages"].as_array().expect("a list");
    let listed: BTreeSet<String> = listed
        .iter()
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(listed, names);
    assert_eq!(
        pages.get("repertoire.1"),
        Some(&printed(home.path(), &["man"])),
        "without a folder the first page is printed"
    );
    for (name, text) in &pages {
        assert!(text.contains(".SH NAME\n"), "{name}: {text}");
        assert!(!text.contains("background"), "{name} names what is hidden");
    }
    let export = pages.get("repertoire-export.1").expect("a page");
    let (_, notes) = export.split_once(".SH NOTES\n.nf\n").expect("notes");
    let examples: Vec<&str> = notes.lines().take(2).collect();
    assert_eq!(
        examples,
        [
            "Examples:",
            "  repertoire export refunds                            refunds\\-1.2.0.tar.gz, here",
        ],
        "examples keep their lines"
    );
}

/// Each shell that is on this machine reads its script without a word.
#[test]
fn the_completions_of_every_shell_are_a_script_that_knows_every_command() {
    let home = TempDir::new().expect("a folder");
    let check: [(&str, &[&str]); 5] = [
        ("bash", &["bash", "-n"]),
        ("elvish", &["elvish", "-compileonly"]),
        ("fish", &["fish", "--no-execute"]),
        (
            "powershell",
            &["pwsh", "-NoProfile", "-NonInteractive", "-File"],
        ),
        ("zsh", &["zsh", "-n"]),
    ];
    for (shell, check) in check {
        let script = printed(home.path(), &["completions", shell]);
        let file = home.path().join(format!("{shell}.ps1"));
        std::fs::write(&file, &script).expect("a file");
        let top = commands();
        let top = top
            .iter()
            .filter_map(|name| name.strip_prefix("repertoire-"));
        let missing: Vec<&str> = top
            .filter(|name| !name.contains('-') && !script.contains(*name))
            .collect();
        assert_eq!(missing, Vec::<&str>::new(), "{shell}");
        assert!(
            !script.contains("background"),
            "{shell} offers what is hidden"
        );
        let (parser, args) = check.split_first().expect("a program");
        match Command::new(parser).args(args).arg(&file).output() {
            Ok(output) => assert_eq!(
                told(&output),
                (Some(0), String::new(), String::new()),
                "{shell}"
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && shell != "bash" => {}
            Err(error) => panic!("{parser}: {error}"),
        }
    }
}
