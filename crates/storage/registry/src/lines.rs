//! Two texts compared line by line, as a unified diff.
//!
//! The work is bounded by the number of lines, not by time: the same texts have the same answer
//! on a busy machine. Where the shortest diff would take too long, the comparison settles for a
//! longer one that is correct too.

use std::fmt::Write as _;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

/// Lines of both sides together that are compared; a quarter of a second at worst.
// Lines, not time: the same two versions have the same answer on a busy server.
pub(super) const MAX_LINES: usize = 20_000;
/// Lines of context around those that differ.
const CONTEXT_LINES: u32 = 3;

/// Lines of both sides together.
pub(super) fn count(old: &str, new: &str) -> usize {
    old.lines().count() + new.lines().count()
}

/// Returns the lines that differ, with three around them; an empty text where none do.
pub(super) fn unified(path: &str, old: &str, new: &str) -> String {
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let hunks: Vec<Hunk> = diff.hunks().collect();
    // Changes so near that their contexts would meet share a hunk.
    let is_near = |a: &Hunk, b: &Hunk| b.before.start - a.before.end <= 2 * CONTEXT_LINES;
    let mut writer = Writer {
        input: &input,
        text: String::new(),
    };
    for near in hunks.chunk_by(is_near) {
        if writer.text.is_empty() {
            writer.text = format!("--- a/{path}\n+++ b/{path}\n");
        }
        writer.together(near);
    }
    writer.text
}

/// Writes lines as `patch` reads them.
struct Writer<'a> {
    input: &'a InternedInput<&'a str>,
    text: String,
}

impl Writer<'_> {
    /// Writes hunks that share their context.
    fn together(&mut self, hunks: &[Hunk]) {
        let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else {
            return;
        };
        let input = self.input;
        let lead = CONTEXT_LINES.min(first.before.start);
        let end = u32::try_from(input.before.len()).unwrap_or(u32::MAX);
        let trail = CONTEXT_LINES.min(end - last.before.end);
        let before = range(first.before.start - lead..last.before.end + trail);
        let after = range(first.after.start - lead..last.after.end + trail);
        // Writing to a string cannot fail.
        _ = writeln!(self.text, "@@ -{before} +{after} @@");
        let mut at = first.before.start - lead;
        for hunk in hunks {
            self.lines(' ', &input.before, at..hunk.before.start);
            self.lines('-', &input.before, hunk.before.clone());
            self.lines('+', &input.after, hunk.after.clone());
            at = hunk.before.end;
        }
        self.lines(' ', &input.before, at..at + trail);
    }

    fn lines(&mut self, sign: char, side: &[Token], range: Range<u32>) {
        for line in side
            .get(range.start as usize..range.end as usize)
            .unwrap_or_default()
        {
            let line = self.input.interner[*line];
            self.text.push(sign);
            self.text.push_str(line);
            if !line.ends_with('\n') {
                self.text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Formats a range of lines of a side: the first, counted from 1, and their number. An empty
/// range names the line before it.
fn range(lines: Range<u32>) -> String {
    match lines.end - lines.start {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Applies a unified diff as `patch` does.
    fn patched(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut new, mut at) = (String::new(), 0);
        let mut lines = diff.split_inclusive('\n').skip(2).peekable();
        while let Some(line) = lines.next() {
            if let Some(header) = line.strip_prefix("@@ -") {
                let range = header.split(' ').next().expect("a range");
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                let start: usize = start.parse().expect("a line");
                let before = start - usize::from(count != "0");
                old[at..before].iter().for_each(|line| new.push_str(line));
                at = before;
                continue;
            }
            let no_newline = lines.next_if(|next| next.starts_with('\\')).is_some();
            let text = if no_newline {
                line.trim_end_matches('\n')
            } else {
                line
            };
            let (sign, text) = text.split_at(1);
            if sign != "+" {
                assert_eq!(old[at], text, "line {at}");
                at += 1;
            }
            if sign != "-" {
                new.push_str(text);
            }
        }
        old[at..].iter().for_each(|line| new.push_str(line));
        new
    }

    fn text() -> impl Strategy<Value = String> {
        (prop::collection::vec(0..4_u8, 0..60), any::<bool>()).prop_map(|(lines, newline)| {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let mut text = lines.join("\n");
            if newline {
                text.push('\n');
            }
            text
        })
    }

    proptest! {
        #[test]
        fn a_diff_applied_to_the_old_text_gives_the_new_one(old in text(), new in text()) {
            let diff = unified("a.md", &old, &new);
            prop_assert_eq!(diff.is_empty(), old == new);
            prop_assert_eq!(patched(&old, &diff), new);
        }
    }

    #[test]
    fn a_diff_has_the_form_that_patch_reads() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\ni";
        assert_eq!(
            unified("x/y.md", old, new),
            "--- a/x/y.md\n+++ b/x/y.md\n@@ -2,8 +2,8 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n-i\n+i\n\\ No newline at end of file\n"
        );
        assert_eq!(
            unified("x", "", "b\n"),
            "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+b\n"
        );
    }

    #[test]
    fn texts_that_take_a_comparison_longest_are_compared() {
        let half = MAX_LINES / 2;
        let old: String = (0..half)
            .map(|at| if at % 3 == 0 { "x\n" } else { "\n" })
            .collect();
        let new: String = (0..half)
            .map(|at| if at % 4 == 0 { "x\n" } else { "\n" })
            .collect();
        assert_eq!(count(&old, &new), MAX_LINES);
        assert_eq!(patched(&old, &unified("a", &old, &new)), new);
    }
}
