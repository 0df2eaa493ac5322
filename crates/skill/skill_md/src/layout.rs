//! Classifies the lines of a front matter without a YAML reader: where keys begin,
//! where a value ends that goes on at the edge, where prose begins. For front matter that
//! no YAML reader takes.

/// Returns the key that a line begins with at its edge, and the text behind it.
pub(super) fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let bare = ['"', '\'']
        .into_iter()
        .find_map(|mark| key.strip_prefix(mark)?.strip_suffix(mark))
        .unwrap_or(key);
    let begins = bare.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    // `https://…` at the edge is a URL in prose, and no key.
    let is_apart = value.is_empty() || value.starts_with([' ', '\t', '\r', '\n']);
    (begins && bare.chars().all(is_word) && is_apart).then_some((bare, value.trim()))
}

/// Tells whether a key is the description, in any case.
pub(super) fn is_description(key: &str) -> bool {
    key.eq_ignore_ascii_case("description")
}

/// Finds the ends of values in quotes or brackets that go on past their line, which many
/// YAML readers take also where the next lines begin at the edge.
///
/// Each kind is searched until one has no end. Otherwise the rest of the text would be searched
/// again for each key, and one missing mark makes nonsense of all that follows.
#[derive(Debug)]
pub(super) struct OpenValues {
    quotes: bool,
    brackets: bool,
}

impl OpenValues {
    pub(super) fn new() -> Self {
        Self {
            quotes: true,
            brackets: true,
        }
    }

    /// Returns the line where the value that begins on the first of these lines ends, if that is a
    /// later one and nothing but a comment follows it.
    pub(super) fn end(&mut self, lines: &[&str]) -> Option<usize> {
        let (_, value) = key_of(lines.first()?)?;
        let mark = value.chars().next()?;
        let open = match mark {
            '"' | '\'' => &mut self.quotes,
            '[' | '{' => &mut self.brackets,
            _ => return None,
        };
        if !*open {
            return None;
        }
        let start = lines.first()?.find(value)?;
        let end = end_of(lines, start);
        *open = end.is_some();
        end.filter(|end| *end > 0)
    }
}

/// Returns the line on which the value ends that begins in the first line at `start`.
fn end_of(lines: &[&str], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, line) in lines.iter().enumerate() {
        let text = if at == 0 { line.get(start..)? } else { line };
        let mut before = ' ';
        let mut chars = text.char_indices().peekable();
        while let Some((position, c)) = chars.next() {
            match quote {
                Some('"') if c == '\\' => _ = chars.next(),
                Some('\'') if c == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                    chars.next();
                }
                Some(mark) if c == mark => quote = None,
                Some(_) => continue,
                // Elsewhere a quote is an apostrophe, as in `it's`.
                None if matches!(c, '"' | '\'')
                    && (before.is_whitespace() || "[{,:".contains(before)) =>
                {
                    quote = Some(c);
                }
                None if matches!(c, '[' | '{') => depth += 1,
                None if matches!(c, ']' | '}') => depth = depth.checked_sub(1)?,
                None => {}
            }
            before = c;
            if depth == 0 && quote.is_none() {
                let rest = text.get(position + c.len_utf8()..)?.trim();
                return (rest.is_empty() || rest.starts_with('#')).then_some(at);
            }
        }
    }
    None
}

/// Tells whether the front matter has a closing fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    Closed,
    Never,
}

/// Finds the end of the front matter that these lines begin with: the line on which a text
/// begins that cannot belong to it; none where all of them may.
pub(super) fn prose(lines: &[&str], fence: Fence) -> Option<usize> {
    let mut open = OpenValues::new();
    // The first of the blank lines and comments above a line. A comment may be a heading.
    let mut apart: Option<usize> = None;
    let (mut is_described, mut takes_items) = (false, false);
    let mut at = 0;
    while let Some(line) = lines.get(at).map(|line| line.trim_end()) {
        let next = at + 1;
        if line.is_empty() || line.starts_with('#') {
            apart.get_or_insert(at);
        } else if is_nearly_fence(line, fence) {
            return Some(at);
        } else if line.starts_with([' ', '\t']) || (takes_items && is_item(line)) {
            apart = None;
        } else if let Some((key, value)) = key_of(line) {
            // Below a blank line this may as well be prose with a colon.
            if fence == Fence::Never && is_described && apart.is_some() {
                return apart;
            }
            is_described |= is_description(key);
            takes_items = value.is_empty();
            apart = None;
            at += open.end(lines.get(at..).unwrap_or_default()).unwrap_or(0);
            at += 1;
            continue;
        } else if apart.is_some() || fence == Fence::Never {
            return apart.or(Some(at));
        }
        at = next;
    }
    apart.filter(|_| fence == Fence::Never)
}

fn is_item(line: &str) -> bool {
    line == "-" || line.starts_with("- ")
}

/// Tells whether a line was meant as a fence: of another length, or of other dashes.
pub(super) fn is_nearly_fence(line: &str, fence: Fence) -> bool {
    let line = line.trim();
    let is_dashes = |c: char| matches!(c, '-' | '\u{2013}' | '\u{2014}');
    let dashes = line.chars().count() >= 2 && line.chars().all(is_dashes);
    dashes
        || line.chars().all(|c| c == '\u{2014}') && !line.is_empty()
        || (fence == Fence::Never && matches!(line, "..." | "***" | "===" | "___"))
}
