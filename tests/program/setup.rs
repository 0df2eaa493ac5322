//! Setting the program up: completions, manual pages, the environment, the unit of systemd.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory as _;
use cli::Cli;
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

pub(super) fn told(output: &Output) -> (Option<i32>, String, String) {
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
pub(super) fn commands() -> BTreeSet<String> {
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

/// The variables that commands read, each with the words of the command that owns it, and
/// of one of its own where it has any.
fn variables() -> BTreeMap<String, Vec<String>> {
    fn walk(command: &clap::Command, above: &[String], found: &mut BTreeMap<String, Vec<String>>) {
        let mut words = above.to_vec();
        if let Some(first) = command.get_subcommands().find(|c| c.get_name() == "list") {
            words.push(first.get_name().to_owned());
        }
        for name in command.get_arguments().filter_map(clap::Arg::get_env) {
            found.insert(name.to_string_lossy().into_owned(), words.clone());
        }
        for command in command.get_subcommands() {
            let mut words = above.to_vec();
            words.push(command.get_name().to_owned());
            walk(command, &words, found);
        }
    }
    let mut found = BTreeMap::new();
    walk(&Cli::command(), &[], &mut found);
    found
}

#[test]
fn an_empty_variable_is_as_if_it_were_not_there() {
    let home = TempDir::new().expect("a folder");
    let variables = variables();
    let names: Vec<&str> = variables.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "REPERTOIRE_ACCESS_LOG",
            "REPERTOIRE_ACCESS_LOG_SAMPLE",
            "REPERTOIRE_ALLOWED_HOSTS",
            "REPERTOIRE_CA",
            "REPERTOIRE_CERT",
            "REPERTOIRE_CONFIG",
            "REPERTOIRE_DATA",
            "REPERTOIRE_EMBEDDER",
            "REPERTOIRE_FORMAT",
            "REPERTOIRE_KEY",
            "REPERTOIRE_LEARNER",
            "REPERTOIRE_LISTEN",
            "REPERTOIRE_LOG",
            "REPERTOIRE_LOG_FORMAT",
            "REPERTOIRE_NO_LOCAL",
            "REPERTOIRE_SERVER",
            "REPERTOIRE_TOOLSET",
        ]
    );
    for (name, words) in &variables {
        let run = |value: Option<&str>| {
            let mut command = program(home.path());
            command.args(words);
            // What would stay ends at once: its config is not there.
            if name != "REPERTOIRE_CONFIG" && words != &["list"] {
                command.args(["--config", "missing.yaml"]);
            }
            if let Some(value) = value {
                command.env(name, value);
            }
            told(&command.output().expect("the binary"))
        };
        assert_eq!(run(Some("")), run(None), "{name}");
    }
}

/// Runs a program of the system, and returns what it printed.
#[cfg(target_os = "linux")]
pub(super) fn system(folder: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .output();
    let (code, stdout, stderr) = told(&output.expect(program));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{program} {args:?}");
    stdout
}

#[test]
fn the_version_says_that_every_feature_is_in() {
    let home = TempDir::new().expect("a folder");
    assert_eq!(
        printed(home.path(), &["--version"]),
        concat!(
            "repertoire ",
            env!("CARGO_PKG_VERSION"),
            "\nfeatures: databases, jemalloc, jira, learning, oidc, otlp, remote-sources, transformer\nleft out: none\n"
        )
    );
}

/// It knows every line of the unit, and finds little that the service is exposed to: 15 are
/// tenths on a scale to 10, on which a service without such lines has 9.6.
#[cfg(target_os = "linux")]
#[test]
fn systemd_reads_the_unit_without_a_word_and_finds_it_hardened() {
    let verify = ["verify", "--man=no", "repertoire.service"];
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        testing::skip("systemd is not installed (`tests/packages`)");
        return;
    }
    let place = TempDir::new().expect("a folder");
    let unit = include_str!("../../deploy/repertoire.service");
    // The program is there, and so is its user.
    let here = unit
        .replace("/usr/local/bin/repertoire", BINARY)
        .replace("User=repertoire", "User=root");
    let file = place.path().join("repertoire.service");
    std::fs::write(&file, here).expect("a file");
    system(place.path(), "systemd-analyze", &verify);
    std::fs::write(&file, unit).expect("a file");
    let file = file.to_str().expect("text");
    let security = ["security", "--offline=yes", "--threshold=15", file];
    let found = system(place.path(), "systemd-analyze", &security);
    println!("{}", found.lines().last().unwrap_or_default());
}
