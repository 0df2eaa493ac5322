//! Addresses of skills and their files: `skill://…`.
//!
//! ```text
//! skill://refunds                              a short name
//! skill://refunds/SKILL.md                     the same
//! skill://github/acme/refunds                  a skill: its SKILL.md
//! skill://github/acme/refunds/references/a.md  a file of it
//! skill://github/acme/@1.2.0/refunds/SKILL.md  a version (a semantic one, or a number)
//! ```
//!
//! The version comes before the name, so that the last segment of a skill's
//! path stays its name, as the MCP Skills extension demands.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{FilePath, Reference, SkillId, VersionSelector, shown};

/// The characters that a path segment may have unescaped (RFC 3986, `unreserved` and a few
/// more).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    // A path is encoded as a whole, and keeps its separators.
    .remove(b'/')
    .remove(b'+')
    .remove(b'@');

/// The address of a file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillUri {
    /// The skill.
    pub skill: Reference,
    /// The version.
    pub version: VersionSelector,
    /// The file; none is the skill's instructions.
    pub file: Option<FilePath>,
}

impl SkillUri {
    /// The canonical address of a file of a skill, without a version.
    #[must_use]
    pub fn of(id: &SkillId, file: &FilePath) -> Self {
        Self {
            skill: Reference::Id(id.clone()),
            version: VersionSelector::Active,
            file: Some(file.clone()),
        }
    }

    /// Returns the part of a text that should be an address that a message may repeat: nothing
    /// behind `?` or `#`, and no user, since these are where callers put credentials.
    #[must_use]
    pub fn without_credentials(text: &str) -> &str {
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let (before, _) = text.split_at_checked(end).unwrap_or((text, ""));
        let authority = before.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = before.split_at_checked(authority).unwrap_or(("", before));
        let first = rest.split('/').next().unwrap_or_default();
        if first.contains('@') { scheme } else { before }
    }

    /// A path as it is written in an address.
    #[must_use]
    pub fn encoded(path: &str) -> impl fmt::Display {
        utf8_percent_encode(path, SEGMENT)
    }
}

impl fmt::Display for SkillUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("skill://")?;
        match (&self.skill, &self.version) {
            (Reference::Id(id), VersionSelector::Active) => f.write_str(id.as_str())?,
            (Reference::Id(id), version) => {
                write!(
                    f,
                    "{}/{}/@{version}/{}",
                    id.source(),
                    id.author(),
                    id.slug()
                )?;
            }
            (Reference::Name(name), _) => utf8_percent_encode(name, SEGMENT).fmt(f)?,
        }
        if let Some(file) = &self.file {
            write!(f, "/{}", Self::encoded(file.as_str()))?;
        }
        Ok(())
    }
}

/// A text is not the address of a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{uri}` is not a skill URI: {reason}")]
pub struct SkillUriError {
    uri: String,
    reason: String,
}

impl FromStr for SkillUri {
    type Err = SkillUriError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| SkillUriError {
            uri: shown(Self::without_credentials(text), 200),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<SkillUri, String> {
    let rest = text
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("skill"))
        .map(|(_, rest)| rest)
        .ok_or("it must start with `skill://`")?;
    if let Some(bad) = rest.chars().find(|c| "?#".contains(*c)) {
        return Err(format!("it has the character {bad:?}"));
    }
    // Decoded before it is split and checked, so that `%2e%2e` is refused as `..` is.
    let decoded = percent_decode_str(rest)
        .decode_utf8()
        .map_err(|_| "its percent-encoding is not UTF-8".to_owned())?;
    let segments: Vec<&str> = decoded.split('/').collect();
    let (source, author, version, slug, path) = match segments.as_slice() {
        [""] | ["", FilePath::SKILL_MD] => return Err("it names no skill".to_owned()),
        [name] | [name, FilePath::SKILL_MD] => {
            return Ok(SkillUri {
                skill: Reference::Name((*name).to_owned()),
                version: VersionSelector::Active,
                file: None,
            });
        }
        [source, author, version, slug, path @ ..] if version.starts_with('@') => {
            let selector = VersionSelector::parse(&version[1..]).ok_or_else(|| {
                let version = shown(version, 60);
                format!("`{version}` names no version; write `@1.2.0` or `@3`")
            })?;
            (source, author, selector, slug, path)
        }
        [source, author, slug, path @ ..] => (source, author, VersionSelector::Active, slug, path),
        _ => {
            return Err(
                "it must be `skill://NAME` or `skill://SOURCE/AUTHOR/NAME`, then the path of a file"
                    .to_owned(),
            );
        }
    };
    let id = SkillId::new(source, author, slug).map_err(|error| error.to_string())?;
    let file = (!path.is_empty()).then(|| path.join("/").parse::<FilePath>());
    Ok(SkillUri {
        skill: Reference::Id(id),
        version,
        file: file.transpose().map_err(|error| error.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> SkillUri {
        text.parse().expect("a URI")
    }

    #[test]
    fn what_callers_put_credentials_in_is_not_repeated() {
        for (text, shown) in [
            ("skill://write_sql?token=abc", "skill://write_sql"),
            ("skill://write_sql#abc", "skill://write_sql"),
            ("skill://abc@host/x", "skill://"),
            ("https://user:abc@host/x", "https://"),
            ("user:abc@host", ""),
            ("skill://a/b/@1.2.0/c:", "skill://a/b/@1.2.0/c:"),
        ] {
            assert_eq!(SkillUri::without_credentials(text), shown);
            let refused = text.parse::<SkillUri>().expect_err("a refusal");
            let message = refused.to_string();
            assert!(
                message.starts_with(&format!("`{shown}` ")) && !message.contains("abc"),
                "{message}"
            );
        }
    }

    #[test]
    fn every_form_of_an_address_is_understood() {
        let id: SkillId = "github/acme/refunds".parse().expect("an id");
        assert_eq!(
            read("skill://refunds").skill,
            Reference::Name("refunds".to_owned())
        );
        assert_eq!(read("skill://refunds/SKILL.md"), read("SKILL://refunds"));
        let whole = read("skill://github/acme/refunds");
        assert_eq!((whole.skill, whole.file), (Reference::Id(id.clone()), None));
        let file = read("skill://github/acme/refunds/references/a%20b.md");
        assert_eq!(file.file.expect("a file").as_str(), "references/a b.md");
        let version = read("skill://github/acme/@1.2.0/refunds/SKILL.md");
        assert_eq!(
            version.version,
            VersionSelector::Semantic(semver::Version::new(1, 2, 0))
        );
        assert_eq!(
            version.to_string(),
            "skill://github/acme/@1.2.0/refunds/SKILL.md"
        );
    }

    #[test]
    fn what_is_not_an_address_is_refused_with_the_form_that_is() {
        for bad in [
            "",
            "refunds",
            "http://a/b/c",
            "skill://",
            "skill:///SKILL.md",
            "skill://a/b",
            "skill://a/b/c?x",
            "skill://a/b/c#x",
            "skill://a/b/@x/c",
            "skill://a/b/@0/c",
            "skill://a/b/@1.0.0",
            "skill://a/b/c/../d",
            "skill://a/b/c/%2e%2e/d",
            "skill://a/b/c/",
            "skill://a/b/c/%ff",
            "skill://a/b/c/%00",
        ] {
            assert!(bad.parse::<SkillUri>().is_err(), "{bad:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn an_address_reads_back_what_it_writes(path in "[a-zA-Z0-9 _.é日%+-]{1,12}(/[a-zA-Z0-9 _é%]{1,8}){0,3}", number in 1_u32..) {
            let Ok(file) = path.parse::<FilePath>() else { return Ok(()) };
            let id: SkillId = "github/acme/refunds".parse().expect("an id");
            let mut uri = SkillUri::of(&id, &file);
            prop_assert_eq!(&read(&uri.to_string()), &uri);
            uri.version = VersionSelector::parse(&number.to_string()).expect("a number");
            prop_assert_eq!(&read(&uri.to_string()), &uri);
        }

        #[test]
        fn any_text_is_an_address_or_refused(text in "(skill://)?.{0,60}") {
            let _read: Result<SkillUri, _> = text.parse();
        }
    }
}
