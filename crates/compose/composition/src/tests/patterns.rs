use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::attributed::Attributed;
use super::super::pattern::{Answer, ToolPattern};
use super::super::pattern_index::{Entry, PatternIndex};
use super::super::*;

pub(super) const PATTERNS: &[&str] = &[
    "*",
    "Read",
    "write",
    "Bash",
    "Bash(*)",
    "Bash(git:*)",
    "Bash(git push:*)",
    "Bash(git *)",
    "Bash(* -v)",
    "Bash(npm run test:*)",
    "mcp__db",
    "mcp__db__*",
    "mcp__db__drop",
    "mcp__*",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:*.example.com)",
    "WebFetch",
    "Read(/tmp/**)",
    "Read(/tmp/a/*)",
    "Read(~/.ssh/**)",
    "Read(**/.env)",
    "Write",
    "Task(x)",
    "Bash(git",
];

pub(super) fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({"file_path": "/tmp/a/b"})),
        ("Read", json!({"file_path": "/tmp/a/b/c"})),
        ("Read", json!({"file_path": "/tmp/../etc/passwd"})),
        ("Read", json!({"file_path": "/home/me/.ssh/id"})),
        ("Read", json!({"file_path": ".env"})),
        ("Read", json!({})),
        ("Write", json!({"file_path": "x"})),
        ("write", json!({})),
        ("Bash", json!({"command": "git push -v"})),
        ("Bash", json!({"command": "git status"})),
        ("Bash", json!({"command": "git"})),
        ("Bash", json!({"command": "git status; npm run test"})),
        ("Bash", json!({"command": "sudo git push"})),
        ("Bash", json!({"command": "git $(x)"})),
        ("Bash", json!({"command": "/usr/bin/git push"})),
        ("Bash", json!({"command": 3})),
        ("mcp__db__drop", json!({})),
        ("mcp__db__query", json!({})),
        ("mcp__dbx__query", json!({})),
        ("WebFetch", json!({"url": "https://example.com/"})),
        ("WebFetch", json!({"url": "https://a.example.com/"})),
        ("WebFetch", json!({"url": "https://example.com.evil.org/"})),
        ("Task", json!({})),
    ]
}

/// A pattern as a skill may write it.
pub(super) fn parsed(text: &str) -> ToolPattern {
    ToolPattern::parse(text.trim().into())
}

fn asked(pattern: &str, tool: &str, arguments: Value) -> (Answer, Answer) {
    let pattern = parsed(pattern);
    let Value::Object(arguments) = arguments else {
        panic!("not an object");
    };
    let call = Call::new(tool, &arguments);
    let answer = |told: Result<bool, Uncertainty>| told.map_or(Answer::Undecided, Answer::from);
    (
        answer(pattern.permits(&call)),
        answer(pattern.touches(&call)),
    )
}

#[test]
fn patterns_mean_what_their_authors_expect() {
    use Answer::{No, Undecided, Yes};
    let bash = |command: &str| json!({ "command": command });
    for (pattern, tool, arguments, permits, touches) in [
        ("Read", "Read", json!({}), Yes, Yes),
        ("Read", "ReadAll", json!({}), No, No),
        ("Read", "read", json!({}), Undecided, Undecided),
        ("sql_query", "SQL-Query", json!({}), Undecided, Undecided),
        ("SQL-*", "sql query ", json!({}), Undecided, Undecided),
        ("sql_*", "sqlite_query", json!({}), No, No),
        ("MCP--db", "mcp__db__query", json!({}), Undecided, Undecided),
        (
            "bash (git:*)",
            "Bash",
            bash("git log"),
            Undecided,
            Undecided,
        ),
        ("*", "anything", json!({}), Yes, Yes),
        ("mcp__db", "mcp__db__query", json!({}), Yes, Yes),
        ("mcp__db", "mcp__dbx__query", json!({}), No, No),
        ("mcp__db__*", "mcp__db__query", json!({}), Yes, Yes),
        ("Bash(git:*)", "Bash", bash("git"), Yes, Yes),
        ("Bash(git:*)", "Bash", bash("git log"), Yes, Yes),
        ("Bash(git:*)", "Bash", bash("gitk"), No, Undecided),
        ("Bash(git:*)", "Bash", bash("ls -l"), No, No),
        ("Bash(git:*)", "Bash", bash("ls; git log"), No, Yes),
        ("Bash(git:*)", "Bash", bash("/usr/bin/git log"), No, Yes),
        ("Bash(rm:*)", "Bash", bash("sudo rm x"), No, Undecided),
        ("Bash(rm:*)", "Bash", bash("X=1 rm x"), No, Undecided),
        (
            "Bash(rm:*)",
            "Bash",
            bash("$(echo rm) x"),
            Undecided,
            Undecided,
        ),
        ("Bash(npm run test)", "Bash", bash("npm run test"), Yes, Yes),
        (
            "Bash(npm run test)",
            "Bash",
            bash("npm run tests"),
            No,
            Undecided,
        ),
        ("Bash(xcode*)", "Bash", bash("xcodebuild -v"), Yes, Yes),
        (
            "WebFetch(domain:example.com)",
            "WebFetch",
            json!({"url": "http://Example.com:80/x"}),
            Yes,
            Yes,
        ),
        (
            "WebFetch(domain:example.com)",
            "WebFetch",
            json!({"url": "http://x.example.com"}),
            No,
            No,
        ),
        (
            "WebFetch(domain:example.com)",
            "WebFetch",
            json!({}),
            Undecided,
            Undecided,
        ),
        (
            "Read(/tmp/**)",
            "Read",
            json!({"file_path": "/tmp/a/b"}),
            Yes,
            Yes,
        ),
        (
            "Read(/tmp/*)",
            "Read",
            json!({"file_path": "/tmp/a/b"}),
            No,
            No,
        ),
        (
            "Read(//tmp/**)",
            "Read",
            json!({"file_path": "/tmp/a"}),
            Yes,
            Yes,
        ),
        (
            "Read(/tmp/**)",
            "Read",
            json!({"file_path": "/tmp/../x"}),
            Undecided,
            Undecided,
        ),
        (
            "Read(~/.ssh/**)",
            "Read",
            json!({"file_path": "/home/me/.ssh/id"}),
            Undecided,
            Undecided,
        ),
        (
            "Read(~/.ssh/**)",
            "Read",
            json!({"file_path": "/tmp/x"}),
            No,
            No,
        ),
        (
            "Read(src/)",
            "Read",
            json!({"file_path": "./src/a"}),
            Yes,
            Yes,
        ),
        ("Task(x)", "Task", json!({}), Undecided, Undecided),
        ("Bash(git", "Bash", bash("git"), Undecided, Undecided),
        ("", "Bash", json!({}), No, No),
    ] {
        assert_eq!(
            asked(pattern, tool, arguments.clone()),
            (permits, touches),
            "{pattern} on {tool} {arguments}"
        );
    }
}

#[test]
fn what_covers_what_is_told_by_the_patterns_alone() {
    for (wide, narrow, covers) in [
        ("Bash", "Bash(git:*)", true),
        ("Bash(*)", "Bash", true),
        ("Bash(git:*)", "Bash", false),
        ("Bash(git:*)", "Bash(git push:*)", true),
        ("Bash(git:*)", "Bash(gitk:*)", false),
        ("*", "mcp__a__b", true),
        ("mcp__a", "mcp__a__*", true),
        ("mcp__a__*", "mcp__a", false),
        ("mcp__*", "mcp__a", true),
        ("Read(/tmp/**)", "Read(/tmp/a/*)", true),
        ("Read(/tmp/*)", "Read(/tmp/a/*)", false),
        ("WebFetch(domain:*.a.b)", "WebFetch(domain:x.a.b)", true),
        ("Task(x)", "Task(x)", true),
        ("Task(x)", "Task(y)", false),
    ] {
        let (wide, narrow) = (parsed(wide), parsed(narrow));
        assert_eq!(wide.covers(&narrow), covers, "{wide:?} {narrow:?}");
    }
}

/// A pattern of a small alphabet, so that many of two have to do with each other.
fn small() -> impl Strategy<Value = String> {
    prop_oneof![
        select(PATTERNS).prop_map(str::to_owned),
        "[abA*]{1,4}",
        "mcp__[abA]{1,2}(__[abA*]{0,3})?",
        "(mcp__|B|bash)\\*?(\\([ab*:]{1,4}\\))?",
    ]
}

proptest! {
    #[test]
    fn an_index_leaves_out_what_shares_no_call_and_nothing_else(
        all in proptest::collection::vec(small(), 1..20),
    ) {
        let entry = |text: &String| Entry::from(Attributed {
            text: text.trim().into(),
            members: Vec::new(),
        });
        let entries: Vec<Entry> = all.iter().map(entry).collect();
        let index = PatternIndex::new(&entries);
        for one in &entries {
            let found: Vec<_> = index.candidates(one).collect();
            prop_assert!(found.iter().any(|found| std::ptr::eq(*found, one)));
            for other in &entries {
                let times = found.iter().filter(|found| std::ptr::eq(**found, other)).count();
                let (a, b) = (&one.pattern, &other.pattern);
                prop_assert!(times <= 1, "{a:?} {b:?}");
                if times == 0 || a.is_disjoint(b) {
                    prop_assert_eq!(a.overlaps(b), Answer::No, "{:?} {:?}", a, b);
                    prop_assert!(!a.covers(b) && !b.covers(a), "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn relations_of_patterns_hold_for_calls(a in select(PATTERNS), b in select(PATTERNS)) {
        let (one, two) = (parsed(a), parsed(b));
        prop_assert!(one.covers(&one), "{a} covers itself");
        prop_assert_eq!(one.overlaps(&two), two.overlaps(&one));
        if one.covers(&two) && !one.is_unreadable() {
            prop_assert_ne!(one.overlaps(&two), Answer::No, "{} {}", a, b);
        }
        for (tool, arguments) in calls() {
            let Value::Object(arguments) = arguments else { unreachable!() };
            let call = Call::new(tool, &arguments);
            if one.permits(&call) == Ok(true) {
                prop_assert_eq!(one.touches(&call), Ok(true), "{} {:?}", a, &call);
            }
            if one.covers(&two) && two.permits(&call) == Ok(true) {
                prop_assert_eq!(one.permits(&call), Ok(true), "{} {} {:?}", a, b, &call);
            }
            if one.overlaps(&two) == Answer::No && one.permits(&call) == Ok(true) {
                prop_assert_ne!(two.permits(&call), Ok(true), "{} {} {:?}", a, b, &call);
            }
        }
    }

    #[test]
    fn any_text_is_a_pattern_and_any_call_is_answered(
        pattern in ".{0,30}|[A-Za-z_*]{1,8}\\([a-z:*/ ]{0,10}\\)",
        tool in ".{0,12}", command in ".{0,40}|[a-z;|&'\"> ]{0,30}",
    ) {
        let (first, second) = (parsed(&pattern), parsed("Bash(git:*)"));
        prop_assert!(first.covers(&first));
        prop_assert_eq!(first.overlaps(&second), second.overlaps(&first));
        for tool in [tool.as_str(), "Bash"] {
            let _answers = (asked(&pattern, tool, json!({"command": command.clone()})),
                asked(&pattern, tool, json!({"url": command.clone(), "path": command.clone()})));
        }
    }
}
