//! Versions as manifests write them.

use super::text;

/// Operators that name a single version. Those
/// that only name a bound (`>=`, `<`) are not among them: such a requirement is shown as written.
const SIMPLE: &[&str] = &["===", "==", "~>", "~=", "^", "~", "="];

/// Formats a requirement for the answer: bare where a single version
/// follows a simple operator, else as written; none where it names no version
/// (any version, a folder, an address).
///
/// `^18.2.0` is `18.2.0`, `>=3.11` and `1.2 || 2` stay as they are.
pub(super) fn shown(requirement: &str) -> Option<String> {
    let text = requirement.trim();
    // An alias of npm: `npm:react@^18`, `jsr:@std/path@1`.
    let text = match text.strip_prefix("npm:").or(text.strip_prefix("jsr:")) {
        Some(alias) => alias.rsplit_once('@').map_or("", |(_, version)| version),
        None => text,
    };
    let text = text.strip_prefix("workspace:").unwrap_or(text).trim();
    // Addresses may hold secrets, and none of these is a version.
    let elsewhere = text.contains("://") || text.contains(['/', '\\', '$', '@', '{']);
    if elsewhere || text.contains(':') || matches!(text, "" | "*" | "^" | "~" | "x") {
        return None;
    }
    text::name(bare(text).unwrap_or(text))
}

fn bare(text: &str) -> Option<&str> {
    let rest = SIMPLE
        .iter()
        .find_map(|operator| text.strip_prefix(operator))
        .unwrap_or(text)
        .trim();
    let version = rest.strip_prefix('v').unwrap_or(rest);
    let single = version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '!' | '_'));
    single.then_some(version)
}

/// Chooses the version that a requirement means: the only one, else the only
/// one that begins with the same number.
pub(super) fn among<'a>(versions: &'a [String], requirement: Option<&str>) -> Option<&'a str> {
    if let [only] = versions {
        return Some(only);
    }
    let wanted = requirement.and_then(|text| bare(text.trim()))?;
    // `1.2` before `1`: a lockfile often has several versions of one major.
    for parts in [2, 1] {
        let begin = |text: &str| -> Vec<String> {
            let core = text.split(['-', '+']).next().unwrap_or_default();
            core.split('.').take(parts).map(str::to_owned).collect()
        };
        let mut fitting = versions.iter().filter(|v| begin(v) == begin(wanted));
        if let (Some(one), None) = (fitting.next(), fitting.next()) {
            return Some(one);
        }
    }
    None
}
