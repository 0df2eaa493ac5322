use serde_json::Value;

use super::patterns::parsed;
use super::shell::may_run;
use super::*;
use testing::fuzz;

/// Bytes of a line that the other parser is asked about: it may take long.
const JUDGED: usize = 160;

#[test]
fn fuzz_calls_of_tools() {
    let words = [
        "rm ",
        "ls ",
        "git status",
        "; ",
        " && ",
        "|",
        "\"",
        "'",
        "\\",
        "$(",
        ")",
        "`",
        "<<E\n",
        ">",
        "2>&1",
        "/dev/null",
        "*",
        "?",
        "[",
        "~/",
        "/etc/passwd",
        "../",
        "//",
        "C:",
        "https://",
        "@",
        ":8080",
        "example.com",
        "Bash(rm:*)",
        "Read(/etc/**)",
        "(domain:",
        ")",
        ":*",
        "mcp__",
        "\u{a0}",
        "sudo ",
        "X=1 ",
        "if ",
        "{",
        "}",
        "#",
        "!",
    ];
    fuzz("tool_call", &words, |input| {
        let text = String::from_utf8_lossy(input);
        let mut lines = text.splitn(3, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let (pattern, tool, argument) = (next(), next(), next());
        let (forbids, allows) = (
            Draft::new("a").allows(&["*"]).forbids_tools(&[pattern]),
            Draft::new("b").allows(&[pattern]),
        );
        let forbids = compose(&members(&[forbids]), ToolPolicy::Union);
        let allows = compose(&members(&[allows]), ToolPolicy::Union);
        let parsed = parsed(pattern);
        for name in ["command", "file_path", "url"] {
            let mut arguments = Map::new();
            arguments.insert(name.to_owned(), Value::from(argument));
            let call = Call::new(tool, &arguments);
            let (permits, touches) = (parsed.permits(&call), parsed.touches(&call));
            // What a pattern is wholly about, it is partly about.
            assert!(permits != Ok(true) || touches == Ok(true), "{text:?}");
            let decision = forbids.check(&call);
            let is_forbidding = !pattern.trim().is_empty();
            assert!(
                !(is_forbidding && decision.rule.allows()) || touches == Ok(false),
                "{text:?}"
            );
            assert!(!forbids.reason(&call, &decision).contains('\u{1b}'));
            let decision = allows.check(&call);
            assert!(!decision.rule.allows() || permits != Ok(false), "{text:?}");
        }
        if argument.len() <= JUDGED && may_run("rm", argument) == Some(true) {
            assert!(
                !super::shell::is_allowed("Bash(rm:*)", argument),
                "{text:?}"
            );
        }
    });
}
