//! What an independent parser of shell says that a command line runs, held
//! against the answers.

use brush_parser::word::{WordPiece, WordPieceWithSource};
use brush_parser::{Parser, ParserOptions, word};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;

/// A simple command: its program, if that is a plain word, and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    program: Option<String>,
    words: Vec<String>,
}

/// Programs that run the command behind them, as far as the generator knows them.
const LAUNCHERS: &[&str] = &[
    "env",
    "sudo",
    "nice",
    "nohup",
    "time",
    "timeout",
    "xargs",
    "strace",
    "setsid",
    "command",
    "exec",
    "busybox",
    "stdbuf",
    "watch",
    "doas",
    "uvx",
    "systemd-run",
];
/// Programs that run what stands in an argument.
const INTERPRETERS: &[&str] = &["sh", "bash", "eval", "trap", "awk", "python3", "ssh"];

/// All simple commands of a line, also those in substitutions. None: it is no
/// shell to the parser.
fn runs(line: &str, depth: usize) -> Option<Vec<Run>> {
    let parse = || {
        let reader = std::io::Cursor::new(line.to_owned());
        Parser::builder().build(reader).parse_program()
    };
    // It panics at a file descriptor of many digits: no opinion, too.
    let program = std::panic::catch_unwind(parse).ok()?.ok()?;
    let tree = serde_json::to_value(&program).expect("a tree");
    let mut found = Vec::new();
    collect_runs(&tree, depth, &mut found);
    Some(found)
}

/// Walks the tree: whatever holds a simple command, it is found.
fn collect_runs(tree: &Value, depth: usize, found: &mut Vec<Run>) {
    match tree {
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_runs(item, depth, found)),
        Value::Object(fields) => {
            if let Some(simple) = fields.get("Simple") {
                let mut words = Vec::new();
                let first = simple
                    .pointer("/word_or_name/value")
                    .and_then(Value::as_str);
                words.extend(first.map(str::to_owned));
                for item in simple
                    .get("suffix")
                    .and_then(Value::as_array)
                    .unwrap_or(&Vec::new())
                {
                    let text = item.pointer("/Word/value").and_then(Value::as_str);
                    words.extend(text.map(str::to_owned));
                }
                if first.is_some() {
                    let plain: Vec<_> = words.iter().map(|word| unquoted(word)).collect();
                    let words = words
                        .iter()
                        .map(|word| unquoted(word).unwrap_or_else(|| word.clone()));
                    found.push(Run {
                        program: plain.first().cloned().flatten(),
                        words: words.collect(),
                    });
                }
            }
            if let Some(text) = fields.get("value").and_then(Value::as_str)
                && depth > 0
                && let Ok(pieces) = word::parse(text, &ParserOptions::default())
            {
                substitutions(&pieces, depth, found);
            }
            fields
                .values()
                .for_each(|field| collect_runs(field, depth, found));
        }
        _ => {}
    }
}

fn substitutions(pieces: &[WordPieceWithSource], depth: usize, found: &mut Vec<Run>) {
    for piece in pieces {
        match &piece.piece {
            WordPiece::CommandSubstitution(line)
            | WordPiece::BackquotedCommandSubstitution(line) => {
                found.extend(runs(line, depth - 1).unwrap_or_default());
            }
            WordPiece::DoubleQuotedSequence(pieces)
            | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                substitutions(pieces, depth, found);
            }
            _ => {}
        }
    }
}

/// A word as the shell passes it on; none where it depends on more than the word.
fn unquoted(text: &str) -> Option<String> {
    let pieces = word::parse(text, &ParserOptions::default()).ok()?;
    literal(&pieces, false)
}

fn literal(pieces: &[WordPieceWithSource], quoted: bool) -> Option<String> {
    let mut word = String::new();
    for piece in pieces {
        match &piece.piece {
            WordPiece::Text(text) if quoted || !text.contains(['*', '?', '[', '{']) => {
                word.push_str(text);
            }
            WordPiece::SingleQuotedText(text) => word.push_str(text),
            WordPiece::EscapeSequence(text) => word.push_str(text.strip_prefix('\\')?),
            WordPiece::DoubleQuotedSequence(pieces) => word.push_str(&literal(pieces, true)?),
            _ => return None,
        }
    }
    Some(word)
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The line runs this program, or may: as the parser sees it.
pub(super) fn may_run(program: &str, line: &str) -> Option<bool> {
    let all = runs(line, 4)?;
    Some(all.iter().any(|run| {
        let Some(first) = &run.program else {
            // What is only known when it runs may be anything.
            return true;
        };
        let behind = &run.words[1..];
        let is_behind = |word: &String| base(word) == program;
        let is_inside = |word: &String| {
            let mut parts = word.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| part == program)
        };
        base(first) == program
            || (LAUNCHERS.contains(&base(first)) && behind.iter().any(is_behind))
            || (base(first) == "find"
                && behind.iter().any(|word| word.starts_with("-exec"))
                && behind.iter().any(is_behind))
            || (INTERPRETERS.contains(&base(first)) && behind.iter().any(is_inside))
    }))
}

pub(super) fn is_allowed(forbidden: &str, line: &str) -> bool {
    let draft = Draft::new("x")
        .allows(&["Bash"])
        .forbids_tools(&[forbidden]);
    let composed = compose(&members(&[draft]), ToolPolicy::Union);
    let Value::Object(arguments) = json!({ "command": line }) else {
        unreachable!()
    };
    composed.check(&Call::new("Bash", &arguments)).rule.allows()
}

const FORBIDDEN: &[&str] = &["rm", "curl", "dd"];

fn program() -> impl Strategy<Value = String> {
    let plain = select(&["ls", "cat", "git status", "echo", "grep", "make", "true"][..]);
    let spelled = select(FORBIDDEN).prop_flat_map(|name| {
        let (first, rest) = name.split_at(1);
        let (first, rest) = (first.to_owned(), rest.to_owned());
        select(vec![
            name.to_owned(),
            format!("/bin/{name}"),
            format!("./{name}"),
            format!("{first}''{rest}"),
            format!("\"{name}\""),
            format!("'{name}'"),
            format!("{first}\\{rest}"),
            format!("\\{name}"),
            format!("{first}\"{rest}\""),
            format!("$'{name}'"),
            format!("{first}?"),
            format!("{first}*"),
            format!("[{first}]{rest}"),
            format!("{first}${{x}}{rest}"),
            format!("$(echo {name})"),
            format!("{{{name},-x}}"),
            format!("~/{name}"),
            format!("{first}\\\n{rest}"),
            name.to_uppercase(),
        ])
    });
    prop_oneof![2 => plain.prop_map(str::to_owned), 3 => spelled]
}

fn argument() -> impl Strategy<Value = String> {
    let plain = select(
        &[
            "x",
            "-rf",
            "a/b",
            "'a b'",
            "\"a;b\"",
            "\"$x\"",
            "*.rs",
            "$(rm y)",
            "`curl z`",
            "\"$(dd)\"",
            "<(rm q)",
            "--",
            "a=b",
            "\\;",
            "#",
            "'",
            "!",
            "2",
            "{}",
            "~",
            "'rm x'",
            "\"curl y\"",
            "é",
            "\u{a0}",
            "-exec",
            "-c",
            "\"`rm`\"",
        ][..],
    );
    plain.prop_map(str::to_owned)
}

fn command() -> impl Strategy<Value = String> {
    let launchers = vec(
        select([LAUNCHERS, INTERPRETERS, &["find .", "find . -execdir"]].concat()),
        0..2,
    );
    let prefix = prop::option::weighted(0.2, select(&["X=1", "PATH=. Y='a b'", "A+=x"][..]));
    let redirect = select(
        &[
            "",
            "",
            "",
            " >/dev/null",
            " 2>&1",
            " > f",
            " <f",
            " <<<x",
            " &>/dev/null",
            ">|f",
            " 2>/dev/null",
        ][..],
    );
    let arguments = vec(argument(), 0..3);
    (prefix, launchers, program(), arguments, redirect).prop_map(
        |(prefix, launchers, program, arguments, redirect)| {
            let mut words: Vec<String> = prefix.into_iter().map(str::to_owned).collect();
            words.extend(launchers.into_iter().map(str::to_owned));
            words.push(program);
            words.extend(arguments);
            words.join(" ") + redirect
        },
    )
}

fn line() -> impl Strategy<Value = String> {
    let separator = select(
        &[
            "; ", " && ", " || ", " | ", "|&", "&", "\n", ";", " ; ", "\t|\t", "&\n",
        ][..],
    );
    let list = (command(), vec((separator, command()), 0..3)).prop_map(|(first, rest)| {
        rest.into_iter()
            .fold(first, |line, (separator, next)| line + separator + &next)
    });
    (list, 0..16_usize).prop_map(|(list, form)| match form {
        0 => format!("if {list}; then ls; fi"),
        1 => format!("for x in a b; do {list}; done"),
        2 => format!("({list})"),
        3 => format!("{{ {list}; }}"),
        4 => format!("f() {{ {list}; }}; f"),
        5 => format!("cat <<E\n$({list})\nE\n"),
        6 => format!("! {list}"),
        7 => format!("while {list}; do :; done"),
        8 => format!("case x in x) {list};; esac"),
        9 => format!("coproc {list}"),
        10 => format!("alias x='{list}'; x"),
        11 => format!("[[ -n $({list}) ]]"),
        _ => list,
    })
}

#[test]
fn the_judge_finds_what_runs() {
    let programs = |line: &str| -> Vec<Option<String>> {
        let all = runs(line, 4).unwrap_or_else(|| panic!("not parsed: {line}"));
        all.into_iter().map(|run| run.program).collect()
    };
    let some = |name: &str| Some(name.to_owned());
    for (line, found) in [
        ("ls; r''m x", vec![some("ls"), some("rm")]),
        ("\"rm\" x | r\\m y", vec![some("rm"), some("rm")]),
        ("echo $(rm x)", vec![some("echo"), some("rm")]),
        ("echo \"a `rm x`\"", vec![some("echo"), some("rm")]),
        ("if a; then b; fi", vec![some("a"), some("b")]),
        ("f() { rm x; }; f", vec![some("rm"), some("f")]),
        ("X=1 rm", vec![some("rm")]),
        ("r* x", vec![None]),
        ("(cat <(rm x))", vec![some("cat"), some("rm")]),
    ] {
        assert_eq!(programs(line), found, "{line}");
    }
    assert_eq!(may_run("rm", "env rm x"), Some(true));
    assert_eq!(may_run("rm", "sh -c 'ls; rm x'"), Some(true));
    assert_eq!(may_run("rm", "ls -la; git status"), Some(false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("REPERTOIRE_SHELL_CASES").map_or(1000, |cases| cases.parse().expect("a number"))
    ))]
    #[test]
    fn what_an_independent_parser_finds_forbidden_is_never_allowed(
        line in line(), name in select(FORBIDDEN), rule in 0..4_usize,
    ) {
        let rule = ["Bash({}:*)", "Bash({} *)", "Bash({}*)", "Bash(/bin/{}:*)"][rule];
        let forbidden = rule.replace("{}", name);
        // `rm *` is not about `rm` alone.
        let bare = rule.contains(' ') && runs(&line, 4).is_some_and(|all| {
            all.iter().any(|run| run.words.len() == 1)
        });
        if may_run(name, &line) == Some(true) && !bare {
            prop_assert!(!is_allowed(&forbidden, &line), "{} {:?}", forbidden, line);
        }
    }
}

#[test]
fn what_is_plain_is_still_allowed() {
    for line in [
        "ls -la | grep x",
        "git status && git diff HEAD~1",
        "find . -name '*.rs'",
        "cat a b 2>/dev/null",
    ] {
        assert!(is_allowed("Bash(rm:*)", line), "{line}");
    }
}
