//! Invisible characters: the text that they carry, and whether they are deliberate.

use model::{Invisible, invisible};

/// The fewest characters of a run that carries something.
const MIN_RUN_CHARS: usize = 8;

/// The text that invisible characters hide.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// Texts in Unicode Tags or variation selectors, each with its line.
    pub(crate) texts: Vec<(u32, String)>,
    /// The first occurrence by each rule: id of the rule, line, count.
    pub(crate) findings: Vec<(&'static str, u32, usize)>,
}

/// Finds invisible characters.
pub(crate) fn hidden(text: &str, is_code: bool) -> Hidden {
    let mut found = Hidden::default();
    let mut tags = String::new();
    let mut bytes: Vec<u8> = Vec::new();
    let mut run = 0_usize;
    let mut next = 0;
    let mut line = 1_u32;
    // The line that the run began in: the next character may be lines below.
    let mut run_line = 1;
    let mut counted = 0;
    let flush =
        |tags: &mut String, bytes: &mut Vec<u8>, line: u32, texts: &mut Vec<(u32, String)>| {
            if tags.len() >= 4 {
                texts.push((line, std::mem::take(tags)));
            }
            if bytes.len() >= 4
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                texts.push((line, text.to_owned()));
            }
            tags.clear();
            bytes.clear();
        };
    for (at, c, kind) in invisible(text) {
        let between = text.get(counted..at).unwrap_or_default();
        let ends = between.bytes().filter(|byte| *byte == b'\n').count();
        line = line.saturating_add(u32::try_from(ends).unwrap_or(u32::MAX));
        counted = at;
        if at != next {
            flush(&mut tags, &mut bytes, run_line, &mut found.texts);
            run = 0;
            run_line = line;
        }
        next = at + c.len_utf8();
        run += 1;
        match c {
            // Tags mirror ASCII: a model reads them, a person sees nothing.
            '\u{E0020}'..='\u{E007E}' => tags.extend(char::from_u32(u32::from(c) - 0xE0000)),
            // 256 variation selectors can carry any bytes behind a single visible character.
            '\u{FE00}'..='\u{FE0F}' => bytes.extend(u8::try_from(u32::from(c) - 0xFE00)),
            '\u{E0100}'..='\u{E01EF}' => bytes.extend(u8::try_from(u32::from(c) - 0xE0100 + 16)),
            _ => {}
        }
        match kind {
            Invisible::Payload => found.note("hidden-text", line),
            Invisible::Bidi if is_code => found.note("reordered-text", line),
            Invisible::ZeroWidth if run == MIN_RUN_CHARS => found.note("hidden-text", line),
            Invisible::ZeroWidth | Invisible::Control | Invisible::Bidi => {
                found.note("invisible-characters", line);
            }
        }
    }
    flush(&mut tags, &mut bytes, run_line, &mut found.texts);
    found
}

impl Hidden {
    fn note(&mut self, rule: &'static str, line: u32) {
        match self.findings.iter_mut().find(|found| found.0 == rule) {
            Some(found) => found.2 += 1,
            None => self.findings.push((rule, line, 1)),
        }
    }
}
