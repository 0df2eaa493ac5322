//! The instructions below the front matter, as far as a summary needs them.

/// The most characters of the body that a summary shows.
pub(super) const EXCERPT_CHARS: usize = 2_000;
/// The most characters of a first paragraph that replaces the long description.
pub(super) const PARAGRAPH_CHARS: usize = 1_000;

/// The first characters of a text.
pub(super) fn cut(text: &str, chars: usize) -> &str {
    let end = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// The beginning of the body.
pub(super) fn excerpt(body: &str) -> String {
    cut(body.trim(), EXCERPT_CHARS).trim_end().to_owned()
}

/// The first paragraph of prose, on one line; empty where there is none.
/// Headings, lists, tables, rules, code and HTML are no prose.
pub(super) fn first_paragraph(body: &str) -> String {
    let mut blocks = Blocks {
        lines: body.lines(),
    };
    let mut in_list = false;
    while let Some(block) = blocks.next_block() {
        let Some(first) = block.first() else { continue };
        let is_indented = first.starts_with("  ") || first.starts_with('\t');
        if is_item(first) {
            in_list = true;
        } else if !is_indented {
            in_list = false;
        }
        // Below a list, indented text belongs to it; elsewhere four are code.
        let is_code = first.starts_with("    ") || first.starts_with('\t');
        if is_code || (in_list && is_indented) || is_item(first) || is_markup(first) {
            continue;
        }
        // A heading of Markdown may also be a line above `===` or `---`.
        let is_heading = block.get(1).is_some_and(|line| is_underline(line));
        if is_heading {
            continue;
        }
        return joined(&block);
    }
    String::new()
}

fn joined(block: &[&str]) -> String {
    let prose = block.iter().take_while(|line| !is_markup(line));
    let words = prose.flat_map(|line| line.split_whitespace());
    // As many words as characters are enough, however long the paragraph is.
    let words: Vec<&str> = words.take(PARAGRAPH_CHARS).collect();
    cut(&words.join(" "), PARAGRAPH_CHARS).trim_end().to_owned()
}

struct Blocks<'a> {
    lines: std::str::Lines<'a>,
}

impl<'a> Blocks<'a> {
    /// The next lines without a blank between them. Code between fences, HTML
    /// comments and headings are skipped.
    fn next_block(&mut self) -> Option<Vec<&'a str>> {
        let mut block = Vec::new();
        // Peeked first: a line that ends a block stays for the next one.
        while let Some(line) = self.lines.clone().next() {
            let text = line.trim();
            let fence = ["```", "~~~"]
                .into_iter()
                .find(|mark| text.starts_with(mark));
            let is_apart = fence.is_some() || text.starts_with("<!--") || text.starts_with('#');
            if !block.is_empty() && (text.is_empty() || is_apart) {
                return Some(block);
            }
            self.lines.next();
            if let Some(mark) = fence {
                self.skip_past(|line| line.trim().starts_with(mark));
            } else if text.starts_with("<!--") && !text.contains("-->") {
                self.skip_past(|line| line.contains("-->"));
            } else if !is_apart && !text.is_empty() {
                block.push(line);
            }
        }
        (!block.is_empty()).then_some(block)
    }

    fn skip_past(&mut self, is_end: impl Fn(&str) -> bool) {
        self.lines.by_ref().find(|line| is_end(line));
    }
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered =
        number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "));
    is_numbered
        || ["- ", "* ", "+ "]
            .into_iter()
            .any(|mark| line.starts_with(mark))
}

fn is_markup(line: &str) -> bool {
    let line = line.trim();
    let is_rule = line.len() >= 3
        && ['-', '*', '_']
            .into_iter()
            .any(|mark| line.chars().all(|c| c == mark || c == ' '));
    is_rule || line.starts_with(['|', '<', '#'])
}

fn is_underline(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && (line.bytes().all(|b| b == b'=') || line.bytes().all(|b| b == b'-'))
}
