//! Path templates of `google.api.http`, and the paths they are compared with.
//!
//! A path is split at `/` before its segments are decoded, so that `a%2Fb` is one
//! segment with a slash in it: an id of three parts can stand where one segment is
//! asked for. A custom verb such as `:activate` is what follows the last `:` of the
//! last segment; an encoded colon is no verb.

use percent_encoding::percent_decode_str;

use super::Refusal;
use model::{Code, Failure};

/// A template, such as `/api/v1/skills/{skill_id=*/*/*}/files/{path=**}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its segments, in their order.
    pub segments: Vec<Segment>,
    /// What follows the last segment after a colon.
    pub verb: Option<String>,
    /// Its variables, in their order.
    pub variables: Vec<Variable>,
}

/// One segment. In the order in which one beats another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// This text.
    Literal(String),
    /// Any text that is not empty: `*`.
    One,
    /// All that is left: `**`.
    Rest,
}

/// A variable, and the segments it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name: the field of the request that it fills.
    pub name: String,
    /// The first segment that it takes.
    pub from: usize,
    /// The first one that it does not.
    pub to: usize,
}

/// A template cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the route `{0}` cannot be read")]
pub struct TemplateError(String);

impl TemplateError {
    /// Creates the error for a route that cannot be read.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// It is no template, or has segments after `**`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::read(text).ok_or_else(|| TemplateError::of(text))
    }

    fn read(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('/')?;
        let mut verb = None;
        if let Some((before, after)) = rest.rsplit_once(':')
            && !after.contains(['/', '}'])
        {
            (rest, verb) = (before, Some(after.to_owned()));
        }
        let mut template = Self {
            segments: Vec::new(),
            verb,
            variables: Vec::new(),
        };
        loop {
            let from = template.segments.len();
            let after = if let Some(inside) = rest.strip_prefix('{') {
                let (variable, after) = inside.split_once('}')?;
                let (name, pattern) = variable.split_once('=').unwrap_or((variable, "*"));
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if name.is_empty() || !name.chars().all(plain) {
                    return None;
                }
                let pattern = pattern.split('/').map(segment);
                template
                    .segments
                    .extend(pattern.collect::<Option<Vec<_>>>()?);
                template.variables.push(Variable {
                    name: name.to_owned(),
                    from,
                    to: template.segments.len(),
                });
                after
            } else {
                let end = rest.find('/').unwrap_or(rest.len());
                let (text, after) = rest.split_at_checked(end)?;
                template.segments.push(segment(text)?);
                after
            };
            match after.strip_prefix('/') {
                Some(next) => rest = next,
                None if after.is_empty() => break,
                None => return None,
            }
        }
        let (_, before) = template.segments.split_last()?;
        (!before.contains(&Segment::Rest)).then_some(template)
    }

    /// Returns whether the path is one of this template.
    #[must_use]
    pub fn takes(&self, path: &UrlPath) -> bool {
        let Some(segments) = path.segments(self.verb.as_deref()) else {
            return false;
        };
        let open = self.segments.last() == Some(&Segment::Rest);
        let enough = if open {
            segments.len() >= self.segments.len()
        } else {
            segments.len() == self.segments.len()
        };
        enough
            && self
                .segments
                .iter()
                .zip(&segments)
                .all(|(segment, text)| match segment {
                    Segment::Literal(literal) => literal == text,
                    Segment::One => !text.is_empty(),
                    // `files/` names the folder, not a file in it.
                    Segment::Rest => segments.last().is_some_and(|last| !last.is_empty()),
                })
    }

    /// Returns the values of the variables in a path that the template takes.
    #[must_use]
    pub fn values(&self, path: &UrlPath) -> Vec<(String, String)> {
        let segments = path.segments(self.verb.as_deref()).unwrap_or_default();
        let values = self.variables.iter().map(|variable| {
            let open = self.segments.get(variable.to - 1) == Some(&Segment::Rest);
            let to = if open { segments.len() } else { variable.to };
            let taken = segments.get(variable.from..to).unwrap_or_default();
            (variable.name.clone(), taken.join("/"))
        });
        values.collect()
    }
}

fn segment(text: &str) -> Option<Segment> {
    match text {
        "*" => Some(Segment::One),
        "**" => Some(Segment::Rest),
        "" => None,
        text if text.contains(['{', '}', '*', ':']) => None,
        text => Some(Segment::Literal(text.to_owned())),
    }
}

/// The path of a request, split and decoded.
#[derive(Debug)]
pub struct UrlPath {
    segments: Vec<String>,
    /// The last segment without its verb, and the verb.
    verb: Option<(String, String)>,
}

impl UrlPath {
    /// Splits and decodes a path.
    ///
    /// # Errors
    /// Its percent-encoding is broken, or no UTF-8.
    pub fn parse(path: &str) -> Result<Self, Refusal> {
        let raw: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let verb = raw.last().and_then(|last| last.rsplit_once(':'));
        let verb = match verb {
            Some((last, verb)) => Some((decode_part(last, "path")?, decode_part(verb, "path")?)),
            None => None,
        };
        let segments = raw.iter().map(|segment| decode_part(segment, "path"));
        Ok(Self {
            segments: segments.collect::<Result<_, Refusal>>()?,
            verb,
        })
    }

    /// The segments, the last one without the verb of a template. None: the path
    /// has another verb.
    fn segments(&self, verb: Option<&str>) -> Option<Vec<&str>> {
        let mut segments: Vec<_> = self.segments.iter().map(String::as_str).collect();
        if let Some(verb) = verb {
            let (last, _) = self.verb.as_ref().filter(|(_, own)| own == verb)?;
            segments.pop();
            segments.push(last);
        }
        Some(segments)
    }
}

/// Decodes a percent-encoded part of a URL.
///
/// # Errors
/// A `%` is not followed by two hex digits, or the bytes are no UTF-8.
pub fn decode_part(text: &str, part: &str) -> Result<String, Refusal> {
    // `percent_decode_str` passes over a broken escape and leaves it as it is.
    let mut escapes = text.split('%').skip(1);
    let whole = escapes.all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let decoded = whole.then(|| percent_decode_str(text).decode_utf8().ok());
    match decoded.flatten() {
        Some(text) => Ok(text.into_owned()),
        None => Err(Failure::new(
            Code::InvalidParameter,
            format!("The {part} of the URL is not percent-encoded UTF-8"),
        )
        .suggest("Write each byte of UTF-8 that a URL cannot hold as % and two hex digits")
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, path: &str) -> Option<Vec<String>> {
        let template = Template::parse(template).expect("a template");
        let path = UrlPath::parse(path).expect("a path");
        let values = || {
            template
                .values(&path)
                .into_iter()
                .map(|(n, v)| format!("{n}={v}"))
        };
        template.takes(&path).then(|| values().collect())
    }

    fn takes(template: &str, path: &str, expected: &[&str]) {
        let found = values(template, path);
        let found = found.unwrap_or_else(|| panic!("{template} does not take {path}"));
        assert_eq!(found, expected, "{template} {path}");
    }

    #[test]
    fn variables_take_the_segments_of_their_pattern() {
        takes("/a", "/a", &[]);
        takes("/a/{x}", "/a/b", &["x=b"]);
        takes("/a/{x=*/*/*}", "/a/b/c/d", &["x=b/c/d"]);
        takes("/a/{x=*/*}/c/{y}", "/a/1/2/c/3", &["x=1/2", "y=3"]);
        takes("/a/{x=**}", "/a/b/c d/e.md", &["x=b/c d/e.md"]);
        takes("/a/{x}/f/{y=**}", "/a/b/f/c//d", &["x=b", "y=c//d"]);
        takes("/a/{x=b/*}", "/a/b/c", &["x=b/c"]);
        takes("/a/*", "/a/b", &[]);
    }

    #[test]
    fn a_segment_is_decoded_after_the_path_was_split() {
        takes("/a/{x}", "/a/b%2Fc%2fd", &["x=b/c/d"]);
        takes("/a/{x}", "/a/%C3%A9%20+", &["x=é +"]);
        takes("/a/{x}", "/%61/b", &["x=b"]);
        for bad in ["/a/%ff", "/a/%", "/a/%4", "/a/%zz", "/a/%c3%28"] {
            let refused = UrlPath::parse(bad).expect_err("a refusal");
            assert_eq!(refused.code, "INVALID_PARAMETER", "{bad}");
        }
    }

    #[test]
    fn a_verb_follows_the_last_colon_that_is_not_encoded() {
        takes("/skills:activate", "/skills:activate", &[]);
        takes("/s/{x}:undo", "/s/a:b:undo", &["x=a:b"]);
        takes("/s/{x}", "/s/a:b", &["x=a:b"]);
        for (template, path) in [
            ("/skills:activate", "/skills"),
            ("/skills:activate", "/skills%3Aactivate"),
            ("/skills:activate", "/skills:activate/x"),
            ("/skills", "/skills:activate"),
            ("/s/{x}:undo", "/s/:undo"),
        ] {
            assert_eq!(values(template, path), None, "{template} {path}");
        }
    }

    #[test]
    fn a_path_with_other_segments_is_not_taken() {
        for (template, path) in [
            ("/a/{x}", "/a"),
            ("/a/{x}", "/a/"),
            ("/a/{x}", "/a/b/c"),
            ("/a/{x}", "/b/c"),
            ("/a/{x=*/*/*}", "/a/b//d"),
            ("/a/{x=**}", "/a"),
            ("/a/{x=**}", "/a/"),
            ("/a", "/A"),
            ("/a", "*"),
        ] {
            assert_eq!(values(template, path), None, "{template} {path}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in [
            "",
            "a",
            "/",
            "/a//b",
            "/{x",
            "/{}",
            "/{x=**}/b",
            "/{x.y}",
            "/a*",
            "/{x}b",
        ] {
            assert!(Template::parse(text).is_err(), "{text:?} was read");
        }
    }
}
