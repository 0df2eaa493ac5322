//! What a person's terminal gets of other people's skills: each command in a
//! pseudo-terminal (`script` of util-linux).

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{self, BINARY};

/// The output of a command whose stdout is a terminal; none where there is no
/// `script`, which is said.
fn in_terminal(args: &[&str]) -> Option<String> {
    // As wide as a person's.
    in_terminal_of(200, args)
}

fn in_terminal_of(columns: u16, args: &[&str]) -> Option<String> {
    let quoted = |arg: &&str| format!("'{}'", arg.replace('\'', r"'\''"));
    let arguments: Vec<_> = args.iter().map(quoted).collect();
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!(
            "stty rows 50 cols {columns}; {BINARY} {}",
            arguments.join(" ")
        ))
        .arg("/dev/null")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            testing::skip(&format!("there is no `script` of util-linux: {error}"));
            None
        }
    }
}

#[test]
fn a_terminal_that_does_not_say_how_wide_it_is_gets_whole_words() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let Some(shown) = in_terminal_of(0, &["learn", "list", "--data", &data]) else {
        return;
    };
    assert!(shown.contains("Testing Fundamentals"), "{shown}");
}

#[test]
fn a_skill_is_a_line_that_fits_the_terminal_and_its_id_is_whole() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let ids = support::command(&["list", "--format", "ids", "--data", &data]);
    let ids = String::from_utf8(ids.stdout).expect("UTF-8");
    let ids: Vec<&str> = ids.lines().collect();
    for columns in [120, 80, 70] {
        let Some(shown) = in_terminal_of(columns, &["list", "--data", &data]) else {
            return;
        };
        let shown = without_colours(&shown);
        let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
        let [header, rule, rows @ .., count] = &lines[..] else {
            panic!("{shown}");
        };
        assert!(header.starts_with("id "), "{shown}");
        assert!(rule.chars().all(|c| c == '─'), "{shown}");
        assert_eq!(*count, format!("{} skills", ids.len()));
        let named: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.split_whitespace().next())
            .collect();
        assert_eq!(named, ids);
        for line in &lines {
            assert!(
                line.chars().count() <= usize::from(columns),
                "{columns}: {line}"
            );
        }
        // Cut, where it does not fit.
        assert!(
            rows.iter().any(|row| row.ends_with('…')),
            "{columns}: {shown}"
        );
    }
}

#[test]
fn what_a_search_found_is_bold_in_a_terminal_and_plain_in_a_pipe() {
    let directory = TempDir::new().expect("a folder");
    let folder = directory.path().join("refunds");
    std::fs::create_dir(&folder).expect("a folder");
    let skill = "---\nname: refunds\ndescription: Pays **back** what was paid.\n---\nPay.\n";
    std::fs::write(folder.join("SKILL.md"), skill).expect("a file");
    let data = directory.path().join("data").display().to_string();
    let published = support::command(&["publish", &folder.display().to_string(), "--data", &data]);
    assert!(published.status.success(), "{published:?}");
    let search = ["search", "paid", "back", "-n", "1", "--data", &data];
    let piped = support::command(&[&search[..], &["--format", "plain"]].concat());
    let piped = String::from_utf8(piped.stdout).expect("UTF-8");
    assert!(
        piped.contains("\n  Pays **back** what was paid.\n"),
        "{piped}"
    );
    if let Some(shown) = in_terminal(&search) {
        let bold = "Pays **\u{1b}[1mback\u{1b}[0m** what was \u{1b}[1mpaid\u{1b}[0m.";
        assert!(shown.contains(bold), "{shown:?}");
    }
}

/// A name is a file's, a skill's or a codebase's, and never the server's last word.
#[test]
fn no_name_makes_a_line_of_its_own() {
    const FORGED: &str = "1 valid, 0 refused";
    let directory = TempDir::new().expect("a folder");
    let folder = directory.path().join(format!("x\n{FORGED}"));
    std::fs::create_dir(&folder).expect("a folder");
    let skill = format!(
        "---\nname: forged\ndescription: Does things, in words.\n\
         tool_configs: [{{name: \"x\\n{FORGED}\", method: m}}]\n\
         execution_protocol: [\"do\\n{FORGED}\"]\n---\nDo it.\n"
    );
    std::fs::write(folder.join("SKILL.md"), &skill).expect("a file");
    std::fs::write(folder.join(format!("a\n{FORGED}")), "x").expect("a file");
    let manifest = format!("{{\"name\": \"x\\n{FORGED}\"}}");
    std::fs::write(folder.join("package.json"), manifest).expect("a file");
    let good = directory.path().join("forged");
    std::fs::create_dir(&good).expect("a folder");
    std::fs::write(good.join("SKILL.md"), skill).expect("a file");
    let data = directory.path().join("data").display().to_string();
    let (folder, good) = (folder.display().to_string(), good.display().to_string());
    let run = |args: &[&str]| in_terminal(&[args, &["--data", &data]].concat());
    let Some(published) = run(&["publish", &good]) else {
        return;
    };
    assert!(published.contains("created"), "{published:?}");
    for args in [
        &["validate", &folder][..],
        &["import", &folder],
        &["publish", &folder],
        &["analyze", &folder],
        &["show", "forged"],
        &["compose", "forged"],
        &["check", &format!("x\n{FORGED}"), "--skills", "forged"],
    ] {
        let shown = run(args).expect("a terminal");
        assert!(shown.contains(FORGED), "{args:?} shows no name: {shown:?}");
        let mut lines = shown
            .lines()
            .map(|line| without_colours(line).trim().to_owned());
        assert!(
            !lines.any(|line| line.starts_with(FORGED)),
            "{args:?}: {shown:?}"
        );
    }
}

/// The text without colours, and without what takes a finished bar away: these are ours.
fn without_colours(text: &str) -> String {
    let text = text.replace("\r\u{1b}[2K", "");
    let text = text.as_str();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        let Some(end) = end.filter(|end| after[*end..].starts_with('m')) else {
            plain.push_str("\u{1b}[");
            rest = after;
            continue;
        };
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    plain
}

#[test]
fn no_command_sends_a_terminal_what_an_author_or_a_file_wants_it_to_act_on() {
    let directory = TempDir::new().expect("a folder");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let folder = directory.path().join("evil");
    std::fs::create_dir(&folder).expect("a folder");
    // All that may stand in a body and in a description that is accepted.
    let body = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}[31mred\u{1b}]8;;http://x\u{7}link\u{9b}1m\u{202e}x\u{E0041}\u{200b}\rover";
    let skill = format!("---\nname: evil\ndescription: Does evil things, in words.\n---\n{body}\n");
    std::fs::write(folder.join("SKILL.md"), skill).expect("a file");
    let data = path("data");
    let folder = path("evil");

    let run = |args: &[&str]| in_terminal(&[args, &["--data", &data]].concat());
    let Some(published) = run(&["publish", &folder]) else {
        return;
    };
    assert!(published.contains("created"), "{published:?}");
    // Some of it nobody sees, so it is held.
    assert!(published.contains("held"), "{published:?}");
    let approved = run(&[
        "review",
        "approve",
        "local/global/evil",
        "1",
        "--reason",
        "a test",
    ])
    .expect("a terminal");
    assert!(approved.contains("approved"), "{approved:?}");
    std::fs::write(format!("{folder}/esc\u{1b}[31m\u{202e}.txt"), "x").expect("a file");
    for args in [
        &["validate", &folder][..],
        &["import", &folder],
        &["search", "evil"],
        &["show", "evil"],
        &["list"],
        &["read", "evil"],
        &["load", "evil"],
        &["read", "evil", "no\u{1b}[31m\u{202e}.md"],
        &["load", "no\u{1b}]0;x\u{7}"],
        &["list", "--json"],
        &["validate", &folder, "--json"],
        &["call", "no\u{1b}[2J", "--skill", "evil"],
        &["calls"],
    ] {
        let shown = run(args).expect("a terminal");
        let plain = without_colours(&shown);
        let acts = plain.chars().find(|c| {
            (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
                || matches!(c, '\u{202e}' | '\u{E0041}' | '\u{200b}')
        });
        assert_eq!(acts, None, "{args:?}: {shown:?}");
        assert!(!plain.contains("\rover"), "{args:?}: {shown:?}");
        assert!(plain.len() > 10, "{args:?}: {shown:?}");
    }
    let shown = run(&["show", "evil"]).expect("a terminal");
    assert!(shown.contains("SKILL.md:5: "), "{shown}");
    let shown = run(&["read", "evil"]).expect("a terminal");
    assert!(shown.contains(r"\u{1b}]0;PWNED\u{7}"), "{shown}");
    let raw = run(&["read", "evil", "--raw"]).expect("a terminal");
    assert!(raw.contains("\u{1b}]0;PWNED\u{7}"), "{raw:?}");
    // Into a pipe a file is its bytes.
    let piped = support::command(&["read", "evil", "--data", &data]).stdout;
    assert!(String::from_utf8_lossy(&piped).contains(body));
}
