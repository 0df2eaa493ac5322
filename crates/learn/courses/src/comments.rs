//! Removes comments from a text, so that nothing is found in them.
//!
//! Each scanner reads the text once. It knows strings, in which no comment begins, and
//! leaves the number of every line as it was.

/// The syntax of comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommentStyle {
    JavaScript,
    Sql,
    Shell,
    Yaml,
}

impl CommentStyle {
    /// The syntax of a language, where it is known.
    pub(crate) fn of(language: &str) -> Option<Self> {
        match language {
            "javascript" | "javascript-tests" => Some(Self::JavaScript),
            "sql" => Some(Self::Sql),
            "shell" => Some(Self::Shell),
            "yaml" | "config" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The text without its comments.
    pub(crate) fn strip(self, text: &str) -> String {
        let mut scanner = Scanner {
            rest: text,
            out: String::with_capacity(text.len()),
        };
        match self {
            Self::JavaScript => scanner.javascript(),
            Self::Sql => scanner.sql(),
            Self::Shell => scanner.shell(),
            Self::Yaml => scanner.yaml(),
        }
        scanner.out
    }
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
}

impl Scanner<'_> {
    fn next(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Copies one character.
    fn keep(&mut self) -> Option<char> {
        let character = self.skip()?;
        self.out.push(character);
        Some(character)
    }

    fn skip(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    /// Skips to the end of the line.
    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {
            self.skip();
        }
    }

    /// Leaves out a comment until `*/`, except the ends of its lines.
    fn skip_block(&mut self) {
        self.skip();
        self.skip();
        // `a/**/b` are two words.
        self.out.push(' ');
        while !self.rest.starts_with("*/") {
            match self.skip() {
                Some('\n') => self.out.push('\n'),
                Some(_) => {}
                None => return,
            }
        }
        self.skip();
        self.skip();
    }

    /// Copies a string that ends with `end`; the character after an `escape` never ends it.
    fn keep_string(&mut self, end: char, escape: Option<char>) {
        // A doubled end, as in `'it''s'`, counts as two strings, which copies the same text.
        self.keep();
        while let Some(character) = self.keep() {
            if Some(character) == escape {
                self.keep();
            } else if character == end {
                return;
            }
        }
    }

    fn javascript(&mut self) {
        // Braces that are open inside of each `${`: its own `}` is the one at zero, where the text
        // of the template goes on.
        let mut templates: Vec<usize> = Vec::new();
        while let Some(next) = self.next() {
            match next {
                _ if self.rest.starts_with("//") => self.skip_line(),
                _ if self.rest.starts_with("/*") => self.skip_block(),
                '\'' | '"' => self.keep_string(next, Some('\\')),
                '`' => {
                    self.keep();
                    self.template(&mut templates);
                }
                '{' => {
                    self.keep();
                    if let Some(open) = templates.last_mut() {
                        *open += 1;
                    }
                }
                '}' => {
                    self.keep();
                    match templates.last_mut() {
                        Some(0) => {
                            templates.pop();
                            self.template(&mut templates);
                        }
                        Some(open) => *open -= 1,
                        None => {}
                    }
                }
                '/' if self.is_before_regex() => self.keep_regex(),
                _ => {
                    self.keep();
                }
            }
        }
    }

    /// Copies the text of a template until it ends, or an expression begins in it.
    fn template(&mut self, templates: &mut Vec<usize>) {
        loop {
            if self.rest.starts_with("${") {
                self.keep();
                self.keep();
                templates.push(0);
                return;
            }
            match self.keep() {
                Some('\\') => {
                    self.keep();
                }
                Some('`') | None => return,
                Some(_) => {}
            }
        }
    }

    /// A `/` here begins a regular expression: after a value it would divide.
    fn is_before_regex(&self) -> bool {
        // Only a parser knows for sure. The last token decides right for all but odd code, such as
        // a regular expression behind the `)` of an `if`.
        let before = self.out.trim_end();
        let Some(last) = before.chars().next_back() else {
            return true;
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        if is_word(last) {
            let start = before.trim_end_matches(is_word).len();
            let word = before.get(start..).unwrap_or_default();
            return matches!(
                word,
                "return" | "typeof" | "case" | "in" | "of" | "await" | "void"
            );
        }
        !")]}'\"`.".contains(last)
    }

    fn keep_regex(&mut self) {
        self.keep();
        let mut in_class = false;
        while self.next().is_some_and(|c| c != '\n') {
            match self.keep() {
                Some('\\') => {
                    self.keep();
                }
                Some('[') => in_class = true,
                Some(']') => in_class = false,
                Some('/') if !in_class => return,
                _ => {}
            }
        }
    }

    fn sql(&mut self) {
        while let Some(next) = self.next() {
            match next {
                _ if self.rest.starts_with("--") => self.skip_line(),
                _ if self.rest.starts_with("/*") => self.skip_block(),
                '\'' | '"' | '`' => self.keep_string(next, None),
                '[' => self.keep_string(']', None),
                _ => {
                    self.keep();
                }
            }
        }
    }

    fn shell(&mut self) {
        while let Some(next) = self.next() {
            match next {
                // Inside of a word, as in `${#list}` or `a#b`, it is no comment.
                '#' if self.is_after(" \t\n;&|()") => self.skip_line(),
                '\\' => {
                    self.keep();
                    self.keep();
                }
                '\'' => self.keep_string('\'', None),
                '"' => self.keep_string('"', Some('\\')),
                _ => {
                    self.keep();
                }
            }
        }
    }

    fn yaml(&mut self) {
        while let Some(next) = self.next() {
            match next {
                '#' if self.is_after(" \t\n") => self.skip_line(),
                // Elsewhere it is an apostrophe.
                '\'' if self.is_after(" \t\n[{,:") => self.keep_string('\'', None),
                '"' if self.is_after(" \t\n[{,:") => self.keep_string('"', Some('\\')),
                _ => {
                    self.keep();
                }
            }
        }
    }

    fn is_after(&self, any_of: &str) -> bool {
        let before = self.out.chars().next_back();
        before.is_none_or(|c| any_of.contains(c))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [CommentStyle; 4] = [
        CommentStyle::JavaScript,
        CommentStyle::Sql,
        CommentStyle::Shell,
        CommentStyle::Yaml,
    ];

    #[test]
    fn comments_go_and_what_looks_like_one_in_a_string_stays() {
        use CommentStyle::{JavaScript, Shell, Sql, Yaml};
        for (style, text, stripped) in [
            (JavaScript, "a // b\nc", "a \nc"),
            (JavaScript, "a /* b\n await */ c", "a  \n c"),
            (
                JavaScript,
                "'// x' + \"/* \\\" */\"",
                "'// x' + \"/* \\\" */\"",
            ),
            (
                JavaScript,
                "`a // ${b /* c */ + `//` + {}} // d` // e",
                "`a // ${b   + `//` + {}} // d` ",
            ),
            (
                JavaScript,
                r"x = /[/]\/\/'/.test(y) // z",
                r"x = /[/]\/\/'/.test(y) ",
            ),
            (JavaScript, "return /'/ // z", "return /'/ "),
            (JavaScript, "a / b // c '", "a / b "),
            (JavaScript, "f(a) / b / c; // '", "f(a) / b / c; "),
            (JavaScript, "/* never closed", " "),
            (Sql, "SELECT 1 -- x\n/* y */FROM t", "SELECT 1 \n FROM t"),
            (
                Sql,
                "SELECT '--' , 'it''s -- so', \"--\", [--] -- x",
                "SELECT '--' , 'it''s -- so', \"--\", [--] ",
            ),
            (Shell, "ls a#b # c\n#d\n$#", "ls a#b \n\n$#"),
            (
                Shell,
                "echo '# a' \"# \\\" b\" \\# # c",
                "echo '# a' \"# \\\" b\" \\# ",
            ),
            (
                Yaml,
                "a: b#c # d\n# e\nf: 'x # y' # z",
                "a: b#c \n\nf: 'x # y' ",
            ),
            (Yaml, "a: it's # so", "a: it's "),
        ] {
            assert_eq!(style.strip(text), stripped, "{style:?} {text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_and_lines_stay(text in "[-a/*'\"`${}\\\\#\\[\\]\n ]{0,40}") {
            for style in ALL {
                let stripped = style.strip(&text);
                prop_assert!(stripped.len() <= text.len() + 1);
                prop_assert_eq!(stripped.matches('\n').count(), text.matches('\n').count());
            }
        }

        #[test]
        fn a_comment_at_the_end_says_nothing(text in "[a-c =;()]{0,20}", said in "[a-z '\"]{0,10}") {
            for (style, mark) in [
                (CommentStyle::JavaScript, "//"), (CommentStyle::Sql, "--"),
                (CommentStyle::Shell, " #"), (CommentStyle::Yaml, " #"),
            ] {
                let stripped = style.strip(&format!("{text}{mark}{said}"));
                prop_assert_eq!(stripped.trim_end(), text.trim_end());
            }
        }
    }
}
