//! Texts of tools that lie in one buffer.
//!
//! A composition names hundreds of tools, each in several places. An allocation
//! for each would take longer than all that is thought about them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The text of a tool or of a tool pattern. Cheap to clone.
#[derive(Clone)]
pub struct ToolText {
    /// A `String` in an `Arc`: it is taken as it was filled, and its address is
    /// one word.
    all: Arc<String>,
    begin: usize,
    end: usize,
}

impl ToolText {
    /// These texts, in one buffer.
    pub(super) fn together<'a>(
        texts: impl Iterator<Item = &'a str> + Clone,
    ) -> impl Iterator<Item = Self> {
        let mut all = String::with_capacity(texts.clone().map(str::len).sum());
        all.extend(texts.clone());
        let all = Arc::new(all);
        let mut end = 0;
        texts.map(move |text| {
            let begin = end;
            end += text.len();
            let all = Arc::clone(&all);
            Self { all, begin, end }
        })
    }
}

impl Deref for ToolText {
    type Target = str;

    fn deref(&self) -> &str {
        self.all.get(self.begin..self.end).unwrap_or_default()
    }
}

impl From<&str> for ToolText {
    fn from(text: &str) -> Self {
        Self {
            all: Arc::new(text.to_owned()),
            begin: 0,
            end: text.len(),
        }
    }
}

impl AsRef<str> for ToolText {
    fn as_ref(&self) -> &str {
        self
    }
}

impl PartialEq for ToolText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ToolText {}

impl PartialOrd for ToolText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ToolText {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for ToolText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for ToolText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for ToolText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
