//! The commands of a shell script, as far as its text shows them: one a line, with the values
//! of its variables, without what never runs.
//!
//! No shell: patterns search the result, and what is not understood here stays as it is
//! written.

use std::collections::BTreeMap;

/// Characters of a variable's value.
// `a=$a$a` doubles it with every line.
const MAX_VALUE_CHARS: usize = 1_000;
/// Functions of a script.
// Every function is searched for in every line, and once more for each that is removed.
const MAX_FUNCTIONS: usize = 20;
/// Characters of a script, with the values of its variables.
const MAX_SCRIPT_CHARS: usize = 256 * 1024;

/// The commands of a script without comments; nothing where it has too many functions.
pub(crate) fn commands(script: &str) -> String {
    // Documents first: their text follows no rules of the shell, and a quote in it would swallow
    // the rest of the script.
    let text = joined(&without_documents(script));
    let defines = text.lines().filter(|line| defined(line).is_some());
    if defines.count() > MAX_FUNCTIONS {
        return String::new();
    }
    // What a learner hides in a function that nothing calls, or behind an `exit`, is not done.
    let text = until_exit(&without_functions(text));
    with_values(&text)
}

/// A script without the texts that it hands to its commands (`<<END`).
fn without_documents(script: &str) -> String {
    let mut kept = String::with_capacity(script.len());
    let mut end: Option<&str> = None;
    for line in script.lines() {
        match end {
            Some(word) if line.trim() == word => end = None,
            Some(_) => {}
            None => {
                kept.push_str(line);
                kept.push('\n');
                let begins = line.split_once("<<").map(|(_, rest)| rest);
                end = begins
                    // `<<<` is a text on the same line.
                    .filter(|rest| !rest.starts_with('<'))
                    .map(|rest| rest.trim_start_matches('-').trim_start())
                    .map(|rest| rest.trim_start_matches(['\'', '"', '\\']))
                    .map(word)
                    .filter(|word| !word.is_empty());
            }
        }
    }
    kept
}

/// The name at the beginning of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// A command on several lines as one.
fn joined(script: &str) -> String {
    let mut text = String::with_capacity(script.len());
    let mut quote: Option<char> = None;
    let mut characters = script.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => match characters.next() {
                Some('\n') => text.push(' '),
                Some(next) => text.extend(['\\', next]),
                None => text.push('\\'),
            },
            ('\n', Some(_)) => text.push(' '),
            ('\'' | '"', None) => {
                quote = Some(character);
                text.push(character);
            }
            (_, Some(end)) if character == end => {
                quote = None;
                text.push(character);
            }
            _ => text.push(character),
        }
    }
    text
}

/// A line without quoted text, and without `${…}`.
fn bare(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut until: Option<char> = None;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, until) {
            (_, Some(end)) if character == end => until = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => until = Some(character),
            ('$', None) if characters.peek() == Some(&'{') => until = Some('}'),
            _ => text.push(character),
        }
    }
    text
}

/// The function that a line begins to define.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (rest, has_keyword) = match line.strip_prefix("function ") {
        Some(rest) => (rest.trim_start(), true),
        None => (line, false),
    };
    let name = word(rest);
    let after = rest.strip_prefix(name)?.trim_start();
    let inside = after.strip_prefix('(').map(str::trim_start);
    let has_brackets = inside.is_some_and(|inside| inside.starts_with(')'));
    (!name.is_empty() && (has_brackets || has_keyword)).then_some(name)
}

/// A script without functions that nothing calls, nor what only those call.
fn without_functions(script: String) -> String {
    let mut text = script;
    // One a round: with it the calls in it are gone, so another function may be unused now.
    loop {
        let lines: Vec<&str> = text.lines().collect();
        let unused = functions(&lines).into_iter().find(|(name, begin, end)| {
            let mut others = lines.iter().enumerate();
            !others.any(|(at, line)| !(*begin..=*end).contains(&at) && calls(line, name))
        });
        let Some((_, begin, end)) = unused else {
            return text;
        };
        let kept = lines.iter().enumerate();
        let kept = kept.filter(|(at, _)| !(begin..=end).contains(at));
        let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
        text = kept.join("\n");
    }
}

/// Functions with their first and their last line.
fn functions<'a>(lines: &[&'a str]) -> Vec<(&'a str, usize, usize)> {
    let mut found = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let Some(name) = defined(line) else { continue };
        let (mut depth, mut is_open) = (0_i32, false);
        let mut end = begin;
        for (at, line) in lines.iter().enumerate().skip(begin) {
            end = at;
            for character in bare(line).chars() {
                match character {
                    '{' => (depth, is_open) = (depth + 1, true),
                    '}' => depth -= 1,
                    _ => {}
                }
            }
            if is_open && depth <= 0 {
                break;
            }
        }
        found.push((name, begin, end));
    }
    found
}

/// A line has a word in the position of a command.
fn calls(line: &str, name: &str) -> bool {
    // A command may follow these. `trap` and `eval` take it as a text, so quotes do not count.
    const BEFORE: [&str; 11] = [
        "if", "then", "elif", "else", "do", "while", "until", "!", "trap", "exec", "eval",
    ];
    let separate = |c: char| matches!(c, ';' | '&' | '|' | '(' | '{' | '`');
    line.split(separate).any(|command| {
        let words = command.split(|c: char| c.is_whitespace() || c == '\'' || c == '"');
        let mut words = words.filter(|word| !word.is_empty() && !BEFORE.contains(word));
        words
            .next()
            .is_some_and(|word| word.trim_end_matches(')') == name)
    })
}

/// A script up to the line where it ends whatever happens.
fn until_exit(script: &str) -> String {
    let mut depth = 0_i32;
    let mut kept: Vec<&str> = Vec::new();
    for line in script.lines() {
        let bare = bare(line);
        // Inside of an `if` or a loop it may not be reached.
        if depth <= 0 && word(bare.trim_start()) == "exit" {
            break;
        }
        kept.push(line);
        let words = bare.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|'));
        for word in words {
            depth += match word {
                "if" | "while" | "until" | "for" | "case" | "{" => 1,
                "fi" | "done" | "esac" | "}" => -1,
                _ => 0,
            };
        }
    }
    kept.join("\n")
}

/// A script with the values of variables that are given one, in the order of its lines.
fn with_values(script: &str) -> String {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut text = String::with_capacity(script.len());
    for line in script.lines() {
        if text.len() > MAX_SCRIPT_CHARS {
            break;
        }
        let line = replaced(line, &values);
        if let Some((name, value)) = assigned(&line)
            && value.chars().count() <= MAX_VALUE_CHARS
        {
            values.insert(name.to_owned(), value);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The variable that a line gives a value, and the value without quotes.
fn assigned(line: &str) -> Option<(&str, String)> {
    let line = line.trim_start();
    let words = ["export ", "readonly ", "local "];
    let line = words
        .iter()
        .find_map(|word| line.strip_prefix(word))
        .unwrap_or(line);
    let name = word(line);
    let rest = line.strip_prefix(name)?.strip_prefix('=')?;
    let (mut value, mut brackets, mut quote) = (String::new(), 0_i32, None);
    for character in rest.chars() {
        match (character, quote) {
            ('(', _) => brackets += 1,
            (')', _) => brackets -= 1,
            ('\'' | '"', None) => {
                quote = Some(character);
                continue;
            }
            (_, Some(end)) if character == end => {
                quote = None;
                continue;
            }
            (c, None) if brackets == 0 && (c.is_whitespace() || matches!(c, ';' | '&' | '|')) => {
                break;
            }
            _ => {}
        }
        value.push(character);
    }
    (!name.is_empty()).then_some((name, value))
}

/// A line with `$name` and `${name}` replaced, except in single quotes.
fn replaced(line: &str, values: &BTreeMap<String, String>) -> String {
    let mut text = String::with_capacity(line.len());
    let (mut rest, mut is_single, mut is_double) = (line, false, false);
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        match character {
            '\'' if !is_double => is_single = !is_single,
            '"' if !is_single => is_double = !is_double,
            '$' if !is_single && text.len() <= MAX_SCRIPT_CHARS => {
                let inner = after.strip_prefix('{').unwrap_or(after);
                let name = word(inner);
                let end = inner.strip_prefix(name).unwrap_or(inner);
                let end = if after.starts_with('{') {
                    end.strip_prefix('}')
                } else {
                    Some(end)
                };
                if let (Some(value), Some(end)) = (values.get(name), end) {
                    text.push_str(value);
                    rest = end;
                    continue;
                }
            }
            _ => {}
        }
        text.push(character);
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_run_is_left_with_the_values_of_its_variables() {
        for (script, commands_of) in [
            ("a b \\\n  c", "a b    c"),
            ("echo 'one\ntwo'; x", "echo 'one two'; x"),
            ("cat <<END\nrm x\nEND\nls", "cat <<END\nls"),
            ("cat <<-'E' > f\nrm x\n  E\nls", "cat <<-'E' > f\nls"),
            ("cat <<< word\nls", "cat <<< word\nls"),
            ("f() { rm x; }\nls", "ls"),
            ("f() {\n  rm x\n}\nls", "ls"),
            ("function f {\n  rm x\n}\nls", "ls"),
            ("f ()\n{\n  g \"${x}\"\n}\ng() {\n  ls\n}\n", ""),
            ("f() {\n  ls\n}\nf 1", "f() {\n  ls\n}\nf 1"),
            (
                "f() { ls; }\nif ! f; then x; fi",
                "f() { ls; }\nif ! f; then x; fi",
            ),
            ("f() { ls; }\ntrap 'f' EXIT", "f() { ls; }\ntrap 'f' EXIT"),
            ("f() { ls; }\necho f", "echo f"),
            ("ls\nexit 0\nrm x", "ls"),
            (
                "if a; then\n  exit 1\nfi\nls",
                "if a; then\n  exit 1\nfi\nls",
            ),
            (
                "a || { echo x; exit 1; }\nls",
                "a || { echo x; exit 1; }\nls",
            ),
            (
                "d=/srv/x\nf=\"$d/$(date +%F)\" # \nrm \"${f}\" '$d' $dd",
                "d=/srv/x\nf=\"/srv/x/$(date +%F)\" # \nrm \"/srv/x/$(date +%F)\" '$d' $dd",
            ),
            ("export a=1\nx $a; a=2\nx $a", "export a=1\nx 1; a=2\nx 1"),
        ] {
            assert_eq!(commands(script).trim_end(), commands_of, "{script}");
        }
    }

    #[test]
    fn values_of_values_do_not_grow_without_end() {
        let mut script = "a=xxxxxxxxxx\n".to_owned();
        for _ in 0..2_000 {
            script.push_str("a=$a$a$a$a\n");
        }
        assert!(commands(&script).len() < 2 * MAX_SCRIPT_CHARS);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(?:[a-f=$ '\"{}()<\\\\;\n]|if|fi|exit|function ){0,60}") {
            let read = commands(&text);
            prop_assert!(read.len() <= text.len() * 200 + 2);
        }
    }
}
