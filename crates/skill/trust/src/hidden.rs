//! Characters that nobody sees: what they say, and whether somebody meant them.

use model::{Invisible, invisible};

/// Characters of a run that carries something.
const MIN_RUN_CHARS: usize = 8;

/// What is hidden in a text by characters.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// Texts in Unicode Tags or variation selectors, each with its line.
    pub(crate) texts: Vec<(u32, String)>,
    /// The first place of each rule: id of the rule, line, how many.
    pub(crate) findings: Vec<(&'static str, u32, usize)>,
}

/// Looks for them.
pub(crate) fn hidden(text: &str, is_code: bool) -> Hidden {
    let mut found = Hidden::default();
    let mut said = String::new();
    let mut bytes: Vec<u8> = Vec::new();
    let mut run = 0_usize;
    let mut next = 0;
    let mut line = 1_u32;
    let mut counted = 0;
    let flush =
        |said: &mut String, bytes: &mut Vec<u8>, line: u32, texts: &mut Vec<(u32, String)>| {
            if said.len() >= 4 {
                texts.push((line, std::mem::take(said)));
            }
            if bytes.len() >= 4
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                texts.push((line, text.to_owned()));
            }
            said.clear();
            bytes.clear();
        };
    for (at, c, kind) in invisible(text) {
        let between = text.get(counted..at).unwrap_or_default();
        let ends = between.bytes().filter(|byte| *byte == b'\n').count();
        line = line.saturating_add(u32::try_from(ends).unwrap_or(u32::MAX));
        counted = at;
        if at != next {
            flush(&mut said, &mut bytes, line, &mut found.texts);
            run = 0;
        }
        next = at + c.len_utf8();
        run += 1;
        match c {
            '\u{E0020}'..='\u{E007E}' => said.extend(char::from_u32(u32::from(c) - 0xE0000)),
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
    flush(&mut said, &mut bytes, line, &mut found.texts);
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
