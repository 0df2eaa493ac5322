//! The commands of a command line, where every shell sees the same ones.
//!
//! What a shell would make of a line is not guessed: one with substitutions,
//! redirections to files, escapes or a pattern for a program is not taken apart.

use super::uncertainty::{Uncertainty, shown};

/// A command: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    words: Vec<ShellWord>,
    text: String,
    loose_text: String,
}

/// A word of a command, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ShellWord {
    pub(super) text: String,
    /// It has a `*`, `?` or `[` outside quotes: a shell may make other words of it.
    pub(super) has_glob: bool,
    is_quoted: bool,
}

/// Stands for a space inside a word, so that `"git log"` is not `git log`. No
/// other control character gets into a command.
const INNER_SPACE: char = '\u{1}';

impl Command {
    fn new(words: Vec<ShellWord>) -> Result<Self, Uncertainty> {
        let first = words.first().map(|word| word.text.as_str());
        let first = first.unwrap_or_default();
        // `[` and `[[` are programs. Any other program with a wildcard is whatever file the
        // shell finds for it.
        let is_test = matches!(first, "[" | "[[");
        if !is_test && words.first().is_some_and(|word| word.has_glob) {
            return Err(Uncertainty::Shell(
                format!("the pattern `{}`", shown(first)).into(),
            ));
        }
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                text.push(' ');
            }
            text.extend(word.text.chars().map(|c| match c {
                ' ' | '\t' => INNER_SPACE,
                c => c,
            }));
        }
        let loose_text = text.replace(INNER_SPACE, " ");
        Ok(Self {
            words,
            text,
            loose_text,
        })
    }

    /// Its words with one space between them; spaces inside a word are another
    /// character.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The same, with spaces inside words as they are.
    pub(super) fn loose_text(&self) -> &str {
        &self.loose_text
    }

    /// The program as it is written.
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", |word| &word.text)
    }

    pub(super) fn arguments(&self) -> &[ShellWord] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// The last part of a program's path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Targets of a redirection that writes no file.
const TARGETS: &[&str] = &["&1", "&2", "/dev/null", " /dev/null"];

/// The commands of a command line.
pub(super) fn commands(line: &str) -> Result<Vec<Command>, Uncertainty> {
    let mut commands = Vec::new();
    let mut words: Vec<ShellWord> = Vec::new();
    let mut word: Option<ShellWord> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            // `&&`, `||` and `|&` leave no words between their letters, so they are covered.
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                if !words.is_empty() {
                    commands.push(Command::new(std::mem::take(&mut words))?);
                }
            }
            quote @ ('\'' | '"') => {
                let (quoted, rest) = letters
                    .as_str()
                    .split_once(quote)
                    .ok_or(Uncertainty::Shell("a quote that is never closed".into()))?;
                // Double quotes are read by the shell, single ones are not.
                let acts = |c: char| quote == '"' && matches!(c, '$' | '`' | '\\' | '!');
                if let Some(unusual) = quoted.chars().find(|c| acts(*c) || is_control(*c)) {
                    return Err(symbol(unusual));
                }
                let word = word.get_or_insert_default();
                word.text.push_str(quoted);
                word.is_quoted = true;
                letters = rest.chars();
            }
            '>' => {
                // `2>&1`: a digit before the `>` names a stream, unless it is quoted, as then it
                // is an argument.
                let is_stream =
                    |word: &ShellWord| !word.is_quoted && matches!(word.text.as_str(), "1" | "2");
                let rest = letters.as_str();
                let rest = TARGETS.iter().find_map(|target| rest.strip_prefix(target));
                // `/dev/nullx` is a file.
                let ends = |rest: &&str| {
                    rest.is_empty() || rest.starts_with([' ', '\t', ';', '&', '|', '\n'])
                };
                let rest = rest
                    .filter(ends)
                    .filter(|_| word.as_ref().is_none_or(is_stream));
                letters = rest.ok_or_else(|| symbol('>'))?.chars();
                word = None;
            }
            // Shells differ in what they make of these, and some run a second command. A wrong
            // guess would permit it, so the line is not taken apart.
            '\\' | '$' | '`' | '(' | ')' | '{' | '}' | '<' | '#' => return Err(symbol(letter)),
            letter if is_control(letter) => return Err(symbol(letter)),
            letter => {
                let word = word.get_or_insert_default();
                word.text.push(letter);
                word.has_glob |= matches!(letter, '*' | '?' | '[');
            }
        }
    }
    words.extend(word);
    if !words.is_empty() {
        commands.push(Command::new(words)?);
    }
    Ok(commands)
}

/// Tabs and line feeds are text inside quotes.
fn is_control(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\t' | '\n')
}

fn symbol(letter: char) -> Uncertainty {
    if letter.is_control() {
        Uncertainty::Shell("a control character".into())
    } else {
        Uncertainty::Shell(format!("`{letter}`").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_where_that_is_sure() {
        for (line, found) in [
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
            ("git commit -m 'a\nb'", Some(vec!["git commit -m a\nb"])),
            ("npm test 2>&1 | tail", Some(vec!["npm test", "tail"])),
            ("npm test > /dev/null", Some(vec!["npm test"])),
            ("npm test \"2\">/dev/null", None),
            ("\"rm\" x", Some(vec!["rm x"])),
            ("r''m x", Some(vec!["rm x"])),
            ("ls *.txt", Some(vec!["ls *.txt"])),
            ("[ -f x ]", Some(vec!["[ -f x ]"])),
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
            ("git 'log\r'", None),
            ("/bin/r? x", None),
            ("/bin/[r]m x", None),
            ("r* x", None),
            ("{rm,-rf,x}", None),
        ] {
            let commands = commands(line).ok().map(|commands| {
                let texts = commands
                    .iter()
                    .map(|command| command.loose_text().to_owned());
                texts.collect::<Vec<_>>()
            });
            let found = found.map(|all| all.into_iter().map(str::to_owned).collect());
            assert_eq!(commands, found, "{line:?}");
        }
    }

    #[test]
    fn a_space_inside_a_word_is_no_space_between_words() {
        let commands = commands("\"git log\" x").expect("plain");
        let texts: Vec<_> = commands.iter().map(Command::text).collect();
        assert_eq!(texts, ["git\u{1}log x"]);
    }
}
