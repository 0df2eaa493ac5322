//! The comments of the proto files, which are the descriptions on every face.

use std::collections::HashMap;

use prost_reflect::{DescriptorPool, FileDescriptor};

/// Comments by file and path of the element.
#[derive(Debug, Default)]
pub(super) struct Comments(HashMap<(String, Vec<i32>), String>);

impl Comments {
    pub(super) fn read(pool: &DescriptorPool) -> Self {
        let mut comments = HashMap::new();
        for file in pool.files() {
            let info = file.file_descriptor_proto().source_code_info.as_ref();
            for location in info.map(|info| &*info.location).unwrap_or_default() {
                if let Some(text) = &location.leading_comments {
                    let index = (file.name().to_owned(), location.path.clone());
                    comments.insert(index, tidy(text));
                }
            }
        }
        Self(comments)
    }

    /// Returns the comment of an element; empty where there is none.
    pub(super) fn of(&self, file: &FileDescriptor, path: &[i32]) -> String {
        let index = (file.name().to_owned(), path.to_vec());
        self.0.get(&index).cloned().unwrap_or_default()
    }
}

/// The lines of a paragraph become one, since they were broken for the width of
/// the proto file; paragraphs stay.
fn tidy(comment: &str) -> String {
    let mut paragraphs = vec![String::new()];
    for line in comment.lines().map(str::trim) {
        match paragraphs.last_mut() {
            Some(last) if !line.is_empty() => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// The first sentence of a comment.
pub(super) fn summary(comment: &str) -> &str {
    let paragraph = comment.split("\n\n").next().unwrap_or_default();
    match paragraph.find(". ") {
        Some(end) => paragraph.get(..=end).unwrap_or(paragraph),
        None => paragraph,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_told_by_paragraphs() {
        let text = " Lists skills at level 1,\n in the order of their ids. All.\n\n Filters apply\n before paging.\n";
        let tidied = tidy(text);
        assert_eq!(
            tidied,
            "Lists skills at level 1, in the order of their ids. All.\n\nFilters apply before paging."
        );
        assert_eq!(
            summary(&tidied),
            "Lists skills at level 1, in the order of their ids."
        );
    }
}
