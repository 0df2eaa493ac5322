//! Calls that were once allowed although they, or what they run, are forbidden.

use serde_json::{Value, json};

use super::*;

fn answered(
    allows: &[&str],
    forbids: &[&str],
    tool: &str,
    arguments: &Value,
) -> (ToolRule, String) {
    let draft = Draft::new("safe").allows(allows).forbids_tools(forbids);
    let composed = compose(&members(&[draft]), ToolPolicy::Union);
    let arguments = arguments.as_object().expect("an object");
    let call = Call::new(tool, arguments);
    let decision = composed.check(&call);
    let reason = composed.reason(&call, &decision);
    (decision.rule, reason)
}

/// What a skill says that allows three tools and forbids some of their calls.
fn asked(tool: &str, arguments: &Value) -> (ToolRule, String) {
    answered(
        &["Read", "Bash", "WebFetch"],
        &["Read(/etc/**)", "Bash(rm:*)", "WebFetch(domain:evil.com)"],
        tool,
        arguments,
    )
}

#[test]
fn a_path_that_may_be_a_forbidden_one_is_undecided() {
    for path in [
        "//etc/passwd",
        "/./etc/passwd",
        "/tmp/../etc/passwd",
        "/tmp/..\\..\\etc\\passwd",
        "/ETC/passwd",
        "/etc./passwd",
        "etc/passwd",
        "~root/x",
        "file:///etc/passwd",
        "/%65tc/passwd",
        "/e\u{3164}tc/passwd",
        "/e\u{115f}tc/passwd",
    ] {
        let (rule, reason) = asked("Read", &json!({ "file_path": path }));
        assert_eq!(rule, ToolRule::Undecided, "{path}: {reason}");
    }
    assert_eq!(
        asked("Read", &json!({"path": "/etc/passwd"})).0,
        ToolRule::Forbidden
    );
    assert_eq!(
        asked("Read", &json!({"path": "/tmp/passwd"})).0,
        ToolRule::Granted
    );
}

#[test]
fn a_command_that_may_run_a_forbidden_program_is_undecided() {
    for command in [
        "/bin/r? -rf x",
        "/bin/[r]m -rf x",
        "r* -rf x",
        "r{m,x} x",
        "RM x",
        "strace rm x",
        "unshare rm x",
        "taskset 1 rm x",
        "setarch linux64 rm x",
        "chrt 1 rm x",
        "nsenter rm x",
        "toybox rm x",
        "gtimeout 1 rm x",
        "systemd-run rm x",
        "rlwrap rm x",
        "rbash -c 'rm x'",
        "uv run rm x",
        "uvx x",
        "bunx x",
        "deno run x",
        "docker run x rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "awk 'BEGIN{system(\"rm x\")}'",
        "python3.11 -c 'import os'",
        "git -c alias.x='!rm x' x",
        "git -c core.pager='sh -c id' log",
        "git clone ext::sh",
        "git log --upload-pack=x; git x",
        "alias l=rm; l x",
        "hash -p /bin/rm ls; ls x",
        "PATH=/tmp ls",
        "./ls",
        "~/ls",
        "find . -exec rm x ';'",
        "find . *",
        "tar xf x --to-command=rm",
        "sed 'e rm x' y",
        "sort --compress-program=rm x",
        "xargs rm",
        "env rm x",
        "ls; make",
        "test -v 'a[$(rm x)]'",
        "printf -v 'a[0]' x",
        "ls $X",
        "ls \\x",
        "echo x > y",
        "cat <x",
    ] {
        let (rule, reason) = asked("Bash", &json!({ "command": command }));
        assert_eq!(rule, ToolRule::Undecided, "{command}: {reason}");
    }
    for command in ["rm x", "/bin/rm x", "ls; rm x", "r''m x", "strace x; rm y"] {
        let (rule, reason) = asked("Bash", &json!({ "command": command }));
        assert_eq!(rule, ToolRule::Forbidden, "{command}: {reason}");
    }
    for command in [
        "ls -la | grep x && git status",
        "find . -name '*.rs' 2>/dev/null",
        "/usr/bin/cat x",
    ] {
        let (rule, reason) = asked("Bash", &json!({ "command": command }));
        assert_eq!(rule, ToolRule::Granted, "{command}: {reason}");
    }
}

#[test]
fn other_arguments_of_a_forbidden_program_may_do_the_same() {
    for (forbidden, command, rule) in [
        ("Bash(rm -rf:*)", "rm -rf x", ToolRule::Forbidden),
        ("Bash(rm -rf:*)", "rm -fr x", ToolRule::Undecided),
        ("Bash(rm -rf:*)", "rm x --recursive", ToolRule::Undecided),
        ("Bash(rm -rf:*)", "rm *", ToolRule::Undecided),
        ("Bash(rm -rf:*)", "rm x", ToolRule::Granted),
        ("Bash(/bin/rm:*)", "rm x", ToolRule::Undecided),
        ("Bash(/bin/rm:*)", "ls x", ToolRule::Granted),
        ("Bash(cat /etc/*)", "cat //etc/passwd", ToolRule::Undecided),
        ("Bash(cat /etc/*)", "cat passwd", ToolRule::Undecided),
        ("Bash(git push:*)", "git status", ToolRule::Granted),
        ("Bash(git push:*)", "git -C . push", ToolRule::Undecided),
        (
            "Bash(git commit --amend:*)",
            "git commit -m x",
            ToolRule::Undecided,
        ),
        ("Bash( rm :*)", "rm x", ToolRule::Forbidden),
        ("Bash(rm  -rf  x)", "rm -rf x", ToolRule::Forbidden),
        ("Bash(cd / && rm:*)", "ls", ToolRule::Undecided),
        ("Bash(\"rm\":*)", "ls", ToolRule::Undecided),
    ] {
        let command = json!({ "command": command });
        let (found, reason) = answered(&["Bash"], &[forbidden], "Bash", &command);
        assert_eq!(found, rule, "{forbidden} {command}: {reason}");
    }
}

#[test]
fn an_address_that_may_lead_to_a_forbidden_host_is_undecided() {
    for url in [
        "https://evil。com/",
        "https://ｅvil.com/",
        "https://evil.com./",
        "https://evil.com:8080/",
        "https://good.com@evil.com/",
        "http://2130706433/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "file://good.com/etc/passwd",
        "evil.com",
    ] {
        let (rule, reason) = asked("WebFetch", &json!({ "url": url }));
        assert_eq!(rule, ToolRule::Undecided, "{url}: {reason}");
    }
    assert_eq!(
        asked("WebFetch", &json!({"url": "HTTPS://EVIL.com:443/x"})).0,
        ToolRule::Forbidden
    );
    assert_eq!(
        asked("WebFetch", &json!({"url": "https://good.com/ü"})).0,
        ToolRule::Granted
    );
    // A host that no address has forbids nothing for sure, so it is no rule.
    let forbidden = ["WebFetch(domain:https://evil.com)"];
    let url = json!({"url": "https://evil.com"});
    assert_eq!(
        answered(&["WebFetch"], &forbidden, "WebFetch", &url).0,
        ToolRule::Undecided
    );
}

#[test]
fn two_names_for_one_argument_must_agree() {
    for (allowed, tool, arguments, why) in [
        (
            "Read(/tmp/**)",
            "Read",
            json!({"file_path": "/tmp/ok", "path": "/etc/passwd"}),
            "the arguments `file_path` and `path` may mean the same thing and differ",
        ),
        (
            "Bash(git:*)",
            "Bash",
            json!({"command": "git status", "cmd": "rm -rf /"}),
            "the arguments `command` and `cmd` may mean the same thing and differ",
        ),
        (
            "WebFetch(domain:good.com)",
            "WebFetch",
            json!({"url": "https://good.com", "uri": "https://evil.com"}),
            "the arguments `url` and `uri` may mean the same thing and differ",
        ),
        (
            "WebFetch(domain:good.com)",
            "WebFetch",
            json!({"url": "file://good.com/etc/passwd"}),
            "the address does not begin with http:// or https://",
        ),
        (
            "Bash(git:*)",
            "Bash",
            json!({"command": "git", "args": ["-c", "alias.x=!id", "x"]}),
            "the argument `args` may change what the call does",
        ),
        (
            "Read(/tmp/**)",
            "Read",
            json!({"file_path": "/tmp/..\\..\\x"}),
            "the path has a backslash, which hosts read differently",
        ),
        (
            "Bash(git:*)",
            "Bash",
            json!({"command": "git $(x)"}),
            "a shell may read `$` in the command line in more than one way",
        ),
    ] {
        let (rule, reason) = answered(&[allowed], &[], tool, &arguments);
        let said = format!(
            "This call of '{tool}' is not permitted: whether `{allowed}` of 'safe' covers it cannot \
             be told, since {why}"
        );
        assert_eq!((rule, reason), (ToolRule::Undecided, said), "{arguments}");
    }
    let same = json!({"file_path": "/tmp/ok", "path": "/tmp/ok"});
    assert_eq!(
        answered(&["Read(/tmp/**)"], &[], "Read", &same).0,
        ToolRule::Granted
    );
}

#[test]
fn an_allowed_command_is_allowed_word_by_word() {
    for (allowed, command, rule) in [
        ("Bash(git:*)", "git status", ToolRule::Granted),
        ("Bash(git:*)", "'git status' x", ToolRule::NotGranted),
        ("Bash(git:*)", "/tmp/git status", ToolRule::NotGranted),
        ("Bash(/opt/*)", "/opt/*/x", ToolRule::Undecided),
        (
            "Bash(npm test)",
            "npm test \"2\">/dev/null",
            ToolRule::Undecided,
        ),
        ("Bash(npm test)", "npm test 2>/dev/null", ToolRule::Granted),
    ] {
        let command = json!({ "command": command });
        let (found, reason) = answered(&[allowed], &[], "Bash", &command);
        assert_eq!(found, rule, "{allowed} {command}: {reason}");
    }
}
