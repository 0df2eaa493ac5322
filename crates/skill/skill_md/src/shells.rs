//! Finds permissions that are a shell in disguise.
//!
//! `Bash(git:*)` reads like Git and is more, since `git -c alias.x='!…' x` runs
//! anything. The author gets a warning.

use model::listed;

use super::findings::{Findings, shown};
use super::keys::KeyEntry;
use super::tree::NodeShape;
use super::values;

/// Programs that run what their arguments name.
const LAUNCHERS: &str = include_str!("launchers.txt");

/// Commands and options of programs that run what follows them.
const COMMANDS: &[(&str, &[&str])] = &[
    ("bash", &["-c"]),
    ("bun", &["run", "x"]),
    ("deno", &["eval", "run"]),
    ("docker", &["compose", "exec", "run"]),
    ("git", &["-c", "clone"]),
    ("go", &["run"]),
    ("kubectl", &["exec", "run"]),
    ("node", &["-e", "--eval", "-p"]),
    ("npm", &["exec", "x"]),
    ("perl", &["-e"]),
    ("pnpm", &["dlx", "exec"]),
    ("podman", &["exec", "run"]),
    ("python", &["-c", "-m"]),
    ("ruby", &["-e"]),
    ("sh", &["-c"]),
    ("uv", &["run", "tool"]),
    ("yarn", &["dlx", "exec"]),
    ("zsh", &["-c"]),
];

/// Reports what `allowed-tools` allows without naming it.
pub(super) fn check(entry: Option<KeyEntry<'_>>, findings: &mut Findings) {
    let Some(entry) = entry else { return };
    let mut found = |line: usize, pattern: &str| {
        if let Some(program) = launcher(pattern) {
            let message = format!(
                "`{}` allows any command, since `{}` runs other programs that its arguments name; \
                 allow the commands that the skill needs",
                shown(pattern),
                shown(program)
            );
            findings.warning("allowed-tools-shell", line, message);
        }
    };
    if let NodeShape::List(nodes) = &entry.node.shape {
        for node in nodes {
            found(node.line, node.text().unwrap_or_default().trim());
        }
    } else {
        let (patterns, _) = values::split_tools(entry.node.text().unwrap_or_default());
        for pattern in &patterns {
            found(entry.line, pattern);
        }
    }
}

/// Returns the program by which a pattern allows any command.
fn launcher(pattern: &str) -> Option<&str> {
    let (tool, inside) = pattern.split_once('(')?;
    let is_shell = ["bash", "shell"]
        .iter()
        .any(|name| tool.trim().eq_ignore_ascii_case(name));
    // Only an open end is dangerous: without a `*` the pattern allows exactly one command.
    let open = inside.trim_end().strip_suffix(')')?.trim_end();
    let open = open.strip_suffix('*').filter(|_| is_shell)?;
    let mut words = open.strip_suffix(':').unwrap_or(open).split_whitespace();
    let written = words.next()?;
    let name = written.rsplit('/').next().unwrap_or(written);
    // `python3.11` is `python`.
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let runs = match (words.next(), words.next()) {
        (None, _) => listed(LAUNCHERS).any(|known| known == name),
        (Some(command), None) => COMMANDS
            .iter()
            .any(|(program, commands)| *program == name && commands.contains(&command)),
        _ => false,
    };
    runs.then_some(written)
}

#[cfg(test)]
mod tests {
    use super::launcher;

    #[test]
    fn patterns_that_allow_any_command_are_told_from_those_that_name_it() {
        for (pattern, program) in [
            ("Bash(git:*)", Some("git")),
            ("bash( git :* )", Some("git")),
            ("Bash(find *)", Some("find")),
            ("Bash(/usr/bin/env:*)", Some("/usr/bin/env")),
            ("Bash(python3.11:*)", Some("python3.11")),
            ("Bash(python -c:*)", Some("python")),
            ("Bash(npm exec *)", Some("npm")),
            ("Shell(docker run:*)", Some("docker")),
            ("Bash", None),
            ("Bash(*)", None),
            ("Bash(ls:*)", None),
            ("Bash(git status:*)", None),
            ("Bash(git status)", None),
            ("Bash(git)", None),
            ("Bash(npm run test:*)", None),
            ("Bash(python scripts/x.py:*)", None),
            ("Bash(git", None),
            ("Read(git:*)", None),
            ("mcp__git__*", None),
        ] {
            assert_eq!(launcher(pattern), program, "{pattern}");
        }
    }
}
