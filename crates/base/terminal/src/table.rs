//! Tables.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use model::printable;

use crate::style::{Style, split};

/// Columns of the terminal between two columns of a table.
const GAP_WIDTH: usize = 2;
/// The least width of a column that is cut, in columns of the terminal.
const MIN_COLUMN_WIDTH: usize = 8;

/// Rows below a header.
#[derive(Debug)]
pub struct Table {
    header: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    wraps: bool,
}

/// A text of one line, which has one style.
#[derive(Debug)]
struct Cell {
    style: Option<Style>,
    text: String,
}

impl Cell {
    fn new(text: &str) -> Self {
        let (style, text) = split(text);
        let text = text.replace(['\n', '\r', '\t'], " ");
        Self {
            style,
            text: printable(&text).into_owned(),
        }
    }

    fn width(&self) -> usize {
        self.text.width()
    }
}

impl Table {
    /// An empty table. Each column has a name, by which it is looked up.
    #[must_use]
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|name| Cell::new(name)).collect(),
            rows: Vec::new(),
            wraps: false,
        }
    }

    /// The same, in which a text that is too wide goes on below, between its words. In
    /// others it is cut, so that a row is a line.
    #[must_use]
    pub fn wrapped(mut self) -> Self {
        self.wraps = true;
        self
    }

    /// Adds a row: a text for each column. The style of a cell is the first that is
    /// written in it.
    pub fn add_row<C: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter().map(|cell| Cell::new(cell.as_ref()));
        self.rows.push(cells.collect());
    }

    /// The table of a person: with its header, above a `rule` if there is to be one, in
    /// `width` columns of a terminal where that is possible, else as wide as its texts.
    #[must_use]
    pub fn render(&self, width: Option<usize>, rule: bool) -> String {
        let widths = self.widths(width);
        let mut lines = Vec::new();
        self.push(&self.header, &widths, &mut lines);
        if rule {
            let whole = widths.iter().sum::<usize>() + GAP_WIDTH * widths.len().saturating_sub(1);
            lines.push("─".repeat(whole));
        }
        for row in &self.rows {
            self.push(row, &widths, &mut lines);
        }
        lines.join("\n")
    }

    /// A line for each row, with a tab between its texts; without header and styles.
    #[must_use]
    pub fn tsv(&self) -> String {
        let row = |row: &Vec<Cell>| {
            let texts: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
            texts.join("\t")
        };
        self.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// A line for each row that has a first column: that.
    #[must_use]
    pub fn ids(&self) -> String {
        let ids = self.rows.iter().filter_map(|row| row.first());
        let ids = ids.map(|cell| cell.text.as_str());
        ids.filter(|id| !id.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// It has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How wide each column is: as its widest text, and where that is too much the widest
    /// columns are less, all but the first.
    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(Cell::width).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let Some(whole) = width else { return widths };
        let room = whole.saturating_sub(GAP_WIDTH * widths.len().saturating_sub(1));
        // Capped first, so that a text of a megabyte is not shortened a million times below.
        for width in widths.iter_mut().skip(1) {
            *width = (*width).min(whole);
        }
        while widths.iter().sum::<usize>() > room
            && let Some(widest) = widths.iter_mut().skip(1).max()
            && *widest > MIN_COLUMN_WIDTH
        {
            // Always the widest by one, so that they end up equally wide.
            *widest -= 1;
        }
        widths
    }

    fn push(&self, row: &[Cell], widths: &[usize], lines: &mut Vec<String>) {
        let texts = row.iter().zip(widths).enumerate();
        let texts = texts.map(|(at, (cell, width))| match (at, self.wraps) {
            (0, _) => vec![cell.text.clone()],
            (_, true) => wrapped(&cell.text, *width),
            (_, false) => vec![cut(&cell.text, *width)],
        });
        let texts: Vec<Vec<String>> = texts.collect();
        let height = texts.iter().map(Vec::len).max().unwrap_or_default();
        for line in 0..height {
            let mut written = String::new();
            let mut blank = 0;
            for ((cell, texts), width) in row.iter().zip(&texts).zip(widths) {
                let text = texts.get(line).map_or("", String::as_str);
                if !text.is_empty() {
                    written.push_str(&" ".repeat(blank));
                    blank = 0;
                    match cell.style {
                        Some(style) => {
                            written.extend([&style.to_string(), text, &format!("{style:#}")]);
                        }
                        None => written.push_str(text),
                    }
                }
                blank += width.saturating_sub(text.width()) + GAP_WIDTH;
            }
            lines.push(written);
        }
    }
}

/// The beginning of a text that is no wider.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut room = width.saturating_sub(1);
    for cluster in text.graphemes(true) {
        let Some(left) = room.checked_sub(cluster.width()) else {
            break;
        };
        room = left;
        kept.push_str(cluster);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// A text in lines that are no wider, but for a word that is.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let wide = word.width();
        if used > 0 && used + 1 + wide > width {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += wide;
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{BAD, GOOD, painted};

    fn skills() -> Table {
        let mut table = Table::new(&["id", "version", "description"]);
        table.add_row([
            "builtin/repertoire/specification-engine",
            "1.0.0",
            "Write specifications that a program can check",
        ]);
        table.add_row(["local/global/日本語", "", "Emoji 👩‍💻 and\ttabs\nand lines"]);
        table
    }

    #[test]
    fn a_row_is_a_line_of_a_terminal_and_its_id_is_whole() {
        assert_eq!(
            skills().render(Some(70), true),
            "id                                       version  description\n\
             ──────────────────────────────────────────────────────────────────────\n\
             builtin/repertoire/specification-engine  1.0.0    Write specification…\n\
             local/global/日本語                               Emoji 👩‍💻 and tabs a…"
        );
    }

    #[test]
    fn an_id_is_whole_where_the_terminal_is_narrower() {
        assert_eq!(
            skills().render(Some(30), false),
            "id                                       version  descrip…\n\
             builtin/repertoire/specification-engine  1.0.0    Write s…\n\
             local/global/日本語                               Emoji…"
        );
    }

    #[test]
    fn nothing_is_cut_where_no_terminal_reads() {
        let table = skills();
        assert_eq!(
            table.render(None, false),
            "id                                       version  description\n\
             builtin/repertoire/specification-engine  1.0.0    Write specifications that a program can check\n\
             local/global/日本語                               Emoji 👩‍💻 and tabs and lines"
        );
        assert_eq!(
            table.tsv(),
            "builtin/repertoire/specification-engine\t1.0.0\tWrite specifications that a program can check\n\
             local/global/日本語\t\tEmoji 👩‍💻 and tabs and lines"
        );
        assert_eq!(
            table.ids(),
            "builtin/repertoire/specification-engine\nlocal/global/日本語"
        );
    }

    #[test]
    fn what_is_not_to_be_cut_goes_on_below() {
        let mut table = Table::new(&["field", "value"]).wrapped();
        table.add_row([
            "description",
            "Write specifications that a program can check",
        ]);
        table.add_row(["digest", "sha256:0123456789abcdef0123456789abcdef"]);
        assert_eq!(
            table.render(Some(40), false),
            "field        value\n\
             description  Write specifications that a\n\
             \x20            program can check\n\
             digest       sha256:0123456789abcdef0123456789abcdef"
        );
    }

    #[test]
    fn a_style_takes_no_room_and_ends_with_its_cell() {
        let mut table = Table::new(&["tool", "state", "what"]);
        table.add_row(["a", &format!("{GOOD}unlocked{GOOD:#}"), "b"]);
        let shown = painted(&table.render(Some(80), false));
        assert_eq!(
            shown,
            "tool  state     what\na     \u{1b}[32munlocked\u{1b}[0m  b"
        );
        assert_eq!(table.tsv(), "a\tunlocked\tb");
        table.add_row(["c", &format!("{GOOD}a long text{GOOD:#}"), "d"]);
        let shown = painted(&table.render(Some(20), false));
        assert!(
            shown.ends_with("c     \u{1b}[32ma long…\u{1b}[0m   d"),
            "{shown:?}"
        );
    }

    #[test]
    fn the_spaces_between_words_count_where_a_text_goes_on_below() {
        assert_eq!(wrapped("a b c d", 5), ["a b c", "d"]);
        assert_eq!(wrapped("a b c d", 7), ["a b c d"]);
        assert_eq!(wrapped("ab cd", 4), ["ab", "cd"]);
        assert_eq!(wrapped("wider than", 2), ["wider", "than"]);
    }

    #[test]
    fn a_row_without_a_first_column_has_no_id() {
        let mut table = Table::new(&["id", "state"]);
        assert!(table.is_empty());
        table.add_row(["one", "a"]);
        assert!(!table.is_empty());
        table.add_row(["", "b"]);
        table.add_row([""; 0]);
        table.add_row(["two", ""]);
        assert_eq!(table.ids(), "one\ntwo");
    }

    #[test]
    fn a_line_end_in_a_cell_is_a_space_and_the_first_style_is_that_of_all_of_it() {
        let mut table = Table::new(&["id", "what"]);
        table.add_row(["a\rb", &format!("{BAD}no{BAD:#}\r\n{GOOD}yes{GOOD:#}")]);
        assert_eq!(table.tsv(), "a b\tno  yes");
        assert_eq!(
            painted(&table.render(None, false)),
            "id   what\na b  \u{1b}[31mno  yes\u{1b}[0m"
        );
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal_unless_its_id_is(
            cells in proptest::collection::vec(".{0,40}|[a日👩\u{301} ]{0,40}", 3..30),
            width in 40_usize..120,
        ) {
            let mut table = Table::new(&["a", "b", "c"]);
            for row in cells.chunks_exact(3) {
                table.add_row(row);
            }
            let first = table.rows.iter().map(|row| row[0].width()).max().unwrap_or_default();
            let limit = width.max(first.max(1) + 2 * (GAP_WIDTH + MIN_COLUMN_WIDTH));
            let shown = table.render(Some(width), true);
            prop_assert_eq!(shown.lines().count(), table.rows.len() + 2);
            for (line, row) in shown.lines().skip(2).zip(&table.rows) {
                prop_assert!(line.width() <= limit, "{} of {limit}: {line:?}", line.width());
                prop_assert!(line.starts_with(row[0].text.trim_end()), "{line:?}");
            }
        }
    }
}
