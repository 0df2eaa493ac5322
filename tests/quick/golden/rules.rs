//! The page of the rules of the scan.

use std::fmt::Write as _;

use trust::rules;

use super::check;

#[test]
fn the_page_of_the_rules_lists_every_one() {
    let mut page = include_str!("scan-rules.head.md").to_owned();
    for rule in rules() {
        let owasp = if rule.owasp.is_empty() {
            "–"
        } else {
            &rule.owasp
        };
        writeln!(
            page,
            "| `{}` | {} | {} | {} | {owasp} | {} | {} |",
            rule.id,
            rule.title,
            rule.category.name(),
            rule.severity.name(),
            rule.description,
            rule.fix
        )
        .expect("text");
    }
    check("docs/scan-rules.md", &page);
}
