//! Reads front matter key by key: what is missing, wrong, too large or unknown is a problem
//! with a rule and a line.

use std::cell::RefCell;

use model::{Problem, Severity, shown};
use serde_json::{Map, Value};
use skill_md::Document;

use crate::grading::below;

/// A file whose front matter is read, and its problems.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: String,
    pub(super) document: Document,
    problems: RefCell<Vec<Problem>>,
}

impl Source {
    pub(super) fn new(file: String, document: Document) -> Self {
        Self {
            file,
            document,
            problems: RefCell::default(),
        }
    }

    /// The outermost keys; `what` is their name in rules.
    pub(super) fn keys(&self, what: &'static str) -> Keys<'_> {
        Keys::new(self, what, String::new(), &self.document.front_matter)
    }

    pub(super) fn push(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    pub(super) fn error(&self, rule: &str, pointer: &str, message: impl Into<String>) {
        let line = self.document.line(pointer);
        self.push(Problem::error(rule, &self.file, line, message));
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    pub(super) fn is_refused(&self) -> bool {
        let problems = self.problems.borrow();
        problems.iter().any(|p| p.severity == Severity::Error)
    }
}

/// A map of the front matter.
#[derive(Debug)]
pub(super) struct Keys<'s> {
    pub(super) source: &'s Source,
    what: &'static str,
    at: String,
    map: &'s Map<String, Value>,
    // Every key that was asked for: `end` reports the others.
    known: RefCell<Vec<&'static str>>,
}

impl<'s> Keys<'s> {
    fn new(
        source: &'s Source,
        what: &'static str,
        at: String,
        map: &'s Map<String, Value>,
    ) -> Self {
        Self {
            source,
            what,
            at,
            map,
            known: RefCell::default(),
        }
    }

    /// The line on which this map begins.
    pub(super) fn line(&self) -> usize {
        self.source.document.line(&self.at)
    }

    /// Reports the value of a key, by a rule such as `case-weight-invalid`.
    pub(super) fn wrong(&self, key: &str, how: &str, message: impl Into<String>) {
        let rule = format!("{}-{}-{how}", self.what, key.replace('_', "-"));
        let pointer = format!("{}/{key}", self.at);
        self.source.error(&rule, &pointer, message);
    }

    /// Reports the map itself.
    pub(super) fn wrong_here(&self, how: &str, message: impl Into<String>) {
        let rule = format!("{}-{how}", self.what);
        self.source.error(&rule, &self.at, message);
    }

    /// The value of a key, if there is one.
    pub(super) fn value(&self, key: &'static str) -> Option<&'s Value> {
        self.known.borrow_mut().push(key);
        // YAML reads a key without a value as null.
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    fn required<T: Default>(&self, key: &'static str, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            // A value that is there and wrong was reported already.
            if !self.has(key) {
                self.wrong(key, "missing", format!("There is no `{key}`"));
            }
            T::default()
        })
    }

    /// A text, or what YAML reads as a number or a flag.
    pub(super) fn text(&self, key: &'static str, max: usize) -> Option<String> {
        let text = match self.value(key)? {
            Value::String(text) => text.trim_end_matches('\n').to_owned(),
            value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
            _ => {
                self.wrong(key, "invalid", format!("`{key}` must be text"));
                return None;
            }
        };
        self.within(key, text, max)
    }

    /// A text to the letter, with the end of its last line.
    pub(super) fn exact_text(&self, key: &'static str, max: usize) -> Option<String> {
        match self.value(key) {
            Some(Value::String(text)) => self.within(key, text.clone(), max),
            _ => self.text(key, max),
        }
    }

    fn within(&self, key: &str, text: String, max: usize) -> Option<String> {
        let chars = text.chars().count();
        if chars > max {
            let message = format!("`{key}` has {chars} characters; at most {max} are taken");
            self.wrong(key, "too-long", message);
            return None;
        }
        // Texts reach terminals and logs, where an escape sequence could forge what is shown.
        if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
            let message = format!("`{key}` has a control character");
            self.wrong(key, "invalid", message);
            return None;
        }
        Some(text)
    }

    /// A text that must be there and say something.
    pub(super) fn required_text(&self, key: &'static str, max: usize) -> String {
        let text = self.text(key, max);
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            self.wrong(key, "missing", format!("`{key}` is empty"));
        }
        self.required(key, text)
    }

    /// An expression: a text, or any other value as JSON writes it.
    pub(super) fn expression(&self, key: &'static str, max: usize) -> Option<String> {
        // `expected: null` is one too, unlike a key without a value anywhere else.
        self.known.borrow_mut().push(key);
        match self.map.get(key)? {
            Value::String(_) => self.text(key, max),
            value => self.within(key, value.to_string(), max),
        }
    }

    /// Any value, `null` too.
    pub(super) fn any(&self, key: &'static str) -> Option<&'s Value> {
        self.known.borrow_mut().push(key);
        self.map.get(key)
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let flag = self.value(key)?.as_bool();
        if flag.is_none() {
            self.wrong(key, "invalid", format!("`{key}` must be true or false"));
        }
        flag
    }

    pub(super) fn number(&self, key: &'static str, min: f64, max: f64) -> Option<f64> {
        let number = self.value(key)?.as_f64();
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let message = format!("`{key}` must be a number from {min} to {max}");
            self.wrong(key, "invalid", message);
        }
        number
    }

    pub(super) fn required_number(&self, key: &'static str, min: f64, max: f64) -> f64 {
        let number = self.number(key, min, max);
        self.required(key, number)
    }

    pub(super) fn whole(&self, key: &'static str, min: u64, max: u64) -> Option<u64> {
        let number = self.value(key)?.as_u64();
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let message = format!("`{key}` must be a whole number from {min} to {max}");
            self.wrong(key, "invalid", message);
        }
        number
    }

    pub(super) fn required_whole(&self, key: &'static str, min: u64, max: u64) -> u64 {
        let number = self.whole(key, min, max);
        self.required(key, number)
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let given = self.text(key, 200)?;
        let found = choices.iter().find(|(word, _)| *word == given);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let given = shown(&given, 40);
            let message = format!("`{key}` is `{given}`, not one of {}", words.join(", "));
            self.wrong(key, "invalid", message);
        }
        found.map(|(_, value)| *value)
    }

    /// One of some words, which must be there.
    pub(super) fn required_choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let choice = self.choice(key, choices);
        if choice.is_none() {
            self.required::<()>(key, None);
        }
        choice
    }

    /// The entries of a list, each read by `read`; `of` says what they must be.
    fn entries<T>(
        &self,
        key: &'static str,
        max: usize,
        of: &str,
        read: impl Fn(&'s Value) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let list = value.as_array();
        match list.and_then(|list| list.iter().map(read).collect::<Option<Vec<T>>>()) {
            None => self.wrong(key, "invalid", format!("`{key}` must be a list of {of}")),
            Some(entries) if entries.len() > max => {
                let count = entries.len();
                let message = format!("`{key}` has {count} entries; at most {max} are taken");
                self.wrong(key, "too-many", message);
            }
            Some(entries) => return entries,
        }
        Vec::new()
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &'static str, max: usize, max_chars: usize) -> Vec<String> {
        let texts = self.entries(key, max, "texts", Value::as_str).into_iter();
        texts
            .filter_map(|text| {
                if text.trim().is_empty() {
                    self.wrong(key, "invalid", format!("`{key}` has an empty entry"));
                }
                self.within(key, text.trim_end_matches('\n').to_owned(), max_chars)
            })
            .collect()
    }

    /// A list of ids, none twice.
    pub(super) fn ids(&self, key: &'static str, max: usize) -> Vec<String> {
        let ids = self.texts(key, max, super::MAX_ID_CHARS);
        let mut seen = std::collections::BTreeSet::new();
        for id in &ids {
            if let Err(reason) = super::check_id(id) {
                let message = format!("`{}` is no id: {reason}", shown(id, 80));
                self.wrong(key, "invalid", message);
            } else if !seen.insert(id) {
                self.wrong(key, "duplicate", format!("`{id}` is in `{key}` twice"));
            }
        }
        ids
    }

    /// A map inside this one.
    pub(super) fn keys(&self, key: &'static str, what: &'static str) -> Option<Keys<'s>> {
        let Some(map) = self.value(key)?.as_object() else {
            let message = format!("`{key}` must be lines of `key: value`");
            self.wrong(key, "invalid", message);
            return None;
        };
        let at = format!("{}/{key}", self.at);
        Some(Keys::new(self.source, what, at, map))
    }

    /// A list of maps.
    pub(super) fn list(&self, key: &'static str, what: &'static str, max: usize) -> Vec<Keys<'s>> {
        let of = "which each entry has `key: value`";
        let maps = self.entries(key, max, of, Value::as_object).into_iter();
        maps.enumerate()
            .map(|(index, map)| {
                let at = format!("{}/{key}/{index}", self.at);
                Keys::new(self.source, what, at, map)
            })
            .collect()
    }

    /// Reports the keys that nothing asked for.
    pub(super) fn end(&self) {
        let known = self.known.borrow();
        for key in self.map.keys() {
            if !known.iter().any(|known| known == key) {
                let rule = format!("{}-unknown-key", self.what);
                let pointer = below(&self.at, key);
                let mut can: Vec<&str> = known.clone();
                can.sort_unstable();
                can.dedup();
                let message = format!(
                    "`{}` is not known here; there can be {}",
                    shown(key, 60),
                    can.join(", ")
                );
                self.source.error(&rule, &pointer, message);
            }
        }
    }
}
