//! A call of a tool, as far as patterns look at it: the command, the host, the
//! path.
//!
//! What a shell would make of a command is not guessed: a command with
//! substitutions, redirections to files or escapes cannot be taken apart, and
//! is told so. This reads permissions; it is no sandbox.

use std::cell::OnceCell;

use serde_json::{Map, Value};

/// A call that is to be checked.
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) tool: &'a str,
    arguments: &'a Map<String, Value>,
    commands: OnceCell<Commands>,
}

/// What a command line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Commands {
    /// These commands, one after the other or at once; each with one space
    /// between its words.
    Plain(Vec<String>),
    /// What a shell would run cannot be told from the text.
    Unclear,
}

/// Words that run what follows them, or open a construct: what is run does not
/// stand at the beginning.
const LAUNCHERS: &[&str] = &[
    "!",
    "[",
    "[[",
    "ash",
    "bash",
    "builtin",
    "busybox",
    "case",
    "chroot",
    "cmd",
    "command",
    "coproc",
    "csh",
    "dash",
    "do",
    "doas",
    "elif",
    "else",
    "env",
    "eval",
    "exec",
    "find",
    "fish",
    "flock",
    "for",
    "function",
    "if",
    "ionice",
    "ksh",
    "nice",
    "node",
    "nohup",
    "npx",
    "parallel",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "python",
    "python3",
    "ruby",
    "script",
    "select",
    "setsid",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "su",
    "sudo",
    "tcsh",
    "then",
    "time",
    "timeout",
    "trap",
    "until",
    "watch",
    "while",
    "xargs",
    "zsh",
    ".",
];

impl<'a> Call<'a> {
    /// A call of a tool with its arguments.
    #[must_use]
    pub fn new(tool: &'a str, arguments: &'a Map<String, Value>) -> Self {
        Self {
            tool,
            arguments,
            commands: OnceCell::new(),
        }
    }

    fn text(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.arguments.get(*name))?
            .as_str()
    }

    /// The commands of its command line.
    pub(super) fn commands(&self) -> &Commands {
        self.commands.get_or_init(|| {
            self.text(&["command", "cmd"])
                .and_then(split)
                .map_or(Commands::Unclear, Commands::Plain)
        })
    }

    /// The path of the file it is about, without `./`; none where it has a `..`
    /// or there is none.
    pub(super) fn path(&self) -> Option<&str> {
        let path = self.text(&["file_path", "path", "notebook_path", "filePath"])?;
        let path = path.strip_prefix("./").unwrap_or(path);
        (!path.split('/').any(|part| part == "..")).then_some(path)
    }

    /// The host of its address, in lower case; none where there is none.
    pub(super) fn host(&self) -> Option<String> {
        let url = self.text(&["url", "uri"])?;
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\' || c == '%';
        if url.contains(odd) {
            return None;
        }
        let (_, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let host = match host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => host,
        };
        let host = host.trim_end_matches('.').to_lowercase();
        (!host.is_empty()).then_some(host)
    }
}

/// The command runs something that does not stand at its beginning, so that what
/// a forbidding pattern looks for may hide behind it.
pub(super) fn hides(command: &str) -> bool {
    let first = command.split(' ').next().unwrap_or_default();
    first.contains('=') || LAUNCHERS.contains(&program(first))
}

/// The command with the program's path taken off.
pub(super) fn without_path(command: &str) -> &str {
    let end = command.find(' ').unwrap_or(command.len());
    let begin = command
        .get(..end)
        .and_then(|first| first.rfind('/'))
        .map_or(0, |slash| slash + 1);
    command.get(begin..).unwrap_or(command)
}

fn program(first: &str) -> &str {
    first.rsplit('/').next().unwrap_or(first)
}

/// The commands of a command line; none where a shell might see others.
fn split(line: &str) -> Option<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                if !words.is_empty() {
                    commands.push(words.join(" "));
                    words.clear();
                }
            }
            '\'' => {
                let (quoted, rest) = letters.as_str().split_once('\'')?;
                word.get_or_insert_default().push_str(quoted);
                letters = rest.chars();
            }
            '"' => {
                let (quoted, rest) = letters.as_str().split_once('"')?;
                if quoted.contains(['$', '`', '\\', '!']) {
                    return None;
                }
                word.get_or_insert_default().push_str(quoted);
                letters = rest.chars();
            }
            '>' => {
                // Streams may be joined and thrown away; nothing else is written.
                if word
                    .as_deref()
                    .is_some_and(|word| word == "1" || word == "2")
                {
                    word = None;
                }
                if word.is_some() {
                    return None;
                }
                let rest = letters.as_str();
                let rest = ["&1", "&2", "/dev/null", " /dev/null"]
                    .iter()
                    .find_map(|target| rest.strip_prefix(target))?;
                if !rest.is_empty() && !rest.starts_with([' ', '\t', ';', '&', '|', '\n']) {
                    return None;
                }
                letters = rest.chars();
            }
            '\\' | '$' | '`' | '(' | ')' | '{' | '}' | '<' | '#' => return None,
            letter if letter.is_control() => return None,
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if !words.is_empty() {
        commands.push(words.join(" "));
    }
    Some(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_where_that_is_sure() {
        for (line, commands) in [
            ("git status", Some(vec!["git status"])),
            ("  git   log  -1 ", Some(vec!["git log -1"])),
            (
                "git status && rm -rf x; ls|wc",
                Some(vec!["git status", "rm -rf x", "ls", "wc"]),
            ),
            ("git commit -m 'a; b'", Some(vec!["git commit -m a; b"])),
            (
                "git commit -m \"a && b\"",
                Some(vec!["git commit -m a && b"]),
            ),
            ("npm test 2>&1 | tail", Some(vec!["npm test", "tail"])),
            ("npm test > /dev/null", Some(vec!["npm test"])),
            ("\"rm\" x", Some(vec!["rm x"])),
            ("", Some(vec![])),
            ("git log > notes", None),
            ("npm test >/dev/nullx", None),
            ("git $(rm x)", None),
            ("git `rm x`", None),
            ("r\\m x", None),
            ("git commit -m \"$(rm x)\"", None),
            ("git 'open", None),
            ("cat <<EOF", None),
            ("git log\r", None),
        ] {
            let found = split(line);
            let commands =
                commands.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, commands, "{line:?}");
        }
    }

    #[test]
    fn hosts_and_paths_are_told_or_not_at_all() {
        let arguments = |name: &str, value: &str| {
            let mut map = Map::new();
            map.insert(name.to_owned(), value.into());
            map
        };
        for (url, host) in [
            ("https://Example.com/a", Some("example.com")),
            ("https://me:pw@example.com:443?x", Some("example.com")),
            ("https://example.com.", Some("example.com")),
            ("https://evil.com\\@example.com", None),
            ("https://example.com%2eevil.com/", None),
            ("example.com", None),
        ] {
            let arguments = arguments("url", url);
            assert_eq!(
                Call::new("WebFetch", &arguments).host().as_deref(),
                host,
                "{url}"
            );
        }
        for (path, found) in [
            ("./src/a", Some("src/a")),
            ("/a/../b", None),
            ("/a/..b", Some("/a/..b")),
        ] {
            let arguments = arguments("file_path", path);
            assert_eq!(Call::new("Read", &arguments).path(), found, "{path}");
        }
    }
}
