//! Names of skills, and slugs of names that break the standard.

use unicode_normalization::UnicodeNormalization as _;

/// Characters a description may have by the Agent Skills standard.
pub const MAX_STANDARD_DESCRIPTION_CHARS: usize = 1_024;

/// Characters a name may have (Agent Skills specification, `name`).
pub const MAX_SLUG_CHARS: usize = 64;

/// The name follows the Agent Skills standard: 1–64 of `a-z0-9-`, no hyphen at
/// an edge, no two hyphens in a row.
#[must_use]
pub fn is_standard_name(name: &str) -> bool {
    (1..=MAX_SLUG_CHARS).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The slug of a name: lower case, accents dropped, any other run of characters
/// a hyphen, 64 at most. Underscores stay, since names in use have them.
///
/// `None` where nothing is left, as of a name in Chinese.
#[must_use]
pub fn slugify(name: &str) -> Option<String> {
    let mut slug = String::with_capacity(name.len().min(MAX_SLUG_CHARS));
    let mut gap = false;
    let plain = name
        .nfkd()
        .filter(|c| !unicode_normalization::char::is_combining_mark(*c));
    for c in plain.flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() || c == '_' {
            if gap && !slug.is_empty() {
                slug.push('-');
            }
            gap = false;
            slug.push(c);
        } else {
            gap = true;
        }
        if slug.len() >= MAX_SLUG_CHARS {
            break;
        }
    }
    // A hyphen and a letter are pushed together, so there may be one too many.
    slug.truncate(MAX_SLUG_CHARS);
    let slug = slug.trim_matches(['-', '_']);
    (!slug.is_empty()).then(|| slug.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_slugs_that_a_person_expects() {
        for (name, slug) in [
            ("pdf", Some("pdf")),
            ("write_sql", Some("write_sql")),
            ("My Custom Skill", Some("my-custom-skill")),
            ("  Émile's  (Guide) ", Some("emile-s-guide")),
            ("a/b", Some("a-b")),
            ("--x--", Some("x")),
            ("日本語", None),
            ("", None),
        ] {
            assert_eq!(slugify(name).as_deref(), slug, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn a_slug_is_its_own_slug_and_a_standard_name_stays(name in ".{0,100}") {
            if let Some(slug) = slugify(&name) {
                prop_assert_eq!(slugify(&slug), Some(slug.clone()));
                prop_assert!(slug.len() <= MAX_SLUG_CHARS);
            }
            if is_standard_name(&name) {
                prop_assert_eq!(slugify(&name), Some(name));
            }
        }
    }
}
