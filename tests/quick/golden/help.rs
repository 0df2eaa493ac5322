//! What `--help` says of each command, and the page that is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::check;
use crate::support;

fn help(args: &[&str]) -> String {
    let output = support::command(args);
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Without the options that every command has, which the file of `repertoire` shows.
fn own(help: &str) -> String {
    let mut is_common = false;
    let mut own = String::new();
    for line in help.lines() {
        if !line.is_empty() && !line.starts_with(' ') {
            is_common = line == "Options of every command:";
        }
        if !is_common {
            own.push_str(line);
            own.push('\n');
        }
    }
    own
}

/// The commands are two spaces in, below the headings of their groups; each group is a file.
#[test]
fn the_help_teaches_every_command() {
    let top = help(&["--help"]);
    let mut groups = BTreeMap::from([(
        "repertoire".to_owned(),
        format!("$ repertoire --help\n{top}"),
    )]);
    let mut group = String::new();
    for line in top.lines().take_while(|line| *line != "Options:") {
        if let Some(heading) = line.strip_suffix(':') {
            group = heading.to_lowercase().replace(' ', "-");
        }
        let command = line.strip_prefix("  ").filter(|it| !it.starts_with(' '));
        let command = command.and_then(|it| it.split_whitespace().next());
        if let Some(name) = command.filter(|name| *name != "help") {
            let text = own(&help(&[name, "--help"]));
            let page = groups.entry(group.clone()).or_default();
            writeln!(page, "$ repertoire {name} --help\n{text}").expect("text");
        }
    }
    for (name, page) in &groups {
        check(&format!("tests/golden/help/{name}.txt"), page);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help");
    let files = folder.read_dir().expect("a folder").map(|entry| {
        let name = entry.expect("an entry").file_name();
        name.into_string().expect("UTF-8")
    });
    let expected = groups.keys().map(|name| format!("{name}.txt"));
    assert_eq!(files.collect::<BTreeSet<_>>(), expected.collect());
}

#[test]
fn the_page_of_the_command_line_has_every_command() {
    check("docs/cli.md", &help(&["man", "--markdown"]));
}
