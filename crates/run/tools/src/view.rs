//! Files of skills as a model sees them: text as text, a part at a time; an image as an
//! image; of other bytes where they are.
//!
//! A text is its author's, byte for byte. That of a skill that did not come with the server
//! is between a line that names the author and one that no author can write: it holds
//! digits of the file's own digest.

use std::time::Duration;

use bytes::Bytes;

use super::{Error, Tools, level};
use lookup::{FilePart, is_address};
use model::{
    Digest, FilePath, Principal, Reference, SkillId, SkillUri, VersionNumber, VersionSelector,
    inert_line,
};

/// Bytes of a text where no number is asked for.
const TEXT_BYTES: u64 = 32 * 1024;
/// Digits of the digest in the line that ends a text. A file that has its own by chance
/// takes 2^64 attempts.
const MARK_CHARS: usize = 16;
/// Bytes of an image at most.
const IMAGE_BYTES: usize = 1024 * 1024;
/// Media types of images that models take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Which file to show, and how much of it.
#[derive(Debug, Clone)]
pub struct View {
    /// The skill.
    pub skill: Reference,
    /// Which version of it.
    pub version: VersionSelector,
    /// Path of the file; in a session, the name of a resource as well.
    pub path: String,
    /// First byte of a text.
    pub offset: u64,
    /// Bytes of a text at most; 0 is 32 KiB.
    pub limit: u64,
    /// The session; empty: none.
    pub session: String,
    /// The caller.
    pub caller: Principal,
    /// How long the caller waits.
    pub timeout: Duration,
}

/// A file as a model sees it.
#[derive(Debug, Clone)]
pub struct Viewed {
    /// Its address. None: a handler made it.
    pub uri: Option<SkillUri>,
    /// Media type.
    pub mime_type: String,
    /// Bytes of all of it.
    pub size: usize,
    /// The version it belongs to.
    pub version: VersionNumber,
    /// The part that is shown.
    pub shown: FileView,
    /// The lines before and behind a text. None: it came with the server, or is no text.
    pub between: Option<(String, String)>,
}

impl Viewed {
    /// Describes what is not shown, and how to read on. None: all of it is shown.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let Self {
            size, mime_type, ..
        } = self;
        match &self.shown {
            FileView::Text { part: (0, end), .. } if end == size => None,
            FileView::Text {
                part: (start, end), ..
            } if end == size => Some(format!("Bytes {start} to {end} of {size}: the end.")),
            FileView::Text {
                part: (start, end), ..
            } => Some(format!(
                "Bytes {start} to {end} of {size}; read on with `offset_bytes` {end}."
            )),
            FileView::Image(_) => None,
            FileView::Link => Some(format!(
                "{size} bytes of {mime_type}, which is no text that could be shown."
            )),
        }
    }
}

/// A file, or a part of it, as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileView {
    /// A text, or the part of it that ends before `next`.
    Text {
        /// The part.
        text: String,
        /// Where it begins and ends.
        part: (usize, usize),
    },
    /// An image.
    Image(Bytes),
    /// Bytes that no model reads.
    Link,
}

impl Tools {
    /// Shows a file, or a resource of a loaded skill.
    ///
    /// # Errors
    /// There is no such skill, version, file or session; the offset is behind the end.
    pub async fn view(&self, mut view: View) -> Result<Viewed, Error> {
        if is_address(&view.path) {
            let uri = self.lookup.address(&view.path)?;
            view.skill = uri.skill;
            if uri.version != VersionSelector::Active {
                view.version = uri.version;
            }
            view.path = uri
                .file
                .as_ref()
                .map_or(FilePath::SKILL_MD, FilePath::as_str)
                .to_owned();
        }
        let found = self.lookup.get(&view.skill, &view.version)?;
        let resources = found.described.version.skill.resource_configs.iter();
        let resource = resources
            .clone()
            .find(|resource| resource.name == view.path.trim());
        let path = match resource {
            Some(resource) if !resource.file.is_empty() => resource.file.clone(),
            Some(resource) if found.described.version.file(&view.path).is_none() => {
                return self.made(&view, &resource.name).await;
            }
            _ => view.path.clone(),
        };
        let part = self
            .lookup
            .file(&view.skill, &view.version, &path, (0, 0), &view.session);
        let FilePart { found, file, bytes } = part.await?;
        let described = &found.described;
        let uri = SkillUri {
            version: view.version.clone(),
            ..SkillUri::of(&described.head.id, &file.path)
        };
        let mime_type = file.path.mime_type().to_owned();
        let size = bytes.len();
        let shown = match std::str::from_utf8(&bytes) {
            Ok(text) => part_of(text, view.offset, view.limit)?,
            _ if IMAGES.contains(&mime_type.as_str()) && size <= IMAGE_BYTES => {
                FileView::Image(bytes)
            }
            _ => FileView::Link,
        };
        let between = between(&described.head.id, file.path.as_str(), file.digest, &shown);
        Ok(Viewed {
            uri: Some(uri),
            mime_type,
            size,
            version: described.version.number,
            shown,
            between,
        })
    }

    /// A resource that a handler makes.
    async fn made(&self, view: &View, resource: &str) -> Result<Viewed, Error> {
        let View {
            session,
            skill,
            caller,
            timeout,
            ..
        } = view;
        let detail = self.detail(session, skill, resource, caller, *timeout);
        let detail = detail.await?;
        let shown = part_of(&detail.content, view.offset, view.limit)?;
        let digest = Digest::of(detail.content.as_bytes());
        Ok(Viewed {
            uri: None,
            mime_type: detail.mime_type,
            size: detail.content.len(),
            version: detail.version,
            between: between(&detail.skill, resource, digest, &shown),
            shown,
        })
    }
}

/// The lines before and behind an author's text.
fn between(id: &SkillId, name: &str, digest: Digest, shown: &FileView) -> Option<(String, String)> {
    if id.is_builtin() || !matches!(shown, FileView::Text { .. }) {
        return None;
    }
    let mark: String = digest.hex().chars().take(MARK_CHARS).collect();
    let whose = format!("`{}` of the skill `{id}`", inert_line(name));
    Some(level::lines_around(&whose, &mark))
}

/// A part of a text: from a character on, and up to the end of a line where there is one
/// in its second half.
fn part_of(text: &str, offset: u64, limit: u64) -> Result<FileView, Error> {
    let size = text.len();
    let start = usize::try_from(offset).ok().filter(|start| *start <= size);
    let start = start.ok_or_else(|| lookup::Error::Parameter {
        field: "offset_bytes",
        message: format!("the file has {size} bytes, none after {offset}"),
    })?;
    let start = text.floor_char_boundary(start);
    let limit = if limit == 0 { TEXT_BYTES } else { limit };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let end = text.ceil_char_boundary(start.saturating_add(limit).min(size));
    let part = text.get(start..end).unwrap_or_default();
    let end_of_line = part.rfind('\n').map(|at| at + 1);
    // A line that ends in the first half would make the part too small.
    let end = match end_of_line.filter(|at| end < size && *at > part.len() / 2) {
        Some(at) => start + at,
        None => end,
    };
    Ok(FileView::Text {
        text: text.get(start..end).unwrap_or_default().to_owned(),
        part: (start, end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_text_end_with_lines_and_make_all_of_it_again() {
        let line = "äöü and some words\n";
        let text = line.repeat(40);
        for limit in [1, 7, 50, 100, 10_000] {
            let (mut whole, mut offset) = (String::new(), 0);
            while offset < text.len() {
                let shown = part_of(&text, offset as u64, limit).expect("a part");
                let FileView::Text {
                    text: part,
                    part: (start, end),
                } = shown
                else {
                    panic!("no text");
                };
                assert_eq!(start, offset);
                assert!(end > start, "a part that goes on");
                assert!(end == text.len() || limit < 50 || part.ends_with('\n'));
                whole.push_str(&part);
                offset = end;
            }
            assert_eq!(whole, text);
        }
        assert!(part_of("abc", 4, 0).is_err());
        let nothing = part_of("", 0, 0).expect("a part");
        assert_eq!(
            nothing,
            FileView::Text {
                text: String::new(),
                part: (0, 0)
            }
        );
    }
}
